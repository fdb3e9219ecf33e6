package truth_test

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/elastic-training/terraform-provider-elastic/e2e/truth"
)

func TestASituationIsWrittenAsItIsRead(t *testing.T) {
	dirs, err := filepath.Glob("testdata/situations/*")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("there are no situations: %v", err)
	}
	for _, dir := range dirs {
		s, err := truth.Load(dir)
		if err != nil {
			t.Fatal(err)
		}
		copied := filepath.Join(t.TempDir(), s.Name)
		if err := s.Save(copied); err != nil {
			t.Fatal(err)
		}
		again, err := truth.Load(copied)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(s, again); diff != "" {
			t.Errorf("%s: %s", s.Name, diff)
		}
	}
}
