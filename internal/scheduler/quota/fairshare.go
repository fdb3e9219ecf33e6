package quota

import (
	"cmp"
	"slices"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// share is a node's dominant resource share under fair sharing (Kueue's pkg/cache/scheduler/fair_sharing.go): the
// largest ratio, over all resources, of what is used beyond the node's quota to what could be had at its parent; in
// thousandths.
type share struct {
	weight, ratio float64
	// borrowed are the pairs of which more is used than the quota.
	borrowed []int
}

// noShare is below every share.
var noShare = share{weight: 1, ratio: -1}

// weightOf reads a weight; 1 if there is none.
func weightOf(f *kueue.FairSharing) float64 {
	if f == nil || f.Weight == nil {
		return 1
	}
	weight := f.Weight.DeepCopy()
	return weight.AsFloat64Slow()
}

func (s share) borrows() bool { return len(s.borrowed) > 0 }

// borrowsOf reports whether any pair of a demand is borrowed.
func (s share) borrowsOf(demand []pairAmount) bool {
	for _, p := range s.borrowed {
		if amountIn(demand, p) > 0 {
			return true
		}
	}
	return false
}

// infinite is the share of those with weight 0 who borrow.
func (s share) infinite() bool { return s.weight == 0 && s.ratio != 0 }

func (s share) weighted() float64 {
	if s.ratio == 0 {
		return 0
	}
	return s.ratio / s.weight
}

// compare orders shares; the infinite ones among themselves by what was borrowed.
func (s share) compare(other share) int {
	switch {
	case s.infinite() && other.infinite():
		return cmp.Compare(s.ratio, other.ratio)
	case s.infinite():
		return 1
	case other.infinite():
		return -1
	}
	return cmp.Compare(s.weighted(), other.weighted())
}

// share computes the node's, as things stand. A root has none.
func (n *node) share() share {
	s := share{weight: n.weight}
	if n.parent == nil {
		return s
	}
	var borrowing []request // few: one for each resource
	for p, i := range n.at {
		if i < 0 || !n.cells[i].listed {
			continue
		}
		if beyond := n.usage[i].minus(n.cells[i].subtree); beyond > 0 {
			resource := n.tree.pairs[p].resource
			at := slices.IndexFunc(borrowing, func(r request) bool { return r.resource == resource })
			if at < 0 {
				at, borrowing = len(borrowing), append(borrowing, request{resource: resource})
			}
			borrowing[at].amount = borrowing[at].amount.plus(beyond)
			s.borrowed = append(s.borrowed, p)
		}
	}
	for _, b := range borrowing {
		if lendable := n.parent.lendable[b.resource]; lendable > 0 {
			s.ratio = max(s.ratio, float64(b.amount)*1000/float64(lendable))
		}
	}
	return s
}

// countLendable works out what could be had at a node, by resource, if nothing were used.
func (n *node) countLendable() {
	n.lendable = map[string]Amount{}
	root := n.root()
	for p, i := range root.at {
		if i >= 0 && root.cells[i].listed {
			resource := n.tree.pairs[p].resource
			n.lendable[resource] = n.lendable[resource].plus(n.potential(p))
		}
	}
}
