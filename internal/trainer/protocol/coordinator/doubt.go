package coordinator

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Equal input gives equal bits, so a virtual worker may be given out a second time and either answer taken. That is done
// when the worker that has it is late, so that a straggler holds nobody up; and once in CheckEvery steps on purpose: two
// answers that differ are the cheapest detector of corrupt hardware there is. Time is told here (Clock), never read.

// A worker is late when it takes longer for what it has in hand than lateFactor × the usual time, and than leastLate.
const (
	lateFactor = 2
	leastLate  = 50 * time.Millisecond
	paceSteps  = 20 // the usual time of a minibatch is the median of so many steps
	// longestRest is how many steps a worker is dealt nothing at most after it was late again and again: with one late
	// step in 128 a straggler costs the others next to nothing, and one that has recovered is back within seconds.
	longestRest = 128
	// slowLapses is how many times a worker is late, never in time between them, before a person is told.
	slowLapses = 3
)

// Machine is what a worker computes on, for a sentence that names it.
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

// answer is what a worker has said of a virtual worker.
type answer struct {
	worker int // nobody: none yet
	member *member
	hash   uint32
}

// answers are the first ones to the virtual workers of a step, and which of them a second one has confirmed.
type answers struct {
	step      int64
	first     []answer
	confirmed []bool
}

func (a *answers) reset(step int64, n int) {
	a.step = step
	a.first = append(a.first[:0], slices.Repeat([]answer{{worker: nobody}}, n)...)
	a.confirmed = append(a.confirmed[:0], make([]bool, n)...)
}

// hand is what a member was dealt of the current step and has not answered.
type hand struct {
	virtualWorkers []int
	given          int           // since it had nothing to do
	since          time.Duration // when that was
}

func (h *hand) add(now time.Duration, vs []int) {
	if len(h.virtualWorkers) == 0 {
		h.given, h.since = 0, now
	}
	h.given += len(vs)
	h.virtualWorkers = append(h.virtualWorkers, vs...)
}

// remove takes out what has been answered, and reports whether any of it was there.
func (h *hand) remove(lo, hi int) bool {
	before := len(h.virtualWorkers)
	h.virtualWorkers = slices.DeleteFunc(h.virtualWorkers, func(v int) bool { return lo <= v && v < hi })
	return len(h.virtualWorkers) < before
}

func (h *hand) empty() bool { return len(h.virtualWorkers) == 0 }

// pace is the usual time of a minibatch.
type pace struct {
	step   []time.Duration // of the answers of the step in hand
	recent []time.Duration // medians of the last steps, the oldest first
	usual  time.Duration   // the median of those; 0 while it is not known
}

func (p *pace) endStep() {
	if len(p.step) == 0 {
		return
	}
	if len(p.recent) == paceSteps {
		p.recent = slices.Delete(p.recent, 0, 1)
	}
	p.recent = append(p.recent, median(p.step))
	p.usual = median(slices.Clone(p.recent))
	p.step = p.step[:0]
}

// median is the lower one of an even number: of two workers the faster says what is usual.
func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[(len(d)-1)/2]
}

// deadline is when a member is late with what it has in hand, if that can be said.
func (c *Coordinator) deadline(m *member) (time.Duration, bool) {
	if m.hand.empty() || c.pace.usual == 0 {
		return 0, false
	}
	return m.hand.since + max(time.Duration(lateFactor*m.hand.given)*c.pace.usual, leastLate), true
}

func (c *Coordinator) late(m *member) bool {
	at, known := c.deadline(m)
	return known && c.now >= at
}

// Deadline is when the coordinator wants to be told the time next, by a Clock event: a worker is late then.
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

// clock takes the time. It never runs backwards.
func (c *Coordinator) clock(at time.Duration) { c.now = max(c.now, at) }

// forgiveLateness is for a pause that was ours: nobody is late because of it.
func (c *Coordinator) forgiveLateness() {
	for _, m := range c.members {
		m.hand.since = c.now
	}
}

