package coordinator

import (
	"cmp"
	"fmt"
)

// member is a worker with an open stream.
type member struct {
	step        int64  // updates applied, as far as known
	hash        string // of its state, from its hello
	machine     Machine
	announced   bool // there was a Notice that it joined
	admitted    bool // its state has been brought up to date, or is being
	ready       bool // holds the newest state, or will before it can be assigned work
	slowReader  bool // it was ready, and is being sent a fresh state
	silentTicks int  // ticks since the last frame
	gradients   int64
	contributed bool // one of its gradients or evaluation results was used

	computed     []Span // sums that it computed for an earlier master
	computedStep int64  // the step that they are of

	inFlight        inFlight
	busyWithEarlier bool  // it computes something of an earlier step
	lateCount       int   // how often it was late, with no step in time between them
	backoffUntil    int64 // the step from which on it is assigned work again
	unconfirmedFrom int64 // the first step with a result of its own that no other worker has confirmed; −1 for none

	leaving      bool  // it exits when the step in flight is complete
	needsState   bool  // joining an all-reduce: the state has not been sent
	listening    bool  // it receives the slices of every step …
	listensFrom  int64 // … from this one on
	stalledTicks int   // ticks since it last applied a step
}

// hello makes a worker a member, or refuses it. reconcileState decides whether the worker's state is newer, or the
// master's.
func (c *Coordinator) hello(e Hello) {
	if _, there := c.members[e.Worker]; there {
		c.remove(e.Worker, "sent a second hello")
	}
	if c.finished() {
		c.emit(Dismiss{Worker: e.Worker})
		return
	}
	if reason := cmp.Or(c.faultRefusal(e.Worker), c.cfg.Identity.Refusal(e.Identity)); reason != "" {
		c.emit(Refuse{Worker: e.Worker, Reason: reason})
		return
	}
	if e.Step < 0 || e.Step > c.cfg.Steps {
		c.emit(Refuse{
			Worker: e.Worker,
			Reason: fmt.Sprintf("its state is at step %d of a job of %d steps", e.Step, c.cfg.Steps),
		})
		return
	}
	c.members[e.Worker] = &member{
		step:            e.Step,
		hash:            e.Hash,
		machine:         e.Machine,
		computed:        e.Computed,
		computedStep:    e.Step,
		unconfirmedFrom: -1,
	}
	if e.Step == c.StateStep() {
		c.recovery.masterHash, c.recovery.masterHashStep = e.OwnHash, c.StateStep()
	}
	c.recovery.timer = min(c.recovery.timer, helloTicks)
	c.stopAwaiting(e.Worker)
}

// admit brings a member that is not ahead of the master up to date, in the cheapest way: nothing but the updates to
// come if its state is the master's, the updates that it lacks if the master still has them, and otherwise the whole
// state.
func (c *Coordinator) admit(worker int, m *member) {
	m.admitted = true
	sameStep, equal := c.recovery.masterHashStep == c.step && m.step == c.step, m.hash == c.recovery.masterHash
	switch behind := c.step - m.step; {
	case sameStep && !equal && m.hash != "" && !c.cfg.Approximate:
		c.dropDiffering(worker, m.step, differsFromMaster(m.step))
		return
	case sameStep && equal:
		m.ready = true
		c.emit(Subscribe{Worker: worker})
	case behind > 0 && behind <= c.cfg.RetainedUpdates && m.step >= c.recovery.updatesFrom:
		c.emit(SendUpdates{Worker: worker, From: m.step})
	default: // too far behind, or at the same step with a hash that cannot be compared or differs by rounding
		c.emit(SendState{Worker: worker})
	}
	c.announce(worker, m)
}

// announce emits one Notice for a member, however often it is brought up to date.
func (c *Coordinator) announce(worker int, m *member) {
	if !m.announced {
		m.announced = true
		if c.returnedFromSilence(worker) {
			return
		}
		c.emit(Notice{Reason: "WorkerJoined", Message: fmt.Sprintf("worker %d joined at step %d", worker, c.step)})
	}
}

// applied makes a joining worker ready once it has caught up. It is assigned work from the next step on, or at once if
// there is unassigned work.
func (c *Coordinator) applied(e Applied) {
	m := c.members[e.Worker]
	if m == nil || !m.admitted {
		return
	}
	if e.Step >= c.step {
		m.busyWithEarlier = false
	}
	if c.allReduce != nil {
		c.appliedInAllReduce(m, e.Step)
		return
	}
	m.step = max(m.step, e.Step)
	if m.step >= c.step {
		m.ready, m.slowReader = true, false
	}
}

// remove forgets a member, with a Notice.
func (c *Coordinator) remove(worker int, reason string) {
	if c.members[worker] == nil {
		return
	}
	if !c.finished() {
		c.emit(Notice{
			Reason:  "WorkerLeft",
			Message: fmt.Sprintf("worker %d %s at step %d; %d left", worker, reason, c.step, len(c.members)-1),
		})
	}
	c.drop(worker, reason)
}

// drop forgets a member. Its unfinished work is unassigned until reconcilePhase assigns it again.
func (c *Coordinator) drop(worker int, reason string) {
	delete(c.members, worker)
	delete(c.stateHashes.byWorker, worker)
	if p := c.pods.byWorker[worker]; p != nil {
		p.left = fmt.Sprintf("it %s at step %d, and has sent no hello since", reason, c.step)
	}
	c.work.unassign(worker)
	if c.recovery.source == worker {
		c.recovery.source = noWorker
	}
	if c.allReduce != nil {
		c.memberLostInAllReduce(worker)
	}
	if c.phase == Dismissing && len(c.members) == 0 {
		c.done()
		return
	}
	c.compareStates()
}

// overflow makes a member that reads too slowly, or whose state differs by rounding, join again with a fresh state.
func (c *Coordinator) overflow(worker int) {
	m := c.members[worker]
	if m == nil || !m.admitted || c.allReduce != nil {
		return
	}
	m.ready, m.slowReader, m.inFlight = false, true, inFlight{}
	c.work.unassign(worker)
	c.emit(SendState{Worker: worker})
}

// slowReaders counts the members that are being sent a fresh state. They count towards the minimum, so that one slow
// reader does not stop the others.
func (c *Coordinator) slowReaders() (n int) {
	for _, m := range c.members {
		if m.slowReader {
			n++
		}
	}
	return n
}
