package coordinator

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Speculative execution, as in MapReduce: equal input gives equal bits, so a virtual worker may be assigned to a second
// member, its backup, and the first of the two results is used. There are two reasons for a backup. Where a member is
// late, the backup keeps a straggler from delaying the step. And once in CheckEvery steps every virtual worker gets a
// backup as a check: two results with different hashes are the cheapest detector of corrupt hardware there is. A
// virtual worker never has more than one backup at a time.
//
// The time comes from Clock events; nothing here reads a clock.

// A worker is late when its work in flight takes longer than lateFactor × the typical latency, and longer than
// minLateness.
const (
	lateFactor    = 2
	minLateness   = 50 * time.Millisecond
	latencyWindow = 20 // the typical latency of a minibatch is the median over so many steps
	// maxBackoffSteps limits for how many steps a worker that is late again and again is assigned nothing. One late step
	// in 128 costs the other workers next to nothing, and a worker that has recovered is back within seconds.
	maxBackoffSteps = 128
	// slowAfter is the number of late steps, with none in time between them, after which a Notice says that a worker is
	// slow.
	slowAfter = 3
)

// speculation is what the decisions about backups are made from.
type speculation struct {
	latency  stepLatency
	current  resultHashes // of the current step
	previous resultHashes // of the step before
	checks   []int        // virtual workers that are due to be computed twice, in this step or the next possible one
}

// Machine is what a worker computes on, for messages that name it.
type Machine struct{ Node, CPU, Kernel string }

func (m Machine) String() string {
	var known []string
	if m.Node != "" {
		known = append(known, "node "+m.Node)
	}
	if m.CPU != "" {
		known = append(known, m.CPU)
	}
	if m.Kernel != "" {
		known = append(known, m.Kernel+" kernels")
	}
	if len(known) == 0 {
		return ""
	}
	return " (" + strings.Join(known, ", ") + ")"
}

// resultHash is the hash that a worker reported of its result for a virtual worker.
type resultHash struct {
	worker int // noWorker: not reported yet
	member *member
	hash   uint32
}

// resultHashes are the first reported hashes of a step's virtual workers, and which of them a second worker has
// confirmed.
type resultHashes struct {
	step      int64
	first     []resultHash
	confirmed []bool
}

func (a *resultHashes) reset(step int64, n int) {
	a.step = step
	a.first = append(a.first[:0], slices.Repeat([]resultHash{{worker: noWorker}}, n)...)
	a.confirmed = append(a.confirmed[:0], make([]bool, n)...)
}

// inFlight is what a member was assigned of the current step and has not sent yet.
type inFlight struct {
	virtualWorkers []int
	count          int           // assigned since the member was last idle
	since          time.Duration // when it ceased to be idle
}

func (h *inFlight) add(now time.Duration, vs []int) {
	if len(h.virtualWorkers) == 0 {
		h.count, h.since = 0, now
	}
	h.count += len(vs)
	h.virtualWorkers = append(h.virtualWorkers, vs...)
}

// remove takes out what a worker has sent, and reports whether any of it was in flight.
func (h *inFlight) remove(lo, hi int) bool {
	before := len(h.virtualWorkers)
	h.virtualWorkers = slices.DeleteFunc(h.virtualWorkers, func(v int) bool { return lo <= v && v < hi })
	return len(h.virtualWorkers) < before
}

func (h *inFlight) empty() bool { return len(h.virtualWorkers) == 0 }

// stepLatency is how long a minibatch takes.
type stepLatency struct {
	current []time.Duration // of the results of the current step
	recent  []time.Duration // medians of the last steps, the oldest first
	typical time.Duration   // the median of those; 0 while it is not known
}

func (p *stepLatency) endStep() {
	if len(p.current) == 0 {
		return
	}
	if len(p.recent) == latencyWindow {
		p.recent = slices.Delete(p.recent, 0, 1)
	}
	p.recent = append(p.recent, median(p.current))
	p.typical = median(slices.Clone(p.recent))
	p.current = p.current[:0]
}

// median is the lower of the two middle values of an even number: of two workers, the faster one sets the typical
// latency.
func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[(len(d)-1)/2]
}

// deadline is when a member's work in flight becomes late. It is unknown until the typical latency is known.
func (c *Coordinator) deadline(m *member) (time.Duration, bool) {
	if m.inFlight.empty() || c.speculation.latency.typical == 0 {
		return 0, false
	}
	return m.inFlight.since + max(time.Duration(lateFactor*m.inFlight.count)*c.speculation.latency.typical, minLateness), true
}

