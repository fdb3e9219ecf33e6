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

// watcher is a reporter that records where a run began.
type watcher struct {
	discard
	mu      sync.Mutex
	resumed string
}

func (w *watcher) Notice(n coordinator.Notice) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n.Reason == "Resumed" {
		w.resumed = n.Message
	}
}

// interrupted runs a job for a few steps, ends it as Ctrl-C does, and returns its notice of where it began. It counts
// steps, not time, so that the job comes to its end on a busy machine, too.
func interrupted(t *testing.T, spec trainingjob.Job, kernel string) (_ master.Result, resumed string) {
	t.Helper()
	j, text := load(t, spec, options(1, kernel))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	w, h, steps := &watcher{}, master.Record(j), 3+rand.Int64N(10)
	meanwhile := func(ctx context.Context, _ string) {
		if poll(ctx, func() bool { return h.Snapshot().Steps >= steps }) {
			stop()
		}
	}
	p := processes{least: 1, most: 2, threads: 1, pace: 10 * time.Millisecond, meanwhile: meanwhile}
	p.reporter, p.history = w, h
	return p.train(ctx, t, j, text, spec.Output), w.resumed
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
		result, resumed = interrupted(t, spec, fastest)
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
	for range 20 {
		result, resumed := interrupted(t, spec, "portable")
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
