package reduce

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/gradient"
)

func addScalar(dst, a []float32) {
	for i := range dst {
		dst[i] += a[i]
	}
}

func dense(values ...float32) gradient.Sum { return gradient.Sum{Dense: values} }

func sumOf(t *Tree) float32 {
	sum, _ := t.Sum()
	return sum.Dense[0]
}

// treeSum is the definition, recursively: the reference for every order of arrival.
func treeSum(values []float32) float32 {
	if len(values) == 1 {
		return values[0]
	}
	at := 1
	for at*2 < len(values) {
		at *= 2
	}
	return treeSum(values[:at]) + treeSum(values[at:])
}

func TestTheSumHasTheSameBitsInEveryOrderOfArrival(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 33).Draw(t, "virtual workers")
		values := rapid.SliceOfN(rapid.Float32Range(-1e6, 1e6), n, n).Draw(t, "values")
		order := rapid.Permutation(indices(n)).Draw(t, "order")
		tree := NewTree(addScalar, nil)
		tree.Reset(n)
		for i, v := range order {
			if _, whole := tree.Sum(); whole {
				t.Fatalf("a sum after %d of %d", i, n)
			}
			if err := tree.Add(Span{v, v + 1}, dense(values[v])); err != nil {
				t.Fatal(err)
			}
		}
		if got, want := sumOf(tree), treeSum(values); math.Float32bits(got) != math.Float32bits(want) {
			t.Fatalf("sum %x, want %x", math.Float32bits(got), math.Float32bits(want))
		}
	})
}

func TestAWorkerThatHoldsPartOfTheStepSendsWholeSubtreesAndTheMasterGetsTheSameBits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 20).Draw(t, "virtual workers")
		workers := rapid.IntRange(1, 5).Draw(t, "workers")
		values := rapid.SliceOfN(rapid.Float32Range(-1e6, 1e6), n, n).Draw(t, "values")
		owner := rapid.SliceOfN(rapid.IntRange(0, workers-1), n, n).Draw(t, "owner")
		master := NewTree(addScalar, nil)
		master.Reset(n)
		for w := range workers {
			mine := NewTree(addScalar, nil)
			mine.Reset(n)
			for v := range n {
				if owner[v] == w {
					if err := mine.Add(Span{v, v + 1}, dense(values[v])); err != nil {
						t.Fatal(err)
					}
				}
			}
			for _, s := range mine.Spans() {
				if err := master.Add(s, mine.Take(s)); err != nil {
					t.Fatal(err)
				}
			}
		}
		if got, want := sumOf(master), treeSum(values); math.Float32bits(got) != math.Float32bits(want) {
			t.Fatalf("sum %x, want %x", math.Float32bits(got), math.Float32bits(want))
		}
	})
}

func TestWhatIsNoNodeOrThereAlreadyIsRefused(t *testing.T) {
	tree := NewTree(addScalar, nil)
	tree.Reset(5)
	for _, s := range []Span{{1, 3}, {0, 3}, {3, 5}, {4, 6}, {2, 2}, {-1, 1}} {
		if tree.Add(s, dense(1)) == nil {
			t.Errorf("%v was taken as a node of the tree over 5", s)
		}
	}
	if err := tree.Add(Span{0, 4}, dense(1)); err != nil {
		t.Fatal(err)
	}
	if tree.Add(Span{1, 2}, dense(1)) == nil {
		t.Error("a virtual worker was added twice")
	}
}

func TestBuffersThatWereAddedAreGivenBack(t *testing.T) {
	freed := 0
	tree := NewTree(addScalar, func(gradient.Sum) { freed++ })
	tree.Reset(4)
	for v := range 4 {
		if err := tree.Add(Span{v, v + 1}, dense(1)); err != nil {
			t.Fatal(err)
		}
	}
	tree.Reset(4)
	if freed != 4 {
		t.Errorf("%d of 4 buffers came back", freed)
	}
}

func ExampleSpan_String() {
	fmt.Println(Span{3, 4}, Span{0, 2})
	// Output: v3 v0-v1
}

func indices(n int) []int {
	return slices.Collect(func(yield func(int) bool) {
		for i := range n {
			if !yield(i) {
				return
			}
		}
	})
}
