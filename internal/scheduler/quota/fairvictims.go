package quota

import kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

// fair finds victims under fair sharing (Kueue's preemption.go, fairPreemptions): always from the queue with the
// greatest share, as the strategies allow. Shares are those with the preemptor's demand added.
func (h *hunt) fair() []victim {
	donors := h.donors()
	if len(donors) == 0 {
		h.nobody = NoneQualifies
		return nil
	}
	h.charge()
	strategies := h.engine.config.FairSharing.Strategies
	if len(strategies) == 0 {
		strategies = []PreemptionStrategy{LessThanOrEqualToFinalShare, LessThanInitialShare}
	}
	enough, taken := h.firstStrategy(donors, strategies[0])
	if !enough && len(strategies) > 1 {
		enough, taken = h.secondStrategy(donors, taken)
	}
	h.discharge()
	if !enough {
		putAll(taken)
		h.nobody = NotEnough
		return nil
	}
	return putAll(h.fillBack(taken, true))
}

// charge counts the demand as if it were admitted.
func (h *hunt) charge() {
	for _, d := range h.demand {
		h.q.add(d.pair, d.amount)
	}
}

func (h *hunt) discharge() {
	for _, d := range h.demand {
		h.q.sub(d.pair, d.amount)
	}
}

// fitsCharged is fits while the demand is charged.
func (h *hunt) fitsCharged() bool {
	h.discharge()
	defer h.charge()
	return h.fits(true)
}

// take lifts a workload and reports whether that is enough.
func (h *hunt) take(taken []victim, w *workload, reason string) ([]victim, bool) {
	w.lift()
	taken = append(taken, victim{w, reason})
	return taken, h.fitsCharged()
}

func (h *hunt) firstStrategy(donors []*donor, strategy PreemptionStrategy) (enough bool, taken []victim) {
	// A queue that stays within its nominal quota is entitled to it whatever the shares.
	entitled := !h.q.exceedsAny(h.needs)
	order := h.newShareOrder(donors)
	for d := order.next(); d != nil; d = order.next() {
		switch {
		case d.q == h.q:
			taken, enough = h.take(taken, d.pop(), kueue.InClusterQueueReason)
		case entitled:
			taken, enough = h.take(taken, d.pop(), kueue.InCohortReclamationReason)
		default:
			mine, theirs := h.branches(d.q)
			before, against := mine.share(), theirs.share()
			for len(d.left) > 0 {
				w := d.pop()
				if !strategy.allows(before, against, func() share { return theirs.shareWithout(w) }) {
					d.refused = append(d.refused, w)
					continue
				}
				taken, enough = h.take(taken, w, kueue.InCohortFairSharingReason)
				break // shares have changed: another queue may come first now
			}
		}
		if enough {
			return true, taken
		}
	}
	return false, taken
}

// secondStrategy goes through those whom the first refused, and tries once for each queue whether its share is above
// the preemptor's.
func (h *hunt) secondStrategy(donors []*donor, taken []victim) (bool, []victim) {
	for _, d := range donors {
		d.left = d.refused
	}
	order := h.newShareOrder(donors)
	for d := order.next(); d != nil; d = order.next() {
		w := d.pop()
		d.left = nil
		mine, theirs := h.branches(d.q)
		if !LessThanInitialShare.allows(mine.share(), theirs.share(), nil) {
			continue
		}
		var enough bool
		if taken, enough = h.take(taken, w, kueue.InCohortFairSharingReason); enough {
			return true, taken
		}
	}
	return false, taken
}

// allows reports whether the preemptor may take from a queue: mine is its share with the workload, theirs the queue's
// with the candidate, and without gives the queue's share without it.
func (s PreemptionStrategy) allows(mine, theirs share, without func() share) bool {
	if s == LessThanInitialShare {
		return mine.compare(theirs) < 0
	}
	return mine.compare(without()) <= 0
}

// branches are the nodes, the preemptor's first, whose shares are compared: those just below the cohort where its queue
// meets another.
func (h *hunt) branches(q *queue) (mine, theirs *node) {
	theirs = &q.node
	for !theirs.parent.isAbove(h.q) {
		theirs = theirs.parent
	}
	mine = &h.q.node
	for mine.parent != theirs.parent {
		mine = mine.parent
	}
	return mine, theirs
}

// shareWithout is the share of a branch if a workload in it were gone.
func (n *node) shareWithout(w *workload) share {
	w.lift()
	defer w.put()
	return n.share()
}
