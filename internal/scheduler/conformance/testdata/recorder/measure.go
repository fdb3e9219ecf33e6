package main

import (
	"encoding/json"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"sigs.k8s.io/kueue/pkg/workload"
)

// timing is what one cycle took, and how many workloads hold quota after it.
type timing struct {
	Seconds  float64 `json:"seconds"`
	Admitted int     `json:"admitted"`
}

// measure submits all workloads of a scenario and measures scheduling cycles, without writing conditions and admissions to
// the API.
func measure(text []byte, cycles int) ([]byte, error) {
	var s scenario
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, err
	}
	r, err := newRun(&s, patience)
	if err != nil {
		return nil, err
	}
	r.plain = true
	for i := range s.Steps {
		r.clock.Step(betweenSubmits)
		if err := r.do(&s.Steps[i]); err != nil {
			return nil, err
		}
	}
	clear(r.touched)
	var later []func()
	r.scheduler.AdmitBy(func(f func()) { later = append(later, f) })
	var all []timing
	for range cycles {
		if !r.manager.HasHeads() {
			break
		}
		r.measuring = true
		start := time.Now()
		r.scheduler.Cycle(ctrl.LoggerInto(r.ctx, ctrl.Log))
		seconds := time.Since(start).Seconds()
		r.measuring = false
		for _, f := range later {
			f()
		}
		later = nil
		if err := r.deliver(); err != nil {
			return nil, err
		}
		n := 0
		for _, wl := range r.workloads {
			if workload.HasQuotaReservation(wl) {
				n++
			}
		}
		all = append(all, timing{seconds, n})
	}
	return json.Marshal(map[string]any{"name": s.Name, "cycles": all})
}
