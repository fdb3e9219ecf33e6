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
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/observe/history"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/coordinator"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/allreduce"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/master"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/worker"
)

func TestAllReduceGivesTheHashOfAggregationAtTheMaster(t *testing.T) {
	for _, model := range []string{"reference_model", "residual_model"} {
		if testing.Short() && model != "reference_model" {
			continue
		}
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
			if testing.Short() && (least == 3) != (point == allreduce.FinishedSome) {
				continue
			}
			t.Run(fmt.Sprintf("%s, at least %d", name, least), func(t *testing.T) {
				deaths := t.TempDir()
				t.Setenv(diesAt, fmt.Sprint(int(point), " ", deaths))
				_, hash := trainWithAllReduce(t, spec, processes{least: least, most: 3}, nil)
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
	spec.Training.Epochs = 2
	want := train(t, spec, run{workers: 1, threads: 1})
	asked := map[int]bool{}
	p := processes{least: 2, most: 3}
	notices, hash := trainWithAllReduce(t, spec, p, func(ctx context.Context, output string, seen *noticeRecorder) {
		poll(ctx, func() bool {
			candidates := slices.DeleteFunc(ready(seen.history), func(id int) bool { return asked[id] })
			if len(candidates) < 2 || seen.count("WorkerLeft") < len(asked) {
				return false // the one before has not left yet
			}
			if id := candidates[rand.IntN(len(candidates))]; signalWorker(output, id, syscall.SIGTERM) {
				asked[id] = true
			}
			return false // until the job ends
		})
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
	if left == 0 || left > len(asked) || lost > 0 {
		t.Errorf("%d were asked to leave, %d left and %d were lost: %v", len(asked), left, lost, notices)
	}
}

func TestTrainingContinuesWithoutAPausedWorkerThatReturns(t *testing.T) {
	spec := reference("testdata/reference_model.py")
	spec.Training.Epochs = 6 // so that it lasts longer than until the pause
	want := train(t, spec, run{workers: 1, threads: 1})
	p := processes{least: 1, most: 3, silence: time.Second}
	notices, hash := trainWithAllReduce(t, spec, p, func(ctx context.Context, output string, seen *noticeRecorder) {
		steps := func() int64 { return seen.history.Snapshot().Steps }
		var paused int
		if !poll(ctx, func() bool {
			members := ready(seen.history)
			if len(members) < 2 || steps() == 0 {
				return false // they have not begun
			}
			paused = members[0]
			return signalWorker(output, paused, syscall.SIGSTOP)
		}) {
			return
		}
		poll(ctx, func() bool { return seen.says("stopped responding") })
		before := steps()
		poll(ctx, func() bool { return steps() > before }) // without it
		signalWorker(output, paused, syscall.SIGCONT)
	})
	if hash != want {
		t.Errorf("hash %s, and %s with aggregation at the master", hash, want)
	}
	if !slices.ContainsFunc(notices, says("stopped responding")) {
		t.Errorf("no worker was lost: %v", notices)
	}
}

// noticeRecorder records the notices of a run.
type noticeRecorder struct {
	discard
	history *history.Recorder // of the run
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

func (r *noticeRecorder) says(words string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.notices, says(words))
}

func says(words string) func(coordinator.Notice) bool {
	return func(n coordinator.Notice) bool { return strings.Contains(n.Message, words) }
}

// trainWithAllReduce trains a job with all-reduce, and calls meanwhile while it trains.
func trainWithAllReduce(
	t *testing.T, spec trainingjob.Job, p processes, meanwhile func(ctx context.Context, output string, notices *noticeRecorder),
) ([]coordinator.Notice, string) {
	t.Helper()
	spec.Training.Aggregation = trainingjob.AggregationAllReduce
	j, text := load(t, spec, options(1, ""))
	r := noticeRecorder{history: master.Record(j)}
	p.threads, p.pace, p.reporter, p.history = 1, 10*time.Millisecond, &r, r.history
	if meanwhile != nil {
		p.meanwhile = func(ctx context.Context, output string) { meanwhile(ctx, output, &r) }
	}
	result := p.train(t.Context(), t, j, text, t.TempDir())
	if result.Model == nil {
		t.Fatalf("%+v; %v", result, r.notices)
	}
	return r.notices, result.Model.SHA256
}
