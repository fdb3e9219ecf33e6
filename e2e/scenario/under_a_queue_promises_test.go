package scenario

import (
	"strings"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog/eventlogtest"
)

func TestAStoryUnderAQueueThatGoesWellKeepsEveryPromise(t *testing.T) {
	for _, violation := range UnderAQueuePromises().Check(eventlogtest.UnderAQueue()) {
		t.Error(violation)
	}
}

func TestAnEmptyLogBreaksEveryPromiseOfTheStoryUnderAQueue(t *testing.T) {
	if got, want := len(UnderAQueuePromises().Check(nil)), len(UnderAQueuePromises()); got != want {
		t.Errorf("%d of %d promises are broken: %v", got, want, UnderAQueuePromises().Check(nil))
	}
}

// TestWhatGoesWrongUnderTheQueueIsNamed bends the good story in one place and expects the promise that this breaks.
func TestWhatGoesWrongUnderTheQueueIsNamed(t *testing.T) {
	each := func(bend func(*eventlog.Event)) func([]eventlog.Event) []eventlog.Event {
		return func(events []eventlog.Event) []eventlog.Event {
			for i := range events {
				bend(&events[i])
			}
			return events
		}
	}
	for name, test := range map[string]struct {
		bend bend
		want string // part of a violation
	}{
		"a worker above the floor that belongs to the group": {
			without(func(e eventlog.Event) bool { return e.Workload != nil && e.Workload.Title() == "elastic-worker-2" }),
			"besides the group's there were workloads of [elastic-worker-1 elastic-worker-3]",
		},
		"a floor that is taken for the smaller urgent job": {
			each(func(e *eventlog.Event) {
				if e.Workload != nil && e.Workload.Title() == "elastic-worker-3" {
					e.Workload.Owners[0].Name = eventlogtest.GroupFloor.Name
				}
			}),
			"and nothing else: elastic-floor-0-spmcs was taken",
		},
		"a job that starts again when it shrinks": {
			each(func(e *eventlog.Event) {
				if e.Job != nil && e.Job.Status.StepsDone == 76 {
					e.Job.Status.StepsDone = 3
				}
			}),
			"it fell back from step 40 to 3",
		},
		"a worker that comes back under its old name": {
			each(func(e *eventlog.Event) {
				if e.Pod != nil && e.Pod.Name == "elastic-worker-4" {
					e.Pod.Name = "elastic-worker-3"
				}
			}),
			"elastic-worker-3 was used again",
		},
		"a worker that stays when master and floor are gone": {
			without(func(e eventlog.Event) bool { return e.Pod != nil && e.Pod.Name == "elastic-worker-1" && e.Pod.Deleting }),
			"the workers above them leave too: elastic-worker-1 stayed",
		},
		"a story in which the queue takes every worker": {
			each(func(e *eventlog.Event) {
				if e.Pod != nil && e.Pod.Name == "elastic-worker-1" && e.Pod.Deleting {
					e.Pod.Disruption = eventlog.PreemptionByQueue
				}
			}),
			"did not come to what it is about",
		},
		"a group that is another one when it comes again": {
			each(func(e *eventlog.Event) {
				if e.Workload != nil && e.Workload.Name == eventlogtest.GroupWorkload.Name && e.Time.Second() >= 31 {
					e.Workload.UID = "another"
				}
			}),
			"there were 2 workloads of master and floor",
		},
		"a worker that runs while the larger job does": {
			each(func(e *eventlog.Event) {
				if e.Job != nil && e.Job.Name == LargeJob {
					e.Time = e.Time.Add(3e9)
				}
			}),
			"ran",
		},
		"another model": {
			each(func(e *eventlog.Event) {
				if e.Result != nil {
					e.Result.SHA256 = "0"
				}
			}),
			"bit for bit",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var seen []string
			for _, violation := range UnderAQueuePromises().Check(test.bend(eventlogtest.UnderAQueue())) {
				seen = append(seen, violation.String())
			}
			if !strings.Contains(strings.Join(seen, "\n"), test.want) {
				t.Errorf("%q is not among %q", test.want, seen)
			}
		})
	}
}
