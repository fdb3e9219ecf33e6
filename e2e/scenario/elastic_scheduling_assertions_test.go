package scenario

import (
	"slices"
	"strings"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
)

// TestElasticSchedulingViolationsNameTheFailure changes the good log in one place and expects the violation that
// follows.
func TestElasticSchedulingViolationsNameTheFailure(t *testing.T) {
	namesTheFailure(t, "elastic-scheduling", map[string]mutatedLog{
		"a high worker that is never unschedulable": {
			mutatePods("high-prio-job-worker-0", func(p *eventlog.Pod) { p.Unschedulable = "" }),
			"is Pending, unschedulable, before it runs: high-prio-job-worker-0 was never reported unschedulable",
		},
		"a master that is preempted": {
			mutatePods("low-prio-job-x2k9p", func(p *eventlog.Pod) { p.Disruption = eventlog.PreemptionByScheduler }),
			"2 pods were preempted",
		},
		"the older worker as the victim": {
			func(events []eventlog.Event) []eventlog.Event {
				mutatePods("low-prio-job-worker-0", func(p *eventlog.Pod) { p.Name = "elder" })(events)
				mutatePods("low-prio-job-worker-1", func(p *eventlog.Pod) { p.Disruption = "" })(events)
				at := slices.IndexFunc(events, func(e eventlog.Event) bool { return e.Pod != nil && e.Pod.Deleting })
				victim := *events[at].Pod
				victim.Name, victim.UID, victim.Disruption = "low-prio-job-worker-0", "uid-low-prio-job-worker-0", eventlog.PreemptionByScheduler
				return slices.Insert(events, at, eventlog.Event{Time: events[at].Time, Pod: &victim})
			},
			"low-prio-job-worker-1 had started later",
		},
		"a forecast of another victim": {
			each(func(event *eventlog.Event) {
				if event.Forecast != nil {
					event.Forecast.Text = strings.ReplaceAll(event.Forecast.Text, "worker-1", "worker-0")
				}
			}),
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
			each(func(event *eventlog.Event) {
				if event.Plan != nil && event.Plan.After == StageSubmitHigh {
					event.Plan.Changes = []string{"elastic_training_job.low [update]"}
				}
			}),
			`after "submit-high" it would change [elastic_training_job.low [update]]`,
		},
		"a plan that is missing": {
			without(func(e eventlog.Event) bool { return e.Plan != nil && e.Plan.After == StageFinished }),
			`no plan was made after "finished"`,
		},
		"an object that destroy leaves": {
			each(func(event *eventlog.Event) {
				if event.Leftovers != nil {
					event.Leftovers.Objects = []string{"lease/low-prio-job-master"}
				}
			}),
			"terraform destroy leaves nothing: lease/low-prio-job-master",
		},
		"a listing without a worker": {
			each(func(event *eventlog.Event) {
				if event.Listing != nil {
					event.Listing.Pods = event.Listing.Pods[:2]
				}
			}),
			"elasticdl_job_name=low-prio-job lists",
		},
	})
}
