package local_test

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/artifact/safetensors"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/master"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/torchtest"
)

// disturbance is how many workers are killed (SIGKILL), the least time between kills, and how slowly they compute, so
// that the job lasts as long.
type disturbance struct {
	kills int
	apart time.Duration
	pace  time.Duration
}

func TestAScriptOfAFrameworkCountsEveryRecordOnceWhateverHappensToItsWorkers(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed")
	}
	const epochs, minibatches = 2, 14 * 5 // of each of 14 ranges of 30 records: four of 7, and one of 2
	t.Setenv("COUNTED_RECORDS", "420")
	spec := trainingjob.Job{
		Name: "counting", Namespace: "default", Model: trainingjob.Model{File: "../framework/testdata/counting.py"}, Command: []string{python},
		Data:     trainingjob.Data{Training: "indices://numbers?records=420", RecordsPerTask: 30},
		Training: trainingjob.Training{Epochs: epochs, MinibatchSize: 7, GradsToWait: 5, Seed: 3},
	}
	want := ""
	for name, d := range map[string]disturbance{"undisturbed": {}, "ten workers killed": {10, 150 * time.Millisecond, 60 * time.Millisecond}} {
		t.Run(name, func(t *testing.T) {
			result := trainScript(t, spec, 3, d)
			countedOnce(t, spec, result.Model, 420)
			if measured := tensor(t, result.Model.Files[0], "measured"); measured[1] != epochs*minibatches {
				t.Errorf("%v minibatches' statistics were applied, of %d", measured[1], epochs*minibatches)
			}
			if want == "" {
				want = result.Model.SHA256
			}
			if result.Model.SHA256 != want {
				t.Errorf("hash %s, and %s before", result.Model.SHA256, want)
			}
		})
	}
}

func TestTheTutorialsNetworkInPyTorchLearnsWhateverHappensToItsWorkers(t *testing.T) {
	python := torchtest.Find(t)
	spec := trainingjob.Job{
		Name: "torch", Namespace: "default", Model: trainingjob.Model{File: "../../../../examples/pytorch/mnist.py"}, Command: []string{python},
		Data:     trainingjob.Data{Training: "synthetic://digits?records=800&seed=1", Validation: "synthetic://digits?records=200&seed=2", RecordsPerTask: 100},
		Training: trainingjob.Training{Epochs: 1, MinibatchSize: 10, GradsToWait: 2, Seed: 1},
	}
	undisturbed := trainScript(t, spec, 1, disturbance{})
	disturbed := trainScript(t, spec, 3, disturbance{7, 500 * time.Millisecond, 250 * time.Millisecond})
	for _, result := range []master.Result{undisturbed, disturbed} {
		if result.Model.Accuracy < 0.4 {
			t.Errorf("accuracy %v; guessing has 0.1", result.Model.Accuracy)
		}
	}
	t.Logf("undisturbed: accuracy %v, SHA-256 %.12s; with workers killed: %v, %.12s; equal: %t",
		undisturbed.Model.Accuracy, undisturbed.Model.SHA256, disturbed.Model.Accuracy, disturbed.Model.SHA256, undisturbed.Model.SHA256 == disturbed.Model.SHA256)
}

// TestAPyTorchModelIsTheSameWhoeverComputedIt trains a model with every kind of state, with augmentation; see the
// script.
func TestAPyTorchModelIsTheSameWhoeverComputedIt(t *testing.T) {
	python := torchtest.Find(t, "numpy")
	const records = 120
	spec := trainingjob.Job{
		Name: "augmented", Namespace: "default", Model: trainingjob.Model{File: "../framework/testdata/augmented.py"}, Command: []string{python},
		Data:     trainingjob.Data{Training: "indices://a?records=120", Validation: "indices://b?records=20", RecordsPerTask: 30},
		Training: trainingjob.Training{Epochs: 2, MinibatchSize: 5, GradsToWait: 4, Seed: 1},
	}
	alone := trainScript(t, spec, 1, disturbance{})
	killed := trainScript(t, spec, 3, disturbance{5, 500 * time.Millisecond, 250 * time.Millisecond})
	if alone.Model.SHA256 != killed.Model.SHA256 || alone.Model.Loss != killed.Model.Loss {
		t.Errorf("one worker: %.12s, loss %v; three of which five were killed: %.12s, loss %v",
			alone.Model.SHA256, alone.Model.Loss, killed.Model.SHA256, killed.Model.Loss)
	}
	const steps = 2 * records / (5 * 4)
	file := alone.Model.Files[0]
	if count := stored(t, file, "count"); count.DType != safetensors.I64 || binary.LittleEndian.Uint64(count.Data) != 123456789 {
		t.Errorf("the counter is %v", count)
	}
	if tracked := stored(t, file, "norm.num_batches_tracked"); binary.LittleEndian.Uint64(tracked.Data) != steps {
		t.Errorf("batches tracked: %v, of %d steps", tracked, steps)
	}
	if unused := tensor(t, file, "unused"); !slices.Equal(unused, []float32{1, 1, 1}) {
		t.Errorf("a parameter without a gradient became %v", unused)
	}
	if head, embedding := tensor(t, file, "head.weight"), tensor(t, file, "embedding.weight"); !slices.Equal(head, embedding) {
		t.Error("tied weights differ")
	}
}

func TestAScriptThatFailsInEveryWorkerEndsTheJobWithItsLastLines(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed")
	}
	t.Setenv("COUNTED_RECORDS", "420")
	t.Setenv("COUNTING_DIVERGES_AT", "3")
	spec := trainingjob.Job{
		Name: "counting", Namespace: "default", Model: trainingjob.Model{File: "../framework/testdata/counting.py"}, Command: []string{python},
		Data:     trainingjob.Data{Training: "indices://numbers?records=420", RecordsPerTask: 30},
		Training: trainingjob.Training{Epochs: 1, MinibatchSize: 7, GradsToWait: 5, Seed: 3},
	}
	result := runScript(t, spec, 2, disturbance{})
	if result.Model != nil || !strings.Contains(result.Reason, "the loss is infinite") {
		t.Errorf("%+v", result)
	}
}

func trainScript(t *testing.T, spec trainingjob.Job, workers int, d disturbance) master.Result {
	t.Helper()
	result := runScript(t, spec, workers, d)
	if result.Model == nil {
		t.Fatalf("%+v", result)
	}
	return result
}

// runScript trains with processes, and kills workers at random and asks others to stop, but never so often that none
// can begin.
func runScript(t *testing.T, spec trainingjob.Job, workers int, d disturbance) master.Result {
	t.Helper()
	j, text := load(t, spec, options(1, ""))
	killed := 0
	result := processes{least: 1, most: workers, threads: 1, pace: d.pace, meanwhile: func(ctx context.Context, output string) {
		for killed < d.kills {
			select {
			case <-ctx.Done():
				return
			case <-time.After(d.apart + rand.N(d.apart)):
			}
			signal := syscall.SIGKILL
			if rand.IntN(4) == 0 {
				signal = syscall.SIGTERM // it finishes its minibatch
			}
			if pids := workersOf(output); len(pids) > 1 && syscall.Kill(pids[rand.IntN(len(pids))], signal) == nil && signal == syscall.SIGKILL {
				killed++
			}
		}
	}}.train(t.Context(), t, j, text, t.TempDir())
	if killed < min(5, d.kills) {
		t.Errorf("only %d workers were killed", killed)
	}
	return result
}
