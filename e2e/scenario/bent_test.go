package scenario

import (
	"slices"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
)

// A bend makes another log of one that a test may change.
type bend func([]eventlog.Event) []eventlog.Event

// podsOf bends every event of the pod with that name.
func podsOf(name string, change func(*eventlog.Pod)) bend {
	return func(events []eventlog.Event) []eventlog.Event {
		for _, event := range events {
			if event.Pod != nil && event.Pod.Name == name {
				change(event.Pod)
			}
		}
		return events
	}
}

// reportsOf bends every status that a job reports.
func reportsOf(job string, change func(*trainingjob.Status)) bend {
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
func without(drop func(eventlog.Event) bool) bend {
	return func(events []eventlog.Event) []eventlog.Event { return slices.DeleteFunc(events, drop) }
}
