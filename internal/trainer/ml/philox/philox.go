// Package philox is the project's only source of random numbers: Philox4x32-10, a counter-based generator (Salmon,
// Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011). A number is a pure function of (seed,
// purpose, index, position), so it does not depend on order, processes or threads, and a restarted run needs no
// generator state. It is not suitable for secrets.
//
// The standard library's generators are not used because the values are part of a job's lineage: they must not depend
// on the Go version.
package philox

import "math/bits"

// Purpose separates the streams of one seed.
type Purpose uint32

// The purposes, and the index words of each.
const (
	Init    Purpose = 1 // initial weights: (position of the variable in creation order, 0, 0)
	Ranges  Purpose = 2 // the order of the ranges of an epoch: (epoch, 0, 0)
	Records Purpose = 3 // the order of the records of a range: (epoch, range, 0)
	Dropout Purpose = 4 // dropout masks: (global step, virtual worker, dropout layer in graph order)
	Synth   Purpose = 5 // synthetic data: (record, 0, 0), or as the data set says
)

// Key is Philox' key: what all numbers of one seed and purpose share.
type Key [2]uint32

// Index names one stream of a Key: three words of Philox' counter. The fourth is the position in the stream.
type Index [3]uint32

// NewKey mixes seed and purpose so that different (seed, purpose) have different keys for all seeds below 2⁵⁶, and the
// purposes of one seed have different keys for any seed.
func NewKey(seed uint64, purpose Purpose) Key {
	return Key{uint32(seed), uint32(seed>>32) ^ uint32(purpose)<<24}
}

// The constants of Philox4x32: two multipliers, and the Weyl increments of the key.
const (
	Mul0  = 0xD2511F53
	Mul1  = 0xCD9E8D57
	Weyl0 = 0x9E3779B9
	Weyl1 = 0xBB67AE85

	Rounds = 10
)

// Block is the bijection itself: four random words for a counter under a key.
func Block(counter [4]uint32, key Key) [4]uint32 {
	c0, c1, c2, c3 := counter[0], counter[1], counter[2], counter[3]
	k0, k1 := key[0], key[1]
	for range Rounds {
		p0 := uint64(Mul0) * uint64(c0)
		p1 := uint64(Mul1) * uint64(c2)
		c0, c1, c2, c3 = uint32(p1>>32)^c1^k0, uint32(p1), uint32(p0>>32)^c3^k1, uint32(p0)
		k0 += Weyl0
		k1 += Weyl1
	}
	return [4]uint32{c0, c1, c2, c3}
}

// Words is block number `position` of a stream: the counter is (position, index).
func (k Key) Words(index Index, position uint32) [4]uint32 {
	return Block([4]uint32{position, index[0], index[1], index[2]}, k)
}

// Element is word i of a stream in the order that vector units make it in: groups of 64 words, in which 16 consecutive
// words come from 16 consecutive blocks. Word i is word (i/16) mod 4 of block 16·(i/64) + i mod 16. It is what is
// used where each element of an array has its own number: initial weights and dropout masks.
func (k Key) Element(index Index, i uint64) uint32 {
	return k.Words(index, uint32(i/64*16+i%16))[i/16%4]
}

// Float32 maps a word to a multiple of 2⁻²⁴ in [0, 1).
func Float32(x uint32) float32 { return float32(x>>8) * (1.0 / (1 << 24)) }

// Stream reads the words of one stream in sequence: blocks 0, 1, …, four words each. The zero value is not valid.
type Stream struct {
	key   Key
	index Index
	words [4]uint32
	next  uint64 // number of words taken
}

// NewStream starts the stream of (seed, purpose, index) at its first word.
func NewStream(seed uint64, purpose Purpose, index Index) *Stream {
	return &Stream{key: NewKey(seed, purpose), index: index}
}

// Uint32 is the next word.
func (s *Stream) Uint32() uint32 {
	i := s.next % 4
	if i == 0 {
		s.words = s.key.Words(s.index, uint32(s.next/4))
	}
	s.next++
	return s.words[i]
}

// Float32 is the next word as a multiple of 2⁻²⁴ in [0, 1).
func (s *Stream) Float32() float32 { return Float32(s.Uint32()) }

// Below is uniform over 0 … n−1 without bias: Lemire's multiplication with rejection ("Fast random integer generation
// in an interval", 2019). n = 0 panics.
func (s *Stream) Below(n uint32) uint32 {
	if n == 0 {
		panic("philox: Below(0)")
	}
	high, low := bits.Mul32(s.Uint32(), n)
	if low < n {
		for threshold := -n % n; low < threshold; {
			high, low = bits.Mul32(s.Uint32(), n)
		}
	}
	return high
}

// Shuffle is a random order of 0 … n−1: Fisher–Yates from the end, over the stream of (seed, purpose, index).
func Shuffle(seed uint64, purpose Purpose, index Index, n int) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	s := NewStream(seed, purpose, index)
	for i := n - 1; i > 0; i-- {
		j := int(s.Below(uint32(i) + 1))
		order[i], order[j] = order[j], order[i]
	}
	return order
}
