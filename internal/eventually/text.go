package eventually

import (
	"strings"
	"sync"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/patience"
)

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
