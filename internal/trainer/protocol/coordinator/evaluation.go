package coordinator

// An evaluation is a barrier between two steps, and what follows the last one: the validation data's ranges are dealt to the
// members like virtual workers, what a lost member had is dealt again, and no step begins before all are there. A range's
// answer is identified by (step, range). That of a step is made when the step's state is there, and belongs to what follows
// it: a master that goes on from that state makes it again, to the same result.

// evaluates reports whether the validation data are to be evaluated at the current state.
func (c *Coordinator) evaluates() bool {
	if c.cfg.EvaluationParts == 0 || c.step == c.evaluated {
		return false
	}
	return c.step == c.cfg.Steps || c.step > 0 && c.cfg.EvaluatesAt != nil && c.cfg.EvaluatesAt(c.step)
}

// beginEvaluation prepares the ranges; settlePhase deals them. Whose the virtual workers were is kept for the next step.
func (c *Coordinator) beginEvaluation() {
	if !c.evals {
		c.dealt = c.work.owner
	}
	c.phase, c.evals = Evaluating, true
	c.work.reset(c.cfg.EvaluationParts)
}

func (c *Coordinator) evaluationPart(e EvaluationPart) {
	m := c.members[e.Worker]
	if m == nil || c.phase != Evaluating || e.Step != c.step || c.leaving != "" || !c.work.valid(e.Part) || c.work.done[e.Part] {
		return
	}
	c.work.finish(e.Part)
	c.contributed(e.Worker)
	c.emit(AcceptEvaluation(e))
	if c.work.missing == 0 {
		c.endEvaluation()
	}
}

// endEvaluation lets the next step begin, or the model be saved.
func (c *Coordinator) endEvaluation() {
	c.evaluated = c.step
	c.emit(Evaluated{Step: c.step})
	c.beginStep()
	if c.step == c.cfg.Steps || !c.enough() || c.wantsGroup() {
		return
	}
	next := deal(len(c.work.owner), c.dealable(), c.dealt)
	c.work.assign(next)
	for _, id := range sortedKeys(next) {
		c.members[id].hand.add(c.now, next[id])
		c.emit(Assign{Worker: id, Step: c.step, VirtualWorkers: next[id]})
	}
}
