package inprocess

import (
	"time"

	"sigs.k8s.io/kueue/pkg/workload"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/conformance"
)

// Measure submits all workloads of a scenario and measures scheduling cycles, at most n, without writing conditions and
// admissions to the API. conformance.Cycles does the same with the engine.
func Measure(s *conformance.Scenario, n int) ([]conformance.Timing, error) {
	defer enter(s.PriorityBoost)()
	r, err := newRun(s, Options{})
	if err != nil {
		return nil, err
	}
	for i := range s.Steps {
		r.clock.Step(betweenSubmits)
		if err := r.do(&s.Steps[i]); err != nil {
			return nil, err
		}
	}
	clear(r.touched)
	var later inTheEnd
	admitBy(r.scheduler, &later)
	var all []conformance.Timing
	for range n {
		if !r.hasHeads() {
			break
		}
		r.measuring = true
		start := time.Now()
		cycle(r.scheduler, r.ctx)
		seconds := time.Since(start).Seconds()
		r.measuring = false
		for _, write := range later {
			write()
		}
		later = nil
		if err := r.deliver(); err != nil {
			return nil, err
		}
		admitted := 0
		for _, wl := range r.workloads {
			if workload.HasQuotaReservation(wl) {
				admitted++
			}
		}
		all = append(all, conformance.Timing{Seconds: seconds, Admitted: admitted})
	}
	return all, nil
}
