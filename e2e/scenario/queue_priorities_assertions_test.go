package scenario

import (
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
)

// TestQueuePrioritiesViolationsNameTheFailure changes the good log in one place and expects the violation that follows.
func TestQueuePrioritiesViolationsNameTheFailure(t *testing.T) {
	workloads := func(owner string, mutate func(*eventlog.Workload)) mutation {
		return each(func(e *eventlog.Event) {
			if e.Workload != nil && e.Workload.Title() == owner {
				mutate(e.Workload)
			}
		})
	}
	namesTheFailure(t, "queue-priorities", map[string]mutatedLog{
		"a forecast without the victim": {
			each(func(event *eventlog.Event) {
				if event.Forecast != nil {
					event.Forecast.Text = "high will wait"
				}
			}),
			"the plan of the high task says that it evicts the low one: it names [], and the low one's workload is ",
		},
		"an eviction for another reason": {
			workloads(LowTask, func(w *eventlog.Workload) {
				if w.Evicted != "" {
					w.Evicted = "ClusterQueueStopped"
				}
			}),
			`for reason Preempted: the low one was evicted for reason "ClusterQueueStopped"`,
		},
		"a high task that does not end": {
			workloads(HighTask, func(w *eventlog.Workload) { w.Finished = false }),
			"until the high one has finished: the high one did not finish",
		},
		"a low task that is recreated instead of requeued": {
			each(func(event *eventlog.Event) {
				if event.Workload != nil && event.Workload.Title() == LowTask && event.Time.Second() >= 18 {
					event.Workload.UID = "another"
				}
			}),
			"admitted again as the same workload and runs, without any user action: task low had 2 workloads",
		},
		"an answer without a reason": {
			each(func(event *eventlog.Event) {
				if event.Queried != nil {
					event.Queried.Workloads[0].Reason = ""
				}
			}),
			`why the low one waits: it reports "" as the reason of the low one`,
		},
		"a plan that would change something while the low task waits": {
			each(func(event *eventlog.Event) {
				if event.Plan != nil && event.Plan.After == StageSubmitHigh {
					event.Plan.Changes = []string{"elastic_task.low [update]"}
				}
			}),
			`after "submit-high" it would change [elastic_task.low [update]]`,
		},
		"an object that destroy leaves": {
			each(func(event *eventlog.Event) {
				if event.Leftovers != nil {
					event.Leftovers.Objects = []string{"workloads/job-low-7f1c2"}
				}
			}),
			"terraform destroy leaves nothing: workloads/job-low-7f1c2",
		},
	})
}
