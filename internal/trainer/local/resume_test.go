package local_test

import (
	"context"
	"io"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/coordinator"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/job"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/kernel"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/local"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/master"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainingjob"
)

// watcher is a reporter that remembers where a run began, and tells of its first worker.
type watcher struct {
	discard
	joined func()

	mu      sync.Mutex
	resumed string
}

func (w *watcher) Notice(n coordinator.Notice) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch n.Reason {
	case "Resumed":
		w.resumed = n.Message
	case "WorkerJoined":
		w.joined()
	}
}

// interrupted runs a job for a while, as Ctrl-C ends it, and returns what it said of where it began.
func interrupted(t *testing.T, spec trainingjob.Job, o job.Options, after time.Duration) (_ master.Result, resumed string) {
	t.Helper()
	j, text := load(t, spec, o)
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	w := &watcher{joined: func() { time.AfterFunc(after, stop) }}
	result, err := local.Train(ctx, local.Config{
		Job: j, JobJSON: text, ModelName: "model.py", Min: 1, Max: 2, Output: spec.Output,
		WorkerArgs: []string{"--kernel", j.Kernel.Name, "--threads", "1", "--pace", "10ms", "--log-level", "error"},
		WorkerLog:  io.Discard, Listen: "127.0.0.1:0", Reporter: w, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	return result, w.resumed
}

func TestARunThatIsInterruptedAndGoesOnEndsWithTheBitsOfOneThatNeverStopped(t *testing.T) {
	t.Run("the reference job", func(t *testing.T) { goesOn(t, reference("testdata/reference_model.py")) })
	t.Run("tables and an optimizer that keeps arrays of each", func(t *testing.T) {
		spec := reference("../zoo/wide_deep.py")
		spec.Data.Training = data.Synthetic("census", 1200, 1)
		goesOn(t, spec)
	})
}

// goesOn interrupts a job of one epoch again and again, has it done with a second one, and compares.
func goesOn(t *testing.T, spec trainingjob.Job) {
	t.Helper()
	fastest := kernel.Available()[0].Name
	spec.Training.Epochs = 2
	want := train(t, spec, run{kernel: fastest, workers: 2, threads: 1})

	spec.Output = t.TempDir()
	spec.Training.Epochs = 1
	stops := 0
	var result master.Result
	for range 20 {
		var resumed string
		result, resumed = interrupted(t, spec, job.Options{Threads: 1, Kernel: fastest}, time.Duration(100+rand.IntN(200))*time.Millisecond)
		if stops > 0 && resumed == "" {
			t.Error("a run that had been interrupted began anew")
		}
		if result.Model != nil {
			break
		}
		stops++
	}
	if result.Model == nil || stops == 0 {
		t.Fatalf("after %d interruptions: %+v", stops, result)
	}
	spec.Training.Epochs = 2
	j, text := load(t, spec, job.Options{Threads: 1, Kernel: fastest})
	result = trainLoaded(t, j, text, run{kernel: fastest, workers: 1, threads: 1, kills: 3})
	if result.Model == nil || result.Model.SHA256 != want {
		t.Errorf("one epoch with %d interruptions, and then another: %+v, and undisturbed the hash is %s", stops, result.Model, want)
	}
}

func TestEveryRecordCountsOnceThroughInterruptions(t *testing.T) {
	t.Setenv("COUNTING_MODEL", "1")
	spec := trainingjob.Job{
		Name: "counting", Namespace: "default", Model: trainingjob.Model{File: "testdata/counting_model.py"}, Output: t.TempDir(),
		Data:     trainingjob.Data{Training: numbered(t, countedRecords), Format: "recordio", Codec: "bytes", RecordsPerTask: 30},
		Training: trainingjob.Training{Epochs: 2, MinibatchSize: 7, GradsToWait: 5, Seed: 3},
	}
	for range 20 {
		result, resumed := interrupted(t, spec, countingOptions(job.Options{Threads: 1, Kernel: "portable"}), 300*time.Millisecond)
		if result.Model == nil {
			continue
		}
		if !strings.Contains(resumed, "training goes on from step") {
			t.Errorf("it was never interrupted: %q", resumed)
		}
		for record, n := range float32s(t, result.Model.Files[0]) {
			if n != float32(spec.Training.Epochs) {
				t.Errorf("record %d was applied %v times in %d epochs", record, n, spec.Training.Epochs)
			}
		}
		return
	}
	t.Error("it was interrupted 20 times, and did not come to its end")
}
