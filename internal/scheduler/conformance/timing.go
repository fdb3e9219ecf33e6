package conformance

import (
	"fmt"
	"time"
)

// Timing is what a cycle took, and how many workloads hold quota after it.
type Timing struct {
	Seconds  float64 `json:"seconds"`
	Admitted int     `json:"admitted"`
}

// Cycles submits all workloads of a scenario, a second after each other, and measures that many cycles of the engine. The
// recorder does the same with Kueue's scheduler.
func Cycles(s *Scenario, n int) ([]Timing, error) {
	r, err := newReplay(s)
	if err != nil {
		return nil, err
	}
	for i := range s.Steps {
		if s.Steps[i].Op != Submit {
			return nil, fmt.Errorf("step %d: only workloads that are submitted can be measured, not %q", i, s.Steps[i].Op)
		}
		w, err := s.Steps[i].Submitted()
		if err != nil {
			return nil, fmt.Errorf("step %d: %w", i, err)
		}
		r.now = r.now.Add(betweenSubmits)
		if err := r.submit(&w); err != nil {
			return nil, fmt.Errorf("step %d: %w", i, err)
		}
	}
	timings := make([]Timing, 0, n)
	for range n {
		start := time.Now()
		result := r.engine.Cycle(r.now)
		seconds := time.Since(start).Seconds()
		for i := range result.Decisions {
			r.carryOut(&result.Decisions[i])
		}
		admitted := 0
		for _, name := range r.order {
			if w, _ := r.engine.Workload(r.name(name)); w.Reservation != nil {
				admitted++
			}
		}
		timings = append(timings, Timing{seconds, admitted})
	}
	return timings, nil
}
