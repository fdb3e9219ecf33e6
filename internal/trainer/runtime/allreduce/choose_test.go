package allreduce_test

import (
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/allreduce"
)

func TestPaysOnlyForManyWorkersOrLargeModelsAndForEveryLargerNumberOfWorkers(t *testing.T) {
	const tutorial, cifar, large = 4 * 111_114, 4 * 1_250_000, 4 * 25_000_000
	for name, c := range map[string]struct {
		bytes, workers int
		between        bool
	}{
		"a single worker":                  {large, 1, false},
		"a small gradient, two workers":    {4_000, 2, false},
		"the tutorial's network, two":      {tutorial, 2, false},
		"the tutorial's network, four":     {tutorial, 4, false},
		"a small gradient, sixteen":        {4_000, 16, false},
		"the CIFAR-10 network, eight":      {cifar, 8, true},
		"a hundred megabytes, two workers": {large, 2, true},
		"the tutorial's network, sixteen":  {tutorial, 16, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := allreduce.Pays(c.bytes, c.workers); got != c.between {
				t.Errorf("Pays(%d, %d) is %v", c.bytes, c.workers, got)
			}
		})
	}
	for _, bytes := range []int{tutorial, cifar, large} {
		before := false
		for workers := 1; workers <= 64; workers++ {
			now := allreduce.Pays(bytes, workers)
			if before && !now {
				t.Errorf("of %d bytes %d workers are faster with aggregation at the master, and fewer are not", bytes, workers)
			}
			before = now
		}
	}
}
