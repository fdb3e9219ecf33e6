package quota

import (
	"fmt"
	"slices"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// classical is Kueue's heuristic (preemption.go, classicalPreemptions): take candidates in order, as long as their
// queues still borrow, until the workload fits; then put back, from the last but one, those without whom it fits too.
func (h *hunt) classical() []victim {
	h.survey()
	place, priority := h.any(byPlaceClass), h.any(priorityClass)
	if !place && !priority && !h.any(ownClass) {
		h.nobody = NoneQualifies
		return nil
	}
	var attempts []bool // with borrowing?
	noBorrowing := h.q.neverBorrowsByPreemption()
	switch {
	case !place && !priority, noBorrowing && !h.underNominal():
		attempts = []bool{true}
	case noBorrowing && !place:
		attempts = []bool{false, true}
	default:
		attempts = []bool{true, false}
	}
	for _, borrowing := range attempts {
		if victims := h.attempt(borrowing); victims != nil {
			return victims
		}
	}
	h.nobody = NotEnough
	return nil
}

// variant is on what ground a workload may be evicted.
type variant int

const (
	withinQueue variant = iota
	// byPlace: the preemptor is closer to the quota than the victim, so that priorities do not matter.
	byPlace
	// withoutBorrowing: only if the preemptor's queue does not exceed its nominal quota afterwards.
	withoutBorrowing
	// whileBorrowing: even if it does.
	whileBorrowing
)

func (v variant) reason() string {
	switch v {
	case withinQueue:
		return kueue.InClusterQueueReason
	case whileBorrowing:
		return kueue.InCohortReclaimWhileBorrowingReason
	}
	return kueue.InCohortReclamationReason
}

// candidate is a workload that may be evicted.
type candidate struct {
	w       *workload
	variant variant
	// meets is the lowest cohort that has both the preemptor and the candidate below it; nil within the same queue.
	meets *node
}

// class is one of three groups of candidates, in the order in which they are tried; those that are being evicted
// already come first, in the same order of groups.
type class int

const (
	byPlaceClass class = iota
	priorityClass
	ownClass
)

// candidates goes through the candidates of a class, either those being evicted or the others, as things were before
// anybody was taken.
func (h *hunt) candidates(of class, being bool, yield func(candidate) bool) {
	if of == ownClass {
		policy := h.q.withinPolicy()
		if policy == kueue.PreemptionPolicyNever {
			return
		}
		for _, w := range h.q.reserved {
			if (w.Evicted != "") == being && h.qualifies(w, policy) && !yield(candidate{w: w, variant: withinQueue}) {
				return
			}
		}
		return
	}
	policy := h.q.reclaimPolicy()
	if policy == kueue.PreemptionPolicyNever || !h.has[of] {
		return
	}
	for _, w := range h.borrowers(of) {
		if evicted := w.Evicted != ""; evicted != being {
			if evicted {
				continue
			}
			return // they come first
		}
		if policy == kueue.PreemptionPolicyLowerPriority && w.effective >= h.w.effective && h.engine.usages == nil {
			return // and then by priority
		}
		if w.heldIn == h.q || !h.qualifies(w, policy) {
			continue
		}
		meets := h.meeting(w.heldIn)
		advantage := h.advantage[meets]
		if advantage != (of == byPlaceClass) {
			continue
		}
		if !yield(candidate{w, h.variantOf(w, advantage), meets}) {
			return
		}
	}
}

// any reports whether there is a candidate in a class.
func (h *hunt) any(of class) bool {
	found := false
	for _, being := range []bool{true, false} {
		h.candidates(of, being, func(c candidate) bool {
			found = h.reachable(c)
			return !found
		})
		if found {
			return true
		}
	}
	return false
}

func (h *hunt) attempt(borrowing bool) []victim {
	if !borrowing && !h.couldStayWithin() {
		return nil
	}
	var taken []victim
	enough := false
	for _, being := range []bool{true, false} {
		for _, of := range []class{byPlaceClass, priorityClass, ownClass} {
			if enough {
				break
			}
			h.candidates(of, being, func(c candidate) bool {
				if borrowing && c.variant == withoutBorrowing || !h.reachable(c) {
					return true
				}
				c.w.lift()
				taken = append(taken, victim{c.w, c.variant.reason()})
				enough = h.fits(borrowing)
				return !enough
			})
		}
	}
	if !enough {
		putAll(taken)
		return nil
	}
	return putAll(h.fillBack(taken, borrowing))
}

// couldStayWithin reports whether the queue could stay within its nominal quota if all its own candidates went: others'
// do not count there.
func (h *hunt) couldStayWithin() bool {
	mine := map[int]Amount{}
	for _, being := range []bool{true, false} {
		h.candidates(ownClass, being, func(c candidate) bool {
			for _, u := range c.w.usage {
				mine[u.pair] = mine[u.pair].plus(u.amount)
			}
			return true
		})
	}
	for _, d := range h.demand {
		if h.q.exceedsWith(d.pair, d.amount.minus(mine[d.pair])) {
			return false
		}
	}
	return true
}

// reachable reports whether a candidate may be taken as things stand: its queue, and every cohort up to where it meets
// the preemptor, must use more than its own quota. That can only become untrue as others are taken.
func (h *hunt) reachable(c candidate) bool {
	if c.variant == withinQueue {
		return true
	}
	for n := &c.w.heldIn.node; n != c.meets; n = n.parent {
		if !n.exceedsAny(h.needs) {
			return false
		}
	}
	return true
}

// underNominal reports whether the queue uses less than its nominal quota of all that is short.
func (h *hunt) underNominal() bool {
	for _, p := range h.needs {
		if c, used := h.q.cellAt(p); c.nominal <= used {
			return false
		}
	}
	return true
}

// survey finds out, for every cohort above the preemptor, whether the preemptor has the better place than those who
// meet it there: whether its demand fits into the quota of its queue, or of a cohort further down (Kueue's
// preemption/classical/hierarchical_preemption.go).
func (h *hunt) survey() {
	h.advantage, h.has = map[*node]bool{}, [3]bool{ownClass: true}
	if h.q.parent == nil {
		return
	}
	advantage, rest := h.q.holds(h.demand)
	for n := h.q.parent; n != nil; n = n.parent {
		h.advantage[n] = advantage
		if advantage {
			h.has[byPlaceClass] = true
		} else {
			h.has[priorityClass] = true
		}
		var fits bool
		fits, rest = n.holds(rest)
		advantage = advantage || fits
	}
	if h.engine.usages != nil {
		h.collect()
	}
}

// meeting is the lowest cohort above both the preemptor and another queue of its tree.
func (h *hunt) meeting(q *queue) *node {
	n := q.parent
	for !n.isAbove(h.q) {
		n = n.parent
	}
	return n
}

// holds reports whether a node's quota has room for a demand, and what of the demand must come from above.
func (n *node) holds(demand []pairAmount) (fits bool, rest []pairAmount) {
	fits = true
	for _, d := range demand {
		if n.exceedsWith(d.pair, d.amount) {
			fits = false
		}
		rest = append(rest, pairAmount{d.pair, max(0, d.amount.minus(n.localAvailable(d.pair)))})
	}
	return fits, rest
}

// borrowers lists the workloads of other queues that may be candidates of a class, in the order in which victims are taken.
func (h *hunt) borrowers(of class) []*workload {
	if h.engine.usages != nil {
		return h.collected[of]
	}
	return h.engine.borrowers(h.q.tree, h.needs)
}

// borrowers lists the workloads that hold any of some pairs in queues of a tree that use more than their quota of them,
// in the order in which victims are taken. The list is kept until quota is given or taken: all heads of a cycle look at
// the same.
func (e *Engine) borrowers(t *tree, needs []int) []*workload {
	key := fmt.Sprint(slices.Sorted(slices.Values(needs)))
	if found, known := t.borrowers[key]; known {
		return found
	}
	var found []*workload
	for _, q := range t.root.subtree(nil) {
		if !q.active || !q.exceedsAny(needs) {
			continue
		}
		for _, w := range q.reserved {
			if w.uses(needs) {
				found = append(found, w)
			}
		}
	}
	slices.SortFunc(found, victimOrder)
	if t.borrowers == nil {
		t.borrowers = map[string][]*workload{}
	}
	t.borrowers[key] = found
	return found
}

// forget drops the lists of borrowers, before quota is given or taken.
func (t *tree) forget() {
	if t != nil {
		t.borrowers = nil
	}
}

func (h *hunt) variantOf(w *workload, advantage bool) variant {
	switch {
	case advantage:
		return byPlace
	case h.q.neverBorrowsByPreemption(), w.effective >= h.w.effective:
		return withoutBorrowing
	}
	if threshold := h.q.spec.Preemption.BorrowWithinCohort.MaxPriorityThreshold; threshold != nil && w.effective > int64(*threshold) {
		return withoutBorrowing
	}
	return whileBorrowing
}
