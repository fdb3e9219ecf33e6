package coordinator

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// virtualTime simulates workers of given speeds against a coordinator: time jumps from event to event.
type virtualTime struct {
	*testing.T
	c        *Coordinator
	k        int
	now      time.Duration
	workers  []*player
	assigned map[int]int // worker → number of virtual workers assigned to it
	backups  int         // virtual workers that were assigned to a backup
	end      *Exit
	after    int64 // the step of a Withdraw, −1 for none
	hash     func(worker int, step int64, v int) uint32
}

// player is a worker: it computes one minibatch after the other, and reads its messages between two of them.
type player struct {
	id        int
	minibatch time.Duration
	inbox     []any
	step      int64
	todo      []int
	done      []int
	busy      time.Duration // until then it computes todo[0]; 0 when it does not
}

func newVirtualTime(t *testing.T, steps int64, k int, minibatches ...time.Duration) *virtualTime {
	t.Helper()
	n := len(minibatches)
	w := &virtualTime{T: t, k: k, assigned: map[int]int{}, after: -1, hash: func(_ int, step int64, v int) uint32 { return uint32(step)<<8 | uint32(v) }}
	w.c = New(Config{
		Steps: steps, Minibatches: func(int64) int { return k }, Identity: Identity{Lineage: "l", Job: "j", Numerics: 1},
		Min: 1, Max: n, LastWorkerID: -1, SilentTicks: 10, RetainedUpdates: 4, HashEvery: 100, CheckEvery: 1000, CheckpointEvery: 50, MaxFailures: 3,
	})
	for id, d := range minibatches {
		w.workers = append(w.workers, &player{id: id, minibatch: d})
	}
	w.do(Start{})
	for id := range n {
		w.do(PodChanged{Worker: id, State: PodRunning, Minimum: id == 0})
		w.do(Hello{Worker: id, Identity: w.c.cfg.Identity, Hash: "h", OwnHash: "h", Machine: Machine{Node: fmt.Sprintf("node-%d", id), CPU: "a processor", Kernel: "avx2"}})
	}
	return w
}

func (w *virtualTime) do(e Event) {
	for _, e := range append(slices.Clone(w.c.Step(Clock{At: w.now})), slices.Clone(w.c.Step(e))...) {
		switch e := e.(type) {
		case Assign:
			w.workers[e.Worker].inbox = append(w.workers[e.Worker].inbox, e)
			w.assigned[e.Worker] += len(e.VirtualWorkers)
			for _, v := range e.VirtualWorkers {
				if w.c.work.backup[v] == e.Worker {
					w.backups++
				}
			}
		case Publish:
			for _, p := range w.workers {
				p.inbox = append(p.inbox, e)
				w.assigned[p.id] += len(e.Next[p.id])
			}
			if e.Hash {
				w.do(StateHash{Worker: -1, Step: e.Step + 1, Hash: "h"})
			}
		case Checkpoint:
			w.do(CheckpointWritten{Step: e.Step})
		case Withdraw:
			w.after = e.After
		case Exit:
			w.end = &e
		}
	}
}

// read makes a worker read its messages, between two minibatches.
func (w *virtualTime) read(p *player) {
	for len(p.inbox) > 0 {
		m := p.inbox[0]
		p.inbox = p.inbox[1:]
		switch m := m.(type) {
		case Assign:
			if m.Step == p.step {
				p.todo = append(p.todo, m.VirtualWorkers...)
			}
		case Publish:
			p.step, p.todo, p.done = m.Step+1, slices.Clone(m.Next[p.id]), nil
			if m.Hash {
				w.do(StateHash{Worker: p.id, Step: p.step, Hash: "h"})
			}
			if len(p.todo) == 0 {
				w.do(Applied{Worker: p.id, Step: p.step})
			}
		}
	}
	if len(p.todo) > 0 && p.busy == 0 {
		p.busy = w.now + p.minibatch
	}
}

// computed is the end of a minibatch: the worker sends sums of neighbours when all its work is done.
func (w *virtualTime) computed(p *player) {
	p.done, p.todo, p.busy = append(p.done, p.todo[0]), p.todo[1:], 0
	if len(p.todo) > 0 {
		return
	}
	slices.Sort(p.done)
	for done, n := p.done, 0; len(done) > 0; done = done[n:] {
		g := Gradient{Worker: p.id, Step: p.step, Lo: done[0]}
		for n = 0; n < len(done) && done[n] == g.Lo+n; n++ {
			g.Hashes = append(g.Hashes, w.hash(p.id, p.step, done[n]))
		}
		g.Hi = g.Lo + n
		w.do(g)
	}
	p.done = nil
}

// runTo runs until a step is being computed, or the job has ended. It returns the time.
func (w *virtualTime) runTo(step int64) time.Duration {
	w.Helper()
	for w.c.StepsDone() < step && w.end == nil {
		next := time.Duration(-1)
		for _, p := range w.workers {
			if p.busy == 0 {
				w.read(p)
			}
			if p.busy > 0 && (next < 0 || p.busy < next) {
				next = p.busy
			}
		}
		if at, ok := w.c.Deadline(); ok && (next < 0 || at < next) {
			next = at
		}
		if slices.ContainsFunc(w.workers, func(p *player) bool { return p.busy == 0 && len(p.inbox) > 0 }) {
			continue
		}
		if next < 0 {
			w.Fatalf("at step %d nobody computes anything", w.c.StepsDone())
		}
		w.now = next
		w.do(Clock{At: w.now})
		for _, p := range w.workers {
			if p.busy > 0 && p.busy <= w.now {
				w.computed(p)
			}
		}
	}
	return w.now
}

