package conform

import (
	"os"
	"path/filepath"
	"testing"
)

func TestTheEngineDecidesLikeTheRecordings(t *testing.T) {
	dirs := filepath.SplitList(os.Getenv("KUEUE_RECORDINGS"))
	if len(dirs) == 0 {
		t.Skip()
	}
	equal, n := 0, 0
	for s, err := range Read(dirs...) {
		if err != nil {
			t.Fatal(err)
		}
		n++
		if d := Difference(s); d != "" {
			t.Errorf("%s: %s", s.Name, d)
		} else {
			equal++
		}
	}
	t.Logf("%d of %d equal", equal, n)
}
