// Package eventually lets tests wait for other goroutines and processes, as long as necessary on a busy machine, and
// without delay on an idle one.
package eventually

import (
	"testing"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/patience"
)

// True waits until ok is true, and fails the test with what it has waited for if that does not come.
func True(t testing.TB, what string, ok func() bool) {
	t.Helper()
	if !comes(ok) {
		t.Fatalf("%s: not within %s", what, patience.Medium)
	}
}

// comes looks until ok is true, or patience.Medium is at its end. It looks again and again because what tests wait for,
// a process or a log, tells nobody when it changes; the sleep is what leaves the processor to it.
func comes(ok func() bool) bool {
	for deadline := time.Now().Add(patience.Medium); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}
