package forecast

import (
	"fmt"
)

// maxRefusals bounds how many evictions a refusal names.
const maxRefusals = 5

// Refusals are what a gate for changes that must evict nobody has against the job, in a phrase each: that another job's
// pod or workload would, or may, be evicted; that it can never run; and that the answer is approximate. That it waits
// is no reason: it harms nobody.
func (a Answer) Refusals() []string {
	var reasons []string
	evicts := 0
	for _, e := range a.Evicts {
		if e.Own {
			continue
		}
		if evicts++; evicts > maxRefusals {
			continue
		}
		verb := "evicts"
		if !e.Certain {
			verb = "may evict"
		}
		what := e.what()
		if e.Workload {
			what = "workload " + what
		}
		if e.Owner != "" {
			what += " of " + e.Owner
		}
		reasons = append(reasons, verb+" "+what)
	}
	if evicts > maxRefusals {
		reasons = append(reasons, fmt.Sprintf("evicts %d more", evicts-maxRefusals))
	}
	if a.Outcome == Never {
		reasons = append(reasons, "it can never run")
	}
	if len(a.Approximate) > 0 {
		reasons = append(reasons, "the forecast is approximate")
	}
	return reasons
}
