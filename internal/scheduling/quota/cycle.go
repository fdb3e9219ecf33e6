package quota

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/kueue"
)

// entry is the head of a queue in one cycle.
type entry struct {
	w       *workload
	q       *queue
	a       assignment
	targets []victim
	hunt    *hunt // of the last search for targets; nil if there was none

	outcome outcome
	// message is that of the condition QuotaReserved=False; "" for those that got quota.
	message string
}

// outcome is what came of an entry.
type outcome int

const (
	admitted outcome = iota
	preempting
	outNoFit
	outNoCandidates
	outTaken
	outOverlaps
	outInactive
	outNotSelected
)

// cause translates an outcome for those who wait.
func (o outcome) cause() Cause {
	return map[outcome]Cause{
		preempting: AwaitsPreempted, outNoFit: NoFit, outNoCandidates: NoCandidates, outTaken: TakenInCycle, outOverlaps: VictimsInCycle,
		outInactive: QueueInactive, outNotSelected: NamespaceMismatch,
	}[o]
}

// Cycle decides about the head of every queue (Kueue's pkg/scheduler/scheduler.go, schedule). Quota that is given counts from then on; quota of
// evicted workloads is free when Release is called.
func (e *Engine) Cycle(now time.Time) Result {
	var r Result
	e.Requeue(now)
	e.rebuild()
	if e.enforceStops(&r, now); len(r.Decisions) > 0 {
		e.changed()
		return r // what stops at once may give its quota back before others are tried
	}

	// 1. The heads.
	state := e.nextState()
	if e.settled[state] {
		r.Settled = true
		return r
	}
	entries := e.heads()
	if len(entries) == 0 {
		r.Settled = true
		return r
	}
	e.cycle++
	e.settled[state] = true
	parkedBefore := e.parkedCount(entries)

	// 2. What each could get, as things are.
	for i := range entries {
		e.nominate(&entries[i])
	}

	// 3. One after the other, each counting what those before it took.
	ordered := e.inOrder(entries)
	e.process(ordered)

	// 4. Make it so.
	for _, en := range ordered {
		e.settle(&r, en, now)
	}
	r.Settled = e.isSettled(&r, parkedBefore, entries)
	return r
}

// heads takes the first of every active queue.
func (e *Engine) heads() []entry {
	var entries []entry
	for _, q := range e.ordered {
		if !q.active() {
			continue
		}
		if w := q.pop(); w != nil {
			entries = append(entries, entry{w: w, q: q})
		}
	}
	return entries
}

// nominate finds out what a head could get (Kueue's scheduler, nominate and getInitialAssignments).
func (e *Engine) nominate(en *entry) {
	if !e.selected(en.q, en.w) {
		en.outcome, en.message = outNotSelected, "workload namespace doesn't match ClusterQueue selector"
		return
	}
	if en.w.scan != nil && en.w.scan.outdated(en.w, en.q.generation, e.cycle) {
		en.w.scan = nil
	}
	s := search{engine: e, w: en.w, q: en.q, explain: true}
	en.a = s.assign(nil)
	if en.a.mode == fits {
		return
	}
	if en.a.mode == needsPreemption && e.findTargets(en, &en.a) {
		return
	}
	if !en.w.shrinkable() {
		return
	}
	var shrunk entry
	if s.shrink(func(a *assignment) bool {
		trial := entry{w: en.w, q: en.q, a: *a}
		if a.mode != fits && (a.mode != needsPreemption || !e.findTargets(&trial, a)) {
			return false
		}
		shrunk = trial
		return true
	}) {
		*en = shrunk
	}
}

// findTargets looks for workloads to preempt for an assignment.
func (e *Engine) findTargets(en *entry, a *assignment) bool {
	en.hunt = e.hunt(en.w, en.q, a.needs(), a.demand(en.w))
	en.targets = en.hunt.victims()
	return len(en.targets) > 0
}

// inOrder puts the entries into the order of decision.
func (e *Engine) inOrder(entries []entry) []*entry {
	var all, rest []*entry
	for i := range entries {
		if entries[i].outcome == outNotSelected {
			rest = append(rest, &entries[i])
		} else {
			all = append(all, &entries[i])
		}
	}
	if e.config.FairSharing != nil {
		// The tournament depends on what those before took, so that process asks for one after the other.
		return append(all, rest...)
	}
	slices.SortFunc(all, func(a, b *entry) int {
		return cmp.Or(
			cmp.Compare(a.a.borrows, b.a.borrows),
			cmp.Compare(b.w.Priority, a.w.Priority),
			byAge(a.w, b.w),
		)
	})
	return append(all, rest...)
}

