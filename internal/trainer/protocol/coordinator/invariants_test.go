package coordinator

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// world simulates workers against a coordinator and checks the invariants at every effect.
type world struct {
	t        *rapid.T
	c        *Coordinator
	k        int
	todo     map[int]map[int]bool // worker → virtual workers of the current step in flight
	state    map[int]int64        // worker → step of its state, for workers with a stream
	alone    map[int]int64        // likewise, for those whose master has died
	follows  map[int]bool         // workers that are sent every update
	source   int                  // whose state is being fetched, or noWorker
	accepted map[string]bool
	parts    map[int]map[int]bool // worker → parts of the evaluation of the current state in flight
	answered map[int]bool         // parts of it that were accepted
	measured int64                // the step whose state was evaluated last, −1 for none
	step     int64
	pods     map[int]bool
	behind   bool // the master has yet to apply updates
	over     bool
	saved    bool
}

func (w *world) do(e Event) {
	if w.over {
		return
	}
	// Step's result is valid until the next call only.
	for _, e := range append([]Effect{}, w.c.Step(e)...) {
		w.effect(e)
	}
}

func (w *world) effect(e Effect) {
	switch e := e.(type) {
	case Accept:
		for v := e.Lo; v < e.Hi; v++ {
			key := fmt.Sprint(e.Step, "/", v)
			if w.accepted[key] {
				w.t.Fatalf("virtual worker %d of step %d was accepted twice", v, e.Step)
			}
			w.accepted[key] = true
		}
	case Evaluate:
		if at, there := w.state[e.Worker]; !there || at != w.step || e.Step != w.step {
			w.t.Fatalf("worker %d was assigned the evaluation of step %d, during step %d, and its state is at %d (connected %v)", e.Worker, e.Step, w.step, at, there)
		}
		for _, p := range e.Parts {
			if w.answered[p] {
				w.t.Fatalf("part %d of the evaluation of step %d was assigned again after it was accepted", p, w.step)
			}
			for other, parts := range w.parts {
				if parts[p] {
					w.t.Fatalf("part %d of the evaluation of step %d is with workers %d and %d", p, w.step, other, e.Worker)
				}
			}
			w.parts[e.Worker][p] = true
		}
	case AcceptEvaluation:
		if e.Step != w.step || w.answered[e.Part] {
			w.t.Fatalf("part %d of the evaluation of step %d was accepted during step %d, and %v were before", e.Part, e.Step, w.step, w.answered)
		}
		w.answered[e.Part] = true
	case Evaluated:
		if e.Step != w.step || len(w.answered) != w.c.cfg.EvaluationParts || w.measured == e.Step {
			w.t.Fatalf("the evaluation of step %d ended during step %d with parts %v; the last was that of step %d", e.Step, w.step, w.answered, w.measured)
		}
		w.measured = e.Step
	case Publish:
		w.evaluatedIfDue()
		if w.behind {
			w.t.Fatalf("step %d was published by a master that is behind", e.Step)
		}
		if e.Step != w.step {
			w.t.Fatalf("step %d was published after step %d", e.Step, w.step-1)
		}
		for v := range w.k {
			if !w.accepted[fmt.Sprint(e.Step, "/", v)] {
				w.t.Fatalf("step %d was published without virtual worker %d", e.Step, v)
			}
		}
		w.step++
		w.newStep()
		for id := range w.state {
			if w.follows[id] && w.state[id] == e.Step {
				w.state[id] = w.step
			}
			w.todo[id] = map[int]bool{}
		}
		if len(e.Next) > 0 {
			w.evaluatedIfDue()
		}
		for id, vs := range e.Next {
			w.assign(id, vs)
		}
	case Assign:
		w.evaluatedIfDue()
		if e.Step != w.step {
			w.t.Fatalf("work of step %d was assigned during step %d", e.Step, w.step)
		}
		w.assign(e.Worker, e.VirtualWorkers)
	case SendState, SendUpdates:
		id := 0
		if s, ok := e.(SendState); ok {
			id = s.Worker
		} else {
			id = e.(SendUpdates).Worker
		}
		w.state[id], w.follows[id] = w.step, true
	case Subscribe:
		w.follows[e.Worker] = true
	case FetchState:
		if w.state[e.Worker] <= w.step {
			w.t.Fatalf("the state of worker %d is fetched, at step %d, by a master at step %d", e.Worker, w.state[e.Worker], w.step)
		}
		w.source = e.Worker
	case AdoptState:
		if e.Step <= w.step {
			w.t.Fatalf("the master falls back from step %d to step %d", w.step, e.Step)
		}
		w.step, w.accepted = e.Step, map[string]bool{}
		w.newStep()
		clear(w.follows)
		for id := range w.todo {
			w.todo[id] = map[int]bool{}
		}
	case Disconnect:
		w.forget(e.Worker)
	case Refuse:
		w.forget(e.Worker)
	case CreatePod:
		if w.pods[e.Worker] {
			w.t.Fatalf("a second pod for worker %d", e.Worker)
		}
		if w.c.cfg.MinPodsExternal && (e.Minimum || e.Worker < w.c.cfg.Min) {
			w.t.Fatalf("a pod for worker %d, which is one of the minimum's", e.Worker)
		}
		w.pods[e.Worker] = true
	case Withdraw:
		w.t.Fatalf("all compute the same, and what was written after step %d is withdrawn", e.After)
	case SaveModel:
		w.evaluatedIfDue()
		w.saved = true
	case Exit:
		w.over = true
	}
}

