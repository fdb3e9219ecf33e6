package coordinator

import (
	"fmt"
	"slices"
)

// What happens to an all-reduce when an owner is lost, when workers cannot reach each other, and when no worker is left
// that can continue it.

// In ticks of 100 ms.
const (
	unreachableTicks = 3  // a worker that others cannot reach may be dead, which the end of its own stream shows soon
	joinTimeoutTicks = 50 // a joining worker without progress for so long is sent the state again
)

// maxUnreachable is how often workers may fail to reach each other, while the master reaches them all, before
// all-reduce is disabled for the rest of the run.
const maxUnreachable = 3

// memberLostInAllReduce repairs the step of a lost owner. Joining workers start again: some of its slices may not have
// reached them.
func (c *Coordinator) memberLostInAllReduce(worker int) {
	g := c.allReduce
	if g.fetching == worker {
		g.fetching = noWorker
	}
	delete(g.relays, worker)
	if !g.running || !slices.Contains(g.owners, worker) {
		return
	}
	c.repairStep()
}

// repairStep begins the repair of the current step: messages may be lost, also those to joining workers.
func (c *Coordinator) repairStep() {
	c.allReduce.ownerLost, c.allReduce.repairing = true, true
	clear(c.allReduce.relays)
	for _, m := range c.members {
		m.rejoin()
	}
}

// rejoin sends the state to a joining worker again.
func (m *member) rejoin() {
	if !m.ready {
		m.needsState, m.listening, m.stalledTicks = true, false, 0
	}
}

// unreachable records that a worker cannot reach another one, although the master can.
func (c *Coordinator) unreachable(e Unreachable) {
	g, peer := c.allReduce, c.members[e.Peer]
	if g == nil || e.Round != c.round || peer == nil || c.members[e.Worker] == nil || !g.running {
		return // of a round that is over, or about a worker that is lost
	}
	if !peer.ready {
		peer.rejoin()
		return
	}
	if g.unreachableTimer > 0 {
		return
	}
	g.unreachableTimer = unreachableTicks
	g.unreachableReason = fmt.Sprintf("worker %d cannot send to worker %d at step %d: %s", e.Worker, e.Peer, c.step, e.Reason)
}

// tickAllReduce acts on reports of unreachable workers that are still members, and on joining workers without progress.
func (c *Coordinator) tickAllReduce() {
	g := c.allReduce
	if g == nil {
		return
	}
	for _, m := range c.members {
		if m.ready || m.needsState {
			continue
		}
		if m.stalledTicks++; m.stalledTicks > joinTimeoutTicks {
			m.rejoin()
		}
	}
	if g.unreachableTimer == 0 {
		return
	}
	if g.unreachableTimer--; g.unreachableTimer > 0 || !g.running {
		return
	}
	c.emit(Notice{Warning: true, Reason: "WorkerUnreachable", Message: g.unreachableReason})
	if g.unreachableCount++; g.unreachableCount < maxUnreachable {
		c.repairStep()
		return
	}
	c.allReduceDisabled = true
	c.abortAllReduce(fmt.Sprintf("workers could not reach each other %d times; the master adds the gradients from now on",
		g.unreachableCount))
}

// abortAllReduce ends an all-reduce that no worker can continue. Training resumes from the newest state that any member
// holds, as after a restart of the master.
func (c *Coordinator) abortAllReduce(reason string) {
	own := c.allReduce.masterStep
	c.emit(Notice{Warning: true, Reason: "AllReduceEnded", Message: fmt.Sprintf(
		"the all-reduce is aborted at step %d: %s; the master's own state is that of step %d", c.step, reason, own)})
	c.allReduce, c.step, c.stateHashes.step = nil, own, -1
	for _, id := range sortedKeys(c.members) {
		if m := c.members[id]; m.leaving {
			c.release(id)
		} else {
			m.rejoinFromHello()
		}
	}
	c.beginStep()
	if c.exitReason != "" {
		c.exitAfterCheckpoint(c.exitReason)
	}
}

// rejoinFromHello brings a member up to date as if its hello had just come. The hash of its state is not known any
// more.
func (m *member) rejoinFromHello() {
	m.admitted, m.ready, m.needsState, m.listening, m.hash = false, false, false, false, ""
}
