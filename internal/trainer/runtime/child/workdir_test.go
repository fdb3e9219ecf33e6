package child

import (
	"errors"
	"os"
	"testing"
)

func TestWhatAKilledOwnerHasLeftIsRemovedByTheNextAndWhatALivingOneHasIsNot(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	made := func() *Workdir {
		t.Helper()
		w, err := NewWorkdir()
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	killed, living := made(), made()
	if err := killed.lock.Close(); err != nil { // as the kernel does
		t.Fatal(err)
	}
	next := made()
	if _, err := os.Stat(killed.Path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what the killed one left is still there: %v", err)
	}
	for _, w := range []*Workdir{living, next} {
		if _, err := os.Stat(w.Path); err != nil {
			t.Error(err)
		}
		if err := w.Remove(); err != nil {
			t.Error(err)
		}
	}
}
