package scenario

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
)

// goodLog is the log of a scenario as it should go, which a test may change.
func goodLog(t *testing.T, scenario string) []eventlog.Event {
	t.Helper()
	events, err := eventlog.ReadFile(filepath.Join("..", "..", "internal", "report", "eventlog", "testdata", scenario+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// mutatedLog is a good log that was changed in one place, and the violation that follows.
type mutatedLog struct {
	mutate mutation
	want   string // part of a violation
}

// namesTheFailure changes a scenario's good log in one place each and expects the violation that follows.
func namesTheFailure(t *testing.T, scenario string, logs map[string]mutatedLog) {
	t.Helper()
	for name, test := range logs {
		t.Run(name, func(t *testing.T) {
			var all []string
			for _, violation := range scenarioNamed(t, scenario).Assertions.Check(test.mutate(goodLog(t, scenario))) {
				all = append(all, violation.String())
			}
			if !strings.Contains(strings.Join(all, "\n"), test.want) {
				t.Errorf("violations:\n%s\nwant one with:\n%s", strings.Join(all, "\n"), test.want)
			}
		})
	}
}

func TestAssertionsHoldForAGoodLogAndFailForAnEmptyOne(t *testing.T) {
	for _, scenario := range Scenarios(ForTests) {
		for _, violation := range scenario.Assertions.Check(goodLog(t, scenario.Name)) {
			t.Errorf("%s: %s", scenario.Name, violation)
		}
		if got, want := len(scenario.Assertions.Check(nil)), len(scenario.Assertions); got != want {
			t.Errorf("%s: %d of %d assertions fail for an empty log", scenario.Name, got, want)
		}
	}
}

// A mutation makes another log of one that a test may change.
type mutation func([]eventlog.Event) []eventlog.Event

// each changes every event.
func each(change func(*eventlog.Event)) mutation {
	return func(events []eventlog.Event) []eventlog.Event {
		for i := range events {
			change(&events[i])
		}
		return events
	}
}

// mutatePods changes every event of the pod with that name.
func mutatePods(name string, change func(*eventlog.Pod)) mutation {
	return each(func(event *eventlog.Event) {
		if event.Pod != nil && event.Pod.Name == name {
			change(event.Pod)
		}
	})
}

// mutateReports changes every status that a job reports.
func mutateReports(job string, change func(*trainingjob.Status)) mutation {
	return each(func(event *eventlog.Event) {
		if event.Job != nil && event.Job.Name == job {
			change(&event.Job.Status)
		}
	})
}

// without leaves events out.
func without(drop func(eventlog.Event) bool) mutation {
	return func(events []eventlog.Event) []eventlog.Event { return slices.DeleteFunc(events, drop) }
}
