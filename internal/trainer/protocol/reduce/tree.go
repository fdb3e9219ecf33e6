// Package reduce adds the gradients of a step along one fixed binary tree, so that the sum has the same bits
// however the virtual workers were assigned and in whatever order their gradients arrive. The worker that computes
// several virtual workers and the master that gathers them walk the same tree with the same type.
//
// The tree over v = 0…n−1 splits a node at the largest power of two below its length. A node's sum is left + right,
// plain float32 additions; nothing is weighted or divided. Of the rows of embedding tables a node has the union of its
// children's (gradient.Sum).
package reduce

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/gradient"
)

// Span is a node of the tree: the virtual workers Lo ≤ v < Hi.
type Span struct{ Lo, Hi int }

// Len is the number of virtual workers below the node.
func (s Span) Len() int { return s.Hi - s.Lo }

func (s Span) String() string {
	if s.Len() == 1 {
		return fmt.Sprintf("v%d", s.Lo)
	}
	return fmt.Sprintf("v%d-v%d", s.Lo, s.Hi-1)
}

// split is where a node of length n ≥ 2 divides: the largest power of two below n.
func split(n int) int { return 1 << (bits.Len(uint(n-1)) - 1) }

// Relatives returns the sibling and the parent of a node of the tree over n virtual workers, and whether the node is
// the left child. It is not ok for the root and for a span that is no node of the tree.
func Relatives(n int, s Span) (sibling, parent Span, left, ok bool) {
	at := Span{0, n}
	for at.Len() > 1 {
		mid := at.Lo + split(at.Len())
		l, r := Span{at.Lo, mid}, Span{mid, at.Hi}
		switch {
		case s == l:
			return r, at, true, true
		case s == r:
			return l, at, false, true
		case s.Hi <= mid:
			at = l
		case s.Lo >= mid:
			at = r
		default:
			return Span{}, Span{}, false, false
		}
	}
	return Span{}, Span{}, false, false
}

// IsNode reports whether s is a node of the tree over n virtual workers.
func IsNode(n int, s Span) bool {
	if s == (Span{0, n}) {
		return n > 0
	}
	_, _, _, ok := Relatives(n, s)
	return ok
}

// Tree gathers the sums of disjoint nodes and adds siblings as soon as both are there. It is for one goroutine.
type Tree struct {
	n    int
	add  func(dst, a []float32) // dst ← dst + a, element by element
	free func(gradient.Sum)     // takes back a sum that has been added into another
	sums map[Span]gradient.Sum
}

// NewTree returns an empty tree. add must be dst[i] = dst[i] + a[i], rounded once; free may be nil.
func NewTree(add func(dst, a []float32), free func(gradient.Sum)) *Tree {
	if free == nil {
		free = func(gradient.Sum) {}
	}
	return &Tree{add: add, free: free, sums: map[Span]gradient.Sum{}}
}

// Reset empties the tree, gives its buffers back, and begins a step of n virtual workers.
func (t *Tree) Reset(n int) {
	for s, sum := range t.sums {
		t.free(sum)
		delete(t.sums, s)
	}
	t.n = n
}

// Add takes the sum of a node and merges it upwards as far as siblings are there. The tree owns sum from here on.
// It refuses a span that is no node of this step's tree, or that is there already.
func (t *Tree) Add(s Span, sum gradient.Sum) error {
	if !IsNode(t.n, s) {
		return fmt.Errorf("%v is no node of the tree over %d virtual workers", s, t.n)
	}
	for have := range t.sums {
		if have.Lo < s.Hi && s.Lo < have.Hi {
			return fmt.Errorf("%v overlaps %v, which has been added before", s, have)
		}
	}
	for {
		sibling, parent, left, ok := Relatives(t.n, s)
		other, there := t.sums[sibling]
		if !ok || !there {
			t.sums[s] = sum
			return nil
		}
		delete(t.sums, sibling)
		if !left {
			sum, other = other, sum // the left sum is the first operand; with IEEE addition the order is no matter, the habit is
		}
		sum.Add(other, t.add)
		t.free(other)
		s = parent
	}
}

// Sum returns the sum of the whole step, once no virtual worker is missing. The tree keeps owning it.
func (t *Tree) Sum() (sum gradient.Sum, whole bool) {
	sum, whole = t.sums[Span{0, t.n}]
	return sum, whole
}

// Spans lists the nodes that are there, in order of virtual workers: the fewest that cover what was added.
func (t *Tree) Spans() []Span {
	spans := make([]Span, 0, len(t.sums))
	for s := range t.sums {
		spans = append(spans, s)
	}
	slices.SortFunc(spans, func(a, b Span) int { return a.Lo - b.Lo })
	return spans
}

// At is the sum of a node that Spans lists. The tree keeps owning it.
func (t *Tree) At(s Span) gradient.Sum { return t.sums[s] }

// Take removes the sum of a node that Spans lists and hands it to the caller.
func (t *Tree) Take(s Span) gradient.Sum {
	sum := t.sums[s]
	delete(t.sums, s)
	return sum
}

// cutUnit is what slices are multiples of: a register's 16 floats, four of them, so that a slice is added with the same
// instructions as the whole.
const cutUnit = 64

// Cut divides size floats, or rows, among n owners: owner i has lo ≤ at < hi. It is a function of its arguments alone.
// All cuts but the last are at multiples of 64, and shares differ by at most 64.
func Cut(size, n, i int) (lo, hi int) {
	units := (size + cutUnit - 1) / cutUnit
	at := func(i int) int { return min(size, units*i/n*cutUnit) }
	return at(i), at(i + 1)
}
