package coordinator

import "fmt"

// checkpoint has the current state written, or has it written when the one is there that is being written now: training
// never waits for a disk.
func (c *Coordinator) checkpoint() {
	switch {
	case c.cfg.CheckpointEvery == 0 || c.kept == c.step:
	case c.writing:
		c.due = true
	case c.StateStep() != c.step:
		c.group.checkpoint = c.step // once the state is here
	default:
		c.writing, c.due = true, false
		c.emit(Checkpoint{Step: c.step, Trusted: c.trustedStep()})
	}
}

// checkpointAsked is a checkpoint out of turn. A state that is not known yet, or is the last one, has its own.
func (c *Coordinator) checkpointAsked() {
	if c.training() && c.leaving == "" && !c.unsettled() {
		c.checkpoint()
	}
}

func (c *Coordinator) checkpointWritten(e CheckpointWritten) {
	c.writing, c.kept = false, e.Step
	c.nextCheckpoint()
}

// checkpointNotWritten goes on without it: the next one may find room.
func (c *Coordinator) checkpointNotWritten(e CheckpointNotWritten) {
	c.writing = false
	c.emit(Notice{Warning: true, Reason: "CheckpointNotWritten", Message: fmt.Sprintf("the checkpoint of step %d could not be written: %s; training goes on without it", e.Step, e.Reason)})
	if c.leaving != "" && e.Step == c.step {
		c.exit(c.leaving + "; its checkpoint could not be written: " + e.Reason)
		return
	}
	c.nextCheckpoint()
}

func (c *Coordinator) nextCheckpoint() {
	if c.leaving != "" {
		c.leave(c.leaving)
	} else if c.due {
		c.checkpoint()
	}
}

// leave ends the master, for a later one to go on, when the newest state is in a checkpoint or its time is up.
func (c *Coordinator) leave(reason string) {
	if c.cfg.CheckpointEvery == 0 || (c.kept == c.step && !c.writing) {
		c.exit(reason)
		return
	}
	if c.leaving == "" {
		c.leaving, c.timer = reason, stopTicks
	}
	c.checkpoint()
}

func (c *Coordinator) exit(reason string) {
	c.emit(Exit{Code: ExitInterrupted, Reason: reason})
	c.phase = Done
}
