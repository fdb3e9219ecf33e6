package coordinator

import "fmt"

// member is a worker with a stream.
type member struct {
	step      int64 // updates applied, as far as known
	ready     bool  // holds the newest state, or will before it can be dealt work
	silent    int   // ticks since the last frame
	gradients int64
}

// hello admits a worker, brings its state up to date, or refuses it. A worker ahead
// of its master starts over, as long as masters do not take states back.
func (c *Coordinator) hello(e Hello) {
	if _, there := c.members[e.Worker]; there {
		c.remove(e.Worker, "said hello again")
	}
	if c.finished() {
		c.emit(Dismiss{Worker: e.Worker})
		return
	}
	if reason := c.cfg.Identity.refusal(e.Identity); reason != "" {
		c.emit(Refuse{Worker: e.Worker, Reason: reason})
		return
	}
	m := &member{step: e.Step}
	switch behind := c.step - e.Step; {
	case behind < 0:
		c.emit(Refuse{Worker: e.Worker, StartOver: true, Reason: fmt.Sprintf("its state is at step %d and the master's at %d: it is an earlier master's; start over", e.Step, c.step)})
		return
	case behind == 0 && e.Hash != e.OwnHash:
		c.members[e.Worker] = m
		c.differs(e.Worker, e.Step)
		return
	case behind == 0:
		m.ready = true
		c.members[e.Worker] = m
		c.emit(Subscribe{Worker: e.Worker})
	case behind <= c.cfg.RetainedUpdates:
		c.members[e.Worker] = m
		c.emit(SendUpdates{Worker: e.Worker, From: e.Step})
	default:
		c.members[e.Worker] = m
		c.emit(SendState{Worker: e.Worker})
	}
	c.emit(Notice{Reason: "WorkerJoined", Message: fmt.Sprintf("worker %d joined at step %d", e.Worker, c.step)})
}

// refusal says why a worker of identity got cannot take part, or nothing.
func (want Identity) refusal(got Identity) string {
	switch {
	case got.Numerics != want.Numerics:
		return fmt.Sprintf("its arithmetic is version %d and this job's %d: run the same elastic-trainer image on master and workers", got.Numerics, want.Numerics)
	case got.Lineage != want.Lineage:
		return fmt.Sprintf("its lineage is %.12s and this job's %.12s: it reads another model, other data or other settings", got.Lineage, want.Lineage)
	case got.Job != want.Job:
		return fmt.Sprintf("its job digest is %.12s and this job's %.12s: it was started for another number of epochs", got.Job, want.Job)
	}
	return ""
}

// applied makes a joining worker ready once it has caught up; it is dealt work from the next step boundary, or at
// once where work lies about.
func (c *Coordinator) applied(e Applied) {
	m := c.members[e.Worker]
	if m == nil {
		return
	}
	m.step = max(m.step, e.Step)
	if m.step >= c.step {
		m.ready = true
	}
}

// remove forgets a member; what it had in hand is nobody's until settlePhase deals it again.
func (c *Coordinator) remove(worker int, reason string) {
	if c.members[worker] == nil {
		return
	}
	delete(c.members, worker)
	delete(c.votes, worker)
	c.work.orphan(worker)
	if c.phase == Dismissing && len(c.members) == 0 {
		c.done()
		return
	}
	if !c.finished() {
		c.emit(Notice{Reason: "WorkerLeft", Message: fmt.Sprintf("worker %d %s at step %d; %d left", worker, reason, c.step, len(c.members))})
	}
	c.settleVote()
}

// overflow drops a slow reader back to joining, with a fresh state.
func (c *Coordinator) overflow(worker int) {
	m := c.members[worker]
	if m == nil {
		return
	}
	m.ready = false
	c.work.orphan(worker)
	c.emit(SendState{Worker: worker})
}

// openVote begins a comparison of all states at step. An older comparison that is still open is given up.
func (c *Coordinator) openVote(step int64) {
	c.voteStep, c.ownVote, c.votes = step, "", map[int]string{}
}

func (c *Coordinator) stateHash(e StateHash) {
	if e.Step != c.voteStep {
		return
	}
	if e.Worker < 0 {
		c.ownVote = e.Hash
	} else if c.members[e.Worker] != nil {
		c.votes[e.Worker] = e.Hash
	}
	c.settleVote()
}

// settleVote acts on a difference once every member that was in step has voted.
func (c *Coordinator) settleVote() {
	if c.voteStep < 0 || c.ownVote == "" || c.finished() {
		return
	}
	different := -1
	agree := 1 // the master's own
	for id, m := range c.members {
		hash, voted := c.votes[id]
		switch {
		case !voted && m.ready && m.step >= c.voteStep:
			return
		case voted && hash == c.ownVote:
			agree++
		case voted && (different < 0 || id < different):
			different = id
		}
	}
	step := c.voteStep
	c.voteStep = -1
	if different < 0 {
		return
	}
	if agree <= len(c.votes)+1-agree {
		c.fail(fmt.Sprintf("the states of master and workers differ at step %d and no majority agrees (%d of %d with the master): a processor computes wrongly", step, agree, len(c.votes)+1))
		return
	}
	for id, hash := range c.votes {
		if hash != c.ownVote {
			c.differs(id, step)
		}
	}
}

// differs drops a worker whose state is not what it should be: once, then the job stops.
func (c *Coordinator) differs(worker int, step int64) {
	c.mismatches++
	if c.mismatches > 1 {
		c.fail(fmt.Sprintf("for the second time a worker's state differs at step %d (worker %d): a processor or its memory computes wrongly", step, worker))
		return
	}
	reason := fmt.Sprintf("its state at step %d has another hash than the master's", step)
	c.emit(Notice{Warning: true, Reason: "StateDiffers", Message: fmt.Sprintf("worker %d is replaced: %s", worker, reason)})
	c.emit(Refuse{Worker: worker, Reason: reason})
	c.remove(worker, "was dropped")
	if p := c.pods[worker]; p != nil {
		c.retire(worker, "its state differed")
	}
}

// tick counts silence, back-offs and deadlines.
func (c *Coordinator) tick(e Tick) {
	for _, id := range e.Heard {
		if m := c.members[id]; m != nil {
			m.silent = 0
		}
	}
	for _, id := range sortedKeys(c.members) {
		m := c.members[id]
		if e.Late {
			m.silent = 0
			continue
		}
		m.silent++
		if m.silent > c.cfg.SilentTicks {
			c.emit(Disconnect{Worker: id, Reason: fmt.Sprintf("nothing heard for %d ticks", c.cfg.SilentTicks)})
			c.remove(id, "fell silent")
		}
	}
	if c.backoff > 0 {
		c.backoff--
	}
	if c.stopping > 0 {
		if c.stopping--; c.stopping == 0 && c.training() {
			c.emit(Exit{Code: ExitInterrupted, Reason: "stopped; the step in hand did not complete in time"})
			c.phase = Done
		}
	}
	if c.timer > 0 {
		if c.timer--; c.timer == 0 {
			switch c.phase {
			case CannotSave:
				c.save()
			case Dismissing:
				c.done()
			}
		}
	}
}