func (c *Coordinator) late(m *member) bool {
	at, known := c.deadline(m)
	return known && c.now >= at
}

// Deadline is when the coordinator needs the next Clock event, because a worker becomes late then.
func (c *Coordinator) Deadline() (next time.Duration, ok bool) {
	if !c.training() || len(c.members) < 2 {
		return 0, false
	}
	for _, m := range c.members {
		if at, known := c.deadline(m); known && m.ready && at > c.now && (!ok || at < next) {
			next, ok = at, true
		}
	}
	return next, ok
}

// clock sets the time, which never runs backwards.
func (c *Coordinator) clock(at time.Duration) { c.now = max(c.now, at) }

// restartDeadlines makes nobody late because of a pause of the master itself.
func (c *Coordinator) restartDeadlines() {
	for _, m := range c.members {
		m.inFlight.since = c.now
	}
}

// assignable lists the members that get work, by number: those that are ready, do not compute anything of an earlier
// step and are not in back-off. Where there are none, all ready members get work.
func (c *Coordinator) assignable() []int {
	var ids []int
	for _, id := range c.ready() {
		if m := c.members[id]; !m.busyWithEarlier && m.backoffUntil <= c.step {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return c.ready()
	}
	return ids
}

// beginResultHashes prepares for a step of n virtual workers. The hashes of the step before are kept: late results of
// that step are still compared with them.
func (c *Coordinator) beginResultHashes(n int) {
	c.speculation.current, c.speculation.previous = c.speculation.previous, c.speculation.current
	c.speculation.current.reset(c.step, n)
	for _, m := range c.members {
		m.inFlight.virtualWorkers = m.inFlight.virtualWorkers[:0]
	}
	if every := c.cfg.CheckEvery; every > 0 && !c.cfg.Approximate {
		for v := range n {
			if c.step%every == int64(v)*every/int64(n) && !slices.Contains(c.speculation.checks, v) {
				c.speculation.checks = append(c.speculation.checks, v)
			}
		}
	}
}

// endInFlight handles the members that still compute something of a step that is complete because others have computed
// it too. They are assigned nothing until they report that they have applied the step. A late one also backs off,
// exponentially.
func (c *Coordinator) endInFlight() {
	c.speculation.latency.endStep()
	for _, id := range sortedKeys(c.members) {
		m := c.members[id]
		if !m.ready || m.inFlight.empty() {
			continue
		}
		m.busyWithEarlier = true
		if !c.late(m) || !slices.ContainsFunc(m.inFlight.virtualWorkers, func(v int) bool { return c.work.owner[v] == id }) {
			continue
		}
		m.lateCount++
		m.backoffUntil = c.step + 1 + min(maxBackoffSteps, int64(1)<<min(m.lateCount, 30))
		if m.lateCount == slowAfter {
			c.emit(Notice{Warning: true, Reason: "WorkerSlow", Message: fmt.Sprintf(
				"worker %d%s was late %d times, the last in step %d: it takes more than twice the usual %v for a minibatch; "+
					"other workers compute its share as well",
				id, m.machine, m.lateCount, c.step, c.speculation.latency.typical.Round(time.Millisecond))})
		}
	}
}

// recordLatency records how long a member took for its work in flight.
func (c *Coordinator) recordLatency(m *member, e Gradient) {
	late, given := c.late(m), m.inFlight.count
	if !m.inFlight.remove(e.Lo, e.Hi) {
		return
	}
	if took := c.now - m.inFlight.since; took > 0 && given > 0 {
		c.speculation.latency.current = append(c.speculation.latency.current, took/time.Duration(given))
	}
	if !late {
		m.lateCount = 0
	}
}

// compareHashes compares the hashes of a result with the first reported ones of the same virtual workers, of this step
// or the step before. It reports false when they differ: the job has failed.
func (c *Coordinator) compareHashes(m *member, e Gradient) bool {
	of := &c.speculation.current
	if e.Step == c.speculation.previous.step {
		of = &c.speculation.previous
	}
	if c.cfg.Approximate || e.Step != of.step || len(e.Hashes) != e.Hi-e.Lo || e.Lo < 0 || e.Hi > len(of.first) {
		return true
	}
	for v := e.Lo; v < e.Hi; v++ {
		switch first, hash := &of.first[v], e.Hashes[v-e.Lo]; {
		case first.worker == noWorker:
			*first = resultHash{e.Worker, m, hash}
		case first.hash != hash:
			reason := fmt.Sprintf("worker %d%s and worker %d%s have computed different gradients of virtual worker %d of step %d "+
				"from the same state and records: one of the two machines returned a wrong result. Take both out of use and test them; "+
				"the job resumes from its last trusted checkpoint when it is started again",
				first.worker, first.member.machine, e.Worker, m.machine, v, e.Step)
			c.failCorrupted(reason, min(c.stateHashes.trusted, first.member.trustedTo(c.step), m.trustedTo(c.step)))
			return false
		case first.worker != e.Worker:
			of.confirmed[v] = true
			first.member.unconfirmedFrom, m.unconfirmedFrom = -1, -1
			if e.Step == c.step {
				c.speculation.checks = slices.DeleteFunc(c.speculation.checks, func(checked int) bool { return checked == v })
			}
		}
	}
	return true
}

// trustedTo is the newest step whose state contains no result of a member that is still unconfirmed.
func (m *member) trustedTo(step int64) int64 {
	if m.unconfirmedFrom < 0 {
		return step
	}
	return m.unconfirmedFrom
}

// trustedStep is the newest step whose state hash all members have confirmed, and whose state contains no unconfirmed
// result of a present member.
func (c *Coordinator) trustedStep() int64 {
	step := c.stateHashes.trusted
	for _, m := range c.members {
		step = min(step, m.trustedTo(c.step))
	}
	return step
}

// failCorrupted ends the job because a machine computes wrongly. Checkpoints of later steps than the trusted one may
// contain wrong results, and are withdrawn.
func (c *Coordinator) failCorrupted(reason string, trusted int64) {
	if c.phase >= Done {
		return
	}
	c.emit(Withdraw{After: trusted})
	c.fail(reason)
}

// assignBackups assigns late work, and virtual workers that are due for a check, to idle workers as well; never to a
// third.
func (c *Coordinator) assignBackups() {
	if !c.training() || !c.canAssign() || c.exitReason != "" || len(c.members) < 2 || c.allReduce != nil {
		return
	}
	// A worker in back-off is better than none: late work may never be done. Those with the shortest back-off come first.
	var idle []int
	backoff := func(id int) int64 { return max(0, c.members[id].backoffUntil-c.step) }
	for _, id := range c.ready() {
		if m := c.members[id]; m.inFlight.empty() && !m.busyWithEarlier {
			idle = append(idle, id)
		}
	}
	slices.SortStableFunc(idle, func(a, b int) int { return int(backoff(a) - backoff(b)) })
	assign := func(vs []int, except ...int) {
		at := slices.IndexFunc(idle, func(id int) bool { return !slices.Contains(except, id) })
		if at < 0 || len(vs) == 0 {
			return
		}
		id := idle[at]
		idle = slices.Delete(idle, at, at+1)
		for _, v := range vs {
			c.work.backup[v] = id
		}
		c.members[id].inFlight.add(c.now, vs)
		c.emit(Assign{Worker: id, Step: c.step, VirtualWorkers: vs})
	}
	for _, id := range c.ready() {
		if m := c.members[id]; c.late(m) {
			// All of its work in flight goes to one backup, so that both send sums over the same virtual workers.
			assign(slices.DeleteFunc(slices.Clone(m.inFlight.virtualWorkers), func(v int) bool {
				return c.work.done[v] || c.work.owner[v] != id || c.work.backup[v] != noWorker
			}), id)
		}
	}
	// A check is not urgent, and waits for the first result: a check that came first would make a larger sum that includes
	// the same virtual worker useless.
	idle = slices.DeleteFunc(idle, func(id int) bool { return backoff(id) > 0 })
	for _, v := range c.speculation.checks {
		if c.work.valid(v) && c.work.done[v] && c.work.backup[v] == noWorker && !c.speculation.current.confirmed[v] {
			assign([]int{v}, c.work.owner[v], c.speculation.current.first[v].worker)
		}
	}
}

// awaitsBackup reports whether a step that is otherwise complete waits for the second result of a check. It does not
// wait for a late one; that check is made in a later step.
func (c *Coordinator) awaitsBackup() bool {
	if c.stopped {
		return false
	}
	for _, v := range c.speculation.checks {
		if !c.work.valid(v) || c.speculation.current.confirmed[v] || c.work.backup[v] == noWorker {
			continue
		}
		if m := c.members[c.work.backup[v]]; m != nil && slices.Contains(m.inFlight.virtualWorkers, v) && !c.late(m) {
			return true
		}
	}
	return false
}
