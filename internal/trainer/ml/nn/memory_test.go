package nn_test

import (
	"strings"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/kernel"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/nn"
)

func TestAMinibatchThatTheMemoryDoesNotHoldIsRefusedBeforeItIsAllocated(t *testing.T) {
	for memory, want := range map[int64]string{
		1 << 30: "and at most 1.0 GiB can be taken here; choose a smaller minibatch size",
		0:       "and at most 256.0 GiB can be taken here; choose a smaller minibatch size",
	} {
		n, err := nn.Compile(small(), nn.Options{Kernel: kernel.Portable(), MaxBatch: 100_000_000, MemoryBytes: memory})
		if err == nil {
			n.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d bytes of memory: %v; %q is wanted", memory, err, want)
		}
	}
}
