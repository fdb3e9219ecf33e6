package coordinator

// An evaluation is a barrier between two steps, and comes after the last one too. The ranges of validation data (parts)
// are assigned to members like virtual workers, those of a lost member are assigned again, and no step begins before
// all results have come. A result is identified by (step, part). An evaluation at a state belongs to what follows that
// state: a master that resumes from the state repeats the evaluation, with the same result.

// evaluates reports whether an evaluation at the current state is due.
func (c *Coordinator) evaluates() bool {
	if c.cfg.EvaluationParts == 0 || c.step == c.evaluated {
		return false
	}
	return c.step == c.cfg.Steps || c.step > 0 && c.cfg.EvaluatesAt != nil && c.cfg.EvaluatesAt(c.step)
}

// beginEvaluation prepares the parts; reconcilePhase assigns them. The owners of the virtual workers are kept for the
// next step.
func (c *Coordinator) beginEvaluation() {
	if !c.workIsEvaluation {
		c.previousOwners = c.work.owner
	}
	c.phase, c.workIsEvaluation = Evaluating, true
	c.work.reset(c.cfg.EvaluationParts)
}

func (c *Coordinator) evaluationPart(e EvaluationPart) {
	if c.members[e.Worker] == nil || c.phase != Evaluating || e.Step != c.step || c.exitReason != "" ||
		!c.work.valid(e.Part) || c.work.done[e.Part] {
		return
	}
	c.work.finish(e.Part)
	c.recordContribution(e.Worker)
	c.emit(AcceptEvaluation(e))
	if c.work.missing == 0 {
		c.endEvaluation()
	}
}

// endEvaluation begins the next step, or saves the model.
func (c *Coordinator) endEvaluation() {
	c.evaluated = c.step
	c.emit(Evaluated{Step: c.step})
	c.beginStep()
	if c.step == c.cfg.Steps || !c.canAssign() || c.wantsAllReduce() {
		return
	}
	next := rebalance(len(c.work.owner), c.assignable(), c.previousOwners)
	c.work.assign(next)
	for _, id := range sortedKeys(next) {
		c.members[id].inFlight.add(c.now, next[id])
		c.emit(Assign{Worker: id, Step: c.step, VirtualWorkers: next[id]})
	}
}
