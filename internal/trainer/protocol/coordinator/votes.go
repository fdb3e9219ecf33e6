package coordinator

import "fmt"

// Every so many steps all members say the hash of the state that they hold at one step. Equal work gives equal bits, so that
// one that differs has computed wrongly, or has been damaged.

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

// settleVote acts on a difference once every member that was in step has voted. The master's own state has a vote too,
// and the last word, unless the workers add between themselves: then the majority of them has it.
func (c *Coordinator) settleVote() {
	if c.voteStep < 0 || (c.ownVote == "" && c.group == nil) || c.finished() {
		return
	}
	voters := sortedKeys(c.votes)
	count := map[string]int{}
	whose, right := "with the master", c.ownVote
	if c.group == nil {
		count[c.ownVote]++
	} else {
		whose = "with most of the others"
	}
	for id, m := range c.members {
		if _, voted := c.votes[id]; !voted && m.ready && m.step >= c.voteStep {
			return
		}
	}
	for _, id := range voters {
		if count[c.votes[id]]++; c.group != nil && count[c.votes[id]] > count[right] {
			right = c.votes[id]
		}
	}
	step, agree, all := c.voteStep, count[right], 0
	for _, n := range count {
		all += n
	}
	c.voteStep = -1
	if c.cfg.Approximate {
		for _, id := range voters {
			if c.votes[id] != c.ownVote {
				c.overflow(id)
			}
		}
		return
	}
	if 2*agree <= all && agree < all {
		c.corrupt(fmt.Sprintf("the states of master and workers differ at step %d and no majority agrees (%d of %d %s): a processor computes wrongly", step, agree, all, whose), c.trusted)
		return
	}
	if agree > 1 {
		c.trusted = step
	}
	for _, id := range voters {
		if c.votes[id] != right {
			c.differs(id, step, notTheMasters(step))
		}
	}
}

// differs drops a worker whose state is not what it should be: once, then the job stops.
func (c *Coordinator) differs(worker int, step int64, reason string) {
	machine := Machine{}
	if m := c.members[worker]; m != nil {
		machine = m.machine
	}
	if c.mismatches++; c.mismatches > 1 {
		c.corrupt(fmt.Sprintf("for the second time a worker's state differs at step %d (worker %d%s): a processor or its memory computes wrongly", step, worker, machine), c.trusted)
		return
	}
	c.emit(Notice{Warning: true, Reason: "StateDiffers", Message: fmt.Sprintf("worker %d%s is replaced: %s", worker, machine, reason)})
	c.emit(Refuse{Worker: worker, Reason: reason})
	c.remove(worker, "was dropped")
	if p := c.pods[worker]; p != nil {
		c.retire(worker, "its state differed")
	}
}

func notTheMasters(step int64) string {
	return fmt.Sprintf("its state at step %d has another hash than the master's", step)
}
