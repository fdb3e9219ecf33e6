package placement

import (
	"iter"
	"math/bits"
)

// index finds, among the nodes that come into question for a shape of pods, the best in a window: a tree over the
// positions of nodes, 1 its root, with the children of i at 2i and 2i+1.
type index[V rated[V]] struct {
	nodes  int
	leaves int     // a power of two
	fits   []int32 // how many nodes below come into question
	best   []V     // the highest of their values
	ties   []int32 // how many of them have it
}

// rated is a value by which nodes are compared: greater than zero if it is better than another.
type rated[V any] interface {
	comparable
	compare(other V) int
}

// window is the positions from one to an end, and from 0 to a rest where it wraps.
type window struct{ from, end, rest int }

func newIndex[V rated[V]](nodes int) index[V] {
	leaves := 1
	for leaves < nodes {
		leaves *= 2
	}
	return index[V]{nodes: nodes, leaves: leaves, fits: make([]int32, 2*leaves), best: make([]V, 2*leaves), ties: make([]int32, 2*leaves)}
}

// set notes the value of a node.
func (x *index[V]) set(at int, value V) {
	if i := x.leaves + at; x.fits[i] == 0 || x.best[i] != value {
		x.put(i, value, 1)
	}
}

// drop notes that a node does not come into question.
func (x *index[V]) drop(at int) {
	if i := x.leaves + at; x.fits[i] > 0 {
		var none V
		x.put(i, none, 0)
	}
}

func (x *index[V]) put(leaf int, value V, count int32) {
	x.best[leaf], x.fits[leaf], x.ties[leaf] = value, count, count
	for i := leaf / 2; i > 0; i /= 2 {
		left, right := 2*i, 2*i+1
		x.fits[i] = x.fits[left] + x.fits[right]
		x.best[i], x.ties[i] = merge(x.best[left], x.ties[left], x.best[right], x.ties[right])
	}
}

func merge[V rated[V]](a V, tiesA int32, b V, tiesB int32) (best V, ties int32) {
	switch {
	case tiesB == 0:
		return a, tiesA
	case tiesA == 0:
		return b, tiesB
	}
	switch order := a.compare(b); {
	case order > 0:
		return a, tiesA
	case order < 0:
		return b, tiesB
	}
	return a, tiesA + tiesB
}

// window is the smallest from a position on in which so many nodes come into question; all positions, if there are not
// so many.
func (x *index[V]) window(from, limit int) window {
	fit := int(x.fits[1])
	if limit > fit {
		return window{from: from, end: x.nodes, rest: from}
	}
	last := x.before(from) + limit - 1
	if last < fit {
		return window{from: from, end: x.nth(last) + 1}
	}
	return window{from: from, end: x.nodes, rest: x.nth(last-fit) + 1}
}

// before is the number of candidate nodes before a position.
func (x *index[V]) before(at int) int {
	count := int32(0)
	for i := x.leaves + at; i > 1; i /= 2 {
		if i%2 == 1 {
			count += x.fits[i-1]
		}
	}
	return int(count)
}

// nth is the position of the nth candidate node, from 0.
func (x *index[V]) nth(n int) int {
	i := 1
	for i < x.leaves {
		i *= 2
		if left := int(x.fits[i]); n >= left {
			n -= left
			i++
		}
	}
	return i - x.leaves
}

// top is the highest value in a window, and how many nodes have it; 0: there is no candidate node.
func (x *index[V]) top(w window) (best V, ties int32) {
	best, ties = x.highest(w.from, w.end)
	rest, tiesRest := x.highest(0, w.rest)
	return merge(best, ties, rest, tiesRest)
}

// highest is top, of the positions from one to before another.
func (x *index[V]) highest(from, to int) (best V, ties int32) {
	for i, j := x.leaves+from, x.leaves+to; i < j; i, j = i/2, j/2 {
		if i%2 == 1 {
			best, ties = merge(best, ties, x.best[i], x.ties[i])
			i++
		}
		if j%2 == 1 {
			j--
			best, ties = merge(best, ties, x.best[j], x.ties[j])
		}
	}
	return best, ties
}

// find is the position of the nth node, from 0, that has the highest value of a window, in the window's order.
func (x *index[V]) find(w window, best V, nth int32) int {
	if at := x.among(w.from, w.end, best, &nth); at >= 0 {
		return at
	}
	return x.among(0, w.rest, best, &nth)
}

// among is find, of the positions from one to before another; -1, and nth is less by how many there are, if those are
// too few.
func (x *index[V]) among(from, to int, best V, nth *int32) int {
	// below looks under tree node i, which spans the positions low to high.
	var below func(i, low, high int) int
	below = func(i, low, high int) int {
		if high <= from || to <= low || x.ties[i] == 0 || x.best[i].compare(best) < 0 {
			return -1
		}
		if from <= low && high <= to {
			if *nth >= x.ties[i] {
				*nth -= x.ties[i]
				return -1
			}
			if high-low == 1 {
				return low
			}
		}
		middle := (low + high) / 2
		if at := below(2*i, low, middle); at >= 0 {
			return at
		}
		return below(2*i+1, middle, high)
	}
	return below(1, 0, x.leaves)
}

// positionSet is a set of positions of nodes.
type positionSet struct {
	words []uint64
	count int
}

func newPositionSet(nodes int) positionSet { return positionSet{words: make([]uint64, (nodes+63)/64)} }

func (p *positionSet) set(at int, in bool) {
	word, bit := &p.words[at/64], uint64(1)<<(at%64)
	switch {
	case in && *word&bit == 0:
		*word |= bit
		p.count++
	case !in && *word&bit != 0:
		*word &^= bit
		p.count--
	}
}

// from are all the positions in their order, which begins with the nth and goes round.
func (p *positionSet) from(nth int) iter.Seq[int] {
	return func(yield func(int) bool) {
		count := 0
		for pass := range 2 {
			for w, word := range p.words {
				if inWord := bits.OnesCount64(word); pass == 0 && count+inWord <= nth {
					count += inWord
					continue
				}
				for ; word != 0; word &= word - 1 {
					if count++; pass == 0 && count <= nth {
						continue
					}
					if count > p.count+nth || !yield(64*w+bits.TrailingZeros64(word)) {
						return
					}
				}
			}
		}
	}
}

// nth is the nth of the positions, from 0.
func (p *positionSet) nth(n int) int {
	for at := range p.from(n) {
		return at
	}
	return -1
}
