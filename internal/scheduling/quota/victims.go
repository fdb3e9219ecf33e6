package quota

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/kueue"
)

// hunt is the search for workloads whose eviction would make room. It changes the usage of the tree while it tries, and leaves it as it was.
type hunt struct {
	engine *Engine
	// w is to be admitted to q; needs are the pairs that are short, and demand is all that must fit in the end.
	w      *workload
	q      *queue
	needs  []int
	demand []pairAmount

	// What came of it, for the explanation.
	returned []victim
	nobody   NobodyReason
}

// victim is a workload to evict, and the reason of the condition Preempted.
type victim struct {
	w      *workload
	reason string
}

func (e *Engine) hunt(w *workload, q *queue, needs []int, demand []pairAmount) *hunt {
	return &hunt{engine: e, w: w, q: q, needs: needs, demand: demand}
}

// victims finds them; none if evicting others does not help or is not allowed.
func (h *hunt) victims() []victim {
	if h.q.withinPolicy() == kueue.PreemptionPolicyNever && (h.q.parent == nil || h.q.reclaimPolicy() == kueue.PreemptionPolicyNever) {
		h.nobody = PolicyForbids
		return nil
	}
	if h.engine.config.FairSharing != nil {
		return h.fair()
	}
	return h.classical()
}

func (q *queue) withinPolicy() kueue.PreemptionPolicy {
	if q.spec.Preemption == nil || q.spec.Preemption.WithinClusterQueue == "" {
		return kueue.PreemptionPolicyNever
	}
	return q.spec.Preemption.WithinClusterQueue
}

func (q *queue) reclaimPolicy() kueue.PreemptionPolicy {
	if q.spec.Preemption == nil || q.spec.Preemption.ReclaimWithinCohort == "" {
		return kueue.PreemptionPolicyNever
	}
	return q.spec.Preemption.ReclaimWithinCohort
}

