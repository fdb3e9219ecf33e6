package coordinator

import (
	"fmt"
	"strings"
)

// Recovery finds the newest state. States of one lineage are ordered by their step, and there is exactly one state of
// each step, so the newest is always the right one to continue from. After a restart the master holds the state of its
// newest checkpoint, while workers that survived hold a newer one. The master waits for a moment until the surviving
// workers have sent their hellos, fetches the newest state from one of them, and brings the others up to date.

// recovery is the search for the newest state, and what the master knows of its own.
type recovery struct {
	timer          int          // ticks left to wait for the workers of an earlier master
	awaited        map[int]bool // those that have not sent a hello yet
	source         int          // the member whose state is being fetched, or noWorker
	updatesFrom    int64        // the master knows the updates from this step on
	masterHash     string       // of the master's state at masterHashStep
	masterHashStep int64
}

// In ticks of 100 ms.
const (
	helloTicks = 10  // the master waits this long for surviving workers after the first hello,
	firstTicks = 100 // and this long in all
)

// awaitHellos begins to wait for all running workers of an earlier master.
func (c *Coordinator) awaitHellos() {
	for id, p := range c.pods.byWorker {
		if c.cfg.Restarted && p.state == PodRunning {
			c.recovery.awaited[id] = true
		}
	}
	if len(c.recovery.awaited) > 0 {
		c.recovery.timer = firstTicks
	}
}

// stopAwaiting ends the wait for one worker: its hello has come, or will never come.
func (c *Coordinator) stopAwaiting(worker int) {
	delete(c.recovery.awaited, worker)
	if len(c.recovery.awaited) == 0 {
		c.recovery.timer = 0
	}
}

// recovering reports whether it is still open from which state the run continues. No work is assigned meanwhile.
func (c *Coordinator) recovering() bool { return c.recovery.timer > 0 || c.recovery.source != noWorker }

// reconcileState fetches the newest state if a member is ahead of the master, and otherwise admits new members.
func (c *Coordinator) reconcileState() {
	if c.phase > Evaluating || c.exitReason != "" || c.recovering() || c.allReduce != nil {
		return
	}
	ahead := c.newest()
	if len(ahead) == 0 {
		for _, id := range sortedKeys(c.members) {
			if m := c.members[id]; m != nil && !m.admitted {
				c.admit(id, m)
			}
		}
		return
	}
	step := c.members[ahead[0]].step
	source, votes := c.majority(ahead)
	if 2*votes <= len(ahead) && !c.cfg.Approximate {
		c.failCorrupted(fmt.Sprintf("workers %s hold different states of step %d, the newest there is, and no majority agrees: "+
			"a CPU returned wrong results", list(ahead), step), c.stateHashes.trusted)
		return
	}
	c.recovery.source = source
	c.emit(FetchState{Worker: source})
}

// newest lists the members with the newest state, if that is newer than the master's.
func (c *Coordinator) newest() []int {
	var ids []int
	newest := c.step
	for _, id := range sortedKeys(c.members) {
		switch step := c.members[id].step; {
		case step > newest:
			ids, newest = []int{id}, step
		case step == newest && len(ids) > 0:
			ids = append(ids, id)
		}
	}
	return ids
}

// majority is the first of those members that hold the most frequent state, and how many hold that one.
func (c *Coordinator) majority(ids []int) (first, votes int) {
	count := map[string]int{}
	for _, id := range ids {
		count[c.members[id].hash]++
	}
	for _, id := range ids {
		if n := count[c.members[id].hash]; n > votes {
			first, votes = id, n
		}
	}
	return first, votes
}

// stateFetched continues from a fetched state, unless training has reached its step meanwhile.
func (c *Coordinator) stateFetched(e StateFetched) {
	if c.allReduce != nil {
		c.stateFetchedInAllReduce(e)
		return
	}
	m := c.members[e.Worker]
	if e.Worker != c.recovery.source || m == nil {
		return
	}
	c.recovery.source = noWorker
	switch {
	case c.finished() || c.exitReason != "":
	case m.hash == "" && e.Step >= m.step && e.Step > c.step: // it applied more updates before it sent the state
		c.adoptState(e)
	case e.Step != m.step || e.Hash != m.hash:
		c.dropDiffering(e.Worker, e.Step, fmt.Sprintf("the state of step %d that it sent has another hash than it had reported", e.Step))
	case e.Step > c.step:
		c.adoptState(e)
	}
}

func (c *Coordinator) adoptState(e StateFetched) {
	c.emit(AdoptState(e))
	c.emit(Notice{Reason: "StateRestored", Message: fmt.Sprintf(
		"training resumes from step %d, whose state worker %d holds; the master held that of step %d", e.Step, e.Worker, c.step)})
	c.resumeFrom(e.Step, e.Hash)
}

// resumeFrom makes the state at step, with that hash, the master's. All members are brought up to date with it again.
func (c *Coordinator) resumeFrom(step int64, hash string) {
	c.step, c.recovery.updatesFrom = step, step
	c.recovery.masterHash, c.recovery.masterHashStep = hash, step
	c.stateHashes.step = -1
	for _, m := range c.members {
		m.admitted, m.ready, m.slowReader, m.busyWithEarlier, m.inFlight = false, false, false, false, inFlight{}
	}
	c.beginStep()
}

// recoveryReason reports what recovery waits for, for the status.
func (c *Coordinator) recoveryReason() string {
	switch {
	case c.recovery.timer > 0:
		return fmt.Sprintf("workers of an earlier master may hold newer states than that of step %d: waiting for the hello of %s",
			c.step, WorkerNames(sortedKeys(c.recovery.awaited)))
	case c.recovery.source != noWorker:
		return fmt.Sprintf("fetching the state of step %d from worker %d", c.members[c.recovery.source].step, c.recovery.source)
	}
	return ""
}

// list is ascending numbers for a message: "1, 2, 5–9".
func list(ids []int) string {
	var words []string
	for lo := 0; lo < len(ids); {
		hi := lo
		for hi+1 < len(ids) && ids[hi+1] == ids[hi]+1 {
			hi++
		}
		if hi-lo >= 2 {
			words = append(words, fmt.Sprintf("%d–%d", ids[lo], ids[hi]))
		} else {
			hi = lo
			words = append(words, fmt.Sprint(ids[lo]))
		}
		lo = hi + 1
	}
	return strings.Join(words, ", ")
}
