package scenario

import (
	"strings"
	"testing"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
)

// TestElasticPyTorchViolationsNameTheFailure changes the good log in one place and expects the violation that follows.
func TestElasticPyTorchViolationsNameTheFailure(t *testing.T) {
	forecast := func(replaced, by string) mutation {
		return each(func(e *eventlog.Event) {
			if e.Forecast != nil {
				e.Forecast.Text = strings.ReplaceAll(e.Forecast.Text, replaced, by)
			}
		})
	}
	script := func(job string, change func(*eventlog.ScriptResult)) mutation {
		return each(func(e *eventlog.Event) {
			if e.Script != nil && e.Script.Job == job {
				change(e.Script)
			}
		})
	}
	namesTheFailure(t, "elastic-pytorch", map[string]mutatedLog{
		"a plan that names three of four":                 {forecast("ddp-worker-1", "somebody"), "it names [ddp-worker-2 loop-worker-1 loop-worker-2]"},
		"a plan that says nothing of those that continue": {forecast("job ddp continues", "job ddp ends"), "it does not say: job ddp continues with 1 of 3 workers"},
		"a minimum worker that is preempted": {
			each(func(e *eventlog.Event) {
				if e.Workload != nil && e.Workload.Title() == "loop-worker-2" {
					e.Workload.Owners[0].Name = "loop-min-0-x2v9k"
				}
			}),
			"run until the end: loop-min-0-x2v9k did not run until the end",
		},
		"a worker that has to be killed": {
			mutatePods("ddp-worker-2", func(p *eventlog.Pod) {
				if p.ExitCode != nil {
					p.ExitCode = new(int32(137))
				}
			}),
			"ddp-worker-2 did not exit gracefully",
		},
		"a job that does not grow back": {
			func(events []eventlog.Event) []eventlog.Event {
				for _, e := range events {
					if e.Job != nil && e.Job.Name == DDPJob && e.Time.Sub(events[0].Time) > 20*time.Second {
						e.Job.Status.WorkersRunning = 2
					}
				}
				return events
			},
			"ddp did not run with three workers after the urgent task",
		},
		"a job whose master was replaced": {
			mutateReports(LoopJob, func(s *trainingjob.Status) { s.Generation = 2 }), "loop is Succeeded under master 2",
		},
		"a record that counts twice": {script(LoopJob, func(s *eventlog.ScriptResult) { s.Uses[7]++ }), "record 7 was used 21 times in 20 epochs"},
		"a loop that counts nothing": {script(LoopJob, func(s *eventlog.ScriptResult) { s.Uses = nil }), "it has counted no record"},
		"another loop":               {script(LoopJob, func(s *eventlog.ScriptResult) { s.Weights[0] = 0.001 }), "its weights are [0.001 1]"},
		"a command that goes back":   {script(DDPJob, func(s *eventlog.ScriptResult) { s.Starts[2].Records = 900 }), "start 2 continues at record 900, after one at record 960"},
		"a command that stays small": {script(DDPJob, func(s *eventlog.ScriptResult) { s.Starts = s.Starts[:2] }), "it was started with [3 1] ranks"},
		"a command that loses a step": {
			script(DDPJob, func(s *eventlog.ScriptResult) { s.Weights[1] = 3.1 }), "undisturbed run: its weights are [2 3.1], and [2 3] undisturbed",
		},
	})
}
