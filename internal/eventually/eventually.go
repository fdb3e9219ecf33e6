// Package eventually lets tests wait for other goroutines and processes, as long as necessary on a busy machine, and
// without delay on an idle one.
package eventually

import (
	"strings"
	"sync"
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

// Text is what others write while a test reads it: a log, or a terminal's screen. The zero value is empty.
type Text struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements io.Writer.
func (x *Text) Write(b []byte) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.text.Write(b)
}

// String is all that has been written.
func (x *Text) String() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.text.String()
}

// Await waits until certain words have been written, and returns all that has.
func (x *Text) Await(t testing.TB, words string) string {
	t.Helper()
	if !comes(func() bool { return strings.Contains(x.String(), words) }) {
		t.Fatalf("%q has not been written within %s, but:\n%s", words, patience.Medium, x.String())
	}
	return x.String()
}
