package local_test

import (
	"slices"
	"testing"
)

func TestRunsCoverEveryPairOfValuesAndAreFew(t *testing.T) {
	all := ways{
		kernels: []string{"a", "b", "c"}, workers: []int{1, 2, 3, 4}, threads: []int{1, 2, 3}, kills: []int{0, 20},
		aggregations: bothAggregations, stops: []int{0, 1},
	}.product()
	selected := allPairs(all)
	covered := map[pair]bool{}
	for _, r := range selected {
		if !slices.Contains(all, r) {
			t.Errorf("%v is not in the product", r)
		}
		for _, p := range r.pairs() {
			covered[p] = true
		}
	}
	for _, r := range all {
		for _, p := range r.pairs() {
			if !covered[p] {
				t.Errorf("%v has the pair %v, which no selected run has", r, p)
			}
		}
	}
	if len(selected) > 2*3*4 { // 12 is the least that three kernels and four numbers of workers allow
		t.Errorf("%d of %d runs", len(selected), len(all))
	}
}
