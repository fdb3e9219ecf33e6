package quota

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// entry is the head of a queue in one cycle.
type entry struct {
	w       *workload
	q       *queue
	a       assignment
	targets []victim
	hunt    *hunt // of the last search for targets; nil if there was none
	// replaces: it has quota, and pods on a failed node.
	replaces bool
	// replaced is the predecessor whose quota it would take over; nil: none.
	replaced *workload

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
	outNoReplacement
)

// cause translates an outcome for those who wait.
func (o outcome) cause() Cause {
	return map[outcome]Cause{
		preempting: AwaitsPreempted, outNoFit: NoFit, outNoCandidates: NoCandidates, outTaken: TakenInCycle, outOverlaps: VictimsInCycle,
		outInactive: QueueInactive, outNotSelected: NamespaceMismatch,
	}[o]
}

// Cycle decides about the head of every queue (Kueue's pkg/scheduler/scheduler.go, schedule). Quota that is given
// counts from then on; quota of evicted workloads is free when Release is called.
func (e *Engine) Cycle(now time.Time) Result {
	var r Result
	e.Requeue(now)
	e.rebuild()
	e.followUsage(now)
	e.preparePlaces()
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
	inadmissibleBefore := e.inadmissibleCount(entries)

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
	r.Settled = e.isSettled(&r, inadmissibleBefore, entries)
	return r
}

// heads takes the first of every active queue, after those that need other nodes.
func (e *Engine) heads() []entry {
	var entries []entry
	for _, w := range e.broken() {
		entries = append(entries, entry{w: w, q: w.heldIn, replaces: true})
	}
	for _, q := range e.ordered {
		if !q.active {
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
	if en.replaces {
		e.nominateReplacement(en)
		return
	}
	if !e.selected(en.q, en.w) {
		en.outcome, en.message = outNotSelected, "workload namespace doesn't match ClusterQueue selector"
		return
	}
	if en.w.scan != nil && en.w.scan.outdated(en.w, en.q.generation, e.cycle) {
		en.w.scan = nil
	}
	e.assign(en, nil)
}

// nominateAgain finds out what a head could get now that others of the cycle took the places that it had in mind: of
// the flavors that it had chosen (Kueue's scheduler, updateAssignmentIfNeeded).
func (e *Engine) nominateAgain(en *entry) {
	only := map[string]map[string]string{}
	for i := range en.a.sets {
		set := &en.a.sets[i]
		only[set.of.Name] = map[string]string{}
		for _, c := range set.chosen {
			only[set.of.Name][c.resource] = c.flavor
		}
	}
	en.w.scan, en.targets, en.hunt, en.replaced = nil, nil, nil, nil
	en.q.tree.forget() // the lists of borrowers are of another time
	e.assign(en, only)
	en.q.tree.forget()
}

// assign gives a head its flavors, targets and places. only: see search.
func (e *Engine) assign(en *entry, only map[string]map[string]string) {
	if e.assignFlavors(en, only) {
		e.withPredecessor(en)
	}
	e.placeWithout(en)
}

// assignFlavors reports whether it can be admitted, if need be after others were evicted.
func (e *Engine) assignFlavors(en *entry, only map[string]map[string]string) bool {
	s := search{engine: e, w: en.w, q: en.q, explain: true, only: only}
	en.a = s.assign(nil)
	if en.a.mode == fits {
		return true
	}
	if en.a.mode == needsPreemption && e.findTargets(en, &en.a) {
		return true
	}
	if !en.w.shrinkable() {
		return false
	}
	var shrunk entry
	if s.reducePodSets(func(a *assignment) bool {
		trial := entry{w: en.w, q: en.q, a: *a}
		if a.mode != fits && (a.mode != needsPreemption || !e.findTargets(&trial, a)) {
			return false
		}
		shrunk = trial
		return true
	}) {
		*en = shrunk
		return true
	}
	return false
}

// findTargets looks for workloads to preempt for an assignment.
func (e *Engine) findTargets(en *entry, a *assignment) bool {
	en.hunt = e.hunt(en.w, en.q, a.needs(), a.demand(en.w))
	s := search{engine: e, w: en.w, q: en.q}
	en.hunt.topologyRequests, _ = s.topologyRequests(a)
	en.targets = en.hunt.victims()
	return len(en.targets) > 0
}

// inOrder puts the entries into the order of decision.
func (e *Engine) inOrder(entries []entry) []*entry {
	var first, all, rest []*entry
	for i := range entries {
		switch en := &entries[i]; {
		case en.replaces:
			first = append(first, en)
		case en.outcome == outNotSelected:
			rest = append(rest, en)
		default:
			all = append(all, en)
		}
	}
	if e.config.FairSharing != nil {
		// The tournament depends on what those before took, so that process takes one after the other.
		return slices.Concat(first, all, rest)
	}
	slices.SortFunc(all, func(a, b *entry) int {
		return cmp.Or(
			cmp.Compare(a.a.borrows, b.a.borrows),
			cmp.Compare(b.w.effective, a.w.effective),
			byAge(a.w, b.w),
		)
	})
	return slices.Concat(first, all, rest)
}

func (e *Engine) inadmissibleCount(entries []entry) int {
	n := 0
	for _, en := range entries {
		n += len(en.q.inadmissible)
	}
	return n
}

// isSettled reports whether further cycles would go round in circles: nothing was given or newly taken away, no
// workload became inadmissible, and the next heads, with their searches for flavors where they are, were tried before.
func (e *Engine) isSettled(r *Result, inadmissibleBefore int, entries []entry) bool {
	for _, d := range r.Decisions {
		if d.Kind == Admit || d.Kind == Move || slices.ContainsFunc(d.Targets, func(t Target) bool { return !t.Ongoing }) {
			e.changed()
			return false
		}
	}
	if e.inadmissibleCount(entries) != inadmissibleBefore {
		e.changed()
	}
	return e.settled[e.nextState()]
}

// nextState describes what the next cycle will try, and where the searches of those stand.
func (e *Engine) nextState() string {
	var b strings.Builder
	for _, w := range e.broken() {
		b.WriteString(w.describeBroken())
	}
	for _, q := range e.ordered {
		if !q.active || len(q.waiting.items) == 0 {
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
