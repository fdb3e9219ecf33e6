package coordinator

import "slices"

// The work of a step, from its beginning to the update that it makes; the ledger says whose it is.

// beginStep prepares the work of the current step, of the evaluation before it, or what follows the last one.
func (c *Coordinator) beginStep() {
	switch {
	case c.evaluates():
		c.beginEvaluation()
	case c.step < c.cfg.Steps:
		if c.evals {
			c.phase, c.evals = Waiting, false // settlePhase knows better
		}
		c.work.reset(c.cfg.Minibatches(c.step))
		c.beginAnswers(len(c.work.owner))
	default:
		c.save()
	}
}

// dealStep gives out what nobody computes, in a round where the workers add between themselves.
func (c *Coordinator) dealStep() {
	if c.group == nil && c.wantsGroup() && c.work.untouched() {
		c.form()
	}
	switch {
	case c.group == nil || !c.training():
		c.dealOrphans()
	case !c.group.running && !c.group.closing:
		c.beginRound()
	}
}

// gradient takes the sum of some virtual workers of a step. Who computed it is of no matter.
func (c *Coordinator) gradient(e Gradient) {
	m := c.members[e.Worker]
	if m == nil || c.phase > Evaluating || c.leaving != "" || !c.compare(m, e) || e.Step != c.step || c.evals || c.group != nil || e.HashAlone {
		return // of a step that is complete: another worker was given the same work meanwhile
	}
	c.answered(m, e)
	for v := e.Lo; v < e.Hi; v++ {
		if !c.work.valid(v) {
			return
		}
	}
	if slices.Contains(c.work.done[e.Lo:e.Hi], true) { // the same bits are here already
		for v := e.Lo; v < e.Hi; v++ {
			c.work.relinquish(v, e.Worker) // what else is in the sum cannot be had from it
		}
		return
	}
	for v := e.Lo; v < e.Hi; v++ {
		c.work.finish(v)
		m.gradients++
	}
	if m.unchecked < 0 {
		m.unchecked = e.Step
	}
	c.contributed(e.Worker)
	c.emit(Accept{Worker: e.Worker, Step: e.Step, Lo: e.Lo, Hi: e.Hi})
}

// completeStep publishes the update of the current step, once all of it is there, together with what everybody computes
// next.
func (c *Coordinator) completeStep() {
	if !c.training() || c.leaving != "" || !c.work.complete() || c.awaitsSecond() {
		return
	}
	c.endHands()
	done := c.step
	c.step++
	every := c.cfg.CheckpointEvery
	checkpoint := every > 0 && c.step%every == 0
	publish := Publish{Step: done, Hash: (checkpoint || c.step%c.cfg.HashEvery == 0) && c.step < c.cfg.Steps}
	if publish.Hash {
		c.openVote(c.step)
	}
	for _, m := range c.members {
		if m.ready {
			m.step = c.step // by the time it can answer, it has applied it
		}
	}
	if c.step < c.cfg.Steps {
		previous := c.work.owner
		c.beginStep()
		if !c.evals && c.enough() && !c.wantsGroup() {
			publish.Next = deal(len(c.work.owner), c.dealable(), previous)
			c.work.assign(publish.Next)
			for id, vs := range publish.Next {
				c.members[id].hand.add(c.now, vs)
			}
		}
		c.emit(publish)
		if c.stopping > 0 {
			c.stopping = 0
			c.leave("stopped after the step in hand")
		} else if checkpoint {
			c.checkpoint()
		}
		return
	}
	c.emit(publish)
	c.checkpoint()
	c.beginStep()
}

// dealOrphans gives work of the current step that nobody has to the ready members: what one of them has computed already to
// that one, and the rest evenly.
func (c *Coordinator) dealOrphans() {
	ready := c.dealable()
	if len(ready) == 0 || !c.work.hasOrphans() {
		return
	}
	reclaimed := map[int][]int{}
	for _, w := range ready {
		if m := c.members[w]; !c.evals && m.inHandOf == c.step {
			reclaimed[w] = c.work.reclaim(w, m.inHand)
			m.inHand = nil
		}
	}
	given := c.work.dealOrphans(ready)
	for w, vs := range reclaimed {
		given[w] = append(vs, given[w]...)
	}
	for _, w := range ready {
		if len(given[w]) == 0 {
			continue
		}
		if c.evals {
			c.emit(Evaluate{Worker: w, Step: c.step, Parts: given[w]})
		} else {
			c.members[w].hand.add(c.now, given[w])
			c.emit(Assign{Worker: w, Step: c.step, VirtualWorkers: given[w]})
		}
	}
}
