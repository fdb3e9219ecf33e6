package coordinator

import (
	"fmt"
	"slices"
)

// All-reduce: the ready workers add the gradients of a step between themselves, and the master adds and applies nothing. It
// is an excursion from the star: the master's own state stays where it was, and the newest of the workers' is fetched when
// a checkpoint, a joining worker or the end of the excursion asks for it.
//
// A step is computed in a round: a set of owners, each of which computes virtual workers and finishes the sum of a slice.
// Every owner applies the sum of the step when it has all slices of it, and the step is complete when all have said so.
// When an owner is lost before that, whoever has the whole sum sends it to the others; where nobody has, another round of
// the same step begins, with other owners, in which only what the lost one had is computed anew. The sum of a step is a
// function of the job alone, so that it does not matter by which round a worker gets it, and nothing is ever rolled back
// while one worker lives that holds the newest state.

// group is the excursion.
type group struct {
	own      int64 // the step of the master's own state
	running  bool  // a round of the current step is under way
	owners   []int // of the newest round
	previous []int // virtual worker → owner in the step before
	hash     bool  // the next round begins with everybody hashing the state

	lost      bool        // an owner was lost since the newest round began, or cannot be reached
	disturbed bool        // or an earlier round's of the same step: who has the sum sends it to the others
	relays    map[int]int // worker that lacks the sum of the current step → worker that was told to send it; nobody: the master has sent its state

	fetching   int   // the member whose state is being fetched, or nobody
	checkpoint int64 // one is written when the master's state is at that step, or after it; −1 for none
	closing    bool  // no further step begins: the star goes on once the master holds the newest state

	complaints int
	suspicion  int // ticks until a complaint is acted on; 0: there is none
	complaint  string
}

// wantsGroup reports whether the current step should be added up between the workers.
func (c *Coordinator) wantsGroup() bool {
	n := len(c.staying())
	return c.cfg.AllReduce != nil && !c.starOnly && c.step < c.cfg.Steps && c.training() && n >= max(2, c.min) && c.cfg.AllReduce(n)
}

// staying lists the ready members that have not asked to leave, by number.
func (c *Coordinator) staying() []int {
	return slices.DeleteFunc(c.ready(), func(id int) bool { return c.members[id].leaving })
}

// form begins an excursion at a step of which nothing has been dealt.
func (c *Coordinator) form() {
	c.group = &group{own: c.step, fetching: nobody, checkpoint: -1, relays: map[int]int{}}
	for _, m := range c.members {
		m.listening, m.from = m.admitted && !m.ready, c.step // the star has sent it all there is until now
	}
	c.emit(Notice{Reason: "AllReduce", Message: fmt.Sprintf("%d workers add their gradients between themselves from step %d on", len(c.ready()), c.step)})
}

// beginRound deals the current step, or what is nobody's of it, and makes all ready members owners.
func (c *Coordinator) beginRound() {
	g := c.group
	g.owners = c.ready()
	if c.work.untouched() {
		c.work.assign(deal(len(c.work.owner), g.owners, g.previous))
	} else {
		c.work.dealOrphans(g.owners)
	}
	c.round++
	round := Round{Number: c.round, Step: c.step, Owners: g.owners, Deal: c.work.dealt(), Hash: g.hash}
	c.check(&round)
	for _, id := range sortedKeys(c.members) {
		if m := c.members[id]; m.admitted && !m.ready {
			round.Listeners = append(round.Listeners, id)
		}
	}
	g.running, g.lost, g.hash, g.suspicion = true, false, false, 0
	clear(g.relays)
	c.emit(round)
}

// check has a virtual worker computed twice, where one is due: another owner answers as well. Nobody waits for that; what
// is not confirmed by the end of the step is due again.
func (c *Coordinator) check(r *Round) {
	for _, v := range c.checks {
		if !c.work.valid(v) || c.answers.confirmed[v] || len(r.Owners) < 2 {
			continue
		}
		owner := c.work.owner[v]
		second := r.Owners[(slices.Index(r.Owners, owner)+1)%len(r.Owners)]
		r.Answers, r.Seconds = map[int][]int{owner: {v}}, map[int][]int{second: {v}}
		return
	}
}

// appliedInGroup takes a worker's word that it has applied a step. A joining worker that is level with the others is in
// step from now on: it has been sent every slice since.
func (c *Coordinator) appliedInGroup(m *member, step int64) {
	m.step, m.stuck = max(m.step, step), 0
	if !m.ready && !m.needs && m.step >= c.step {
		m.ready = true
	}
}

// settleGroup does what follows from the event: completes the step, mends it, fetches the state, or ends the excursion.
func (c *Coordinator) settleGroup() {
	if c.group == nil || c.phase >= Done {
		return
	}
	if len(c.ready()) == 0 {
		c.dissolve("all workers that computed it are gone")
		return
	}
	for _, id := range sortedKeys(c.members) {
		m := c.members[id]
		if m.admitted {
			continue
		}
		if m.step > c.step+1 {
			c.dissolve(fmt.Sprintf("worker %d holds a newer state", id))
			return
		}
		m.admitted, m.needs = true, true
		c.welcome(id, m)
	}
	c.settleSum()
	if !c.group.running {
		for _, m := range c.members {
			if !m.ready && !m.listening {
				m.listening, m.from = true, c.step // the next round is this step's
			}
		}
	}
	c.handOut()
}