// newStep forgets the parts of an evaluation in flight.
func (w *world) newStep() {
	w.answered = map[int]bool{}
	for id := range w.parts {
		w.parts[id] = map[int]bool{}
	}
}

// evaluatedIfDue checks that an evaluation that is due comes before the work of the next step and before the model is
// saved.
func (w *world) evaluatedIfDue() {
	cfg := w.c.cfg
	if cfg.EvaluationParts > 0 && w.step > 0 && w.measured != w.step && (w.step == cfg.Steps || cfg.EvaluatesAt(w.step)) {
		w.t.Fatalf("step %d begins, and its state has not been evaluated", w.step)
	}
}

func (w *world) assign(id int, vs []int) {
	if at, there := w.state[id]; !there || at != w.step {
		w.t.Fatalf("worker %d was assigned step %d but its state is at %d (connected %v)", id, w.step, at, there)
	}
	for _, v := range vs {
		if w.accepted[fmt.Sprint(w.step, "/", v)] && !slices.Contains(w.c.speculation.checks, v) {
			w.t.Fatalf("virtual worker %d of step %d was assigned again after it was accepted, and not for a check", v, w.step)
		}
		var with []int
		for _, other := range sortedKeys(w.todo) {
			if w.todo[other][v] {
				with = append(with, other)
			}
		}
		if len(with) > 1 || slices.Contains(with, id) {
			w.t.Fatalf("virtual worker %d of step %d is with workers %v, and now with %d", v, w.step, with, id)
		}
		if len(with) == 1 && !slices.Contains(w.c.speculation.checks, v) && !w.c.late(w.c.members[with[0]]) {
			w.t.Fatalf("virtual worker %d of step %d is with worker %d, which is not late, and now with %d", v, w.step, with[0], id)
		}
		w.todo[id][v] = true
	}
}

// forget is the end of a worker's stream.
func (w *world) forget(id int) {
	delete(w.state, id)
	delete(w.todo, id)
	delete(w.parts, id)
	delete(w.follows, id)
	if w.source == id {
		w.source = noWorker
	}
}

// restart replaces the master by a new one, which knows the pods and holds the initial state.
func (w *world) restart() {
	cfg := w.c.cfg
	cfg.Restarted, cfg.LastWorkerID, cfg.Min, cfg.Max = true, w.c.pods.lastID, w.c.pods.min, w.c.pods.max
	pods := w.c.pods.byWorker
	w.c, w.step, w.accepted, w.source, w.behind = New(cfg), 0, map[string]bool{}, noWorker, false
	for _, id := range sortedKeys(w.state) {
		w.alone[id] = w.state[id]
		w.forget(id)
	}
	w.measured = -1
	w.newStep()
	for _, id := range sortedKeys(pods) {
		p := pods[id]
		if _, runs := w.alone[id]; runs {
			p.state = PodRunning
		}
		w.do(PodChanged{Worker: id, State: p.state, Minimum: p.minimum, Terminating: p.retiring || p.ending})
	}
	w.do(Start{})
}

// fetched delivers the state that the master fetches.
func (w *world) fetched() {
	if id := w.source; id != noWorker {
		w.source = noWorker
		w.do(StateFetched{Worker: id, Step: w.state[id], Hash: "h"})
	}
}

func (w *world) hello(id int, step int64) {
	if held, ok := w.alone[id]; ok {
		step = held
		delete(w.alone, id)
	}
	w.todo[id], w.parts[id] = map[int]bool{}, map[int]bool{}
	w.state[id] = step
	own := "not known"
	if step == w.c.StateStep() {
		own = "h"
	}
	w.do(Hello{Worker: id, Identity: w.c.cfg.Identity, Step: step, Hash: "h", OwnHash: own})
	if _, there := w.state[id]; there {
		w.do(Applied{Worker: id, Step: w.state[id]})
	}
}

func (w *world) lose(id int) {
	w.forget(id)
	w.do(Lost{Worker: id, Reason: "was lost"})
}

