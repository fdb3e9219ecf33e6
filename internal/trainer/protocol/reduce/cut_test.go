package reduce

import (
	"testing"

	"pgregory.net/rapid"
)

func TestSlicesCoverEverythingOnceAndAreEven(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(0, 5000).Draw(t, "size")
		n := rapid.IntRange(1, 40).Draw(t, "owners")
		end, smallest, largest := 0, size, 0
		for i := range n {
			lo, hi := Cut(size, n, i)
			if lo != end || hi < lo || (lo%64 != 0 && lo != size) {
				t.Fatalf("slice %d of %d is %d–%d, behind %d", i, n, lo, hi, end)
			}
			end, smallest, largest = hi, min(smallest, hi-lo), max(largest, hi-lo)
		}
		if end != size || largest-smallest > 127 {
			t.Fatalf("the slices end at %d of %d, and have from %d to %d", end, size, smallest, largest)
		}
	})
}
