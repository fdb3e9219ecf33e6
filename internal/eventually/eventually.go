// Package eventually lets tests wait for what other goroutines and processes do: as long as that takes on a busy machine, and
// no longer on an idle one.
package eventually

import (
	"testing"
	"time"
)

// patience is more than anything takes that works.
const patience = 20 * time.Second

// True waits until ok is true, and fails the test with what it has waited for if that does not come.
func True(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s", what, patience)
		}
	}
}