// neverBorrowsByPreemption tells whether borrowWithinCohort is off.
func (q *queue) neverBorrowsByPreemption() bool {
	p := q.spec.Preemption
	return p == nil || p.BorrowWithinCohort == nil || p.BorrowWithinCohort.Policy == "" || p.BorrowWithinCohort.Policy == kueue.BorrowWithinCohortPolicyNever
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

func candidateOrder(a, b candidate) int { return victimOrder(a.w, b.w) }

// classical is Kueue's heuristic (preemption.go, classicalPreemptions): take candidates in order, as long as their queues still borrow, until the
// workload fits; then put back, from the last but one, those without whom it fits too.
func (h *hunt) classical() []victim {
	own := h.withinQueue()
	place, priority := h.elsewhere()
	if len(own)+len(place)+len(priority) == 0 {
		h.nobody = NoneQualifies
		return nil
	}
	candidates := inOrderOfTrial(place, priority, own)

	var attempts []bool // with borrowing?
	noBorrowing := h.q.neverBorrowsByPreemption()
	switch {
	case len(place)+len(priority) == 0, noBorrowing && !h.underNominal():
		attempts = []bool{true}
	case noBorrowing && len(place) == 0:
		attempts = []bool{false, true}
	default:
		attempts = []bool{true, false}
	}
	for _, borrowing := range attempts {
		if victims := h.attempt(candidates, borrowing); victims != nil {
			return victims
		}
	}
	h.nobody = NotEnough
	return nil
}

// inOrderOfTrial puts the classes one after the other, those that are being evicted already before all others.
func inOrderOfTrial(classes ...[]candidate) []candidate {
	var all []candidate
	for _, being := range []bool{true, false} {
		for _, class := range classes {
			for _, c := range class {
				if (c.w.Evicted != "") == being {
					all = append(all, c)
				}
			}
		}
	}
	return all
}

func (h *hunt) attempt(candidates []candidate, borrowing bool) []victim {
	var taken []victim
	for _, c := range candidates {
		if !h.stillCounts(c, borrowing) {
			continue
		}
		c.w.lift()
		taken = append(taken, victim{c.w, c.variant.reason()})
		if h.fits(borrowing) {
			return putAll(h.fillBack(taken, borrowing))
		}
	}
	putAll(taken)
	return nil
}

// stillCounts tells whether a candidate may be taken now: its queue, and every cohort up to where it meets the preemptor, must use more than its
// own quota, which changes as others are taken.
func (h *hunt) stillCounts(c candidate, borrowing bool) bool {
	if c.variant == withinQueue {
		return true
	}
	if borrowing && c.variant == withoutBorrowing {
		return false
	}
	for n := &c.w.heldIn.node; n != c.meets; n = n.parent {
		if !n.exceedsAny(h.needs) {
			return false
		}
	}
	return true
}

// fits tells whether the workload can be admitted as things stand, beyond its queue's nominal quota if borrowing is allowed.
func (h *hunt) fits(borrowing bool) bool {
	for _, d := range h.demand {
		if !borrowing && h.q.exceedsWith(d.pair, d.amount) || d.amount > max(0, h.q.available(d.pair)) {
			return false
		}
	}
	return true
}

// fillBack puts back whoever need not go.
func (h *hunt) fillBack(taken []victim, borrowing bool) []victim {
	for i := len(taken) - 2; i >= 0; i-- {
		taken[i].w.put()
		if !h.fits(borrowing) {
			taken[i].w.lift()
			continue
		}
		h.returned = append(h.returned, taken[i])
		taken[i] = taken[len(taken)-1]
		taken = taken[:len(taken)-1]
	}
	return taken
}

// lift takes what a workload holds out of its queue's usage; put brings it back.
func (w *workload) lift() {
	for _, u := range w.usage {
		w.heldIn.sub(u.pair, u.amount)
	}
}

func (w *workload) put() {
	for _, u := range w.usage {
		w.heldIn.add(u.pair, u.amount)
	}
}

func putAll(taken []victim) []victim {
	for _, v := range taken {
		v.w.put()
	}
	return taken
}

// underNominal tells whether the queue uses less than its nominal quota of all that is short.
func (h *hunt) underNominal() bool {
	for _, p := range h.needs {
		if c, used := h.q.cellAt(p); c.nominal <= used {
			return false
		}
	}
	return true
}

// qualifies tells whether a policy lets the preemptor evict a workload.
func (h *hunt) qualifies(w *workload, policy kueue.PreemptionPolicy) bool {
	switch policy {
	case kueue.PreemptionPolicyAny:
	case kueue.PreemptionPolicyLowerPriority:
		if h.w.Priority <= w.Priority {
			return false
		}
	case kueue.PreemptionPolicyLowerOrNewerEqualPriority:
		if h.w.Priority < w.Priority || h.w.Priority == w.Priority && !h.w.queuedAt().Before(w.queuedAt()) {
			return false
		}
	default:
		return false
	}
	return w.uses(h.needs)
}

// withinQueue lists the candidates of the preemptor's own queue, in order.
func (h *hunt) withinQueue() []candidate {
	var found []candidate
	policy := h.q.withinPolicy()
	if policy == kueue.PreemptionPolicyNever {
		return nil
	}
	for _, w := range h.q.reserved {
		if h.qualifies(w, policy) {
			found = append(found, candidate{w: w, variant: withinQueue})
		}
	}
	return found
}

// elsewhere lists the candidates of the other queues of the tree, in order: those over whom the preemptor has the better place, and the others
// (Kueue's preemption/classical/hierarchical_preemption.go).
func (h *hunt) elsewhere() (place, priority []candidate) {
	if h.q.parent == nil || h.q.reclaimPolicy() == kueue.PreemptionPolicyNever {
		return nil, nil
	}
	advantage, rest := h.q.holds(h.demand)
	var below *node
	for n := h.q.parent; n != nil; n = n.parent {
		if advantage {
			place = h.collect(place, n, n, below, true)
		} else {
			priority = h.collect(priority, n, n, below, false)
		}
		var fits bool
		fits, rest = n.holds(rest)
		advantage = advantage || fits
		below = n
	}
	slices.SortFunc(place, candidateOrder)
	slices.SortFunc(priority, candidateOrder)
	return place, priority
}

// holds tells whether a node's quota has room for a demand, and what of the demand must come from above.
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

// collect appends the candidates below a cohort, but for the subtree that was looked at before; parts that do not exceed their quota are safe.
func (h *hunt) collect(found []candidate, at, meets, skip *node, advantage bool) []candidate {
	for _, child := range at.children {
		if child != skip && child.exceedsAny(h.needs) {
			found = h.collect(found, child, meets, skip, advantage)
		}
	}
	policy := h.q.reclaimPolicy()
	for _, q := range at.queues {
		if q == h.q || !q.active() || !q.exceedsAny(h.needs) {
			continue
		}
		for _, w := range q.reserved {
			if h.qualifies(w, policy) {
				found = append(found, candidate{w, h.variantOf(w, advantage), meets})
			}
		}
	}
	return found
}

func (h *hunt) variantOf(w *workload, advantage bool) variant {
	switch {
	case advantage:
		return byPlace
	case h.q.neverBorrowsByPreemption(), w.Priority >= h.w.Priority:
		return withoutBorrowing
	}
	if threshold := h.q.spec.Preemption.BorrowWithinCohort.MaxPriorityThreshold; threshold != nil && w.Priority > *threshold {
		return withoutBorrowing
	}
	return whileBorrowing
}

func resourceName(p pair) corev1.ResourceName { return corev1.ResourceName(p.resource) }
