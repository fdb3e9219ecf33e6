package gradient_test

import (
	"encoding/binary"
	"maps"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/gradient"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/reduce"
)

var tables = []gradient.Table{{Name: "users", Rows: 40, Width: 3, Lookups: 2}, {Name: "bias", Rows: 7, Width: 1, Lookups: 7}}

func add(dst, a []float32) {
	for i := range dst {
		dst[i] += a[i]
	}
}

// draw makes the gradient of a virtual worker.
func draw(t *rapid.T) gradient.Sum {
	values := rapid.Float32Range(-1e6, 1e6)
	sum := gradient.Sum{Dense: rapid.SliceOfN(values, 2, 2).Draw(t, "dense")}
	for _, table := range tables {
		index := rapid.SliceOfNDistinct(rapid.Int32Range(0, int32(table.Rows-1)), 0, 6, rapid.ID).Draw(t, "rows of "+table.Name)
		slices.Sort(index)
		n := len(index) * table.Width
		sum.Rows = append(sum.Rows, gradient.Rows{Index: index, Values: rapid.SliceOfN(values, n, n).Draw(t, "values")})
	}
	return sum
}

func clone(s gradient.Sum) gradient.Sum {
	c := gradient.Sum{Dense: slices.Clone(s.Dense)}
	for _, r := range s.Rows {
		c.Rows = append(c.Rows, gradient.Rows{Index: slices.Clone(r.Index), Values: slices.Clone(r.Values)})
	}
	return c
}

func equal(a, b gradient.Sum) bool {
	same := sameBits(a.Dense, b.Dense)
	for t := range a.Rows {
		same = same && slices.Equal(a.Rows[t].Index, b.Rows[t].Index) && sameBits(a.Rows[t].Values, b.Rows[t].Values)
	}
	return same
}

func sameBits(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
}

// union is the definition of a sum of rows, with a map.
func union(a, b gradient.Rows, width int) gradient.Rows {
	rows := map[int32][]float32{}
	for i, index := range a.Index {
		rows[index] = slices.Clone(a.Values[i*width:][:width])
	}
	for i, index := range b.Index {
		row := b.Values[i*width:][:width]
		if mine, both := rows[index]; both {
			add(mine, row)
			continue
		}
		rows[index] = row
	}
	var r gradient.Rows
	for _, index := range slices.Sorted(maps.Keys(rows)) {
		r.Index, r.Values = append(r.Index, index), append(r.Values, rows[index]...)
	}
	return r
}

func TestASumHasTheRowsOfBothAndTheRowsOfOneAreUnchanged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := draw(t), draw(t)
		want, before := gradient.Sum{Dense: slices.Clone(a.Dense)}, clone(b)
		add(want.Dense, b.Dense)
		for i, table := range tables {
			want.Rows = append(want.Rows, union(a.Rows[i], b.Rows[i], table.Width))
		}
		if a.Add(b, add); !equal(a, want) {
			t.Fatalf("got  %v\nwant %v", a, want)
		}
		if !equal(b, before) {
			t.Fatalf("what was added has changed: %v, before %v", b, before)
		}
	})
}

func TestTheSumOfAStepIsTheSameWhoeverHeldWhat(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 9).Draw(t, "virtual workers")
		var sums []gradient.Sum
		for range n {
			sums = append(sums, draw(t))
		}
		walk := func(name string) gradient.Sum {
			workers := rapid.IntRange(1, 4).Draw(t, "workers of "+name)
			owner := rapid.SliceOfN(rapid.IntRange(0, workers-1), n, n).Draw(t, "owner in "+name)
			var held []*reduce.Tree
			for range workers {
				tree := reduce.NewTree(add, nil)
				tree.Reset(n)
				held = append(held, tree)
			}
			for _, v := range rapid.Permutation(indices(n)).Draw(t, "order in "+name) {
				if err := held[owner[v]].Add(reduce.Span{Lo: v, Hi: v + 1}, clone(sums[v])); err != nil {
					t.Fatal(err)
				}
			}
			master := reduce.NewTree(add, nil)
			master.Reset(n)
			for _, tree := range held {
				for _, s := range tree.Spans() {
					sum := tree.Take(s)
					packed := gradient.AppendPacked(nil, sum.Rows) // as it travels
					rows, err := gradient.Unpack(tables, gradient.Counts(sum.Rows), packed)
					if err != nil {
						t.Fatal(err)
					}
					if err := master.Add(s, gradient.Sum{Dense: sum.Dense, Rows: rows}); err != nil {
						t.Fatal(err)
					}
				}
			}
			sum, whole := master.Sum()
			if !whole {
				t.Fatal("a virtual worker is missing")
			}
			return sum
		}
		if one, other := walk("one run"), walk("another"); !equal(one, other) {
			t.Fatalf("%v\nand %v", one, other)
		}
	})
}

