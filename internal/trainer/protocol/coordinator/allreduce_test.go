package coordinator

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// network simulates workers of an all-reduce against a coordinator. Messages are delayed: those between master and
// workers arrive in the order of each stream, and slices between workers in any order.
type network struct {
	t       *rapid.T
	c       *Coordinator
	k       int
	own     int64 // the step of the master's state
	nodes   map[int]*node
	slices  []slice
	rounds  map[int64]Round
	lastID  int
	saved   bool
	over    bool
	advance int64
}

// node is a worker.
type node struct {
	id         int
	state      int64
	connected  bool
	subscribed bool
	in         []Effect // messages from the master that it has not read
	out        []Event  // messages that the master has not read
	round      *Round
	holds      map[int]bool // virtual workers of the current step that it has computed
	of         int64        // the step of those; −1 for none
	forMaster  []int        // what it computes for the aggregation by the master
	sent       map[int]bool // owners that it has sent its slices to, in this round
	spans      map[int]bool // workers whose slices it has, as an owner in this round
	reported   bool         // and has reported the hashes for checks
	finished   bool         // its own slice is, in this round
	slices     map[[2]int64]map[int]bool
	ahead      map[int64]int64 // sums that it has, and of which rounds
}

// slice is something that a worker sends to another: of its part, a finished one, or the whole sum of a step.
type slice struct {
	kind     string // "part", "finished", "whole"
	round    int64
	step     int64
	from, to int
}

func (w *network) do(e Event) {
	if w.over {
		return
	}
	for _, e := range append([]Effect{}, w.c.Step(e)...) {
		w.effect(e)
	}
}

func (w *network) to(id int, e Effect) {
	if n := w.nodes[id]; n != nil && n.connected {
		n.in = append(n.in, e)
	}
}

func (w *network) effect(e Effect) {
	switch e := e.(type) {
	case Publish:
		if e.Step != w.own {
			w.t.Fatalf("step %d is published by a master whose state is at step %d", e.Step, w.own)
		}
		w.own++
		for _, id := range sortedKeys(w.nodes) {
			if w.nodes[id].subscribed {
				w.to(id, e)
			}
		}
	case Subscribe:
		w.nodes[e.Worker].subscribed = true
	case Round:
		w.begins(e)
	case Relay:
		if at := w.nodes[e.From].state; at != e.Step+1 {
			w.t.Fatalf("worker %d is to send the sum of step %d, and its state is at %d", e.From, e.Step, at)
		}
		w.to(e.From, e)
	case Advance:
		for _, id := range w.rounds[w.c.round].Owners {
			if n := w.nodes[id]; n != nil && n.connected && w.c.members[id] != nil && w.c.members[id].ready && n.state <= e.Step {
				w.t.Fatalf("step %d is complete, and the state of worker %d is at %d", e.Step, id, n.state)
			}
		}
		w.advance = e.Step + 1
	case AdoptState:
		if e.Step < w.own {
			w.t.Fatalf("the master's state goes back from step %d to step %d", w.own, e.Step)
		}
		w.own = e.Step
		for _, n := range w.nodes {
			n.subscribed = false
		}
	case SendState:
		w.to(e.Worker, sentState{Worker: e.Worker, step: w.own})
		w.nodes[e.Worker].subscribed = true
	case SendUpdates:
		w.to(e.Worker, sentState{Worker: e.Worker, step: w.own})
		w.nodes[e.Worker].subscribed = true
	case Assign:
		w.to(e.Worker, e)
	case FetchState:
		w.to(e.Worker, e)
	case Refuse:
		w.t.Fatalf("worker %d is refused: %s", e.Worker, e.Reason)
	case Disconnect:
		w.disconnect(e.Worker)
	case Dismiss:
		delete(w.nodes, e.Worker)
	case SaveModel:
		if w.own != w.c.cfg.Steps {
			w.t.Fatalf("the model is saved from the state of step %d of %d", w.own, w.c.cfg.Steps)
		}
		w.saved = true
	case Checkpoint:
		if e.Step != w.own {
			w.t.Fatalf("the state of step %d is written as that of step %d", w.own, e.Step)
		}
	case Withdraw:
		w.t.Fatalf("all compute the same, and what was written after step %d is withdrawn", e.After)
	case Exit:
		w.over = true
	}
}

