package coordinator

import "fmt"

// save asks for the final model; its presence is the job's completion.
func (c *Coordinator) save() {
	c.phase = Saving
	c.emit(SaveModel{})
}

func (c *Coordinator) modelNotSaved(e ModelNotSaved) {
	if c.phase != Saving {
		return
	}
	if c.stopped {
		c.leave(e.Reason)
		return
	}
	c.phase, c.reason, c.timer = CannotSave, e.Reason, saveRetryTicks
	c.emit(Notice{Warning: true, Reason: "CannotSave", Message: e.Reason + "; tried again every 10 s"})
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
	for _, id := range sortedKeys(c.pods) {
		if p := c.pods[id]; p.alive() && c.members[id] == nil {
			c.retire(id, reason)
		}
	}
	for _, id := range sortedKeys(c.members) {
		c.emit(Dismiss{Worker: id})
	}
}

// done ends the master, after the workers have gone or their time is up.
func (c *Coordinator) done() {
	c.phase = Done
	c.emit(Exit{Code: ExitDone})
}

// fail ends the job with a reason that no restart would mend.
func (c *Coordinator) fail(reason string) {
	if c.phase >= Done {
		return
	}
	c.phase, c.reason = Failed, reason
	c.emit(Notice{Warning: true, Reason: "JobFailed", Message: reason})
	c.dismissAll("the job failed")
	c.emit(Exit{Code: ExitJobFailed, Reason: reason})
}

// stop finishes the step in hand and no more; a model that is being written is finished too.
func (c *Coordinator) stop(e Stop) {
	if c.stopped {
		return
	}
	c.stopped = true
	if !c.finished() {
		switch e.Cause {
		case Evicted:
			c.emit(Notice{Warning: true, Reason: "Evicted", Message: fmt.Sprintf("%s at step %d; the job goes on when they are admitted again", e.Cause, c.step)})
			c.leaveWithMaster(e.Cause)
		case Suspended:
			c.emit(Notice{Reason: "Suspended", Message: fmt.Sprintf("%s at step %d; it goes on when it is resumed", e.Cause, c.step)})
			c.leaveWithMaster(e.Cause)
		case Replaced: // the workers wait for the next one
		}
	}
	if c.phase == Evaluating || c.phase == CannotSave {
		reason := "stopped before the final model was written"
		if c.step < c.cfg.Steps {
			reason = "stopped in an evaluation, which is made again when the job goes on"
		}
		c.leave(reason)
		return
	}
	if !c.training() {
		return
	}
	c.stopping = stopTicks
	idle := c.work.missing == len(c.work.owner)
	if c.group != nil {
		idle = !c.group.running
	}
	if idle || len(c.ready()) == 0 {
		c.stopping = 0
		c.leave("stopped between two steps")
	}
}
