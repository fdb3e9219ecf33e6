package group

import (
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/coordinator"
)

// TestEachRecordCountsOnceAndTheJobEndsWhateverHappensToWorkers runs random schedules in virtual time: processes are
// killed, stopped and signalled to leave at every point, masters are replaced and the size changes. Then all of that
// ceases, and the job has to end. `go test -rapid.checks=20000` runs as many.
func TestEachRecordCountsOnceAndTheJobEndsWhateverHappensToWorkers(t *testing.T) {
	tally, schedules := map[string]int{}, 0
	rapid.Check(t, func(t *rapid.T) {
		multiple := rapid.SampledFrom([]int{1, 1, 1, 2}).Draw(t, "multiple")
		minimum := multiple * rapid.IntRange(1, 2).Draw(t, "minimum")
		w := newWorld(Config{
			Steps: rapid.Int64Range(1, 6).Draw(t, "steps"), Min: minimum, Max: minimum + rapid.IntRange(0, 3).Draw(t, "burst"),
			Multiple: multiple, MinPodsExternal: rapid.Bool().Draw(t, "external minimum"), LastWorkerID: -1,
			Gather: 3 * time.Second, JoinInterval: 200 * time.Millisecond, Settle: 200 * time.Millisecond,
			IdleTimeout: 5 * time.Second, RetryInterval: time.Second, MaxFailures: 1000, SilentTicks: 10,
			CheckpointEvery: rapid.Int64Range(0, 2).Draw(t, "checkpoint every"),
		}, rapid.IntRange(1, 5).Draw(t, "k"), t.Fatalf)
		for range rapid.IntRange(0, 200).Draw(t, "events") {
			if w.exit != nil {
				break
			}
			w.disturbed(t)
		}
		w.settle(t)
		schedules++
		for what, n := range w.tally {
			tally[what] += n
		}
	})
	for _, what := range slices.Sorted(maps.Keys(tally)) {
		t.Logf("%6d × %s", tally[what], what)
	}
	t.Logf("in %d schedules", schedules)
}

// disturbed is one random action, or a disturbance.
func (w *world) disturbed(t *rapid.T) {
	what := "act"
	if rapid.IntRange(0, 7).Draw(t, "calm") == 0 {
		what = rapid.SampledFrom([]string{"kill", "kill", "leave", "pause", "tick", "tick", "wait", "restart", "resize"}).Draw(t, "disturbance")
	}
	process := func() *process { // at a point that is drawn first: most processes join most of the time
		at := map[string][]int{}
		for _, id := range sorted(w.processes) {
			point := w.processes[id].point()
			at[point] = append(at[point], id)
		}
		if len(at) == 0 {
			return nil
		}
		point := rapid.SampledFrom(slices.Sorted(maps.Keys(at))).Draw(t, "point")
		return w.processes[rapid.SampledFrom(at[point]).Draw(t, "process")]
	}
	switch what {
	case "kill":
		if p := process(); p != nil {
			w.tally["SIGKILL: "+p.point()]++
			p.out = p.out[:rapid.IntRange(0, len(p.out)).Draw(t, "sent")]
			w.kill(p, "was lost")
		}
	case "leave":
		if p := process(); p != nil {
			w.tally["SIGTERM: "+p.point()]++
			p.leaves = true
		}
	case "pause":
		if p := process(); p != nil {
			if p.paused = !p.paused; p.paused {
				w.tally["SIGSTOP: "+p.point()]++
			}
		}
	case "tick":
		w.tick()
	case "wait":
		for range 12 {
			w.tick()
		}
	case "restart":
		w.restartMaster()
	case "resize":
		w.do(coordinator.Resize{Min: w.cfg.Min, Max: w.cfg.Min + rapid.IntRange(0, 3).Draw(t, "burst")})
	default:
		if actions := w.actions(); len(actions) > 0 {
			a := rapid.SampledFrom(actions).Draw(t, "action")
			a.do()
		} else {
			w.tick()
		}
	}
}

// settle lets everything that can happen happen, until the job is done.
func (w *world) settle(t *rapid.T) {
	for _, p := range w.processes {
		p.paused = false
	}
	idle := 0
	for i := 0; w.exit == nil; i++ {
		if i > 20_000 || idle > 1_000 {
			t.Fatalf("the job does not end: phase %v, step %d of %d, %d processes, %d pending pods, generation %+v, saver %d, %s",
				w.g.phase, w.g.step, w.cfg.Steps, len(w.processes), len(w.pending), w.g.current, w.g.saver, w.dump())
		}
		actions := w.actions()
		if len(actions) == 0 {
			idle++
			w.tick()
			continue
		}
		idle = 0
		actions[i%len(actions)].do()
		if i%50 == 0 {
			w.tick()
		}
	}
	if w.exit.Code != coordinator.ExitDone {
		t.Fatalf("the job ended with %d: %s", w.exit.Code, w.exit.Reason)
	}
	last := w.newestCheckpoint()
	if int64(len(last)) != w.cfg.Steps {
		t.Fatalf("the job is done, and the newest checkpoint is of step %d of %d", len(last), w.cfg.Steps)
	}
	for step, s := range last {
		if s.step != int64(step) {
			t.Fatalf("the sum of step %d was applied as step %d", s.step, step)
		}
		for v, n := range s.count {
			if n != 1 {
				t.Fatalf("virtual worker %d of step %d counts %d times", v, step, n)
			}
		}
	}
}
