package coordinator

import "slices"

// The work of a step, from its beginning to the update that results from it. assignments.go records who computes what.

// beginStep prepares the work of the current step, of the evaluation before it, or what follows the last one.
func (c *Coordinator) beginStep() {
	switch {
	case c.evaluates():
		c.beginEvaluation()
	case c.step < c.cfg.Steps:
		if c.workIsEvaluation {
			c.phase, c.workIsEvaluation = Waiting, false // reconcilePhase makes it Running where it can
		}
		c.work.reset(c.cfg.Minibatches(c.step))
		c.beginResultHashes(len(c.work.owner))
	default:
		c.save()
	}
}

// assignStep assigns unassigned work: to single members, or in an all-reduce round.
func (c *Coordinator) assignStep() {
	if c.allReduce == nil && c.wantsAllReduce() && c.work.nothingAssigned() {
		c.startAllReduce()
	}
	switch {
	case c.allReduce == nil || !c.training():
		c.assignUnassigned()
	case !c.allReduce.running && !c.allReduce.closing:
		c.beginRound()
	}
}

// gradient accepts the sum of some virtual workers of a step, whichever worker computed it.
func (c *Coordinator) gradient(e Gradient) {
	m := c.members[e.Worker]
	if m == nil || c.phase > Evaluating || c.exitReason != "" || !c.compareHashes(m, e) {
		return
	}
	if e.Step != c.step || c.workIsEvaluation || c.allReduce != nil || e.HashOnly {
		return // of a step that is complete, because a backup or another owner has computed the same work
	}
	c.recordLatency(m, e)
	for v := e.Lo; v < e.Hi; v++ {
		if !c.work.valid(v) {
			return
		}
	}
	if slices.Contains(c.work.done[e.Lo:e.Hi], true) { // part of the sum was accepted before, and a sum cannot be split
		for v := e.Lo; v < e.Hi; v++ {
			c.work.relinquish(v, e.Worker)
		}
		return
	}
	for v := e.Lo; v < e.Hi; v++ {
		c.work.finish(v)
		m.gradients++
	}
	if m.unconfirmedFrom < 0 {
		m.unconfirmedFrom = e.Step
	}
	c.recordContribution(e.Worker)
	c.emit(Accept{Worker: e.Worker, Step: e.Step, Lo: e.Lo, Hi: e.Hi, Payload: e.Payload})
}

// completeStep publishes the update of the current step, once all results have come. The same message assigns every
// ready member its next work, which saves a round trip per step.
func (c *Coordinator) completeStep() {
	if !c.training() || c.exitReason != "" || !c.work.complete() || c.awaitsBackup() || c.behind {
		return
	}
	c.endInFlight()
	done := c.step
	c.step++
	every := c.cfg.CheckpointEvery
	checkpoint := every > 0 && c.step%every == 0
	publish := Publish{Step: done, Hash: (checkpoint || c.step%c.cfg.HashEvery == 0) && c.step < c.cfg.Steps}
	if publish.Hash {
		c.beginComparison(c.step)
	}
	for _, m := range c.members {
		if m.ready {
			m.step = c.step // messages are ordered: it applies the update before it computes anything of the next step
		}
	}
	if c.step < c.cfg.Steps {
		previous := c.work.owner
		c.beginStep()
		if !c.workIsEvaluation && c.canAssign() && !c.wantsAllReduce() {
			publish.Next = rebalance(len(c.work.owner), c.assignable(), previous)
			c.work.assign(publish.Next)
			for id, vs := range publish.Next {
				c.members[id].inFlight.add(c.now, vs)
			}
		}
		c.emit(publish)
		if c.stopTimer > 0 {
			c.stopTimer = 0
			c.exitAfterCheckpoint("stopped after the step in flight")
		} else if checkpoint {
			c.checkpoint()
		}
		return
	}
	c.emit(publish)
	c.checkpoint()
	c.beginStep()
}

// assignUnassigned assigns unassigned work of the current step to the ready members. What a member has computed
// already, for an earlier master, goes to that member, and the rest is divided evenly.
func (c *Coordinator) assignUnassigned() {
	ready := c.assignable()
	if len(ready) == 0 || !c.work.hasUnassigned() {
		return
	}
	reclaimed := map[int][]int{}
	for _, w := range ready {
		if m := c.members[w]; !c.workIsEvaluation && m.computedStep == c.step {
			reclaimed[w] = c.work.reclaim(w, m.computed)
			m.computed = nil
		}
	}
	assigned := c.work.assignUnassigned(ready)
	for w, vs := range reclaimed {
		assigned[w] = append(vs, assigned[w]...)
	}
	for _, w := range ready {
		if len(assigned[w]) == 0 {
			continue
		}
		if c.workIsEvaluation {
			c.emit(Evaluate{Worker: w, Step: c.step, Parts: assigned[w]})
		} else {
			c.members[w].inFlight.add(c.now, assigned[w])
			c.emit(Assign{Worker: w, Step: c.step, VirtualWorkers: assigned[w]})
		}
	}
}
