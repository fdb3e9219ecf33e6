package scenario

import (
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
)

// TestChaosViolationsNameTheFailure changes the good log in one place and expects the violation that follows.
func TestChaosViolationsNameTheFailure(t *testing.T) {
	worker := func(id int) string { return trainingjob.WorkerName(ChaosJob, id) }
	faults := func(kind eventlog.FaultKind, change func(*eventlog.Fault)) mutation {
		return each(func(event *eventlog.Event) {
			if event.Fault != nil && event.Fault.Kind == kind {
				change(event.Fault)
			}
		})
	}
	killed := int32(137)
	namesTheFailure(t, "chaos", map[string]mutatedLog{
		"two workers on one node": {
			mutatePods(worker(1), func(p *eventlog.Pod) {
				if p.Node != "" {
					p.Node = "node-1"
				}
			}),
			"workers ran on [node-1 node-1 node-3]",
		},
		"a deleted worker that has to be killed": {
			mutatePods(worker(0), func(p *eventlog.Pod) {
				if p.ExitCode != nil {
					p.ExitCode = &killed
				}
			}),
			"survivor-worker-0 ended with exit code 137",
		},
		"a deleted master that has to be killed": {
			mutatePods("survivor-x7k2q", func(p *eventlog.Pod) {
				if p.ExitCode != nil {
					p.ExitCode = &killed
				}
			}),
			"survivor-x7k2q ended with exit code 137",
		},
		"a replacement that never runs": {
			mutatePods(worker(4), func(p *eventlog.Pod) {
				if p.Phase == "Running" {
					p.Phase = "Pending"
				}
			}),
			"survivor-worker-4 never ran",
		},
		"a worker that is replaced though nothing removed it": {
			faults(eventlog.PodKilled, func(f *eventlog.Fault) { f.Target = worker(2) }),
			"the scenario removed 2",
		},
		"a job that makes no progress while the node is down": {
			mutateReports(ChaosJob, func(s *trainingjob.Status) {
				if s.WorkersRunning == 2 {
					s.StepsDone = 120
				}
			}),
			"it made no progress at step 120",
		},
		"a replacement that runs on another node": {
			mutatePods(worker(5), func(p *eventlog.Pod) {
				if p.Node != "" {
					p.Node = "node-2"
				}
			}),
			"survivor-worker-5 ran on node-2, not on node-3",
		},
		"a replacement that is never unschedulable": {
			mutatePods(worker(5), func(p *eventlog.Pod) { p.Unschedulable = "" }),
			"survivor-worker-5 was never reported unschedulable",
		},
		"a worker that fails after the API server": {
			mutatePods(worker(3), func(p *eventlog.Pod) {
				if p.ExitCode != nil {
					p.Phase, p.ExitCode = "Failed", &killed
				}
			}),
			"survivor-worker-3 was created or ended",
		},
		"a worker that ends with its master": {
			func(events []eventlog.Event) []eventlog.Event {
				for i, event := range events {
					if event.Plan != nil && event.Plan.After == StageLoseMaster {
						gone := eventlog.Pod{Name: worker(3), UID: "uid-" + worker(3), Job: ChaosJob, Role: "worker", Node: "node-1", Phase: "Running", Deleted: true}
						events[i].Plan, events[i].Pod = nil, &gone
					}
				}
				return events
			},
			"survivor-worker-3 ended with the master",
		},
		"a third master": {
			mutatePods(worker(4), func(p *eventlog.Pod) { p.Role = "master" }),
			"there were 3 masters",
		},
		"a master that gives up without the API server": {
			mutateReports(ChaosJob, func(s *trainingjob.Status) {
				if s.StepsDone >= 240 {
					s.Generation = 3
				}
			}),
			"generation 3 took over from 2",
		},
		"a step that is undone": {
			mutateReports(ChaosJob, func(s *trainingjob.Status) {
				if s.StepsDone == 90 && s.Generation == 2 {
					s.StepsDone = 25
				}
			}),
			"it fell back from step 30 to 25 under one master",
		},
		"gradients that are taken twice": {
			mutateReports(ChaosJob, func(s *trainingjob.Status) {
				for i := range s.Workers {
					s.Workers[i].Gradients *= 3
				}
			}),
			"gradients were taken for",
		},
		"a step too few": {
			mutateReports(ChaosJob, func(s *trainingjob.Status) {
				if s.Phase == trainingjob.PhaseSucceeded {
					s.StepsDone--
				}
			}),
			"it did 999 of 1000 steps",
		},
		"another model": {
			func(events []eventlog.Event) []eventlog.Event {
				events[len(events)-1].Result.SHA256 = "beef"
				return events
			},
			`SHA-256 "beef", undisturbed "77aa01c4be19"`,
		},
		"a plan that would replace the job of the lost worker": {
			each(func(event *eventlog.Event) {
				if event.Plan != nil && event.Plan.After == StageLoseNode {
					event.Plan.Changes = []string{"elastic_training_job.survivor [delete create]"}
				}
			}),
			`after "lose-node" it would change`,
		},
	})
}
