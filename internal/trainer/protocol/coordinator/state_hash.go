package coordinator

import "fmt"

// Every HashEvery steps all members report the hash of their state at one step. Equal work gives equal bits, so a
// member whose hash differs has computed wrongly, or its state was damaged.

// stateHashes is a comparison of the members' states.
type stateHashes struct {
	step       int64          // whose states are compared; −1 for none
	master     string         // hash of the master's state; "" while it is not known
	byWorker   map[int]string // hashes that members have reported
	mismatches int            // states that differed, in the whole run
	trusted    int64          // the newest step whose state was confirmed by equal hashes
}

// beginComparison begins a comparison of all states at step. It abandons an older comparison that is not complete.
func (c *Coordinator) beginComparison(step int64) {
	c.stateHashes.step, c.stateHashes.master, c.stateHashes.byWorker = step, "", map[int]string{}
}

func (c *Coordinator) stateHash(e StateHash) {
	if e.Step != c.stateHashes.step {
		return
	}
	if e.Worker < 0 {
		c.stateHashes.master = e.Hash
	} else if c.members[e.Worker] != nil {
		c.stateHashes.byWorker[e.Worker] = e.Hash
	}
	c.compareStates()
}

// compareStates acts on the hashes once every member that holds the state has reported. The right hash is the master's,
// whose hash counts as a vote too. While workers add gradients themselves the master holds no such state, and the right
// hash is the most frequent one. In both cases a majority must agree with it, or the job fails.
func (c *Coordinator) compareStates() {
	h := &c.stateHashes
	if h.step < 0 || (h.master == "" && c.allReduce == nil) || c.finished() {
		return
	}
	for id, m := range c.members {
		if _, reported := h.byWorker[id]; !reported && m.ready && m.step >= h.step {
			return
		}
	}
	right, agree, all := h.count(c.allReduce != nil)
	step := h.step
	h.step = -1
	voters := sortedKeys(h.byWorker)
	if c.cfg.Approximate {
		for _, id := range voters {
			if h.byWorker[id] != h.master {
				c.overflow(id)
			}
		}
		return
	}
	if 2*agree <= all && agree < all {
		whose := "with the master"
		if c.allReduce != nil {
			whose = "with most of the others"
		}
		c.failCorrupted(fmt.Sprintf("the states of master and workers differ at step %d and no majority agrees (%d of %d %s): "+
			"a CPU returned wrong results", step, agree, all, whose), h.trusted)
		return
	}
	if agree > 1 {
		h.trusted = step
	}
	for _, id := range voters {
		if h.byWorker[id] != right {
			c.dropDiffering(id, step, differsFromMaster(step))
		}
	}
}

// count returns the hash that a state should have, how many agree with it, and how many hashes there are. With
// workersOnly the right hash is the most frequent one, and otherwise the master's.
func (h *stateHashes) count(workersOnly bool) (right string, agree, all int) {
	right = h.master
	count := map[string]int{}
	if !workersOnly {
		count[right]++
	}
	for _, id := range sortedKeys(h.byWorker) {
		hash := h.byWorker[id]
		if count[hash]++; workersOnly && count[hash] > count[right] {
			right = hash
		}
	}
	for _, n := range count {
		all += n
	}
	return right, count[right], all
}

// dropDiffering drops and replaces a worker whose state is not what it should be. The second time, the job fails: one
// wrong state may be a damaged one, two mean that a machine computes wrongly.
func (c *Coordinator) dropDiffering(worker int, step int64, reason string) {
	machine := Machine{}
	if m := c.members[worker]; m != nil {
		machine = m.machine
	}
	if c.stateHashes.mismatches++; c.stateHashes.mismatches > 1 {
		c.failCorrupted(fmt.Sprintf("for the second time a worker's state differs at step %d (worker %d%s): "+
			"a CPU or memory returned wrong results", step, worker, machine), c.stateHashes.trusted)
		return
	}
	c.emit(Notice{
		Warning: true,
		Reason:  "StateDiffers",
		Message: fmt.Sprintf("worker %d%s is replaced: %s", worker, machine, reason),
	})
	c.emit(Refuse{Worker: worker, Reason: reason})
	c.remove(worker, "was dropped")
	if p := c.pods.byWorker[worker]; p != nil {
		c.retire(worker, "its state differed")
	}
}

func differsFromMaster(step int64) string {
	return fmt.Sprintf("its state at step %d has another hash than the master's", step)
}
