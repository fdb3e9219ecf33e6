package scenario

import (
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
)

// TestUnderAQueueViolationsNameTheFailure changes the good log in one place and expects the violation that follows.
func TestUnderAQueueViolationsNameTheFailure(t *testing.T) {
	each := func(mutate func(*eventlog.Event)) func([]eventlog.Event) []eventlog.Event {
		return func(events []eventlog.Event) []eventlog.Event {
			for i := range events {
				mutate(&events[i])
			}
			return events
		}
	}
	namesTheFailure(t, "under-a-queue", map[string]mutatedLog{
		"a worker above the minimum that belongs to the group": {
			without(func(e eventlog.Event) bool { return e.Workload != nil && e.Workload.Title() == "elastic-worker-2" }),
			"besides the group's there were workloads of [elastic-worker-1 elastic-worker-3]",
		},
		"a minimum worker that is preempted by the smaller urgent job": {
			each(func(e *eventlog.Event) {
				if e.Workload != nil && e.Workload.Title() == "elastic-worker-3" {
					e.Workload.Owners[0].Name = "elastic-min-0-spmcs"
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
				if e.Workload != nil && e.Workload.Name == "elastic-min-87932864" && e.Time.Second() >= 31 {
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
	})
}
