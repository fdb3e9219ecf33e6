package forecast

import (
	"fmt"
	"slices"
	"strings"
)

// maxRefusals bounds the number of evictions that a refusal names.
const maxRefusals = 5

// Refusals are the objections of a gate for changes that must not evict anything, one phrase each: that another job's
// pod or workload is or may be evicted, that the job can never run, and that the answer is approximate for a reason
// that is not accepted. Waiting is no objection: it affects no other job.
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

// Unaccepted returns, without repetition, the codes of the reasons that are not accepted and for which the outcome or the
// evictions are uncertain. What leaves open only where and when pods start is no objection.
func (a Answer) Unaccepted(accepted ...ReasonCode) []string {
	var codes []string
	for _, code := range a.codes(gatedClaims) {
		if !slices.Contains(accepted, code) {
			codes = append(codes, string(code))
		}
	}
	return codes
}