// settleSum completes the step when all have applied it, and mends it when an owner was lost.
func (c *Coordinator) settleSum() {
	g := c.group
	holder := nobody
	var lacking []int
	for _, id := range c.ready() {
		switch {
		case c.members[id].step <= c.step:
			lacking = append(lacking, id)
		case holder == nobody:
			holder = id
		}
	}
	switch {
	case holder != nobody && len(lacking) == 0:
		c.completeGroupStep()
	case holder == nobody && g.lost && g.own <= c.step:
		g.running = false // settlePhase begins another round
	case g.disturbed && (holder != nobody || g.own > c.step):
		lacking = slices.DeleteFunc(lacking, func(id int) bool { _, asked := g.relays[id]; return asked })
		if len(lacking) == 0 {
			return
		}
		for _, id := range lacking {
			if g.relays[id] = holder; holder == nobody {
				c.emit(SendState{Worker: id}) // the one that the master has fetched its state from has died since
			}
		}
		if holder != nobody {
			c.emit(Relay{Round: c.round, Step: c.step, From: holder, To: lacking})
		}
	}
}

// completeGroupStep goes on to the next step: every ready member has applied the one in hand.
func (c *Coordinator) completeGroupStep() {
	g := c.group
	for _, w := range c.work.owner {
		if m := c.members[w]; m != nil {
			m.gradients++
			if m.unchecked < 0 {
				m.unchecked = c.step
			}
			c.contributed(w)
		}
	}
	if !g.disturbed {
		g.complaints = 0
	}
	g.previous, g.running, g.lost, g.disturbed = c.work.owner, false, false, false
	clear(g.relays)
	c.emit(Advance{Step: c.step})
	c.step++
	every := c.cfg.CheckpointEvery
	checkpoint := every > 0 && c.step%every == 0
	if c.step == c.cfg.Steps || c.evaluates() {
		c.work.reset(0)
		g.closing = true // the star evaluates, and a later step may be a group's again
	} else {
		c.beginStep()
		if g.hash = checkpoint || c.step%c.cfg.HashEvery == 0; g.hash {
			c.openVote(c.step)
		}
	}
	c.releaseLeaving()
	if !c.wantsGroup() {
		g.closing = true
	}
	if c.step == c.cfg.Steps {
		return
	}
	if c.stopping > 0 {
		c.stopping = 0
		c.leave("stopped after the step in hand")
	} else if checkpoint {
		c.checkpoint()
	}
}

// releaseLeaving lets those go that have asked to, between two steps. The last that holds the state stays until the
// master holds it too.
func (c *Coordinator) releaseLeaving() {
	keep := nobody
	if len(c.staying()) == 0 {
		keep = c.ready()[0]
	}
	for _, id := range sortedKeys(c.members) {
		if c.members[id].leaving && id != keep {
			c.release(id)
		}
	}
}

func (c *Coordinator) release(worker int) {
	c.emit(Dismiss{Worker: worker})
	c.remove(worker, "left")
}

// leavingAfterStep is a worker that stays to the end of the step in hand, so that nothing of it is computed twice.
func (c *Coordinator) leavingAfterStep(e Leaving) {
	m := c.members[e.Worker]
	if m == nil {
		return
	}
	m.leaving = true
	if g := c.group; g == nil || !m.ready || (!g.running && len(c.staying()) > 0) {
		c.release(e.Worker)
	} else if !g.running {
		g.closing = true
	}
}

// handOut gives the master's own state to those that wait for it, and asks a member for its state where it is too old.
func (c *Coordinator) handOut() {
	g := c.group
	if c.phase >= Done {
		return
	}
	if g.checkpoint >= 0 && g.own >= g.checkpoint {
		g.checkpoint, c.writing, c.due = -1, true, false
		c.emit(Checkpoint{Step: g.own})
	}
	if g.closing && !g.running && g.own == c.step {
		c.closeGroup()
		return
	}
	old := g.checkpoint >= 0 || (g.closing && !g.running)
	for _, id := range sortedKeys(c.members) {
		switch m := c.members[id]; {
		case !m.needs || !m.listening: // it is sent the slices of all steps from m.from on
		case g.own < m.from:
			old = true
		default:
			m.needs = false
			c.emit(SendState{Worker: id})
		}
	}
	if old && g.fetching == nobody {
		g.fetching = c.ready()[0]
		c.emit(FetchState{Worker: g.fetching})
	}
}

// fetchedInGroup makes a fetched state the master's own.
func (c *Coordinator) fetchedInGroup(e StateFetched) {
	g := c.group
	if e.Worker != g.fetching || c.members[e.Worker] == nil {
		return
	}
	g.fetching = nobody
	if e.Step < c.step || e.Step > c.step+1 {
		c.differs(e.Worker, e.Step, fmt.Sprintf("it sent the state of step %d while step %d was computed", e.Step, c.step))
		return
	}
	if e.Step <= g.own {
		return
	}
	g.own = e.Step
	c.history, c.ownHash, c.ownHashStep = e.Step, e.Hash, e.Step
	c.emit(TakeState(e))
}

// closeGroup is the end of the excursion in good order: the master holds the newest state, and goes on as the star's
// middle.
func (c *Coordinator) closeGroup() {
	c.group = nil
	for _, id := range sortedKeys(c.members) {
		switch m := c.members[id]; {
		case m.leaving:
			c.release(id)
		case m.ready:
			m.step = c.step
			c.emit(Subscribe{Worker: id})
		default:
			m.startAgain()
		}
	}
	if c.step == c.cfg.Steps {
		c.checkpoint()
	}
	if c.step == c.cfg.Steps || c.evaluates() {
		c.beginStep()
		return
	}
	c.emit(Notice{Reason: "Star", Message: fmt.Sprintf("the master adds the gradients from step %d on", c.step)})
}

// StateStep is the number of updates applied to the master's own state: fewer than StepsDone while the workers add
// between themselves.
func (c *Coordinator) StateStep() int64 {
	if c.group != nil {
		return c.group.own
	}
	return c.step
}
