package local_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/job"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/local"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/master"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/safetensors"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainingjob"
)

// disturbance is how many workers are killed (SIGKILL), how long apart at least, and how slowly they compute, so that the
// job lasts as long.
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
			for record, n := range tensor(t, result.Model.Files[0], "count") {
				if n != epochs {
					t.Errorf("record %d was applied %v times in %d epochs", record, n, epochs)
				}
			}
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
	const python = "/usr/bin/python3"
	if err := exec.CommandContext(t.Context(), python, "-c", "import torch").Run(); err != nil {
		t.Skip("PyTorch is not installed for " + python + " (python3-torch)")
	}
	spec := trainingjob.Job{
		Name: "torch", Namespace: "default", Model: trainingjob.Model{File: "../../../examples/pytorch/mnist.py"}, Command: []string{python},
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

// runScript trains with processes, and kills workers at random and asks others to stop, but never so often that none can
// begin.
func runScript(t *testing.T, spec trainingjob.Job, workers int, d disturbance) master.Result {
	t.Helper()
	path, err := filepath.Abs(spec.Model.File)
	if err != nil {
		t.Fatal(err)
	}
	spec.Model.File = path
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	j, err := job.Load(t.Context(), spec, filepath.Base(path), text, job.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	}()
	jobJSON, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	output := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	var killed atomic.Int64
	chaos := make(chan struct{})
	go func() {
		defer close(chaos)
		for killed.Load() < int64(d.kills) {
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
				killed.Add(1)
			}
		}
	}()
	result, err := local.Train(ctx, local.Config{
		Job: j, JobJSON: jobJSON, ModelName: filepath.Base(path), Min: 1, Max: workers, Output: output,
		WorkerArgs: []string{"--threads", "1", "--pace", d.pace.String(), "--log-level", "error"},
		WorkerLog:  io.Discard, Listen: "127.0.0.1:0", Reporter: discard{}, Log: slog.New(slog.DiscardHandler),
	})
	cancel()
	<-chaos
	if err != nil {
		t.Fatal(err)
	}
	if n := killed.Load(); n < min(5, int64(d.kills)) {
		t.Errorf("only %d workers were killed", n)
	}
	return result
}

// tensor is one of a model's.
func tensor(t *testing.T, path, name string) []float32 {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	tensors, _, err := safetensors.Read(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(tensors, func(t safetensors.Tensor) bool { return t.Name == name })
	if i < 0 {
		t.Fatalf("%s holds no tensor %q", path, name)
	}
	values, err := tensors[i].Float32s()
	if err != nil {
		t.Fatal(err)
	}
	return values
}
