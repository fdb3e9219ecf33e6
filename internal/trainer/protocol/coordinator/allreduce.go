package coordinator

import (
	"fmt"
	"slices"
)

// All-reduce: the ready workers add the gradients of a step themselves, and the master neither adds nor applies
// anything. Training switches between the two ways at any step boundary. During an all-reduce the master's own state
// stays at the step where the all-reduce began; the master fetches a newer one from a worker when it needs one for a
// checkpoint, for a joining worker, or to take the aggregation over again.
//
// A step is computed in a round. A round has owners, which are all ready workers. Each owner computes its virtual
// workers, and finishes the sum of one slice of the parameters. An owner that has all slices of the sum applies it and
// reports Applied; the step is complete when all owners have.
//
// When an owner is lost before that, there are two cases. If another owner has applied the sum already, it relays the
// sum to the others. If none has, another round of the same step begins with the remaining owners, which compute only
// what the lost one had. The sum of a step does not depend on the round, so it does not matter by which round a worker
// receives it, and nothing is rolled back as long as one worker with the newest state lives.

// allReduce is the state of an all-reduce.
type allReduce struct {
	masterStep int64 // the step of the master's own state
	running    bool  // a round of the current step is under way
	owners     []int // of the newest round
	previous   []int // virtual worker → owner in the step before
	hashNext   bool  // the next round begins with hashing the state

	ownerLost bool        // an owner of the newest round was lost or cannot be reached
	repairing bool        // an owner of any round of this step was: a worker that has the sum sends it to the others
	relays    map[int]int // worker that lacks the sum → worker that sends it; noWorker: the master has sent its state instead

	fetching   int   // the member whose state is being fetched, or noWorker
	checkpoint int64 // a checkpoint is due when the master's state is at that step, or after it; −1 for none
	closing    bool  // no further step begins: the master takes over once it holds the newest state

	unreachableCount  int // how often workers could not reach each other
	unreachableTimer  int // ticks until the newest report of that is acted on; 0: there is none
	unreachableReason string
}

// wantsAllReduce reports whether the current step should be an all-reduce.
func (c *Coordinator) wantsAllReduce() bool {
	if c.cfg.AllReduce == nil || c.allReduceDisabled || c.step >= c.cfg.Steps || !c.training() {
		return false
	}
	n := len(c.staying())
	return n >= max(2, c.pods.min) && c.cfg.AllReduce(n)
}

// staying lists the ready members that are not leaving, by number.
func (c *Coordinator) staying() []int {
	return slices.DeleteFunc(c.ready(), func(id int) bool { return c.members[id].leaving })
}

// startAllReduce begins an all-reduce at a step of which no work has been assigned.
func (c *Coordinator) startAllReduce() {
	c.allReduce = &allReduce{masterStep: c.step, fetching: noWorker, checkpoint: -1, relays: map[int]int{}}
	for _, m := range c.members {
		m.listening, m.listensFrom = m.admitted && !m.ready, c.step // the master has sent it all updates until now
	}
	c.emit(Notice{
		Reason:  "AllReduce",
		Message: fmt.Sprintf("%d workers add their gradients by all-reduce from step %d on", len(c.ready()), c.step),
	})
}

// beginRound assigns the current step, or what is unassigned of it, and makes all ready members owners.
func (c *Coordinator) beginRound() {
	g := c.allReduce
	g.owners = c.ready()
	if c.work.nothingAssigned() {
		c.work.assign(rebalance(len(c.work.owner), g.owners, g.previous))
	} else {
		c.work.assignUnassigned(g.owners)
	}
	c.round++
	round := Round{Number: c.round, Step: c.step, Owners: g.owners, Assigned: c.work.byWorker(), Hash: g.hashNext}
	c.addCheck(&round)
	for _, id := range sortedKeys(c.members) {
		if m := c.members[id]; m.admitted && !m.ready {
			round.Listeners = append(round.Listeners, id)
		}
	}
	g.running, g.ownerLost, g.hashNext, g.unreachableTimer = true, false, false, 0
	clear(g.relays)
	c.emit(round)
}