// sentState is a SendState in flight, with the step of the state.
type sentState struct {
	Worker int
	step   int64
}

func (sentState) effect() {}

// begins checks that a round assigns every virtual worker to exactly one owner.
func (w *network) begins(r Round) {
	assigned := map[int]int{}
	for id, vs := range r.Assigned {
		if !slices.Contains(r.Owners, id) {
			w.t.Fatalf("worker %d is assigned %v and is no owner of %v", id, vs, r.Owners)
		}
		for _, v := range vs {
			assigned[v]++
		}
	}
	for v := range w.k {
		if assigned[v] != 1 {
			w.t.Fatalf("virtual worker %d of step %d is assigned %d times: %v", v, r.Step, assigned[v], r.Assigned)
		}
	}
	if _, again := w.rounds[r.Number]; again || r.Number != w.c.round {
		w.t.Fatalf("round %d is not a new one", r.Number)
	}
	w.rounds[r.Number] = r
	for _, id := range slices.Concat(r.Owners, r.Listeners) {
		w.to(id, r)
	}
}

func (w *network) disconnect(id int) {
	if n := w.nodes[id]; n != nil {
		n.subscribed = false
		n.connected, n.in, n.out, n.round, n.of, n.forMaster = false, nil, nil, nil, -1, nil
	}
}

// read makes a worker read one message from the master.
func (w *network) read(n *node) {
	e := n.in[0]
	n.in = n.in[1:]
	switch e := e.(type) {
	case sentState:
		if e.step >= n.state {
			n.state, n.of, n.forMaster = e.step, -1, nil
		}
		n.emit(Applied{Worker: n.id, Step: n.state})
		w.apply(n)
	case Publish:
		n.round = nil
		if e.Step < n.state {
			return
		}
		if e.Step > n.state {
			w.t.Fatalf("an update of step %d reached worker %d, whose state is at step %d", e.Step, n.id, n.state)
		}
		n.state++
		if n.forMaster = e.Next[n.id]; len(n.forMaster) == 0 {
			n.emit(Applied{Worker: n.id, Step: n.state})
		}
	case Assign:
		n.round = nil
		if e.Step == n.state {
			n.forMaster = append(n.forMaster, e.VirtualWorkers...)
		}
	case FetchState:
		n.emit(StateFetched{Worker: n.id, Step: n.state, Hash: "h"})
	case Relay:
		for _, to := range e.To {
			w.slices = append(w.slices, slice{kind: "whole", round: e.Round, step: e.Step, from: n.id, to: to})
		}
	case Round:
		n.round, n.sent, n.spans, n.reported, n.finished, n.forMaster = &e, map[int]bool{}, map[int]bool{}, false, false, nil
		if e.Hash && e.Step == n.state {
			n.emit(StateHash{Worker: n.id, Step: e.Step, Hash: fmt.Sprint("state ", e.Step)})
		}
		if e.Step < n.state {
			n.emit(Applied{Worker: n.id, Step: n.state})
		} else if e.Step == n.state && n.of != e.Step {
			n.of, n.holds = e.Step, map[int]bool{}
		}
		w.apply(n)
	}
}

func (n *node) emit(e Event) { n.out = append(n.out, e) }

// works makes a worker compute one virtual worker, or send its part to one owner.
func (w *network) works(n *node) {
	if len(n.forMaster) > 0 {
		v := n.forMaster[0]
		n.forMaster = n.forMaster[1:]
		n.emit(Gradient{Worker: n.id, Step: n.state, Lo: v, Hi: v + 1, Hashes: hashes(n.state, v, v+1)})
		return
	}
	r := n.round
	if r == nil || r.Step != n.state {
		return
	}
	for _, v := range r.Assigned[n.id] {
		if !n.holds[v] {
			n.holds[v] = true
			return
		}
	}
	if !n.reported {
		n.reported = true
		for _, v := range slices.Concat(r.HashReports[n.id], r.Backups[n.id]) {
			n.emit(Gradient{Worker: n.id, Step: r.Step, Lo: v, Hi: v + 1, Hashes: hashes(r.Step, v, v+1), HashOnly: true})
		}
	}
	for _, owner := range r.Owners {
		if len(r.Assigned[n.id]) > 0 && !n.sent[owner] && slices.Contains(r.Owners, n.id) {
			n.sent[owner] = true
			w.slices = append(w.slices, slice{kind: "part", round: r.Number, step: r.Step, from: n.id, to: owner})
			w.apply(n)
			return
		}
	}
}