// process decides in order, on usage to which each decision adds what it takes, and leaves the usage as it was.
func (e *Engine) process(ordered []*entry) {
	trees := map[*tree]bool{}
	var nodes []*node
	for _, en := range ordered {
		if t := en.q.tree; !trees[t] {
			trees[t] = true
			nodes = t.nodes(nodes)
		}
	}
	before := saveUsage(nodes)
	for _, n := range nodes {
		n.freed = slices.Clone(n.usage)
	}
	claimed := map[*workload]bool{}
	if e.config.FairSharing == nil {
		for _, en := range ordered {
			e.decide(en, claimed)
		}
	} else {
		e.tournaments(ordered, func(en *entry) { e.decide(en, claimed) })
	}
	before.restore()
	for _, n := range nodes {
		n.freed = nil
	}
}

// nodes appends all nodes of a tree.
func (t *tree) nodes(all []*node) []*node {
	all = append(all, t.root)
	for i := len(all) - 1; i < len(all); i++ {
		all = append(all, all[i].children...)
		for _, q := range all[i].queues {
			all = append(all, &q.node)
		}
	}
	return all
}

// decide is Kueue's scheduler, processEntry.
func (e *Engine) decide(en *entry, claimed map[*workload]bool) {
	if en.outcome == outNotSelected {
		return
	}
	en.message = en.a.message()
	switch {
	case en.a.mode == noFit:
		en.outcome = outNoFit
	case en.a.mode == needsPreemption && len(en.targets) == 0:
		en.outcome = outNoCandidates
		if en.q.reclaimPolicy() != kueue.PreemptionPolicyAny {
			// It could not get back later what others take now.
			en.q.count(en.setAside())
		}
	case slices.ContainsFunc(en.targets, func(v victim) bool { return claimed[v.w] }):
		en.outcome, en.message = outOverlaps, "Workload has overlapping preemption targets with another workload"
	case !en.fitsFreed():
		en.outcome, en.message = outTaken, "Workload no longer fits after processing another workload"
	default:
		for _, v := range en.targets {
			claimed[v.w] = true
		}
		en.q.count(en.a.usage)
		if en.a.mode == needsPreemption {
			en.outcome = preempting
			en.message += fmt.Sprintf(". Pending the preemption of %d workload(s)", len(en.targets))
		} else {
			en.outcome, en.message = admitted, ""
		}
	}
}

// setAside is the part of an entry's demand that is kept from others in this cycle although it cannot be had.
func (en *entry) setAside() []pairAmount {
	var all []pairAmount
	for _, u := range en.a.usage {
		c, used := en.q.cellAt(u.pair)
		switch {
		case en.a.borrows == 0:
			all = append(all, pairAmount{u.pair, max(0, min(u.amount, c.nominal.minus(used)))})
		case c.limitsBorrow:
			all = append(all, pairAmount{u.pair, min(u.amount, c.nominal.plus(c.mayBorrow).minus(used))})
		default:
			all = append(all, u)
		}
	}
	return all
}

func (q *queue) addAll(usage []pairAmount) {
	for _, u := range usage {
		q.add(u.pair, u.amount)
	}
}

// count adds what an entry takes, with and without those who are to be preempted.
func (q *queue) count(usage []pairAmount) {
	q.addAll(usage)
	q.swapFreed()
	q.addAll(usage)
	q.swapFreed()
}

// swapFreed changes the usage of a queue and the cohorts above it for what it is without those who are to be preempted, and back.
func (q *queue) swapFreed() {
	for n := &q.node; n != nil; n = n.parent {
		n.usage, n.freed = n.freed, n.usage
	}
}

// fitsFreed tells whether what an entry was to get is still there, without all who are to be preempted in this cycle, its own targets included. If so,
// its targets are counted among them from then on.
func (en *entry) fitsFreed() bool {
	for _, v := range en.targets {
		v.w.heldIn.swapFreed()
		v.w.lift()
		v.w.heldIn.swapFreed()
	}
	en.q.swapFreed()
	fits := true
	for _, u := range en.a.usage {
		fits = fits && u.amount <= max(0, en.q.available(u.pair))
	}
	en.q.swapFreed()
	if !fits {
		for _, v := range slices.Backward(en.targets) {
			v.w.heldIn.swapFreed()
			v.w.put()
			v.w.heldIn.swapFreed()
		}
	}
	return fits
}

// savedUsage is the usage of some nodes at a time.
type savedUsage []struct {
	n     *node
	usage []Amount
}

// saveUsage remembers the usage of nodes.
func saveUsage(nodes []*node) savedUsage {
	saved := make(savedUsage, len(nodes))
	for i, n := range nodes {
		saved[i].n, saved[i].usage = n, slices.Clone(n.usage)
	}
	return saved
}

