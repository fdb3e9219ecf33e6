package scenario

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
)

// Log collects a run's events in the order in which they are added, writes them to a file and passes them to an
// observer. It is safe for concurrent use.
type Log struct {
	observe func(eventlog.Event)

	mu      sync.Mutex
	w       io.Writer
	events  []eventlog.Event
	err     error         // the first failed write
	changed chan struct{} // closed and replaced at every event
}

// NewLog returns a log that writes to w. It calls observe for each event, one at a time; observe must not add events.
func NewLog(w io.Writer, observe func(eventlog.Event)) *Log {
	if observe == nil {
		observe = func(eventlog.Event) {}
	}
	return &Log{w: w, observe: observe, changed: make(chan struct{})}
}

// Add appends an event, with the time of now.
func (l *Log) Add(event eventlog.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	event.Time = time.Now()
	l.events = append(l.events, event)
	if err := eventlog.Write(l.w, event); err != nil && l.err == nil {
		l.err = err
	}
	l.observe(event)
	close(l.changed)
	l.changed = make(chan struct{})
}

// Events are the events so far.
func (l *Log) Events() []eventlog.Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.events)
}

// Err is the first failure to write an event.
func (l *Log) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// Wait returns when done reports true for the history so far. It returns an error that names what it waited for after
// the limit, when the context ends, or when done fails.
func (l *Log) Wait(ctx context.Context, what string, limit time.Duration, done func(*eventlog.History) (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("timed out after %s", limit))
	defer cancel()
	for {
		l.mu.Lock()
		changed, events := l.changed, slices.Clone(l.events)
		l.mu.Unlock()

		ok, err := done(eventlog.Replay(events))
		if err != nil {
			return fmt.Errorf("waiting until %s: %w", what, err)
		}
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("waiting until %s: %w", what, context.Cause(ctx))
		}
	}
}
