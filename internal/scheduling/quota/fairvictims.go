package quota

import (
	"cmp"

	"github.com/elastic-training/terraform-provider-elastic/internal/kueue"
)

// fair finds victims under fair sharing (Kueue's preemption.go, fairPreemptions): always from the queue with the greatest share, as the
// strategies allow. Shares are those with the preemptor's demand added.
func (h *hunt) fair() []victim {
	candidates := h.fairCandidates()
	if len(candidates) == 0 {
		h.nobody = NoneQualifies
		return nil
	}
	h.charge()
	strategies := h.engine.config.FairSharing.Strategies
	if len(strategies) == 0 {
		strategies = []PreemptionStrategy{LessThanOrEqualToFinalShare, LessThanInitialShare}
	}
	enough, taken, refused := h.firstStrategy(candidates, strategies[0])
	if !enough && len(strategies) > 1 {
		enough, taken = h.secondStrategy(refused, taken)
	}
	h.discharge()
	if !enough {
		putAll(taken)
		h.nobody = NotEnough
		return nil
	}
	return putAll(h.fillBack(taken, true))
}

// fairCandidates are those of the own queue, and of all queues of the tree that borrow what is short, in order of eviction.
func (h *hunt) fairCandidates() []*workload {
	within, reclaim := h.q.withinPolicy(), h.q.reclaimPolicy()
	var others []*workload
	if h.q.parent != nil && reclaim != kueue.PreemptionPolicyNever {
		others = h.engine.borrowers(h.q.tree, h.needs)
	}
	var found []*workload
	for _, being := range []bool{true, false} {
		for _, w := range others {
			if w.heldIn != h.q && (w.Evicted != "") == being && h.qualifies(w, reclaim) {
				found = append(found, w)
			}
		}
		if within == kueue.PreemptionPolicyNever {
			continue
		}
		for _, w := range h.q.reserved {
			if (w.Evicted != "") == being && h.qualifies(w, within) {
				found = append(found, w)
			}
		}
	}
	return found
}

