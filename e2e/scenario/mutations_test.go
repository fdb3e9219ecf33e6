package scenario

import (
	"slices"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
)

// A bend makes another log of one that a test may change.
type mutation func([]eventlog.Event) []eventlog.Event

// mutatePods changes every event of the pod with that name.
func mutatePods(name string, change func(*eventlog.Pod)) mutation {
	return func(events []eventlog.Event) []eventlog.Event {
		for _, event := range events {
			if event.Pod != nil && event.Pod.Name == name {
				change(event.Pod)
			}
		}
		return events
	}
}

// mutateReports changes every status that a job reports.
func mutateReports(job string, change func(*trainingjob.Status)) mutation {
	return func(events []eventlog.Event) []eventlog.Event {
		for _, event := range events {
			if event.Job != nil && event.Job.Name == job {
				change(&event.Job.Status)
			}
		}
		return events
	}
}

// without leaves events out.
func without(drop func(eventlog.Event) bool) mutation {
	return func(events []eventlog.Event) []eventlog.Event { return slices.DeleteFunc(events, drop) }
}
