package local_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/coordinator"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/allreduce"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/worker"
)

func TestAllReduceGivesTheHashOfAggregationAtTheMaster(t *testing.T) {
	for _, model := range []string{"reference_model", "residual_model"} {
		t.Run(model, func(t *testing.T) {
			givesOneHash(t, reference("testdata/"+model+".py"), ways{
				workers: []int{1, 2, 3, 4, 8}, kills: []int{0, 20}, aggregations: []string{trainingjob.AggregationAllReduce},
			}.runs())
		})
	}
}

// diesAt is the environment variable by which workers end themselves at a point of a step: its number, and a directory
// in which they record it.
const diesAt = "DIES_AT"

// mortals is how many workers die: the first ones, at different steps.
const mortals = 5

// dyingWorker is a worker that is killed (SIGKILL) at one point.
func dyingWorker(args []string) int {
	var point allreduce.Point
	var dir string
	if _, err := fmt.Sscan(os.Getenv(diesAt), &point, &dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return runWorker(args, func(c *worker.Config) {
		if c.ID >= mortals {
			return
		}
		c.At = func(p allreduce.Point, step int64) {
			if p != point || step < int64(2+4*c.ID) {
				return
			}
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprint("worker-", c.ID)), fmt.Appendln(nil, "step", step), 0o600); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	})
}

func TestAWorkerMayDieAtEveryPointOfAStep(t *testing.T) {
	spec := reference("testdata/reference_model.py")
	want := train(t, spec, run{workers: 1, threads: 1})
	for point, name := range map[allreduce.Point]string{
		allreduce.BeforeSending:  "before it has sent any of its part",
		allreduce.SentSome:       "when it has sent its part to one of the others",
		allreduce.BeforeFinished: "before it has sent its finished slice",
		allreduce.FinishedSome:   "when it has sent its finished slice to one of the others",
		allreduce.BeforeApplying: "with the whole sum, not applied",
		allreduce.BeforeSaying:   "when it has applied the sum, and not reported it",
		allreduce.AfterSaying:    "when it has reported that it has applied the sum",
	} {
		for _, least := range []int{1, 3} { // the others continue, or wait for another one
			t.Run(fmt.Sprintf("%s, at least %d", name, least), func(t *testing.T) {
				deaths := t.TempDir()
				t.Setenv(diesAt, fmt.Sprint(int(point), " ", deaths))
				_, hash := trainWithAllReduce(t, spec, least, 3, nil)
				if hash != want {
					t.Errorf("hash %s, and %s with aggregation at the master", hash, want)
				}
				died, err := filepath.Glob(filepath.Join(deaths, "worker-*"))
				if err != nil || len(died) < 2 {
					t.Errorf("only %v died: %v", died, err)
				}
			})
		}
	}
}

func TestRequestedLeavesHappenAtTheEndOfTheStepAndOthersJoin(t *testing.T) {
	spec := reference("testdata/reference_model.py")
	want := train(t, spec, run{workers: 1, threads: 1})
	notices, hash := trainWithAllReduce(t, spec, 1, 3, func(ctx context.Context, output string, _ *noticeRecorder) {
		for range 6 {
			select {
			case <-ctx.Done():
				return
			case <-time.After(150 * time.Millisecond):
			}
			if pids := workersOf(output); len(pids) > 0 {
				_ = syscall.Kill(pids[rand.IntN(len(pids))], syscall.SIGTERM)
			}
		}
	})
	if hash != want {
		t.Errorf("hash %s, and %s with aggregation at the master", hash, want)
	}
	left, lost := 0, 0
	for _, n := range notices {
		switch {
		case n.Reason == "WorkerLeft" && strings.Contains(n.Message, " left at step "):
			left++
		case n.Reason == "WorkerLeft":
			lost++
		}
	}
	if left == 0 || lost > 0 {
		t.Errorf("%d left after a request and %d were lost: %v", left, lost, notices)
	}
}

func TestTrainingContinuesWithoutAPausedWorkerThatReturns(t *testing.T) {
	spec := reference("testdata/reference_model.py")
	spec.Training.Epochs = 6 // so that it lasts longer than until the pause
	want := train(t, spec, run{workers: 1, threads: 1})
	notices, hash := trainWithAllReduce(t, spec, 1, 3, func(ctx context.Context, output string, seen *noticeRecorder) {
		for seen.count("WorkerJoined") < 3 && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
		paused := workersOf(output)
		if len(paused) == 0 {
			return
		}
		select {
		case <-time.After(300 * time.Millisecond): // they have begun
		case <-ctx.Done():
			return
		}
		_ = syscall.Kill(paused[0], syscall.SIGSTOP)
		select {
		case <-time.After(3 * time.Second):
		case <-ctx.Done():
		}
		_ = syscall.Kill(paused[0], syscall.SIGCONT)
	})
	if hash != want {
		t.Errorf("hash %s, and %s with aggregation at the master", hash, want)
	}
	if !slices.ContainsFunc(notices, func(n coordinator.Notice) bool { return strings.Contains(n.Message, "stopped responding") }) {
		t.Errorf("no worker was lost: %v", notices)
	}
}

// noticeRecorder records the notices of a run.
type noticeRecorder struct {
	discard
	mu      sync.Mutex
	notices []coordinator.Notice
}

func (r *noticeRecorder) Notice(n coordinator.Notice) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notices = append(r.notices, n)
}

func (r *noticeRecorder) count(reason string) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, notice := range r.notices {
		if notice.Reason == reason {
			n++
		}
	}
	return n
}

// trainWithAllReduce trains a job with all-reduce, and calls meanwhile while it trains.
func trainWithAllReduce(t *testing.T, spec trainingjob.Job, least, workers int, meanwhile func(ctx context.Context, output string, notices *noticeRecorder)) ([]coordinator.Notice, string) {
	t.Helper()
	spec.Training.Aggregation = trainingjob.AggregationAllReduce
	j, text := load(t, spec, options(1, ""))
	var r noticeRecorder
	p := processes{least: least, most: workers, threads: 1, pace: 10 * time.Millisecond, reporter: &r}
	if meanwhile != nil {
		p.meanwhile = func(ctx context.Context, output string) { meanwhile(ctx, output, &r) }
	}
	result := p.train(t.Context(), t, j, text, t.TempDir())
	if result.Model == nil {
		t.Fatalf("%+v; %v", result, r.notices)
	}
	return r.notices, result.Model.SHA256
}