func (s savedUsage) restore() {
	for _, one := range s {
		copy(one.n.usage, one.usage)
	}
}

// settle carries an entry's outcome over into the state, and reports it.
func (e *Engine) settle(r *Result, en *entry, now time.Time) {
	d := Decision{Workload: en.w.NamespacedName, ClusterQueue: en.q.name, Why: en.why(), Borrows: en.a.borrows}
	switch en.outcome {
	case admitted:
		d.Kind = Admit
		d.Admission = en.admission()
		d.Checks = en.q.checksFor(d.Admission)
		e.admit(en.w, &Reservation{Admission: *d.Admission, At: now, Admitted: len(d.Checks) == 0})
		r.Decisions = append(r.Decisions, d)
		return
	case preempting:
		d.Kind = Preempt
		d.Admission = en.admission()
		d.Targets = e.evictTargets(en, now)
	default:
		d.Kind = Wait
		d.Borrows = 0
	}
	d.Reason, d.Message, d.Cause = kueue.WorkloadPending, en.message, en.outcome.cause()
	e.putBack(en)
	en.w.said = d
	r.Decisions = append(r.Decisions, d)
}

// admit gives a workload that was popped its quota.
func (e *Engine) admit(w *workload, reservation *Reservation) {
	q := e.queues[string(reservation.Admission.ClusterQueue)]
	if w.pendingIn != nil {
		w.pendingIn.remove(w)
	}
	w.Reservation, w.Evicted, w.said = reservation, "", Decision{}
	e.attach(w)
	q.generation++
}

// evictTargets marks an entry's targets as evicted.
func (e *Engine) evictTargets(en *entry, now time.Time) []Target {
	targets := make([]Target, 0, len(en.targets))
	for _, v := range en.targets {
		t := Target{
			Workload: v.w.NamespacedName, ClusterQueue: v.w.heldIn.name, Priority: v.w.Priority, Reason: v.reason,
			Ongoing: v.w.Evicted != "",
			Message: preemptionMessage(en.w, v.reason, en.q.path(), v.w.heldIn.path()),
		}
		if !t.Ongoing {
			e.evicted(v.w, kueue.WorkloadEvictedByPreemption, now)
		}
		targets = append(targets, t)
	}
	return targets
}

// preemptionMessage is what Kueue writes into the conditions Evicted and Preempted.
func preemptionMessage(preemptor *workload, reason, preemptorPath, victimPath string) string {
	why := map[string]string{
		kueue.InClusterQueueReason:                "prioritization in the ClusterQueue",
		kueue.InCohortReclamationReason:           "reclamation within the cohort",
		kueue.InCohortFairSharingReason:           "Fair Sharing within the cohort",
		kueue.InCohortReclaimWhileBorrowingReason: "reclamation within the cohort while borrowing",
	}[reason]
	return fmt.Sprintf("Preempted to accommodate a workload (UID: %s, JobUID: %s) due to %s; preemptor path: %s; preemptee path: %s",
		cmp.Or(preemptor.UID, "UNKNOWN"), cmp.Or(preemptor.JobUID, "UNKNOWN"), why, preemptorPath, victimPath)
}

// putBack returns an entry that was not admitted to its queue: to the heap if it is to be tried again at once, else to the parked ones
// (Kueue's pkg/cache/queue/cluster_queue.go, requeueIfNotPresent).
func (e *Engine) putBack(en *entry) {
	w, q := en.w, en.q
	w.pendingIn = q
	if en.outcome != outNotSelected {
		w.scan = en.a.scan
	}
	if en.outcome == preempting {
		w.scan = nil
		q.preemptor = w
	}
	var atOnce bool
	switch {
	case q.strict():
		atOnce = en.outcome != outNotSelected
	default:
		atOnce = en.outcome == outTaken || en.outcome == outOverlaps || en.outcome == preempting
	}
	if w.Held == "" && (atOnce || w.scan.pending()) {
		q.push(w)
		return
	}
	q.park(w)
	if en.outcome == outNoFit || en.outcome == outNoCandidates {
		q.parkAlike(w.shape)
	}
}

// admission is what an entry gets, as status.admission.
func (en *entry) admission() *kueue.Admission {
	a := &kueue.Admission{ClusterQueue: kueue.ClusterQueueReference(en.q.name)}
	for i := range en.a.sets {
		a.PodSetAssignments = append(a.PodSetAssignments, en.a.sets[i].assignment())
	}
	return a
}

