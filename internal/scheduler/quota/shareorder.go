package quota

import (
	"container/heap"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// donor is a queue that fair sharing may take quota from.
type donor struct {
	q *queue
	// left are those of its workloads that may still be taken, in the order of eviction; refused those that the first
	// strategy did not allow.
	left, refused []*workload
	share         share
}

func (d *donor) pop() *workload {
	w := d.left[0]
	d.left = d.left[1:]
	return w
}

// donors are the own queue, and all queues of the tree that borrow what is short, if the policies let the preemptor
// evict any of theirs.
func (h *hunt) donors() []*donor {
	var all []*donor
	consider := func(q *queue, policy kueue.PreemptionPolicy) {
		d := &donor{q: q}
		for _, w := range q.reserved {
			if h.qualifies(w, policy) {
				d.left = append(d.left, w)
			}
		}
		if len(d.left) > 0 {
			all = append(all, d)
		}
	}
	consider(h.q, h.q.withinPolicy())
	if reclaim := h.q.reclaimPolicy(); reclaim != kueue.PreemptionPolicyNever {
		for _, q := range h.q.root().subtree(nil) {
			if q != h.q && q.active && q.exceedsAny(h.needs) {
				consider(q, reclaim)
			}
		}
	}
	return all
}

// shareOrder goes through the donors, the one with the greatest share first, from the root down (Kueue's
// preemption/fairsharing/ordering.go). What is taken from one changes no share but its own and those of the cohorts
// above it, so that the others keep their places.
type shareOrder struct {
	h *hunt
	// under are the donors of each cohort that may come.
	under  map[*node]*donorHeap
	pruned map[*node]bool // cohorts
	last   *donor         // that was given
}

func (h *hunt) newShareOrder(donors []*donor) *shareOrder {
	o := &shareOrder{h: h, under: map[*node]*donorHeap{}, pruned: map[*node]bool{}}
	for _, d := range donors {
		at := o.under[d.q.parent]
		if at == nil {
			at = &donorHeap{h: h}
			o.under[d.q.parent] = at
		}
		if d.share = d.q.share(); h.mayCome(d) {
			at.donors = append(at.donors, d)
		}
	}
	for _, at := range o.under {
		heap.Init(at)
	}
	return o
}

// mayCome reports whether there is anything to take from a donor: a donor that does not borrow gives nothing to other
// queues.
func (h *hunt) mayCome(d *donor) bool {
	return len(d.left) > 0 && (d.q == h.q || d.share.borrows())
}

// next gives the donor to take from; nil if there is none left. The same may come again; between two calls its
// candidates must become fewer.
func (o *shareOrder) next() *donor {
	if d := o.last; d != nil {
		at := o.under[d.q.parent] // d is at the top
		if d.share = d.q.share(); o.h.mayCome(d) {
			heap.Fix(at, 0)
		} else {
			heap.Pop(at)
		}
	}
	o.last = nil
	if o.h.q.parent == nil {
		o.last = o.under[nil].top()
		return o.last
	}
	for root := o.h.q.root(); o.last == nil && !o.pruned[root]; {
		o.last = o.below(root)
	}
	return o.last
}

// below finds the branch of a cohort with the greatest share and goes down there. It gives nil when it only pruned.
func (o *shareOrder) below(n *node) *donor {
	best := o.under[n].top()
	most := noShare
	if best != nil {
		most = best.share
	}
	var bestCohort *node
	mostCohort := noShare
	for _, child := range n.children {
		if o.pruned[child] {
			continue
		}
		s := child.share()
		if !s.borrows() && !child.isAbove(o.h.q) {
			o.pruned[child] = true
		} else if s.compare(mostCohort) >= 0 {
			bestCohort, mostCohort = child, s
		}
	}
	switch {
	case bestCohort != nil && mostCohort.compare(most) >= 0:
		return o.below(bestCohort)
	case best == nil:
		o.pruned[n] = true
	}
	return best
}

// donorHeap has the donor with the greatest share on top; among equal ones, the one whose workload is to be evicted
// first.
type donorHeap struct {
	h      *hunt
	donors []*donor
}

// top is nil if there is none.
func (d *donorHeap) top() *donor {
	if d == nil || len(d.donors) == 0 {
		return nil
	}
	return d.donors[0]
}

func (d *donorHeap) Len() int      { return len(d.donors) }
func (d *donorHeap) Swap(i, j int) { d.donors[i], d.donors[j] = d.donors[j], d.donors[i] }
func (d *donorHeap) Push(x any)    { d.donors = append(d.donors, x.(*donor)) }

func (d *donorHeap) Less(i, j int) bool {
	a, b := d.donors[i], d.donors[j]
	if c := a.share.compare(b.share); c != 0 {
		return c > 0
	}
	return d.h.fairOrder(a.left[0], b.left[0]) < 0
}

func (d *donorHeap) Pop() any {
	last := len(d.donors) - 1
	popped := d.donors[last]
	d.donors = d.donors[:last]
	return popped
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