// addCheck assigns a virtual worker that is due for a check to a second owner as well, which reports only the hash. No
// step waits for that; a check without a result by the end of the step is due again.
func (c *Coordinator) addCheck(r *Round) {
	for _, v := range c.speculation.checks {
		if !c.work.valid(v) || c.speculation.current.confirmed[v] || len(r.Owners) < 2 {
			continue
		}
		owner := c.work.owner[v]
		second := r.Owners[(slices.Index(r.Owners, owner)+1)%len(r.Owners)]
		r.HashReports, r.Backups = map[int][]int{owner: {v}}, map[int][]int{second: {v}}
		return
	}
}

// appliedInAllReduce records that a worker has applied a step. A joining worker that has caught up is ready: it has
// received every slice since its state.
func (c *Coordinator) appliedInAllReduce(m *member, step int64) {
	m.step, m.stalledTicks = max(m.step, step), 0
	if !m.ready && !m.needsState && m.step >= c.step {
		m.ready = true
	}
}

// reconcileAllReduce does what follows from an event: it completes the step, repairs it, fetches a state, or ends the
// all-reduce.
func (c *Coordinator) reconcileAllReduce() {
	if c.allReduce == nil || c.phase >= Done {
		return
	}
	if len(c.ready()) == 0 {
		c.abortAllReduce("all its workers are lost")
		return
	}
	for _, id := range sortedKeys(c.members) {
		m := c.members[id]
		if m.admitted {
			continue
		}
		if m.step > c.step+1 {
			c.abortAllReduce(fmt.Sprintf("worker %d holds a newer state", id))
			return
		}
		m.admitted, m.needsState = true, true
		c.announce(id, m)
	}
	c.reconcileSum()
	if !c.allReduce.running {
		for _, m := range c.members {
			if !m.ready && !m.listening {
				m.listening, m.listensFrom = true, c.step // the next round is this step's
			}
		}
	}
	c.distributeState()
}

// reconcileSum completes the step when all owners have applied it, and repairs it when an owner was lost.
func (c *Coordinator) reconcileSum() {
	g := c.allReduce
	holder := noWorker
	var lacking []int
	for _, id := range c.ready() {
		switch {
		case c.members[id].step <= c.step:
			lacking = append(lacking, id)
		case holder == noWorker:
			holder = id
		}
	}
	switch {
	case holder != noWorker && len(lacking) == 0:
		c.completeAllReduceStep()
	case holder == noWorker && g.ownerLost && g.masterStep <= c.step:
		g.running = false // reconcilePhase begins another round
	case g.repairing && (holder != noWorker || g.masterStep > c.step):
		lacking = slices.DeleteFunc(lacking, func(id int) bool { _, ok := g.relays[id]; return ok })
		if len(lacking) == 0 {
			return
		}
		for _, id := range lacking {
			if g.relays[id] = holder; holder == noWorker {
				c.emit(SendState{Worker: id}) // only the master still has the sum: the worker it fetched its state from is lost
			}
		}
		if holder != noWorker {
			c.emit(Relay{Round: c.round, Step: c.step, From: holder, To: lacking})
		}
	}
}

// completeAllReduceStep continues with the next step: every ready member has applied the current one.
func (c *Coordinator) completeAllReduceStep() {
	g := c.allReduce
	for _, w := range c.work.owner {
		if m := c.members[w]; m != nil {
			m.gradients++
			if m.unconfirmedFrom < 0 {
				m.unconfirmedFrom = c.step
			}
			c.recordContribution(w)
		}
	}
	if !g.repairing {
		g.unreachableCount = 0
	}
	g.previous, g.running, g.ownerLost, g.repairing = c.work.owner, false, false, false
	clear(g.relays)
	c.emit(Advance{Step: c.step})
	c.step++
	every := c.cfg.CheckpointEvery
	checkpoint := every > 0 && c.step%every == 0
	if c.step == c.cfg.Steps || c.evaluates() {
		c.work.reset(0)
		g.closing = true // the master runs evaluations, and a later step may be an all-reduce again
	} else {
		c.beginStep()
		if g.hashNext = checkpoint || c.step%c.cfg.HashEvery == 0; g.hashNext {
			c.beginComparison(c.step)
		}
	}
	c.releaseLeaving()
	if !c.wantsAllReduce() {
		g.closing = true
	}
	if c.step == c.cfg.Steps {
		return
	}
	if c.stopTimer > 0 {
		c.stopTimer = 0
		c.exitAfterCheckpoint("stopped after the step in flight")
	} else if checkpoint {
		c.checkpoint()
	}
}

