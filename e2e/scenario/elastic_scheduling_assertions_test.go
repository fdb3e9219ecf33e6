package scenario

import (
	"slices"
	"strings"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog/eventlogtest"
)

func TestElasticSchedulingAssertionsHoldForAGoodLog(t *testing.T) {
	for _, violation := range ElasticSchedulingAssertions().Check(eventlogtest.ElasticScheduling()) {
		t.Error(violation)
	}
}

func TestElasticSchedulingAssertionsFailForAnEmptyLog(t *testing.T) {
	if got, want := len(ElasticSchedulingAssertions().Check(nil)), len(ElasticSchedulingAssertions()); got != want {
		t.Errorf("%d of %d assertions fail", got, want)
	}
}

// TestElasticSchedulingViolationsNameTheFailure changes the good log in one place and expects the violation that
// follows.
func TestElasticSchedulingViolationsNameTheFailure(t *testing.T) {
	for name, test := range map[string]struct {
		bend mutation
		want string // part of a violation
	}{
		"a high worker that is never unschedulable": {
			mutatePods("high-prio-job-worker-0", func(p *eventlog.Pod) { p.Unschedulable = "" }),
			"is Pending, unschedulable, before it runs: high-prio-job-worker-0 was never reported unschedulable",
		},
		"a master that is preempted": {
			mutatePods(eventlogtest.LowMaster.Name, func(p *eventlog.Pod) { p.Disruption = eventlog.PreemptionByScheduler }),
			"2 pods were preempted",
		},
		"the older worker as the victim": {
			func(events []eventlog.Event) []eventlog.Event {
				mutatePods("low-prio-job-worker-0", func(p *eventlog.Pod) { p.Name = "elder" })(events)
				mutatePods("low-prio-job-worker-1", func(p *eventlog.Pod) { p.Disruption = "" })(events)
				b := eventlogtest.New()
				victim := eventlogtest.LowWorker0
				victim.Phase, victim.Disruption = "Running", eventlog.PreemptionByScheduler
				b.Pod(18.54, victim)
				at := slices.IndexFunc(events, func(e eventlog.Event) bool { return e.Time.After(b.Events[0].Time) })
				return slices.Insert(events, at, b.Events...)
			},
			"low-prio-job-worker-1 had started later",
		},
		"a forecast of another victim": {
			func(events []eventlog.Event) []eventlog.Event {
				for _, event := range events {
					if event.Forecast != nil {
						event.Forecast.Text = strings.ReplaceAll(event.Forecast.Text, "worker-1", "worker-0")
					}
				}
				return events
			},
			`without "/low-prio-job-worker-1 "`,
		},
		"a replacement that never comes": {
			mutatePods("low-prio-job-worker-2", func(p *eventlog.Pod) { p.Job = "another" }),
			"no worker replaced low-prio-job-worker-1",
		},
		"a replacement that contributes no gradients": {
			mutateReports(LowJob, func(s *trainingjob.Status) {
				for i := range s.Workers {
					if s.Workers[i].Pod == "low-prio-job-worker-2" {
						s.Workers[i].Gradients = 0
					}
				}
			}),
			"no report before the last step counts a gradient of low-prio-job-worker-2; the job ended 14.5s after it ran",
		},
		"a job that makes no progress with one worker": {
			mutateReports(LowJob, func(s *trainingjob.Status) {
				if s.WorkersPending == 1 {
					s.StepsDone = 200
				}
			}),
			"no step was done between the preemption and the replacement (step 200)",
		},
		"a job that fails": {
			mutateReports(HighJob, func(s *trainingjob.Status) {
				if s.Phase == trainingjob.PhaseSucceeded {
					s.Phase, s.Message = trainingjob.PhaseFailed, "no data"
				}
			}),
			`high-prio-job is "Failed" no data`,
		},
		"another model": {
			func(events []eventlog.Event) []eventlog.Event {
				events[len(events)-1].Result.SHA256 = "beef"
				return events
			},
			`SHA-256 "beef", undisturbed "5f0c2e9d1b7a"`,
		},
		"a plan that is not empty while the job is shrunk": {
			func(events []eventlog.Event) []eventlog.Event {
				for _, event := range events {
					if event.Plan != nil && event.Plan.After == StageSubmitHigh {
						event.Plan.Changes = []string{"elastic_training_job.low [update]"}
					}
				}
				return events
			},
			`after "submit-high" it would change [elastic_training_job.low [update]]`,
		},
		"a plan that is missing": {
			without(func(e eventlog.Event) bool { return e.Plan != nil && e.Plan.After == StageFinished }),
			`no plan was made after "finished"`,
		},
		"an object that destroy leaves": {
			func(events []eventlog.Event) []eventlog.Event {
				for _, event := range events {
					if event.Leftovers != nil {
						event.Leftovers.Objects = []string{"lease/low-prio-job-master"}
					}
				}
				return events
			},
			"terraform destroy leaves nothing: lease/low-prio-job-master",
		},
		"a listing without a worker": {
			func(events []eventlog.Event) []eventlog.Event {
				for _, event := range events {
					if event.Listing != nil {
						event.Listing.Pods = event.Listing.Pods[:2]
					}
				}
				return events
			},
			"elasticdl_job_name=low-prio-job lists",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var all []string
			for _, violation := range ElasticSchedulingAssertions().Check(test.bend(eventlogtest.ElasticScheduling())) {
				all = append(all, violation.String())
			}
			if !strings.Contains(strings.Join(all, "\n"), test.want) {
				t.Errorf("violations:\n%s\nwant one with:\n%s", strings.Join(all, "\n"), test.want)
			}
		})
	}
}
