package quota

import kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

// hunt is the search for workloads whose eviction would make room. It changes the usage of the tree while it tries, and
// leaves it as it was.
type hunt struct {
	engine *Engine
	// w is to be admitted to q; needs are the pairs that are short, and demand is all that must fit in the end.
	w      *workload
	q      *queue
	needs  []int
	demand []pairAmount
	// topologyRequests must find a place in the end.
	topologyRequests topologyRequests

	// advantage reports, for the cohorts above, whether the preemptor has the better place there, and has which classes
	// there can be.
	advantage map[*node]bool
	has       [3]bool
	// collected are the candidates of other queues by class; nil without admission fair sharing.
	collected map[class][]*workload

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

// neverBorrowsByPreemption reports whether borrowWithinCohort is off.
func (q *queue) neverBorrowsByPreemption() bool {
	p := q.spec.Preemption
	return p == nil || p.BorrowWithinCohort == nil || p.BorrowWithinCohort.Policy == "" || p.BorrowWithinCohort.Policy == kueue.BorrowWithinCohortPolicyNever
}

// fits reports whether the workload can be admitted as things stand, beyond its queue's nominal quota if borrowing is
// allowed.
func (h *hunt) fits(borrowing bool) bool {
	for _, d := range h.demand {
		if !borrowing && h.q.exceedsWith(d.pair, d.amount) || d.amount > max(0, h.q.available(d.pair)) {
			return false
		}
	}
	if len(h.topologyRequests.requests) == 0 {
		return true
	}
	_, failure := h.engine.places.find(h.topologyRequests, false)
	return failure == nil
}

// fillBack removes from the victims those that need not be evicted (Kueue's fillBackWorkloads).
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
	w.heldIn.places.free(w.placed)
}

func (w *workload) put() {
	for _, u := range w.usage {
		w.heldIn.add(u.pair, u.amount)
	}
	w.heldIn.places.use(w.placed)
}

func putAll(taken []victim) []victim {
	for _, v := range taken {
		v.w.put()
	}
	return taken
}

// qualifies reports whether a policy lets the preemptor evict a workload.
func (h *hunt) qualifies(w *workload, policy kueue.PreemptionPolicy) bool {
	switch policy {
	case kueue.PreemptionPolicyAny:
	case kueue.PreemptionPolicyLowerPriority:
		if h.w.effective <= w.effective {
			return false
		}
	case kueue.PreemptionPolicyLowerOrNewerEqualPriority:
		if h.w.effective < w.effective || h.w.effective == w.effective && !h.w.queuedAt().Before(w.queuedAt()) {
			return false
		}
	default:
		return false
	}
	return w.uses(h.needs)
}
