package coordinator

import (
	"cmp"
	"fmt"
)

// member is a worker with a stream.
type member struct {
	step        int64  // updates applied, as far as known
	hash        string // of its state, as its hello said
	welcomed    bool   // a person has been told of it
	admitted    bool   // its state has been brought up to date, or is being
	ready       bool   // holds the newest state, or will before it can be dealt work
	silent      int    // ticks since the last frame
	gradients   int64
	contributed bool // a gradient or a part of an evaluation was taken from it
	slowReader  bool // it was ready, and is being sent a fresh state

	inHand    []Span // of the step that its hello said
	inHandOf  int64  // which one that is
	machine   Machine
	hand      hand
	behind    bool  // it computes something of an earlier step
	lapses    int   // how often it was late, and never in time between them
	rests     int64 // the step from which on it is dealt work again
	unchecked int64 // the first step to which it gave what no other has confirmed yet; −1 for none

	leaving   bool  // it goes when the step in hand is complete
	needs     bool  // joining a group: the state has not been sent
	listening bool  // it is sent the slices of every step …
	from      int64 // … from this one on
	stuck     int   // ticks since it last applied a step
}

// hello takes a worker in, or refuses it; settleState decides whose state is brought up to date, the worker's or ours.
func (c *Coordinator) hello(e Hello) {
	if _, there := c.members[e.Worker]; there {
		c.remove(e.Worker, "said hello again")
	}
	if c.finished() {
		c.emit(Dismiss{Worker: e.Worker})
		return
	}
	if reason := cmp.Or(c.faultRefusal(e.Worker), c.cfg.Identity.refusal(e.Identity)); reason != "" {
		c.emit(Refuse{Worker: e.Worker, Reason: reason})
		return
	}
	if e.Step < 0 || e.Step > c.cfg.Steps {
		c.emit(Refuse{Worker: e.Worker, Reason: fmt.Sprintf("its state is at step %d of a job of %d steps", e.Step, c.cfg.Steps)})
		return
	}
	c.members[e.Worker] = &member{step: e.Step, hash: e.Hash, machine: e.Machine, inHand: e.InHand, inHandOf: e.Step, unchecked: -1}
	c.ownHash, c.ownHashStep = e.OwnHash, c.StateStep()
	c.gathering = min(c.gathering, helloTicks)
	c.heardOf(e.Worker)
}

// admit brings a member that is not ahead up to date.
func (c *Coordinator) admit(worker int, m *member) {
	m.admitted = true
	switch behind := c.step - m.step; {
	case behind == 0 && c.ownHashStep == c.step && m.hash != c.ownHash && m.hash != "" && !c.cfg.Approximate:
		c.differs(worker, m.step, notTheMasters(m.step))
		return
	case behind == 0 && c.ownHashStep == c.step && m.hash == c.ownHash:
		m.ready = true
		c.emit(Subscribe{Worker: worker})
	case behind > 0 && behind <= c.cfg.RetainedUpdates && m.step >= c.history:
		c.emit(SendUpdates{Worker: worker, From: m.step})
	default: // too far behind, or level with us while its hash cannot be compared, or differs by rounding
		c.emit(SendState{Worker: worker})
	}
	c.welcome(worker, m)
}

// welcome tells of a member once, however often it is brought up to date.
func (c *Coordinator) welcome(worker int, m *member) {
	if !m.welcomed {
		m.welcomed = true
		if c.backFromSilence(worker) {
			return
		}
		c.emit(Notice{Reason: "WorkerJoined", Message: fmt.Sprintf("worker %d joined at step %d", worker, c.step)})
	}
}

// applied makes a joining worker ready once it has caught up; it is dealt work from the next step boundary, or at
// once where work lies about.
func (c *Coordinator) applied(e Applied) {
	m := c.members[e.Worker]
	if m == nil || !m.admitted {
		return
	}
	if e.Step >= c.step {
		m.behind = false
	}
	if c.group != nil {
		c.appliedInGroup(m, e.Step)
		return
	}
	m.step = max(m.step, e.Step)
	if m.step >= c.step {
		m.ready, m.slowReader = true, false
	}
}

// remove forgets a member, and says so.
func (c *Coordinator) remove(worker int, reason string) {
	if c.members[worker] == nil {
		return
	}
	if !c.finished() {
		c.emit(Notice{Reason: "WorkerLeft", Message: fmt.Sprintf("worker %d %s at step %d; %d left", worker, reason, c.step, len(c.members)-1)})
	}
	c.drop(worker, reason)
}

// drop forgets a member; its unfinished work is unassigned until settlePhase assigns it again.
func (c *Coordinator) drop(worker int, reason string) {
	delete(c.members, worker)
	delete(c.votes, worker)
	if p := c.pods[worker]; p != nil {
		p.left = fmt.Sprintf("it %s at step %d, and has not said hello since", reason, c.step)
	}
	c.work.orphan(worker)
	if c.source == worker {
		c.source = nobody
	}
	if c.group != nil {
		c.lostFromGroup(worker)
	}
	if c.phase == Dismissing && len(c.members) == 0 {
		c.done()
		return
	}
	c.settleVote()
}

// overflow drops a slow reader, or one that rounds otherwise, back to joining, with a fresh state.
func (c *Coordinator) overflow(worker int) {
	m := c.members[worker]
	if m == nil || !m.admitted || c.group != nil {
		return
	}
	m.ready, m.slowReader, m.hand = false, true, hand{}
	c.work.orphan(worker)
	c.emit(SendState{Worker: worker})
}

// slowReaders counts those that get a fresh state. They are there, and the floor counts them: nobody waits for one.
func (c *Coordinator) slowReaders() (n int) {
	for _, m := range c.members {
		if m.slowReader {
			n++
		}
	}
	return n
}