func (w *world) compute(id, v int) {
	delete(w.todo[id], v)
	w.do(Gradient{Worker: id, Step: w.step, Lo: v, Hi: v + 1, Hashes: hashes(w.step, v, v+1)})
}

// computeAll sends the sum of the first neighbouring virtual workers in flight.
func (w *world) computeAll(id int) {
	vs := sortedKeys(w.todo[id])
	lo, hi := vs[0], vs[0]
	for ; slices.Contains(vs, hi); hi++ {
		delete(w.todo[id], hi)
	}
	w.do(Gradient{Worker: id, Step: w.step, Lo: lo, Hi: hi, Hashes: hashes(w.step, lo, hi)})
}

// computeLate sends a result of the step before, which is complete.
func (w *world) computeLate(id, v int) {
	if w.step > 0 {
		w.do(Gradient{Worker: id, Step: w.step - 1, Lo: v, Hi: v + 1, Hashes: hashes(w.step-1, v, v+1)})
	}
}

// hashes are the same for all workers: equal input gives equal bits.
func hashes(step int64, lo, hi int) (h []uint32) {
	for v := lo; v < hi; v++ {
		h = append(h, uint32(step)<<8|uint32(v))
	}
	return h
}

// measure sends the result of one part of the evaluation.
func (w *world) measure(id int) {
	if parts := sortedKeys(w.parts[id]); len(parts) > 0 {
		delete(w.parts[id], parts[0])
		w.do(EvaluationPart{Worker: id, Step: w.step, Part: parts[0]})
	}
}

func TestCoordinatorAppliesEveryVirtualWorkerOnceAndFinishesUnderFaults(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := rapid.IntRange(1, 6).Draw(t, "k")
		steps := rapid.Int64Range(1, 12).Draw(t, "steps")
		minimum := rapid.IntRange(1, 3).Draw(t, "min")
		w := &world{
			t:        t,
			k:        k,
			todo:     map[int]map[int]bool{},
			state:    map[int]int64{},
			alone:    map[int]int64{},
			follows:  map[int]bool{},
			source:   noWorker,
			accepted: map[string]bool{},
			pods:     map[int]bool{},
		}
		w.parts, w.answered, w.measured = map[int]map[int]bool{}, map[int]bool{}, -1
		w.c = New(Config{
			Steps:           steps,
			Minibatches:     func(int64) int { return k },
			EvaluationParts: rapid.IntRange(0, 3).Draw(t, "parts"),
			EvaluatesAt:     every(rapid.IntRange(0, 3).Draw(t, "evaluation every")),
			Identity:        Identity{Lineage: "l", Job: "j", Numerics: 1},
			Min:             minimum,
			Max:             minimum + 2,
			MinPodsExternal: rapid.Bool().Draw(t, "minimum pods are external"),
			LastWorkerID:    -1,
			SilentTicks:     10,
			RetainedUpdates: 4,
			HashEvery:       5,
			MaxFailures:     3,
			CheckEvery:      rapid.Int64Range(0, 3).Draw(t, "check every"),
		})
		w.do(Start{})
		var now time.Duration
		for range rapid.IntRange(0, 150).Draw(t, "events") {
			id := rapid.IntRange(0, 5).Draw(t, "worker")
			_, connected := w.state[id]
			switch rapid.SampledFrom([]string{
				"hello", "lose", "leave", "compute", "compute", "compute", "compute all", "measure", "measure", "compute late", "clock", "clock",
				"behind", "applied", "overflow", "tick", "resize", "pod", "restart", "fetched", "fetched", "request a checkpoint",
			}).Draw(t, "event") {
			case "hello":
				if !connected {
					w.hello(id, rapid.SampledFrom([]int64{0, w.step, max(0, w.step-2)}).Draw(t, "at"))
				}
			case "lose":
				if connected {
					w.lose(id)
				}
			case "leave":
				if connected {
					w.forget(id)
					w.do(Left{Worker: id})
				}
			case "compute":
				if vs := sortedKeys(w.todo[id]); len(vs) > 0 {
					w.compute(id, vs[0])
				}
			case "compute all":
				if len(w.todo[id]) > 0 {
					w.computeAll(id)
				}
			case "compute late":
				if connected {
					w.computeLate(id, rapid.IntRange(0, k-1).Draw(t, "virtual worker"))
				}
			case "clock":
				now += time.Duration(rapid.IntRange(1, 80).Draw(t, "ms")) * time.Millisecond
				w.do(Clock{At: now})
			case "behind":
				w.behind = !w.behind
				w.do(Behind{Is: w.behind})
			case "measure":
				w.measure(id)
			case "restart":
				w.restart()
				w.do(Clock{At: now})
			case "fetched":
				w.fetched()
			case "applied":
				if connected {
					w.do(Applied{Worker: id, Step: w.state[id]})
				}
			case "overflow":
				if w.follows[id] {
					w.todo[id], w.parts[id] = map[int]bool{}, map[int]bool{}
					w.do(Overflow{Worker: id})
					w.do(Applied{Worker: id, Step: w.step})
				}
			case "request a checkpoint":
				w.do(CheckpointRequested{})
			case "tick":
				w.do(Tick{Heard: sortedKeys(w.state), Late: rapid.Bool().Draw(t, "late")})
			case "resize":
				size := rapid.IntRange(1, 3).Draw(t, "min")
				w.do(Resize{Min: size, Max: size + 1})
			case "pod":
				w.do(PodChanged{Worker: id, State: PodState(rapid.IntRange(0, 2).Draw(t, "state")), Terminating: true, Disrupted: true})
			}
		}
		w.behind = false
		w.do(Behind{})
		if rapid.Bool().Draw(t, "is stopped") {
			w.do(Stop{Cause: rapid.SampledFrom([]StopCause{Replaced, Evicted, Suspended}).Draw(t, "cause")})
			for range 3 * stopTicks {
				for _, id := range sortedKeys(w.state) {
					if vs := sortedKeys(w.todo[id]); len(vs) > 0 && rapid.Bool().Draw(t, "answers") {
						w.compute(id, vs[0])
					}
				}
				w.do(Tick{Heard: sortedKeys(w.state)})
				w.fetched()
			}
			if !w.over && !w.saved {
				t.Fatalf("it was asked to stop, and stands at step %d of %d, phase %v", w.step, steps, w.c.phase)
			}
			return
		}
		// No more faults: workers join, and the job must end.
		w.do(Resize{Min: 1, Max: max(2, minimum)})
		newest := w.step
		for id := range max(2, minimum) {
			newest = max(newest, w.state[id], w.alone[id])
			if _, connected := w.state[id]; !connected {
				w.hello(id, w.step)
			}
		}
		for range firstTicks {
			w.do(Tick{Heard: sortedKeys(w.state)})
			w.fetched()
		}
		if w.step < newest {
			t.Fatalf("the master resumes from step %d, and a worker holds the state of step %d", w.step, newest)
		}
		// A surplus running worker is deleted when the minimum's workers are ready, or at the end of the job.
		if alive, minimum := w.c.countPods(); alive > w.c.pods.max+max(0, minimum-w.c.pods.min) && w.c.minimumReady() && !w.c.finished() {
			t.Fatalf("%d pods alive, at most %d wanted", alive, w.c.pods.max)
		}
		for range int(steps+1) * (k + 3) * 8 {
			for _, id := range sortedKeys(w.state) {
				w.do(Applied{Worker: id, Step: w.state[id]})
				if vs := sortedKeys(w.todo[id]); len(vs) > 0 {
					w.compute(id, vs[0])
				}
				w.measure(id)
			}
		}
		if !w.saved || w.step != steps {
			t.Fatalf("the job stands at step %d of %d, phase %v, in flight %v", w.step, steps, w.c.phase, w.todo)
		}
	})
}

