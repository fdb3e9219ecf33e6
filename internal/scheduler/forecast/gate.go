package forecast

import (
	"fmt"
	"slices"
	"strings"
)

// maxRefusals bounds how many evictions a refusal names.
const maxRefusals = 5

// Refusals are what a gate for changes that must evict nobody has against the job, in a phrase each: that another job's
// pod or workload would, or may, be evicted; that it can never run; and that the answer is approximate, for a reason
// that is not accepted. That it waits is no reason: it harms nobody.
func (a Answer) Refusals(accepted ...ReasonCode) []string {
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
	if codes := a.Unaccepted(accepted...); len(codes) > 0 {
		reasons = append(reasons, "the forecast is approximate ("+strings.Join(codes, ", ")+")")
	}
	return reasons
}

// Unaccepted are the codes of why the answer is approximate, each once, but those that are accepted.
func (a Answer) Unaccepted(accepted ...ReasonCode) []string {
	var codes []string
	for _, reason := range a.Approximate {
		if code := string(reason.Code); !slices.Contains(accepted, reason.Code) && !slices.Contains(codes, code) {
			codes = append(codes, code)
		}
	}
	return codes
}