// dealable lists the members that work is dealt to, by number: those that are ready and not late with something else.
func (c *Coordinator) dealable() []int {
	var ids []int
	for _, id := range c.ready() {
		if m := c.members[id]; !m.behind && m.rests <= c.step {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return c.ready()
	}
	return ids
}

// beginAnswers prepares for those of a step of n virtual workers; those of the one before are still of interest.
func (c *Coordinator) beginAnswers(n int) {
	c.answers, c.earlier = c.earlier, c.answers
	c.answers.reset(c.step, n)
	for _, m := range c.members {
		m.hand.virtualWorkers = m.hand.virtualWorkers[:0]
	}
	if every := c.cfg.CheckEvery; every > 0 && !c.cfg.Approximate {
		for v := range n {
			if c.step%every == int64(v)*every/int64(n) && !slices.Contains(c.checks, v) {
				c.checks = append(c.checks, v)
			}
		}
	}
}

// endHands is the end of a step for those that still compute something of it: others have answered in their place. They
// are dealt nothing before they say that they hold the newest state, and one that was late rests longer each time.
func (c *Coordinator) endHands() {
	c.pace.endStep()
	for _, id := range sortedKeys(c.members) {
		m := c.members[id]
		if !m.ready || m.hand.empty() {
			continue
		}
		m.behind = true
		if !c.late(m) || !slices.ContainsFunc(m.hand.virtualWorkers, func(v int) bool { return c.work.owner[v] == id }) {
			continue
		}
		m.lapses++
		m.rests = c.step + 1 + min(longestRest, int64(1)<<min(m.lapses, 30))
		if m.lapses == slowLapses {
			c.emit(Notice{Warning: true, Reason: "WorkerSlow", Message: fmt.Sprintf(
				"worker %d%s was late %d times, the last in step %d: it takes more than twice the usual %v for a minibatch; others compute its share as well",
				id, m.machine, m.lapses, c.step, c.pace.usual.Round(time.Millisecond))})
		}
	}
}

// answered notes how long a member took for what it was dealt.
func (c *Coordinator) answered(m *member, e Gradient) {
	late, given := c.late(m), m.hand.given
	if !m.hand.remove(e.Lo, e.Hi) {
		return
	}
	if took := c.now - m.hand.since; took > 0 && given > 0 {
		c.pace.step = append(c.pace.step, took/time.Duration(given))
	}
	if !late {
		m.lapses = 0
	}
}

// compare holds an answer against the first one to the same virtual workers, of this step or the one before. It reports
// false when they differ: the job has failed.
func (c *Coordinator) compare(m *member, e Gradient) bool {
	of := &c.answers
	if e.Step == c.earlier.step {
		of = &c.earlier
	}
	if c.cfg.Approximate || e.Step != of.step || len(e.Hashes) != e.Hi-e.Lo || e.Lo < 0 || e.Hi > len(of.first) {
		return true
	}
	for v := e.Lo; v < e.Hi; v++ {
		switch first, hash := &of.first[v], e.Hashes[v-e.Lo]; {
		case first.worker == nobody:
			*first = answer{e.Worker, m, hash}
		case first.hash != hash:
			c.corrupt(fmt.Sprintf("worker %d%s and worker %d%s have computed different gradients of virtual worker %d of step %d from the same state and records: one of the two machines computes wrongly. Take both out of use and test them; the job goes on from its last trusted checkpoint when it is started again",
				first.worker, first.member.machine, e.Worker, m.machine, v, e.Step), min(c.trusted, first.member.trustedTo(c.step), m.trustedTo(c.step)))
			return false
		case first.worker != e.Worker:
			of.confirmed[v] = true
			first.member.unchecked, m.unchecked = -1, -1
			if e.Step == c.step {
				c.checks = slices.DeleteFunc(c.checks, func(checked int) bool { return checked == v })
			}
		}
	}
	return true
}

// trustedTo is the newest step whose state holds nothing of a member that no other has confirmed.
func (m *member) trustedTo(step int64) int64 {
	if m.unchecked < 0 {
		return step
	}
	return m.unchecked
}

// trustedStep is the newest step whose state all have confirmed by its hash, and that holds nothing of a living member
// which no other has confirmed.
func (c *Coordinator) trustedStep() int64 {
	step := c.trusted
	for _, m := range c.members {
		step = min(step, m.trustedTo(c.step))
	}
	return step
}

// corrupt ends the job because a machine computes wrongly. What was written after the step that is still trusted may hold
// something of that, and is withdrawn.
func (c *Coordinator) corrupt(reason string, trusted int64) {
	if c.phase >= Done {
		return
	}
	c.emit(Withdraw{After: trusted})
	c.fail(reason)
}

// dealSeconds gives what is late, and what is to be checked, to idle workers as well; never to a third.
func (c *Coordinator) dealSeconds() {
	if !c.training() || !c.enough() || c.leaving != "" || len(c.members) < 2 || c.group != nil {
		return
	}
	// One that rests after having been late is better than nobody: what is late may never be done.
	var idle []int
	resting := func(id int) bool { return c.members[id].rests > c.step }
	for _, id := range c.ready() {
		if m := c.members[id]; m.hand.empty() && !m.behind {
			idle = append(idle, id)
		}
	}
	slices.SortStableFunc(idle, func(a, b int) int { return int(max(0, c.members[a].rests-c.step) - max(0, c.members[b].rests-c.step)) })
	give := func(vs []int, notTo ...int) {
		at := slices.IndexFunc(idle, func(id int) bool { return !slices.Contains(notTo, id) })
		if at < 0 || len(vs) == 0 {
			return
		}
		id := idle[at]
		idle = slices.Delete(idle, at, at+1)
		for _, v := range vs {
			c.work.second[v] = id
		}
		c.members[id].hand.add(c.now, vs)
		c.emit(Assign{Worker: id, Step: c.step, VirtualWorkers: vs})
	}
	for _, id := range c.ready() {
		if m := c.members[id]; c.late(m) {
			// All that it has in hand goes to one other, so that both answer with the same sums.
			give(slices.DeleteFunc(slices.Clone(m.hand.virtualWorkers), func(v int) bool {
				return c.work.done[v] || c.work.owner[v] != id || c.work.second[v] != nobody
			}), id)
		}
	}
	// A check is no hurry, and comes after the first answer: coming before, it would make a sum that holds more useless.
	idle = slices.DeleteFunc(idle, resting)
	for _, v := range c.checks {
		if c.work.valid(v) && c.work.done[v] && c.work.second[v] == nobody && !c.answers.confirmed[v] {
			give([]int{v}, c.work.owner[v], c.answers.first[v].worker)
		}
	}
}

// awaitsSecond reports whether a step that is otherwise complete waits for an answer that checks it. One that is late is
// not waited for; the check is made in a later step.
func (c *Coordinator) awaitsSecond() bool {
	if c.stopped {
		return false
	}
	for _, v := range c.checks {
		if !c.work.valid(v) || c.answers.confirmed[v] || c.work.second[v] == nobody {
			continue
		}
		if m := c.members[c.work.second[v]]; m != nil && slices.Contains(m.hand.virtualWorkers, v) && !c.late(m) {
			return true
		}
	}
	return false
}
