package coordinator

import (
	"fmt"
	"strings"
)

// States of one lineage are ordered by their step, and there is one of each step. So the newest state wins, whenever it
// turns up: a master that was restarted holds an old one, and the workers of the one before hold a newer one, which it
// fetches from one of them and goes on from.

// In ticks of 100 ms.
const (
	helloTicks = 10  // the workers of an earlier master are awaited so long after the first has said hello,
	firstTicks = 100 // and so long in all
)

// awaitHellos begins to wait for the workers that an earlier master has left: all that run.
func (c *Coordinator) awaitHellos() {
	for id, p := range c.pods {
		if c.cfg.Restarted && p.state == PodRunning {
			c.awaited[id] = true
		}
	}
	if len(c.awaited) > 0 {
		c.gathering = firstTicks
	}
}

// heardOf strikes a worker off the list of those that are awaited: it has said hello, or it never will.
func (c *Coordinator) heardOf(worker int) {
	delete(c.awaited, worker)
	if len(c.awaited) == 0 {
		c.gathering = 0
	}
}

// unsettled reports whether it is still open which state the run goes on from; nothing is dealt meanwhile.
func (c *Coordinator) unsettled() bool { return c.gathering > 0 || c.source != nobody }

// settleState fetches the newest state if a member is ahead, and otherwise admits those that have said hello.
func (c *Coordinator) settleState() {
	if c.phase > Evaluating || c.leaving != "" || c.unsettled() || c.group != nil {
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
		c.corrupt(fmt.Sprintf("workers %s hold different states of step %d, the newest there is, and no majority agrees: a processor computes wrongly", list(ahead), step), c.trusted)
		return
	}
	c.source = source
	c.emit(FetchState{Worker: source})
}

// newest lists the members whose state is the newest of all, if it is newer than the master's.
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

// majority is the first of those members whose state is the commonest, and how many have that one.
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

// stateFetched goes on from a fetched state, unless training has got there meanwhile.
func (c *Coordinator) stateFetched(e StateFetched) {
	if c.group != nil {
		c.fetchedInGroup(e)
		return
	}
	m := c.members[e.Worker]
	if e.Worker != c.source || m == nil {
		return
	}
	c.source = nobody
	switch {
	case c.finished() || c.leaving != "":
	case m.hash == "" && e.Step >= m.step && e.Step > c.step: // it applied more after it was asked
		c.takeBack(e)
	case e.Step != m.step || e.Hash != m.hash:
		c.differs(e.Worker, e.Step, fmt.Sprintf("the state of step %d that it sent has another hash than it had said", e.Step))
	case e.Step > c.step:
		c.takeBack(e)
	}
}

func (c *Coordinator) takeBack(e StateFetched) {
	c.emit(TakeState(e))
	c.emit(Notice{Reason: "StateTakenBack", Message: fmt.Sprintf("training goes on from step %d, whose state worker %d holds; the master held that of step %d", e.Step, e.Worker, c.step)})
	c.goOnFrom(e.Step, e.Hash)
}

// goOnFrom makes the state at step, with that hash, the master's. Everybody else's is compared with it anew.
func (c *Coordinator) goOnFrom(step int64, hash string) {
	c.step, c.history = step, step
	c.ownHash, c.ownHashStep = hash, step
	c.voteStep = -1
	for _, m := range c.members {
		m.admitted, m.ready, m.slowReader, m.behind, m.hand = false, false, false, false, hand{}
	}
	c.beginStep()
}

// unsettledReason says what is waited for before it is known which state the run goes on from.
func (c *Coordinator) unsettledReason() string {
	switch {
	case c.gathering > 0:
		return fmt.Sprintf("an earlier master has left workers, and their states may be newer than that of step %d: waiting for the hello of %s", c.step, Named(sortedKeys(c.awaited)))
	case c.source != nobody:
		return fmt.Sprintf("fetching the state of step %d from worker %d", c.members[c.source].step, c.source)
	}
	return ""
}

// list is ascending numbers for a sentence: "1, 2, 5–9".
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
