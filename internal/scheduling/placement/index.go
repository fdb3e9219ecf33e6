package placement

import (
	"iter"
	"math/bits"
)

// index finds, among the nodes that a shape of pods fits on, the best in a window: a tree over the positions of nodes, 1 its root, with the
// children of i at 2i and 2i+1.
type index struct {
	leaves int     // a power of two
	fits   []int32 // how many nodes fit below
	best   []int16 // the highest score among them; -1: none fits
	ties   []int32 // how many of them have it
}

func newIndex(nodes int) index {
	leaves := 1
	for leaves < nodes {
		leaves *= 2
	}
	x := index{leaves: leaves, fits: make([]int32, 2*leaves), best: make([]int16, 2*leaves), ties: make([]int32, 2*leaves)}
	for i := range x.best {
		x.best[i] = -1
	}
	return x
}

// set notes the score of a node; -1: the pods do not fit on it.
func (x *index) set(at int, score int16) {
	i := x.leaves + at
	if x.best[i] == score {
		return
	}
	x.best[i], x.fits[i], x.ties[i] = score, 1, 1
	if score < 0 {
		x.fits[i], x.ties[i] = 0, 0
	}
	for i /= 2; i > 0; i /= 2 {
		left, right := 2*i, 2*i+1
		x.fits[i] = x.fits[left] + x.fits[right]
		x.best[i], x.ties[i] = merge(x.best[left], x.ties[left], x.best[right], x.ties[right])
	}
}

func merge(a int16, tiesA int32, b int16, tiesB int32) (best int16, ties int32) {
	switch {
	case a > b:
		return a, tiesA
	case b > a:
		return b, tiesB
	}
	return a, tiesA + tiesB
}

// before is how many nodes before a position fit.
func (x *index) before(at int) int {
	count := int32(0)
	for i := x.leaves + at; i > 1; i /= 2 {
		if i%2 == 1 {
			count += x.fits[i-1]
		}
	}
	return int(count)
}

// nth is the position of the nth node that fits, from 0.
func (x *index) nth(n int) int {
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

// top is the highest score in a window, which begins at from and ends before to, and how many have it.
func (x *index) top(from, to int) (best int16, ties int32) {
	best = -1
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

// find is the position of the nth node, from 0, that has the highest score of a window.
func (x *index) find(from, to int, best int16, nth int32) int {
	// below looks under tree node i, which spans the positions low to high.
	var below func(i, low, high int) int
	below = func(i, low, high int) int {
		if high <= from || to <= low || x.best[i] < best {
			return -1
		}
		if from <= low && high <= to {
			if nth >= x.ties[i] {
				nth -= x.ties[i]
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
