package coordinator

import (
	"fmt"
	"slices"
)

// What becomes of an excursion when an owner is lost, when workers cannot reach each other, and when nobody is left that can
// go on with it.

// In ticks of 100 ms.
const (
	complaintTicks = 3  // a worker that cannot be reached by another may be dead: its own stream tells soon
	joinTicks      = 50 // a joining worker in which nothing moves for so long is sent the state again
)

// maxComplaints is how often workers may fail to reach each other, while the master reaches them all, before the job goes
// back to the star for good.
const maxComplaints = 3

// lostFromGroup is the end of a member. Joining workers begin anew: some of its slices may not have reached them.
func (c *Coordinator) lostFromGroup(worker int) {
	g := c.group
	if g.fetching == worker {
		g.fetching = nobody
	}
	delete(g.relays, worker)
	if !g.running || !slices.Contains(g.owners, worker) {
		return
	}
	c.disturb()
}

// disturb has the current step mended: what was on its way may be lost, also to joining workers.
func (c *Coordinator) disturb() {
	c.group.lost, c.group.disturbed = true, true
	clear(c.group.relays)
	for _, m := range c.members {
		m.rejoin()
	}
}

// rejoin has a joining worker sent the state anew.
func (m *member) rejoin() {
	if !m.ready {
		m.needs, m.listening, m.stuck = true, false, 0
	}
}

// unreachable is a worker's complaint that it cannot reach another one that the master reaches.
func (c *Coordinator) unreachable(e Unreachable) {
	g, peer := c.group, c.members[e.Peer]
	if g == nil || e.Round != c.round || peer == nil || c.members[e.Worker] == nil || !g.running {
		return // of a round that is over, or about somebody that is gone
	}
	if !peer.ready {
		peer.rejoin()
		return
	}
	if g.suspicion > 0 {
		return
	}
	g.suspicion = complaintTicks
	g.complaint = fmt.Sprintf("worker %d cannot send to worker %d at step %d: %s", e.Worker, e.Peer, c.step, e.Reason)
}

// tickGroup acts on complaints whose subject is still there, and on joining workers in which nothing moves.
func (c *Coordinator) tickGroup() {
	g := c.group
	if g == nil {
		return
	}
	for _, m := range c.members {
		if m.ready || m.needs {
			continue
		}
		if m.stuck++; m.stuck > joinTicks {
			m.rejoin()
		}
	}
	if g.suspicion == 0 {
		return
	}
	if g.suspicion--; g.suspicion > 0 || !g.running {
		return
	}
	c.emit(Notice{Warning: true, Reason: "WorkerUnreachable", Message: g.complaint})
	if g.complaints++; g.complaints < maxComplaints {
		c.disturb()
		return
	}
	c.starOnly = true
	c.dissolve(fmt.Sprintf("workers could not reach each other %d times; the master adds the gradients from here on", g.complaints))
}

// dissolve ends the excursion where no worker can go on with it: the newest state that anybody holds wins, as after a
// master's restart.
func (c *Coordinator) dissolve(reason string) {
	own := c.group.own
	c.emit(Notice{Warning: true, Reason: "AllReduceEnded", Message: fmt.Sprintf("the workers' own adding ends at step %d: %s; the master's own state is that of step %d", c.step, reason, own)})
	c.group, c.step, c.voteStep = nil, own, -1
	for _, id := range sortedKeys(c.members) {
		if m := c.members[id]; m.leaving {
			c.release(id)
		} else {
			m.startAgain()
		}
	}
	c.beginStep()
	if c.leaving != "" {
		c.leave(c.leaving)
	}
}

// startAgain has a member brought up to date as if it had just said hello; what its state's hash is, is not known.
func (m *member) startAgain() {
	m.admitted, m.ready, m.needs, m.listening, m.hash = false, false, false, false, ""
}
