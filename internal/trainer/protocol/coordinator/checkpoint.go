package coordinator

import "fmt"

// checkpoints is what has been written of the run.
type checkpoints struct {
	newest  int64 // the step of the newest checkpoint
	writing bool  // a checkpoint is being written
	due     bool  // and another one is due afterwards
}

// checkpoint has the current state written. If a checkpoint is being written already, the next one follows it: training
// never waits for a disk.
func (c *Coordinator) checkpoint() {
	switch {
	case c.cfg.CheckpointEvery == 0 || c.checkpoints.newest == c.step:
	case c.checkpoints.writing:
		c.checkpoints.due = true
	case c.StateStep() != c.step:
		c.allReduce.checkpoint = c.step // once the master has fetched the state
	default:
		c.checkpoints.writing, c.checkpoints.due = true, false
		c.emit(Checkpoint{Step: c.step, Trusted: c.trustedStep()})
	}
}

// checkpointRequested writes a checkpoint out of turn. There is none during recovery, because the newest state is
// unknown, and none after the last step, which has its own.
func (c *Coordinator) checkpointRequested() {
	if c.training() && c.exitReason == "" && !c.recovering() {
		c.checkpoint()
	}
}

func (c *Coordinator) checkpointWritten(e CheckpointWritten) {
	c.checkpoints.writing, c.checkpoints.newest = false, e.Step
	c.nextCheckpoint()
}

// checkpointNotWritten continues without the checkpoint: the next one may succeed.
func (c *Coordinator) checkpointNotWritten(e CheckpointNotWritten) {
	c.checkpoints.writing = false
	c.emit(Notice{Warning: true, Reason: "CheckpointNotWritten", Message: fmt.Sprintf(
		"the checkpoint of step %d could not be written: %s; training continues without it", e.Step, e.Reason)})
	if c.exitReason != "" && e.Step == c.step {
		c.exit(Done, ExitInterrupted, c.exitReason+"; its checkpoint could not be written: "+e.Reason)
		return
	}
	c.nextCheckpoint()
}

func (c *Coordinator) nextCheckpoint() {
	if c.exitReason != "" {
		c.exitAfterCheckpoint(c.exitReason)
	} else if c.checkpoints.due {
		c.checkpoint()
	}
}

// exitAfterCheckpoint ends the master as interrupted, once the newest state is in a checkpoint from which a later
// master can resume, or when the time for that is over.
func (c *Coordinator) exitAfterCheckpoint(reason string) {
	if c.cfg.CheckpointEvery == 0 || (c.checkpoints.newest == c.step && !c.checkpoints.writing) {
		c.exit(Done, ExitInterrupted, reason)
		return
	}
	if c.exitReason == "" {
		c.exitReason, c.timer = reason, stopTicks
	}
	c.checkpoint()
}
