package local_test

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/artifact/store"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/kernel"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/coordinator"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/master"
)

// watcher is a reporter that records where a run began, and signals its first worker.
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

// interrupted runs a job for a while, ends it as Ctrl-C does, and returns its notice of where it began.
func interrupted(t *testing.T, spec trainingjob.Job, kernel string, after time.Duration) (_ master.Result, resumed string) {
	t.Helper()
	j, text := load(t, spec, options(1, kernel))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	w := &watcher{joined: func() { time.AfterFunc(after, stop) }}
	result := processes{least: 1, most: 2, threads: 1, pace: 10 * time.Millisecond, reporter: w}.train(ctx, t, j, text, spec.Output)
	return result, w.resumed
}

// soon is how long a run lasts that has been interrupted n times before: longer each time, so that the job reaches
// its end on a busy machine, too.
func soon(stops int) time.Duration {
	return time.Duration(100+rand.IntN(200)) * time.Millisecond * time.Duration(4+stops) / 4
}

func TestAnInterruptedRunThatResumesEndsWithTheBitsOfOneThatNeverStopped(t *testing.T) {
	t.Run("the reference job", func(t *testing.T) { resumes(t, reference("testdata/reference_model.py")) })
	t.Run("tables and an optimizer that keeps arrays of each", func(t *testing.T) {
		spec := reference("../../ml/zoo/wide_deep.py")
		spec.Data.Training = data.Synthetic("census", 1200, 1)
		resumes(t, spec)
	})
}

// resumes interrupts a job of one epoch repeatedly, continues it with a second epoch, and compares.
func resumes(t *testing.T, spec trainingjob.Job) {
	t.Helper()
	fastest := kernel.Available()[0].Name
	spec.Training.Epochs = 2
	want := train(t, spec, run{kernel: fastest, workers: 2, threads: 1})

	spec.Output = t.TempDir()
	spec.Training.Epochs = 1
	stops := 0
	var result master.Result
	for range 20 {
		kept, err := filepath.Glob(filepath.Join(spec.Output, store.CheckpointsDir, "*", "*")) // none if no step was done
		if err != nil {
			t.Fatal(err)
		}
		var resumed string
		result, resumed = interrupted(t, spec, fastest, soon(stops))
		if len(kept) > 0 && resumed == "" {
			t.Error("an interrupted run started from step 0")
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
	if hash := train(t, spec, run{kernel: fastest, workers: 1, threads: 1, kills: 3}); hash != want {
		t.Errorf("one epoch with %d interruptions, and then another: hash %s, and undisturbed %s", stops, hash, want)
	}
}

func TestEveryRecordCountsOnceThroughInterruptions(t *testing.T) {
	spec := countingJob(t)
	spec.Output = t.TempDir()
	for stops := range 20 {
		result, resumed := interrupted(t, spec, "portable", soon(stops))
		if result.Model == nil {
			continue
		}
		if !strings.Contains(resumed, "training resumes from step") {
			t.Errorf("it was never interrupted: %q", resumed)
		}
		countedOnce(t, spec, result.Model, countedRecords)
		return
	}
	t.Error("it was interrupted 20 times, and did not come to its end")
}
