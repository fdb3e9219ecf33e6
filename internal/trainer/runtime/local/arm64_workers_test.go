package local_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/kernel/arm64test"
)

// emulatedTrainer is the environment variable that replaces the program of worker 0: it has the paths of the emulator
// and of elastic-trainer for arm64, as a list.
const emulatedTrainer = "EMULATED_TRAINER"

func TestAJobGivesOneHashWithWorkersOnAMD64AndOnARM64(t *testing.T) {
	emulator := arm64test.Emulator(t)
	spec := reference("testdata/reference_model.py")
	if os.Getenv("ELASTIC_SOAK") == "" {
		spec.Data.Training = "synthetic://digits?records=200&seed=1" // five steps: an emulator takes its time
	}
	want := train(t, spec, run{workers: 1, threads: 1})
	trainer := arm64test.Build(t, []string{"build"}, "../../../../cmd/elastic-trainer")
	t.Setenv(emulatedTrainer, emulator+string(filepath.ListSeparator)+trainer)
	for name, workers := range map[string]int{"one worker, on arm64": 1, "a worker on each": 2} {
		t.Run(name, func(t *testing.T) {
			if hash := train(t, spec, run{workers: workers, threads: 1}); hash != want {
				t.Errorf("hash %s, and %s without arm64", hash, want)
			}
		})
	}
}

// emulatedWorker becomes the `worker` command of the program in an emulator. Its kernels are chosen by name, so that
// no other processor can have computed anything.
func emulatedWorker(paths, args []string) int {
	command := slices.Concat(paths, args, []string{"--kernel", "neon"})
	fmt.Fprintf(os.Stderr, "starting %q: %v\n", command, syscall.Exec(command[0], command, os.Environ()))
	return 1
}