// deliver delivers a slice, unless the round is not known yet: then it reports that the slice waits.
func (w *network) deliver(s slice) (waits bool) {
	n := w.nodes[s.to]
	if n == nil || !n.connected {
		return false
	}
	switch s.kind {
	case "part":
		if n.round == nil || n.round.Number < s.round {
			return true
		}
		if n.round.Number > s.round || n.finished {
			return false
		}
		n.spans[s.from] = true
		for id, vs := range n.round.Assigned {
			if len(vs) > 0 && !n.spans[id] {
				return false
			}
		}
		n.finished = true
		for _, to := range slices.Concat(n.round.Owners, n.round.Listeners) {
			w.slices = append(w.slices, slice{kind: "finished", round: s.round, step: s.step, from: n.id, to: to})
		}
	case "finished":
		at := [2]int64{s.step, s.round}
		if n.slices[at] == nil {
			n.slices[at] = map[int]bool{}
		}
		n.slices[at][s.from] = true
		if len(n.slices[at]) == len(w.rounds[s.round].Owners) {
			n.ahead[s.step] = s.round
		}
	case "whole":
		n.ahead[s.step] = s.round
	}
	w.apply(n)
	return false
}

func (w *network) apply(n *node) {
	for {
		of, has := n.ahead[n.state]
		r := n.round
		if !has || r == nil {
			return
		}
		if of < r.Number && r.Step == n.state && slices.Contains(r.Owners, n.id) && len(n.sent) < len(r.Owners) && len(r.Assigned[n.id]) > 0 {
			return // it contributes first: others may lack the sum
		}
		delete(n.ahead, n.state)
		n.state++
		n.emit(Applied{Worker: n.id, Step: n.state})
	}
}

func (w *network) hello(n *node) {
	n.connected = true
	own := "not known"
	if n.state == w.own {
		own = fmt.Sprint("state ", w.own)
	}
	w.do(Hello{Worker: n.id, Identity: w.c.cfg.Identity, Step: n.state, Hash: fmt.Sprint("state ", n.state), OwnHash: own})
}

func (w *network) join() {
	w.lastID++
	n := &node{id: w.lastID, of: -1, slices: map[[2]int64]map[int]bool{}, ahead: map[int64]int64{}}
	w.nodes[n.id] = n
	w.hello(n)
}

func (w *network) forward(n *node) {
	e := n.out[0]
	n.out = n.out[1:]
	if f, ok := e.(StateFetched); ok { // hashes are of states
		f.Hash = fmt.Sprint("state ", f.Step)
		e = f
	}
	w.do(e)
}

// restart replaces the master by a new one, which holds the initial state; the workers connect again.
func (w *network) restart() {
	cfg := w.c.cfg
	cfg.FirstRound += 1 << 32
	w.c, w.own = New(cfg), 0
	for id := range w.nodes {
		w.disconnect(id)
	}
	w.do(Start{})
}

func (w *network) random(t *rapid.T, what string) *node {
	ids := sortedKeys(w.nodes)
	if len(ids) == 0 {
		return nil
	}
	return w.nodes[rapid.SampledFrom(ids).Draw(t, what)]
}

