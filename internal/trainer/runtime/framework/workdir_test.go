package framework

import (
	"errors"
	"os"
	"testing"
)

func TestWhatAKilledOwnerHasLeftIsRemovedByTheNextAndWhatALivingOneHasIsNot(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	made := func() *workdir {
		t.Helper()
		w, err := newWorkdir()
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
	if _, err := os.Stat(killed.path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what the killed one left is still there: %v", err)
	}
	for _, w := range []*workdir{living, next} {
		if _, err := os.Stat(w.path); err != nil {
			t.Error(err)
		}
		if err := w.remove(); err != nil {
			t.Error(err)
		}
	}
}
