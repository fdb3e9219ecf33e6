package elasticsim

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func TestALongRunPrintsItsProgressAndAShortOneDoesNot(t *testing.T) {
	var out bytes.Buffer
	p := newProgress(&out, "busy")
	p.show(1, 10, time.Hour)
	if out.Len() > 0 {
		t.Errorf("after no time: %s", out.String())
	}
	p.began = p.began.Add(-time.Minute)
	p.shown = p.began
	for range 3 {
		p.show(5000, 10_000, 3*time.Hour)
	}
	p.end()
	if got, want := out.String(), "busy: 5,000 of 10,000 jobs completed, after 3 h 00 min of simulated time\n"; got != want {
		t.Errorf("got %q, want %q once", got, want)
	}
}

func TestOnATerminalThereIsABarThatIsTakenAway(t *testing.T) {
	var out bytes.Buffer
	p := newProgress(&out, "busy")
	p.terminal = true
	p.began = p.began.Add(-time.Minute)
	p.shown = p.began
	p.show(5, 10, time.Hour)
	if !strings.Contains(out.String(), "busy") || !strings.Contains(out.String(), "5/10") {
		t.Errorf("%q", out.String())
	}
	p.end()
}