func TestAllReduceFinishesTheJobUnderFaults(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := rapid.IntRange(1, 5).Draw(t, "k")
		least := rapid.IntRange(2, 4).Draw(t, "least")
		w := &network{t: t, k: k, nodes: map[int]*node{}, rounds: map[int64]Round{}, lastID: 100}
		w.c = New(Config{
			Steps:           rapid.Int64Range(1, 8).Draw(t, "steps"),
			Minibatches:     func(int64) int { return k },
			Identity:        Identity{Lineage: "l", Job: "j", Numerics: 1},
			AllReduce:       func(n int) bool { return n >= least },
			FirstRound:      1 << 32,
			Min:             rapid.IntRange(1, 2).Draw(t, "min"),
			Max:             3,
			LastWorkerID:    -1,
			SilentTicks:     1000,
			RetainedUpdates: 4,
			HashEvery:       2,
			CheckEvery:      rapid.Int64Range(0, 2).Draw(t, "check every"),
			MaxFailures:     3,
			CheckpointEvery: rapid.Int64Range(0, 3).Draw(t, "checkpoint every"),
		})
		w.do(Start{})
		w.join()
		w.join()
		for range rapid.IntRange(0, 150).Draw(t, "events") {
			if w.over || w.saved {
				break
			}
			n := w.random(t, "worker")
			event := rapid.SampledFrom([]string{
				"everything", "read", "read", "say", "say", "work", "work", "slice", "slice", "join", "hello", "trouble",
			}).Draw(t, "event")
			if event == "trouble" {
				event = rapid.SampledFrom([]string{"lose", "cut", "leave", "complain", "tick", "tick", "restart"}).Draw(t, "trouble")
			}
			switch {
			case event == "everything":
				w.turn()
			case event == "join" && len(w.nodes) < 5:
				w.join()
			case event == "slice" && len(w.slices) > 0:
				i := rapid.IntRange(0, len(w.slices)-1).Draw(t, "slice")
				s := w.slices[i]
				w.slices = slices.Delete(w.slices, i, i+1)
				if w.deliver(s) {
					w.slices = append(w.slices, s)
				}
			case event == "tick":
				w.do(Tick{Heard: sortedKeys(w.nodes)})
			case event == "restart" && rapid.IntRange(0, 3).Draw(t, "rarely") == 0:
				w.restart()
			case n == nil:
			case event == "read" && len(n.in) > 0:
				w.read(n)
			case event == "say" && len(n.out) > 0:
				w.forward(n)
			case event == "work":
				w.works(n)
			case event == "lose": // and some of what it has sent is lost too
				delete(w.nodes, n.id)
				w.lose(func(s slice) bool { return s.from == n.id && rapid.Bool().Draw(t, "lost") })
				w.do(Lost{Worker: n.id, Reason: "was lost"})
			case event == "cut" && n.connected:
				w.disconnect(n.id)
				w.do(Lost{Worker: n.id, Reason: "was lost"})
			case event == "hello" && !n.connected:
				w.hello(n)
			case event == "leave" && n.connected && n.round != nil:
				n.emit(Leaving{Worker: n.id})
			case event == "complain" && n.connected && n.round != nil:
				peer := rapid.SampledFrom(n.round.Owners).Draw(t, "peer")
				if peer == n.id {
					continue
				}
				w.lose(func(s slice) bool { return s.from == n.id && s.to == peer })
				n.emit(Unreachable{Worker: n.id, Peer: peer, Round: n.round.Number, Reason: "refused"})
			}
		}
		w.settle(t)
	})
}

func (w *network) lose(which func(slice) bool) { w.slices = slices.DeleteFunc(w.slices, which) }

// settle ends the faults: workers join, all messages arrive, and the job must end.
func (w *network) settle(t *rapid.T) {
	for range 300 {
		for len(w.nodes) < 2 && !w.saved && !w.over { // leaving workers are dismissed
			w.join()
		}

		w.turn()
		w.do(Tick{Heard: sortedKeys(w.nodes)})
		if w.saved {
			return
		}
	}
	var states []string
	for _, id := range sortedKeys(w.nodes) {
		n, m := w.nodes[id], w.c.members[id]
		states = append(states, fmt.Sprintf("worker %d: %+v, as member %+v", id, *n, m))
	}
	t.Fatalf("the job stands at step %d of %d, the master's state at %d, phase %v, all-reduce %+v, %v", w.c.step, w.c.cfg.Steps, w.own, w.c.phase, w.c.allReduce, states)
}

// turn makes every worker do its work, and delivers all messages that were in flight before.
func (w *network) turn() {
	for _, id := range sortedKeys(w.nodes) {
		n := w.nodes[id]
		if n == nil {
			continue
		}
		if !n.connected {
			w.hello(n)
		}
		for range w.k + 4 {
			w.works(n)
		}
		for len(n.in) > 0 && n.connected {
			w.read(n)
		}
		for len(n.out) > 0 && n.connected {
			w.forward(n)
		}
	}
	waiting := w.slices
	w.slices = nil
	for _, s := range waiting {
		if w.deliver(s) {
			w.slices = append(w.slices, s)
		}
	}
}