func TestRebalanceIsEvenAndMovesAsLittleAsPossible(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 40).Draw(t, "virtual workers")
		workers := rapid.SliceOfNDistinct(rapid.IntRange(0, 30), 1, 9, rapid.ID[int]).Draw(t, "workers")
		previous := rapid.SliceOfN(rapid.IntRange(-1, 30), 0, 45).Draw(t, "previous")
		shares := rebalance(n, workers, previous)
		owner := map[int]int{}
		smallest, largest := n, 0
		for _, w := range workers {
			smallest, largest = min(smallest, len(shares[w])), max(largest, len(shares[w]))
			for _, v := range shares[w] {
				if _, twice := owner[v]; twice {
					t.Fatalf("virtual worker %d was assigned twice", v)
				}
				owner[v] = w
			}
		}
		if len(owner) != n || largest-smallest > 1 {
			t.Fatalf("%d of %d assigned, sizes from %d to %d", len(owner), n, smallest, largest)
		}
		// No even assignment keeps more: a worker keeps at most its quota, and the larger quotas go to the largest holders.
		kept, held := 0, map[int]int{}
		for v := range min(n, len(previous)) {
			if slices.Contains(workers, previous[v]) {
				held[previous[v]]++
			}
			if owner[v] == previous[v] {
				kept++
			}
		}
		best, extra := 0, n%len(workers)
		for _, w := range workers {
			best += min(held[w], n/len(workers))
			if held[w] > n/len(workers) && extra > 0 {
				best++
				extra--
			}
		}
		if kept != best {
			t.Fatalf("%d virtual workers stayed, %d could have", kept, best)
		}
	})
}
