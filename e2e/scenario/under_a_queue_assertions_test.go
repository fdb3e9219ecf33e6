package scenario

import (
	"strings"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog/eventlogtest"
)

func TestUnderAQueueAssertionsHoldForAGoodLog(t *testing.T) {
	for _, violation := range UnderAQueueAssertions().Check(eventlogtest.UnderAQueue()) {
		t.Error(violation)
	}
}

func TestUnderAQueueAssertionsFailForAnEmptyLog(t *testing.T) {
	if got, want := len(UnderAQueueAssertions().Check(nil)), len(UnderAQueueAssertions()); got != want {
		t.Errorf("%d of %d assertions fail: %v", got, want, UnderAQueueAssertions().Check(nil))
	}
}

// TestUnderAQueueViolationsNameTheFailure changes the good log in one place and expects the violation that follows.
func TestUnderAQueueViolationsNameTheFailure(t *testing.T) {
	each := func(bend func(*eventlog.Event)) func([]eventlog.Event) []eventlog.Event {
		return func(events []eventlog.Event) []eventlog.Event {
			for i := range events {
				bend(&events[i])
			}
			return events
		}
	}
	for name, test := range map[string]struct {
		bend mutation
		want string // part of a violation
	}{
		"a worker above the minimum that belongs to the group": {
			without(func(e eventlog.Event) bool { return e.Workload != nil && e.Workload.Title() == "elastic-worker-2" }),
			"besides the group's there were workloads of [elastic-worker-1 elastic-worker-3]",
		},
		"a minimum worker that is preempted by the smaller urgent job": {
			each(func(e *eventlog.Event) {
				if e.Workload != nil && e.Workload.Title() == "elastic-worker-3" {
					e.Workload.Owners[0].Name = eventlogtest.GroupMinimum.Name
				}
			}),
			"and nothing else: elastic-min-0-spmcs was preempted",
		},
		"a job that starts again when it shrinks": {
			each(func(e *eventlog.Event) {
				if e.Job != nil && e.Job.Status.StepsDone == 76 {
					e.Job.Status.StepsDone = 3
				}
			}),
			"it fell back from step 40 to 3",
		},
		"a worker that returns under its old name": {
			each(func(e *eventlog.Event) {
				if e.Pod != nil && e.Pod.Name == "elastic-worker-4" {
					e.Pod.Name = "elastic-worker-3"
				}
			}),
			"elastic-worker-3 was used again",
		},
		"a worker that stays when master and minimum have ended": {
			without(func(e eventlog.Event) bool { return e.Pod != nil && e.Pod.Name == "elastic-worker-1" && e.Pod.Deleting }),
			"the workers above the minimum end too: elastic-worker-1 did not end",
		},
		"a run in which Kueue preempts every worker": {
			each(func(e *eventlog.Event) {
				if e.Pod != nil && e.Pod.Name == "elastic-worker-1" && e.Pod.Deleting {
					e.Pod.Disruption = eventlog.PreemptionByQueue
				}
			}),
			"did not show that workers end with their master",
		},
		"a group that is another workload when it is admitted again": {
			each(func(e *eventlog.Event) {
				if e.Workload != nil && e.Workload.Name == eventlogtest.GroupWorkload.Name && e.Time.Second() >= 31 {
					e.Workload.UID = "another"
				}
			}),
			"there were 2 workloads of master and minimum",
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
			for _, violation := range UnderAQueueAssertions().Check(test.bend(eventlogtest.UnderAQueue())) {
				seen = append(seen, violation.String())
			}
			if !strings.Contains(strings.Join(seen, "\n"), test.want) {
				t.Errorf("%q is not among %q", test.want, seen)
			}
		})
	}
}
