package coordinator

import "fmt"

// maxFaults is how often in a row a worker may be disconnected for breaking the protocol, or end its stream because of
// a problem, without contributing anything in between. A new stream solves many problems; without a limit a worker that
// cannot work would reconnect for ever.
const maxFaults = 5

// fault is what a worker was disconnected for last, and how often in a row.
type fault struct {
	times  int
	reason string
}

// recordFault counts a fault of a worker.
func (c *Coordinator) recordFault(worker int, reason string) {
	c.faults[worker] = fault{c.faults[worker].times + 1, reason}
}

// recordContribution resets what counts against a member, because one of its results was used.
func (c *Coordinator) recordContribution(worker int) {
	delete(c.faults, worker)
	c.pods.failures = 0
	if m := c.members[worker]; m != nil && !m.contributed {
		m.contributed = true
		c.pods.backoffFailures = 0
	}
}

// faultRefusal is the reason why a worker is not admitted again, or "". Its pod then ends as a failed one, and its
// replacement begins without faults, also under the same number.
func (c *Coordinator) faultRefusal(worker int) string {
	f := c.faults[worker]
	if f.times < maxFaults {
		return ""
	}
	delete(c.faults, worker)
	return fmt.Sprintf("it was disconnected %d times in a row and contributed nothing in between; the last time it %s", f.times, f.reason)
}
