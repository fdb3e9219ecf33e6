package data_test

import (
	"strings"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data"
)

func FuzzGeneratedPaths(f *testing.F) {
	for _, path := range []string{"synthetic://digits?records=10&seed=1", "synthetic://census", "indices://mine?records=60000", "synthetic://digits?records=1&records=2", "indices://?records=%zz"} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		if !strings.HasPrefix(path, "synthetic://") && !strings.HasPrefix(path, "indices://") {
			return // a file's
		}
		ds, err := data.Open(t.Context(), data.Spec{Path: path, CacheBytes: 1})
		if err != nil {
			return
		}
		defer ds.Close() //nolint:errcheck // it has no errors
		// The path's canonical form is the same data.
		again, err := data.Open(t.Context(), data.Spec{Path: ds.Files()[0].Path, CacheBytes: 1})
		if err != nil {
			t.Fatalf("%q is %q: %v", path, ds.Files()[0].Path, err)
		}
		defer again.Close() //nolint:errcheck // it has no errors
		if again.Fingerprint() != ds.Fingerprint() || ds.Records() < 1 {
			t.Fatalf("%q is %q, which is other data", path, ds.Files()[0].Path)
		}
	})
}