func indices(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

func TestRowsArriveAsTheyWerePacked(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sum := draw(t)
		counts := gradient.Counts(sum.Rows)
		packed := gradient.AppendPacked(nil, sum.Rows)
		n, err := gradient.PackedLen(tables, counts, 10)
		if err != nil || n != len(packed) || n > gradient.LongestPacked(tables, 10) {
			t.Fatalf("%d floats announced and at most %d, %d packed: %v", n, gradient.LongestPacked(tables, 10), len(packed), err)
		}
		rows, err := gradient.Unpack(tables, counts, packed)
		if err != nil || !equal(sum, gradient.Sum{Dense: sum.Dense, Rows: rows}) {
			t.Fatalf("%v: %v", rows, err)
		}
	})
}

func TestRowsThatNoMinibatchCanHaveAreRefused(t *testing.T) {
	for name, counts := range map[string][]int32{
		"more rows than the records look up": {5, 0},
		"more rows than the table has":       {0, 8},
		"fewer than none":                    {-1, 0},
		"a table too few":                    {1},
		"a table too many":                   {1, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			if n, err := gradient.PackedLen(tables, counts, 2); err == nil {
				t.Errorf("%v were taken for %d floats", counts, n)
			}
		})
	}
	bits := func(rows ...uint32) []float32 {
		var packed []float32
		for _, r := range rows {
			packed = append(packed, math.Float32frombits(r))
		}
		return packed
	}
	for name, packed := range map[string][]float32{
		"a row twice":            append(bits(1, 1), 0, 0),
		"rows that descend":      append(bits(2, 1), 0, 0),
		"a row beyond the table": append(bits(1, 7), 0, 0),
		"a row before the table": append(bits(0xffffffff, 1), 0, 0),
		"values that are short":  append(bits(1, 2), 0),
		"values left over":       append(bits(1, 2), 0, 0, 0),
	} {
		t.Run(name, func(t *testing.T) {
			if rows, err := gradient.Unpack(tables[1:], []int32{2}, packed); err == nil {
				t.Errorf("taken as %v", rows)
			}
		})
	}
}

// FuzzUnpack: what is taken is what it would be packed to again, and the memory is no more than the input's.
func FuzzUnpack(f *testing.F) {
	sum := gradient.Sum{Rows: []gradient.Rows{{Index: []int32{2, 30}, Values: []float32{1, 2, 3, 4, 5, 6}}, {Index: []int32{6}, Values: []float32{7}}}}
	var seed []byte
	for _, v := range gradient.AppendPacked(nil, sum.Rows) {
		seed = binary.LittleEndian.AppendUint32(seed, math.Float32bits(v))
	}
	f.Add(int32(2), int32(1), seed)
	f.Add(int32(math.MaxInt32), int32(-1), []byte{})
	f.Fuzz(func(t *testing.T, first, second int32, input []byte) {
		packed := make([]float32, len(input)/4)
		for i := range packed {
			packed[i] = math.Float32frombits(binary.LittleEndian.Uint32(input[4*i:]))
		}
		rows, err := gradient.Unpack(tables, []int32{first, second}, packed)
		if err != nil {
			return
		}
		if again := gradient.AppendPacked(nil, rows); !sameBits(again, packed) {
			t.Fatalf("%v was unpacked as %v and packed as %v", packed, rows, again)
		}
	})
}
