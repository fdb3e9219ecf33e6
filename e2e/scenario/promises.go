package scenario

import (
	"fmt"
	"slices"
	"strings"

	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
)

// Promise is what a story says will happen, and how to tell from its log whether it did.
type Promise struct {
	Text  string
	judge func(*eventlog.History) string // what was seen instead, or nothing
}

// Promises are those of a story, in the order of its telling.
type Promises []Promise

// Violation is a promise of the story that a log does not keep.
type Violation struct {
	Rule   string // what was promised
	Detail string // what was seen
}

func (v Violation) String() string { return v.Rule + ": " + v.Detail }

// Check says which promises a complete log does not keep.
func (p Promises) Check(events []eventlog.Event) []Violation {
	history := eventlog.Replay(events)
	var violations []Violation
	for _, promise := range p {
		if seen := promise.judge(history); seen != "" {
			violations = append(violations, Violation{Rule: promise.Text, Detail: seen})
		}
	}
	return violations
}

// modelOf promises that a job's final model is that of an undisturbed run.
func modelOf(job string) func(*eventlog.History) string {
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

// plansAreEmptyAfter promises that terraform plan was asked after each of the stages, and would change nothing.
func plansAreEmptyAfter(stages ...string) func(*eventlog.History) string {
	return func(h *eventlog.History) string {
		var problems []string
		for _, stage := range stages {
			asked := slices.IndexFunc(h.Plans, func(p eventlog.Plan) bool { return p.After == stage })
			switch {
			case asked < 0:
				problems = append(problems, fmt.Sprintf("no plan was made after %q", stage))
			case len(h.Plans[asked].Changes) > 0:
				problems = append(problems, fmt.Sprintf("after %q it would change %v", stage, h.Plans[asked].Changes))
			}
		}
		return strings.Join(problems, "; ")
	}
}

func nothingIsLeft(h *eventlog.History) string {
	if h.Left == nil {
		return "nothing was destroyed"
	}
	return strings.Join(h.Left.Objects, ", ")
}