// usual is how long a minibatch takes.
const usual = 50 * time.Millisecond

// speeds are the latencies of n usual workers, and of more.
func speeds(n int, more ...time.Duration) []time.Duration {
	return append(slices.Repeat([]time.Duration{usual}, n), more...)
}

func TestSpeculationHidesAWorkerThatIsTenTimesSlower(t *testing.T) {
	const steps = 1000
	for name, c := range map[string]struct{ k, others int }{
		"two workers":                         {2, 1},
		"eight workers, a minibatch each":     {8, 7},
		"eight workers, two minibatches each": {16, 7},
		"fewer workers than minibatches":      {7, 3},
	} {
		t.Run(name, func(t *testing.T) {
			without := newVirtualTime(t, steps, c.k, speeds(c.others)...).runTo(steps)
			w := newVirtualTime(t, steps, c.k, speeds(c.others, 10*usual)...)
			with := w.runTo(steps)
			t.Logf("%v a step with the slow one, %v without; it was assigned %d of %d, and %d had backups", with/steps, without/steps, w.assigned[c.others], steps*c.k, w.backups)
			if float64(with) > 1.1*float64(without) {
				t.Errorf("%d steps took %v with the slow worker, and %v without it", steps, with, without)
			}
			if w.end != nil && w.end.Code != ExitDone {
				t.Errorf("it ended: %v", w.end)
			}
		})
	}
}

func TestSpeculationUsesAWorkerInBackoffWhenThereIsNoOther(t *testing.T) {
	w := newVirtualTime(t, 500, 2, speeds(2)...)
	w.runTo(100)
	w.workers[0].minibatch *= 10
	w.runTo(150)
	w.workers[0].minibatch /= 10
	w.workers[1].minibatch = time.Hour // while the other one is in back-off
	if w.runTo(500); w.c.StepsDone() < 500 || w.now > time.Hour {
		t.Errorf("after %v it stands at step %d", w.now, w.c.StepsDone())
	}
}

func TestSpeculationAssignsWorkAgainToASlowWorkerThatRecovers(t *testing.T) {
	w := newVirtualTime(t, 2000, 8, speeds(8)...)
	w.workers[3].minibatch *= 10
	w.runTo(500)
	w.workers[3].minibatch /= 10
	w.runTo(500 + 2*maxBackoffSteps) // it backs off, and then it is in time
	w.assigned[3] = 0
	w.runTo(1000)
	if want := 1000 - 500 - 2*maxBackoffSteps; w.assigned[3] < want {
		t.Errorf("it was assigned %d virtual workers in %d steps", w.assigned[3], want)
	}
}

func TestSpeculationMakesNoBackupsWhenAllWorkersAreSlow(t *testing.T) {
	w := newVirtualTime(t, 500, 8, speeds(4)...)
	w.runTo(100)
	for _, p := range w.workers {
		p.minibatch *= 3 // all of them late, none idle
	}
	w.runTo(100 + latencyWindow) // that is usual now
	w.backups = 0
	w.runTo(400)
	if w.backups > 8 { // the checks
		t.Errorf("%d virtual workers had backups", w.backups)
	}
}

func TestSpeculationChecksOneInAThousandGradients(t *testing.T) {
	for _, k := range []int{1, 7} {
		w := newVirtualTime(t, 4000, k, speeds(3)...)
		w.runTo(3999)
		if w.backups != 4*k || w.end != nil {
			t.Errorf("of %d in each of 3999 steps %d were; it ended: %v", k, w.backups, w.end)
		}
	}
}

func TestSpeculationFindsAWorkerThatComputesOneWrongBitWithinAThousandSteps(t *testing.T) {
	for corrupt := range 8 {
		w := newVirtualTime(t, 2000, 8, speeds(8)...)
		good := w.hash
		const since = 430
		w.hash = func(worker int, step int64, v int) uint32 {
			if worker == corrupt && step >= since {
				return good(worker, step, v) ^ 1<<17
			}
			return good(worker, step, v)
		}
		w.runTo(2000)
		step := w.c.StepsDone()
		if w.end == nil || w.end.Code != ExitJobFailed || !strings.Contains(w.end.Reason, fmt.Sprintf("worker %d (node node-%d, a processor, avx2 kernels)", corrupt, corrupt)) {
			t.Fatalf("worker %d computes wrongly since step %d; at step %d: %+v", corrupt, since, step, w.end)
		}
		if step >= since+1000 {
			t.Errorf("worker %d computes wrongly since step %d, and that was found in step %d", corrupt, since, step)
		}
		if w.after < 0 || w.after > since {
			t.Errorf("worker %d computes wrongly since step %d; only what was written after step %d is withdrawn", corrupt, since, w.after)
		}
	}
}
