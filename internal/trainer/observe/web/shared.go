package web

import (
	"sync"
	"time"
)

// shared is something that is made at most once in updateEvery, for all who ask: drawing takes the time of a training
// step, and clients of the port may send as many requests as they like.
type shared[T any] struct {
	make func() T

	mu    sync.Mutex
	at    time.Time // when value was made
	value T
}

func (s *shared[T]) get() T {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at.IsZero() || time.Since(s.at) >= updateEvery {
		s.value, s.at = s.make(), time.Now()
	}
	return s.value
}