// releaseLeaving dismisses leaving members between two steps. The last one that holds the state stays until the master
// holds it too.
func (c *Coordinator) releaseLeaving() {
	keep := noWorker
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

// leavingAfterStep keeps a leaving worker until the step in flight is complete, so that its work is not repeated.
func (c *Coordinator) leavingAfterStep(e Leaving) {
	m := c.members[e.Worker]
	if m == nil {
		return
	}
	m.leaving = true
	if g := c.allReduce; g == nil || !m.ready || (!g.running && len(c.staying()) > 0) {
		c.release(e.Worker)
	} else if !g.running {
		g.closing = true
	}
}

// distributeState sends the master's state to joining members, and writes it in a checkpoint that is due. If it is too
// old for that, the master fetches a newer one first.
func (c *Coordinator) distributeState() {
	g := c.allReduce
	if c.phase >= Done {
		return
	}
	if g.checkpoint >= 0 && g.masterStep >= g.checkpoint {
		g.checkpoint, c.checkpoints.writing, c.checkpoints.due = -1, true, false
		c.emit(Checkpoint{Step: g.masterStep})
	}
	if g.closing && !g.running && g.masterStep == c.step {
		c.finishAllReduce()
		return
	}
	old := g.checkpoint >= 0 || (g.closing && !g.running)
	for _, id := range sortedKeys(c.members) {
		switch m := c.members[id]; {
		case !m.needsState || !m.listening: // it receives the slices of all steps from m.listensFrom on
		case g.masterStep < m.listensFrom:
			old = true
		default:
			m.needsState = false
			c.emit(SendState{Worker: id})
		}
	}
	if old && g.fetching == noWorker {
		g.fetching = c.ready()[0]
		c.emit(FetchState{Worker: g.fetching})
	}
}

// stateFetchedInAllReduce makes a fetched state the master's.
func (c *Coordinator) stateFetchedInAllReduce(e StateFetched) {
	g := c.allReduce
	if e.Worker != g.fetching || c.members[e.Worker] == nil {
		return
	}
	g.fetching = noWorker
	if e.Step < c.step || e.Step > c.step+1 {
		c.dropDiffering(e.Worker, e.Step,
			fmt.Sprintf("it sent the state of step %d while step %d was computed", e.Step, c.step))
		return
	}
	if e.Step <= g.masterStep {
		return
	}
	g.masterStep = e.Step
	c.recovery.updatesFrom, c.recovery.masterHash, c.recovery.masterHashStep = e.Step, e.Hash, e.Step
	c.emit(AdoptState(e))
}

// finishAllReduce ends the all-reduce in good order: the master holds the newest state, and adds the gradients from now
// on.
func (c *Coordinator) finishAllReduce() {
	c.allReduce = nil
	for _, id := range sortedKeys(c.members) {
		switch m := c.members[id]; {
		case m.leaving:
			c.release(id)
		case m.ready:
			m.step = c.step
			c.emit(Subscribe{Worker: id})
		default:
			m.rejoinFromHello()
		}
	}
	if c.step == c.cfg.Steps {
		c.checkpoint()
	}
	if c.step == c.cfg.Steps || c.evaluates() {
		c.beginStep()
		return
	}
	c.emit(Notice{Reason: "MasterAggregation", Message: fmt.Sprintf("the master adds the gradients from step %d on", c.step)})
}

// StateStep is the number of updates applied to the master's own state: fewer than StepsDone during an all-reduce.
func (c *Coordinator) StateStep() int64 {
	if c.allReduce != nil {
		return c.allReduce.masterStep
	}
	return c.step
}