// fairOrder is victimOrder across queues: the preemptor's own queue last.
func (h *hunt) fairOrder(a, b *workload) int {
	if (a.Evicted != "") == (b.Evicted != "") && (a.heldIn == h.q) != (b.heldIn == h.q) {
		if a.heldIn == h.q {
			return 1
		}
		return -1
	}
	return victimOrder(a, b)
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

// take lifts a workload and tells whether that is enough.
func (h *hunt) take(taken []victim, w *workload, reason string) ([]victim, bool) {
	w.lift()
	taken = append(taken, victim{w, reason})
	return taken, h.fitsCharged()
}

func (h *hunt) firstStrategy(candidates []*workload, strategy PreemptionStrategy) (enough bool, taken []victim, refused []*workload) {
	// A queue that stays within its nominal quota is entitled to it whatever the shares.
	entitled := !h.q.exceedsAny(h.needs)
	order := h.newShareOrder(candidates)
	for q := order.next(); q != nil; q = order.next() {
		switch {
		case q == h.q:
			taken, enough = h.take(taken, order.pop(q), kueue.InClusterQueueReason)
		case entitled:
			taken, enough = h.take(taken, order.pop(q), kueue.InCohortReclamationReason)
		default:
			mine, theirs := h.sharesBelowMeeting(q)
			for len(order.left[q]) > 0 {
				w := order.pop(q)
				if !strategy.allows(mine, theirs, func() share { return h.shareWithout(w) }) {
					refused = append(refused, w)
					continue
				}
				taken, enough = h.take(taken, w, kueue.InCohortFairSharingReason)
				break // shares have changed: another queue may come first now
			}
		}
		if enough {
			return true, taken, refused
		}
	}
	return false, taken, refused
}

// secondStrategy tries once for each queue whether its share is above the preemptor's.
func (h *hunt) secondStrategy(refused []*workload, taken []victim) (bool, []victim) {
	order := h.newShareOrder(refused)
	for q := order.next(); q != nil; q = order.next() {
		mine, theirs := h.sharesBelowMeeting(q)
		w := order.pop(q)
		if LessThanInitialShare.allows(mine, theirs, nil) {
			var enough bool
			if taken, enough = h.take(taken, w, kueue.InCohortFairSharingReason); enough {
				return true, taken
			}
		}
		order.prunedQueues[q] = true
	}
	return false, taken
}

// allows tells whether the preemptor may take from a queue: mine is its share with the workload, theirs the queue's with the candidate, and
// without gives the queue's share without it.
func (s PreemptionStrategy) allows(mine, theirs share, without func() share) bool {
	if s == LessThanInitialShare {
		return mine.compare(theirs) < 0
	}
	return mine.compare(without()) <= 0
}

// sharesBelowMeeting gives the shares of the two branches that meet where the preemptor's queue and another have their lowest common cohort.
func (h *hunt) sharesBelowMeeting(q *queue) (mine, theirs share) {
	a, b := h.branches(q)
	return a.share(), b.share()
}

func (h *hunt) branches(q *queue) (mine, theirs *node) {
	above := map[*node]bool{}
	for n := h.q.parent; n != nil; n = n.parent {
		above[n] = true
	}
	theirs = &q.node
	for !above[theirs.parent] {
		theirs = theirs.parent
	}
	mine = &h.q.node
	for mine.parent != theirs.parent {
		mine = mine.parent
	}
	return mine, theirs
}

// shareWithout is the share of a candidate's branch if it were gone.
func (h *hunt) shareWithout(w *workload) share {
	w.lift()
	defer w.put()
	_, theirs := h.branches(w.heldIn)
	return theirs.share()
}

// shareOrder goes through the queues that have candidates, the one with the greatest share first, from the root down; shares may change in between
// (Kueue's preemption/fairsharing/ordering.go).
type shareOrder struct {
	h    *hunt
	left map[*queue][]*workload
	// under are the queues that have candidates, by their cohorts.
	under         map[*node][]*queue
	prunedQueues  map[*queue]bool
	prunedCohorts map[*node]bool
	above         map[*node]bool // the preemptor's cohorts
}

func (h *hunt) newShareOrder(candidates []*workload) *shareOrder {
	o := &shareOrder{
		h: h, left: map[*queue][]*workload{}, under: map[*node][]*queue{},
		prunedQueues: map[*queue]bool{}, prunedCohorts: map[*node]bool{}, above: map[*node]bool{},
	}
	for n := h.q.parent; n != nil; n = n.parent {
		o.above[n] = true
	}
	for _, w := range candidates {
		if q := w.heldIn; len(o.left[q]) == 0 {
			o.under[q.parent] = append(o.under[q.parent], q)
		}
		o.left[w.heldIn] = append(o.left[w.heldIn], w)
	}
	return o
}

func (o *shareOrder) pop(q *queue) *workload {
	w := o.left[q][0]
	o.left[q] = o.left[q][1:]
	return w
}

// next gives the queue to take from; nil if there is none left. The same may come again; between two calls its candidates must become fewer.
func (o *shareOrder) next() *queue {
	if o.h.q.parent == nil {
		if o.prunedQueues[o.h.q] || len(o.left[o.h.q]) == 0 {
			return nil
		}
		return o.h.q
	}
	root := o.h.q.root()
	for !o.prunedCohorts[root] {
		if q := o.below(root); q != nil {
			return q
		}
	}
	return nil
}

// below finds the branch of a cohort with the greatest share and goes down there. It gives nil when it only pruned.
func (o *shareOrder) below(n *node) *queue {
	var best *queue
	most := noShare
	for _, q := range o.under[n] {
		if o.prunedQueues[q] {
			continue
		}
		if len(o.left[q]) == 0 {
			o.prunedQueues[q] = true
			continue
		}
		s := q.share()
		if !s.borrows() && q != o.h.q {
			o.prunedQueues[q] = true
			continue
		}
		switch c := s.compare(most); {
		case c > 0:
			best, most = q, s
		case c == 0 && o.h.fairOrder(o.left[q][0], o.left[best][0]) < 0:
			best = q
		}
	}
	var bestCohort *node
	mostCohort := noShare
	for _, child := range n.children {
		if o.prunedCohorts[child] {
			continue
		}
		s := child.share()
		if !s.borrows() && !o.above[child] {
			o.prunedCohorts[child] = true
		} else if s.compare(mostCohort) >= 0 {
			bestCohort, mostCohort = child, s
		}
	}
	if best == nil && bestCohort == nil {
		o.prunedCohorts[n] = true
		return nil
	}
	if bestCohort != nil && cmp.Compare(mostCohort.compare(most), 0) >= 0 {
		return o.below(bestCohort)
	}
	return best
}