func (s *assignedSet) assignment() kueue.PodSetAssignment {
	a := kueue.PodSetAssignment{Name: kueue.PodSetReference(s.of.Name), Count: &s.count}
	for _, c := range s.chosen {
		if a.Flavors == nil {
			a.Flavors, a.ResourceUsage = flavorsOf(len(s.chosen))
		}
		name := resourceName(pair{resource: c.resource})
		a.Flavors[name] = kueue.ResourceFlavorReference(c.flavor)
		for _, r := range s.requests {
			if r.resource == c.resource {
				a.ResourceUsage[name] = r.amount.quantity(name)
			}
		}
	}
	return a
}

// checksFor names the admission checks that an admission must pass, in order of name.
func (q *queue) checksFor(a *kueue.Admission) []string {
	var names []string
	for name, on := range q.checks() {
		applies := len(on) == 0
		for _, set := range a.PodSetAssignments {
			for _, flavor := range set.Flavors {
				applies = applies || slices.Contains(on, flavor)
			}
		}
		if applies {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// enforceStops evicts what stopped queues and deactivated workloads may not keep (Kueue's workload controller).
func (e *Engine) enforceStops(r *Result, now time.Time) {
	if len(e.suspects) == 0 {
		return
	}
	suspects := slices.SortedFunc(maps.Keys(e.suspects), byAge)
	clear(e.suspects)
	for _, w := range suspects {
		if !w.Finished && (w.Inactive || w.Reservation != nil) && w.Evicted == "" && e.workloads[w.NamespacedName] == w {
			e.enforceStop(r, w, now)
		}
	}
}

func (e *Engine) enforceStop(r *Result, w *workload, now time.Time) {
	evict := func(reason, message string) {
		d := Decision{Kind: Evict, Workload: w.NamespacedName, Reason: reason, Message: message}
		if w.Reservation != nil {
			d.ClusterQueue = string(w.Reservation.Admission.ClusterQueue)
		}
		e.evicted(w, reason, now)
		r.Decisions = append(r.Decisions, d)
	}
	if w.Inactive {
		evict(kueue.WorkloadDeactivated, "The workload is deactivated")
		return
	}
	q, l := e.queues[string(w.Reservation.Admission.ClusterQueue)], e.localQueues[w.localQueue()]
	var stopped string
	switch {
	case l != nil && l.stopped():
		if w.Reservation.Admitted && *l.spec.StopPolicy == kueue.HoldAndDrain {
			evict(kueue.WorkloadEvictedByLocalQueueStopped, "The LocalQueue is stopped")
			return
		}
		stopped = fmt.Sprintf("LocalQueue %s is stopped", w.Queue)
	case q != nil && q.stopped():
		if w.Reservation.Admitted && q.drains() {
			evict(kueue.WorkloadEvictedByClusterQueueStopped, "The ClusterQueue is stopped")
			return
		}
		stopped = fmt.Sprintf("ClusterQueue %s is stopped", q.name)
	}
	if stopped == "" || w.Reservation.Admitted {
		return
	}
	// A mere reservation is cancelled: there is nothing to stop.
	e.drop(w)
	w.Reservation = nil
	e.retryFor(w)
	e.enqueue(w)
	w.said = Decision{Kind: Wait, Workload: w.NamespacedName, Reason: kueue.WorkloadInadmissible, Message: stopped, Cause: QueueInactive}
	r.Decisions = append(r.Decisions, w.said)
}

func (e *Engine) parkedCount(entries []entry) int {
	n := 0
	for _, en := range entries {
		n += len(en.q.parked)
	}
	return n
}

// isSettled tells whether further cycles would go round in circles: nothing was given or newly taken away, nobody was parked, and the next heads,
// with their searches for flavors where they are, were tried before.
func (e *Engine) isSettled(r *Result, parkedBefore int, entries []entry) bool {
	for _, d := range r.Decisions {
		if d.Kind == Admit || slices.ContainsFunc(d.Targets, func(t Target) bool { return !t.Ongoing }) {
			e.changed()
			return false
		}
	}
	if e.parkedCount(entries) != parkedBefore {
		e.changed()
	}
	return e.settled[e.nextState()]
}

// nextState describes what the next cycle will try, and where the searches of those stand.
func (e *Engine) nextState() string {
	var b strings.Builder
	for _, q := range e.ordered {
		if !q.active() || len(q.waiting.items) == 0 {
			continue
		}
		w := q.waiting.items[0]
		b.WriteString(w.String())
		if w.scan != nil {
			for _, stops := range w.scan.stops {
				for _, resource := range slices.Sorted(maps.Keys(stops)) {
					fmt.Fprintf(&b, " %s %d", resource, stops[resource])
				}
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}
