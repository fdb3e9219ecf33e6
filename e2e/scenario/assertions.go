package scenario

import (
	"fmt"
	"slices"
	"strings"

	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
)

// Assertion is a statement about a scenario's log, and the function that checks it.
type Assertion struct {
	Text  string
	check func(*eventlog.History) string // what was observed instead; "" when the assertion holds
}

// Assertions are those of a scenario, in the order of its stages.
type Assertions []Assertion

// Violation is an assertion that does not hold for a log.
type Violation struct {
	Assertion string // its text
	Detail    string // what was observed
}

func (v Violation) String() string { return v.Assertion + ": " + v.Detail }

// Check returns the assertions that do not hold for a complete log.
func (a Assertions) Check(events []eventlog.Event) []Violation {
	history := eventlog.Replay(events)
	var violations []Violation
	for _, assertion := range a {
		if seen := assertion.check(history); seen != "" {
			violations = append(violations, Violation{Assertion: assertion.Text, Detail: seen})
		}
	}
	return violations
}

// modelIsUndisturbed asserts that a job's final model is that of an undisturbed run.
func modelIsUndisturbed(job string) func(*eventlog.History) string {
	return func(h *eventlog.History) string {
		for _, result := range h.Results {
			if result.Job != job {
				continue
			}
			if result.SHA256 == "" || result.SHA256 != result.UndisturbedSHA256 {
				return fmt.Sprintf("SHA-256 %q, undisturbed %q", result.SHA256, result.UndisturbedSHA256)
			}
			return ""
		}
		return "no model was compared"
	}
}

// forecastEvictions are the lines of the plan before a stage that say what the stage evicts, one for each pod or workload.
func forecastEvictions(h *eventlog.History, stage string) []string {
	var evictions []string
	for _, forecast := range h.Forecasts {
		for line := range strings.Lines(forecast.Text) {
			if line = strings.TrimSpace(line); forecast.Before == stage && strings.HasPrefix(line, "evicts ") {
				evictions = append(evictions, line)
			}
		}
	}
	return evictions
}

// plansAreEmptyAfter asserts that terraform plan ran after each of the stages and found no changes.
func plansAreEmptyAfter(stages ...string) func(*eventlog.History) string {
	return func(h *eventlog.History) string {
		var problems []string
		for _, stage := range stages {
			at := slices.IndexFunc(h.Plans, func(p eventlog.Plan) bool { return p.After == stage })
			switch {
			case at < 0:
				problems = append(problems, fmt.Sprintf("no plan was made after %q", stage))
			case len(h.Plans[at].Changes) > 0:
				problems = append(problems, fmt.Sprintf("after %q it would change %v", stage, h.Plans[at].Changes))
			}
		}
		return strings.Join(problems, "; ")
	}
}

func nothingIsLeft(h *eventlog.History) string {
	if h.Leftovers == nil {
		return "nothing was destroyed"
	}
	return strings.Join(h.Leftovers.Objects, ", ")
}
