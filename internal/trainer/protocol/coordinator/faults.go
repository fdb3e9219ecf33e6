package coordinator

import "fmt"

// maxFaults is how often a worker may be disconnected for what it did, or end its stream for what it met, without having
// contributed anything in between. A stream that is opened anew mends much; after so many it would go on without an end.
const maxFaults = 5

// fault is what a worker was disconnected for last, and how often in a row.
type fault struct {
	times  int
	reason string
}

// blame counts a fault of a worker.
func (c *Coordinator) blame(worker int, reason string) {
	c.faults[worker] = fault{c.faults[worker].times + 1, reason}
}

// contributed is the good word for a member: something of it was of use.
func (c *Coordinator) contributed(worker int) {
	delete(c.faults, worker)
	c.failures = 0
	if m := c.members[worker]; m != nil && !m.contributed {
		m.contributed = true
		c.repeats = 0
	}
}

// faultRefusal says why a worker is not taken in again, or nothing. It ends then as one that has failed, and what is made in
// its place begins without faults, also under the same number.
func (c *Coordinator) faultRefusal(worker int) string {
	f := c.faults[worker]
	if f.times < maxFaults {
		return ""
	}
	delete(c.faults, worker)
	return fmt.Sprintf("it was disconnected %d times in a row and contributed nothing in between; the last time it %s", f.times, f.reason)
}
