package main

import (
	"path/filepath"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/e2e/kueuedecisions"
	"github.com/elastic-training/terraform-provider-elastic/e2e/kueuedecisions/inprocess"
)

func TestOnlyResultsOfTheSameReleaseAndRevisionsCount(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.txt")
	written, err := openResults(path, "before", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = written.file.Close() })
	if err := written.add(kueuedecisions.Drawn{Family: "flat", Seed: 1}, &kueuedecisions.Comparison{Steps: 7}); err != nil {
		t.Fatal(err)
	}
	if _, err := written.file.WriteString("flat 2 equal 7 v0.0.1 before\nflat 3 equal 7\nflat 4 equal 7 " + inprocess.Release + " now\nflat 5 equal"); err != nil {
		t.Fatal(err)
	}
	for of, want := range map[struct{ revision, earlier string }][]uint64{
		{"before", ""}: {1}, {"now", ""}: {4}, {"now", "before"}: {1, 4}, {"later", ""}: nil,
	} {
		read, err := openResults(path, of.revision, of.earlier)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = read.file.Close() })
		for _, seed := range want {
			if _, is := read.known[kueuedecisions.Drawn{Family: "flat", Seed: seed}]; !is {
				t.Errorf("%v: seed %d does not count", of, seed)
			}
		}
		if len(read.known) != len(want) {
			t.Errorf("%v: %v count", of, read.known)
		}
	}
}

func TestKnownResultsNeedARevision(t *testing.T) {
	if _, err := openResults(filepath.Join(t.TempDir(), "results.txt"), "", ""); err == nil {
		t.Error("results of any engine would count")
	}
}
