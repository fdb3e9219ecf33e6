package main

import (
	"strings"
	"testing"
)

func TestTheLesserShareOfCertainClaimsCounts(t *testing.T) {
	figures, err := certainties("BenchmarkCertainty/8_nodes_64_workers-2 \t 1\t 31389885017 ns/op\t 0 evictions\t 11.24 longest-s\t 9.5e-01 median-s\t 0.9500 outcomes\n" +
		"BenchmarkCertainty/5000_nodes_1_workers \t 1\t 1 ns/op\t 1.000 evictions\t 0.2 longest-s\t 0.1 median-s\t 0.9500 outcomes\nPASS\n")
	if err != nil || len(figures) != 2 {
		t.Fatalf("%v, %v", figures, err)
	}
	if f := figures[0]; f.Name != "certain, 8 nodes, 64 workers" || f.Median != 0 || !strings.HasSuffix(f.Detail, "outcome 95 %, evictions 0 %; median 0.95 s, longest 11.2 s") {
		t.Errorf("%+v", f)
	}
	if f := figures[1]; f.Name != "certain, 5000 nodes, 1 workers" || f.Median != 1 {
		t.Errorf("%+v", f)
	}
	if _, err := certainties("PASS\n"); err == nil {
		t.Error("no results are no error")
	}
}
