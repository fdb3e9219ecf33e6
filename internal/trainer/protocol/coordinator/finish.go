package coordinator

import "fmt"

// save has the final model written; its presence is the job's completion.
func (c *Coordinator) save() {
	c.phase = Saving
	c.emit(SaveModel{})
}

func (c *Coordinator) modelNotSaved(e ModelNotSaved) {
	if c.phase != Saving {
		return
	}
	if c.stopped {
		c.exitAfterCheckpoint(e.Reason)
		return
	}
	c.phase, c.reason, c.timer = CannotSave, e.Reason, saveRetryTicks
	c.emit(Notice{Warning: true, Reason: "CannotSave", Message: e.Reason + "; retried every 10 s"})
}

// modelSaved dismisses the workers and deletes the pods that never ran.
func (c *Coordinator) modelSaved(e ModelSaved) {
	if c.phase != Saving {
		return
	}
	c.finalHash, c.reason = e.SHA256, ""
	c.phase, c.timer = Dismissing, dismissTicks
	c.dismissAll("the job is done")
	if len(c.members) == 0 {
		c.done()
	}
}

func (c *Coordinator) dismissAll(reason string) {
	for _, id := range sortedKeys(c.pods.byWorker) {
		if p := c.pods.byWorker[id]; p.alive() && c.members[id] == nil {
			c.retire(id, reason)
		}
	}
	for _, id := range sortedKeys(c.members) {
		c.emit(Dismiss{Worker: id})
	}
}

// done ends the master, when the workers have exited or the time for that is over.
func (c *Coordinator) done() { c.exit(Done, ExitDone, "") }

// fail ends the job for a reason that a restart would not solve.
func (c *Coordinator) fail(reason string) {
	if c.phase >= Done {
		return
	}
	c.phase, c.reason = Failed, reason
	c.emit(Notice{Warning: true, Reason: "JobFailed", Message: reason})
	c.dismissAll("the job failed")
	c.exit(Failed, ExitJobFailed, reason)
}

// stop finishes the step in flight and no more. A model that is being written is finished too.
func (c *Coordinator) stop(e Stop) {
	if c.stopped {
		return
	}
	c.stopped = true
	if !c.finished() {
		switch e.Cause {
		case Evicted:
			c.emit(Notice{Warning: true, Reason: "Evicted", Message: fmt.Sprintf(
				"%s at step %d; the job resumes when they are admitted again", e.Cause, c.step)})
			c.retireOwnPods(e.Cause)
		case Suspended:
			c.emit(Notice{Reason: "Suspended", Message: fmt.Sprintf("%s at step %d; it continues when it is resumed", e.Cause, c.step)})
			c.retireOwnPods(e.Cause)
		case Replaced: // the workers wait for the next one
		}
	}
	if c.phase == Evaluating || c.phase == CannotSave {
		c.exitUnfinished()
		return
	}
	if !c.training() {
		return
	}
	c.stopTimer = stopTicks
	idle := c.work.missing == len(c.work.owner)
	if c.allReduce != nil {
		idle = !c.allReduce.running
	}
	if idle || len(c.ready()) == 0 {
		c.stopTimer = 0
		c.exitAfterCheckpoint("stopped between two steps")
	}
}

// exitUnfinished ends a master that was signalled to stop where an evaluation or the model was next.
func (c *Coordinator) exitUnfinished() {
	c.stopTimer = 0
	if c.step < c.cfg.Steps {
		c.exitAfterCheckpoint("stopped in an evaluation, which is repeated when the job resumes")
		return
	}
	c.exitAfterCheckpoint("stopped before the final model was written")
}
