package philox_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/philox"
)

func TestBlock(t *testing.T) {
	// kat_vectors of Random123 1.14, lines "philox4x32 10".
	for _, v := range []struct {
		name    string
		counter [4]uint32
		key     philox.Key
		want    [4]uint32
	}{
		{
			"zeros give the published words",
			[4]uint32{},
			philox.Key{},
			[4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
		},
		{
			"ones give the published words",
			[4]uint32{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
			philox.Key{0xffffffff, 0xffffffff},
			[4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd},
		},
		{
			"the digits of pi give the published words",
			[4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
			philox.Key{0xa4093822, 0x299f31d0},
			[4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1},
		},
	} {
		t.Run(v.name, func(t *testing.T) {
			if got := philox.Block(v.counter, v.key); got != v.want {
				t.Errorf("got %08x, want %08x", got, v.want)
			}
		})
	}
}

func TestStream(t *testing.T) {
	t.Run("words come block by block, position first in the counter", func(t *testing.T) {
		s := philox.NewStream(7, philox.Records, philox.Index{3, 4, 5})
		for position := range uint32(3) {
			block := philox.Block([4]uint32{position, 3, 4, 5}, philox.NewKey(7, philox.Records))
			for i, want := range block {
				if got := s.Uint32(); got != want {
					t.Fatalf("block %d word %d: got %08x, want %08x", position, i, got, want)
				}
			}
		}
	})
	t.Run("purposes, seeds and indexes have streams of their own", func(t *testing.T) {
		seen := map[uint64]string{}
		add := func(name string, s *philox.Stream) {
			v := uint64(s.Uint32())<<32 | uint64(s.Uint32())
			if other, ok := seen[v]; ok {
				t.Errorf("%s begins as %s", name, other)
			}
			seen[v] = name
		}
		add("base", philox.NewStream(1, philox.Init, philox.Index{}))
		add("purpose", philox.NewStream(1, philox.Ranges, philox.Index{}))
		add("seed", philox.NewStream(2, philox.Init, philox.Index{}))
		add("upper half of the seed", philox.NewStream(1|1<<40, philox.Init, philox.Index{}))
		add("index 0", philox.NewStream(1, philox.Init, philox.Index{1}))
		add("index 1", philox.NewStream(1, philox.Init, philox.Index{0, 1}))
		add("index 2", philox.NewStream(1, philox.Init, philox.Index{0, 0, 1}))
	})
	t.Run("floats are multiples of 2^-24 below 1", func(t *testing.T) {
		if got := philox.Float32(0xffffffff); got != 1-1.0/(1<<24) {
			t.Errorf("largest is %v", got)
		}
		if got := philox.Float32(0xff); got != 0 {
			t.Errorf("smallest is %v", got)
		}
		if got := philox.Float32(0x80000000); got != .5 {
			t.Errorf("half is %v", got)
		}
	})
}

func TestElement(t *testing.T) {
	t.Run("every word of the first blocks is used exactly once", func(t *testing.T) {
		key := philox.NewKey(9, philox.Dropout)
		var want, got []uint32
		for position := range uint32(32) {
			w := key.Words(philox.Index{1, 2, 3}, position)
			want = append(want, w[:]...)
		}
		for i := range uint64(128) {
			got = append(got, key.Element(philox.Index{1, 2, 3}, i))
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Error("elements 0 … 127 are not the words of blocks 0 … 31")
		}
	})
}

func TestBelow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Uint32Range(1, 1<<32-1).Draw(t, "n")
		s := philox.NewStream(rapid.Uint64().Draw(t, "seed"), philox.Records, philox.Index{})
		for range 10 {
			if v := s.Below(n); v >= n {
				t.Fatalf("Below(%d) = %d", n, v)
			}
		}
	})
	t.Run("all values are about equally frequent, also where rejection is frequent", func(t *testing.T) {
		// n = 3·2³⁰ rejects a quarter of the words; without rejection a third of the values would come twice as often.
		const n, draws = 3 << 30, 30_000
		s := philox.NewStream(1, philox.Synth, philox.Index{})
		var thirds [3]int
		for range draws {
			v := s.Below(n)
			thirds[v%3]++
		}
		for i, c := range thirds {
			if c < draws/3-500 || c > draws/3+500 {
				t.Errorf("remainder %d came %d times of %d", i, c, draws)
			}
		}
	})
}

func TestShuffle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 300).Draw(t, "n")
		index := philox.Index{rapid.Uint32().Draw(t, "epoch"), rapid.Uint32().Draw(t, "range")}
		order := philox.Shuffle(5, philox.Records, index, n)
		if !slices.Equal(order, philox.Shuffle(5, philox.Records, index, n)) {
			t.Fatal("two shuffles of one stream differ")
		}
		slices.Sort(order)
		for i, v := range order {
			if v != i {
				t.Fatalf("not a permutation: %d at %d", v, i)
			}
		}
	})
	t.Run("an order is the one that is part of every lineage", func(t *testing.T) {
		got := philox.Shuffle(1, philox.Ranges, philox.Index{0}, 10)
		want := []int{6, 9, 1, 2, 7, 0, 4, 8, 3, 5}
		if !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}
