package scenario

import (
	"strings"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog/eventlogtest"
)

func TestQueuePrioritiesAssertionsHoldForAGoodLog(t *testing.T) {
	for _, violation := range QueuePrioritiesAssertions().Check(eventlogtest.QueuePriorities()) {
		t.Error(violation)
	}
}

func TestQueuePrioritiesAssertionsFailForAnEmptyLog(t *testing.T) {
	if got, want := len(QueuePrioritiesAssertions().Check(nil)), len(QueuePrioritiesAssertions()); got != want {
		t.Errorf("%d of %d assertions fail", got, want)
	}
}

// TestQueuePrioritiesViolationsNameTheFailure changes the good log in one place and expects the violation that follows.
func TestQueuePrioritiesViolationsNameTheFailure(t *testing.T) {
	workloads := func(owner string, bend func(*eventlog.Workload)) func([]eventlog.Event) {
		return func(events []eventlog.Event) {
			for _, event := range events {
				if event.Workload != nil && event.Workload.Title() == owner {
					bend(event.Workload)
				}
			}
		}
	}
	for name, test := range map[string]struct {
		bend func([]eventlog.Event)
		want string // part of a violation
	}{
		"a forecast without the victim": {
			func(events []eventlog.Event) {
				for _, event := range events {
					if event.Forecast != nil {
						event.Forecast.Text = "high will wait"
					}
				}
			},
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
			func(events []eventlog.Event) {
				for _, event := range events {
					if event.Workload != nil && event.Workload.Title() == LowTask && event.Time.Second() >= 18 {
						event.Workload.UID = "another"
					}
				}
			},
			"admitted again as the same workload and runs, without any user action: task low had 2 workloads",
		},
		"an answer without a reason": {
			func(events []eventlog.Event) {
				for _, event := range events {
					if event.Queried != nil {
						event.Queried.Workloads[0].Reason = ""
					}
				}
			},
			`why the low one waits: it reports "" as the reason of the low one`,
		},
		"a plan that would change something while the low task waits": {
			func(events []eventlog.Event) {
				for _, event := range events {
					if event.Plan != nil && event.Plan.After == StageSubmitHigh {
						event.Plan.Changes = []string{"elastic_task.low [update]"}
					}
				}
			},
			`after "submit-high" it would change [elastic_task.low [update]]`,
		},
		"an object that destroy leaves": {
			func(events []eventlog.Event) {
				for _, event := range events {
					if event.Leftovers != nil {
						event.Leftovers.Objects = []string{"workloads/job-low-7f1c2"}
					}
				}
			},
			"terraform destroy leaves nothing: workloads/job-low-7f1c2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			events := eventlogtest.QueuePriorities()
			test.bend(events)
			var all []string
			for _, violation := range QueuePrioritiesAssertions().Check(events) {
				all = append(all, violation.String())
			}
			if !strings.Contains(strings.Join(all, "\n"), test.want) {
				t.Errorf("violations:\n%s\nwant one with %q", strings.Join(all, "\n"), test.want)
			}
		})
	}
}
