// Package lograte keeps a log readable, and the disk of a node free, when something is warned of again and again: by a
// worker that is refused and comes back at once, or by somebody who wants exactly that.
package lograte

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// Burst is how many warnings of one message are written at once.
	Burst = 20
	// every is the time between two of them after that.
	every = 10 * time.Second
	// messages bounds what is remembered: messages with something of their own in them are not limited together.
	messages = 256
)

// Handler passes warnings and errors on that are not repeated too often. The next one that is says how many were left
// out. What is below a warning is passed on always.
type Handler struct {
	slog.Handler
	seen *seen
}

// seen are the messages of late; handlers with other attributes share them.
type seen struct {
	mu sync.Mutex
	of map[string]*message
}

type message struct {
	limit   *rate.Limiter
	leftOut int
}

// New limits what to is given.
func New(to slog.Handler) *Handler {
	return &Handler{Handler: to, seen: &seen{of: map[string]*message{}}}
}

// Handle implements slog.Handler.
func (h *Handler) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelWarn {
		allowed, leftOut := h.seen.allow(r.Message, r.Time)
		if !allowed {
			return nil
		}
		if leftOut > 0 {
			r = r.Clone()
			r.AddAttrs(slog.Int("left_out", leftOut))
		}
	}
	return h.Handler.Handle(ctx, r)
}

// allow reports whether a message may be written now, and how many were left out since the last one.
func (s *seen) allow(text string, at time.Time) (allowed bool, leftOut int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.of[text]
	if m == nil {
		if len(s.of) >= messages {
			clear(s.of)
		}
		m = &message{limit: rate.NewLimiter(rate.Every(every), Burst)}
		s.of[text] = m
	}
	if !m.limit.AllowN(at, 1) {
		m.leftOut++
		return false, 0
	}
	leftOut, m.leftOut = m.leftOut, 0
	return true, leftOut
}

// WithAttrs implements slog.Handler.
func (h *Handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &Handler{h.Handler.WithAttrs(attrs), h.seen}
}

// WithGroup implements slog.Handler.
func (h *Handler) WithGroup(name string) slog.Handler {
	return &Handler{h.Handler.WithGroup(name), h.seen}
}
