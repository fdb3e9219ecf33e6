package scenario

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
)

// TestOutlinesOfTheHandmadeLogsAreThoseInTestdata compares them with the files that every backend's run is compared
// with, so that the assertions are tested on logs like the real ones.
func TestOutlinesOfTheHandmadeLogsAreThoseInTestdata(t *testing.T) {
	for _, scenario := range Scenarios(ForTests) {
		t.Run(scenario.Name, func(t *testing.T) {
			outline := scenario.Outline(goodLog(t, scenario.Name))
			golden := outlineFile(filepath.Join("..", ".."), scenario)
			if *rewrite {
				if err := os.WriteFile(golden, []byte(outline), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := differences(string(want), outline); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestOutlineChangesWithTheResult changes the handmade logs in one place each.
func TestOutlineChangesWithTheResult(t *testing.T) {
	// later moves what a function picks to the end of the log.
	later := func(pick func(eventlog.Event) bool) func([]eventlog.Event) []eventlog.Event {
		return func(events []eventlog.Event) []eventlog.Event {
			var moved []eventlog.Event
			for _, event := range events {
				if pick(event) {
					event.Time = events[len(events)-1].Time.Add(time.Second)
					moved = append(moved, event)
				}
			}
			return append(slices.DeleteFunc(events, pick), moved...)
		}
	}
	killed := int32(137)
	for name, test := range map[string]struct {
		scenario string
		mutate   mutation
	}{
		"the scheduler preempts nobody": {
			"elastic-scheduling", mutatePods("low-prio-job-worker-1", func(p *eventlog.Pod) { p.Disruption = "" }),
		},
		"the scheduler preempts the master too": {
			"elastic-scheduling", mutatePods("low-prio-job-x2k9p", func(p *eventlog.Pod) { p.Disruption = eventlog.PreemptionByScheduler }),
		},
		"the preempted worker has to be killed": {
			"elastic-scheduling", mutatePods("low-prio-job-worker-1", func(p *eventlog.Pod) {
				if p.ExitCode != nil {
					p.ExitCode = &killed
				}
			}),
		},
		"the high worker finds room at once": {
			"elastic-scheduling", mutatePods("high-prio-job-worker-0", func(p *eventlog.Pod) { p.Unschedulable = "" }),
		},
		"the low job does not grow back": {
			"elastic-scheduling", mutatePods("low-prio-job-worker-2", func(p *eventlog.Pod) { p.Phase = "Pending" }),
		},
		"the replacement does not have to wait": {
			"elastic-scheduling", mutatePods("low-prio-job-worker-2", func(p *eventlog.Pod) { p.Unschedulable = "" }),
		},
		"the high job ends after the low one": {
			"elastic-scheduling", later(func(e eventlog.Event) bool {
				return e.Pod != nil && e.Pod.Name == "high-prio-job-worker-0" && e.Pod.Phase == "Succeeded"
			}),
		},
		"the status counts two preemptions": {
			"elastic-scheduling", mutateReports(LowJob, func(s *trainingjob.Status) { s.Preemptions *= 2 }),
		},
		"a job fails": {
			"elastic-scheduling", mutateReports(HighJob, func(s *trainingjob.Status) {
				if s.Phase == trainingjob.PhaseSucceeded {
					s.Phase = trainingjob.PhaseFailed
				}
			}),
		},
		"a job ends too early": {
			"elastic-scheduling", mutateReports(LowJob, func(s *trainingjob.Status) {
				if s.Phase == trainingjob.PhaseSucceeded {
					s.StepsDone--
				}
			}),
		},
		"another master takes over": {
			"elastic-scheduling", mutateReports(LowJob, func(s *trainingjob.Status) { s.Generation++ }),
		},
		"the model is another one": {
			"elastic-scheduling", func(events []eventlog.Event) []eventlog.Event {
				events[len(events)-1].Result.SHA256 = "beef"
				return events
			},
		},
		"a plan is not empty": {
			"elastic-scheduling", each(func(event *eventlog.Event) {
				if event.Plan != nil {
					event.Plan.Changes = []string{"elastic_training_job.low [update]"}
				}
			}),
		},
		"a plan was not asked for": {"elastic-scheduling", without(func(e eventlog.Event) bool { return e.Plan != nil && e.Plan.After == StageGrowLow })},
		"something is left": {
			"elastic-scheduling", each(func(event *eventlog.Event) {
				if event.Leftovers != nil {
					event.Leftovers.Objects = []string{"leases/low-prio-job-master"}
				}
			}),
		},
		"the low task does not come back": {
			"queue-priorities", without(func(e eventlog.Event) bool { return e.Pod != nil && e.Pod.Name == "low-0-9q7zd" }),
		},
		"the high task is admitted beside the low one": {
			"queue-priorities", without(func(e eventlog.Event) bool { return e.Workload != nil && e.Workload.Evicted != "" }),
		},
		"the high task's command fails": {
			"queue-priorities", mutatePods("high-0-m2v8c", func(p *eventlog.Pod) {
				if p.ExitCode != nil {
					p.ExitCode, p.Phase = &killed, "Failed"
				}
			}),
		},
		"the queue takes the group too when two workers would do": {
			"under-a-queue", func(events []eventlog.Event) []eventlog.Event {
				for _, event := range events {
					if event.Workload != nil && event.Workload.Name == "elastic-min-87932864" && event.Workload.Evicted != "" {
						event.Time = events[0].Time.Add(4 * time.Second)
						again := event
						gone := *event.Workload
						again.Workload = &gone
						return slices.Insert(events, 20, again)
					}
				}
				return events
			},
		},
		"a worker stays without its master": {
			"under-a-queue", without(func(e eventlog.Event) bool {
				return e.Pod != nil && e.Pod.Name == "elastic-worker-1" && e.Pod.Phase == "Failed"
			}),
		},
		"the group is not admitted again": {
			"under-a-queue", func(events []eventlog.Event) []eventlog.Event {
				for _, event := range events {
					if event.Workload != nil && event.Workload.Name == "elastic-min-87932864" && event.Time.Sub(events[0].Time) > 30*time.Second {
						event.Workload.Admitted = false
					}
				}
				return events
			},
		},
		"a worker dies with the master": {
			"chaos", func(events []eventlog.Event) []eventlog.Event {
				return mutatePods("survivor-worker-3", func(p *eventlog.Pod) {
					if p.ExitCode != nil {
						p.ExitCode, p.Phase = &killed, "Failed"
					}
				})(events)
			},
		},
		"the lost worker's replacement finds room elsewhere": {
			"chaos", mutatePods("survivor-worker-5", func(p *eventlog.Pod) { p.Unschedulable = "" }),
		},
		"a worker is lost that the scenario did not take": {
			"chaos", mutatePods("survivor-worker-4", func(p *eventlog.Pod) {
				if p.Phase == "Succeeded" {
					p.Phase, p.ExitCode = "Failed", &killed
				}
			}),
		},
		"a record counts twice": {
			"elastic-pytorch", each(func(event *eventlog.Event) {
				if event.Script != nil && event.Script.Job == LoopJob {
					event.Script.Uses[3]++
				}
			}),
		},
		"a command loses a step": {
			"elastic-pytorch", each(func(event *eventlog.Event) {
				if event.Script != nil && event.Script.Job == DDPJob {
					event.Script.Weights[0]++
				}
			}),
		},
		"the API server is left alone": {"chaos", without(func(e eventlog.Event) bool { return e.Fault != nil && e.Fault.Kind == eventlog.APIServerKilled })},
		"the master stays": {
			"chaos", without(func(e eventlog.Event) bool { return e.Pod != nil && e.Pod.Name == "survivor-p9d4m" }),
		},
	} {
		t.Run(name, func(t *testing.T) {
			scenario := scenarioNamed(t, test.scenario)
			if scenario.Outline(test.mutate(goodLog(t, test.scenario))) == scenario.Outline(goodLog(t, test.scenario)) {
				t.Error("its outline is the same")
			}
		})
	}
}

// TestOutlineIgnoresTimesNodesAndSampling changes times, nodes and the number of observations of the same state.
func TestOutlineIgnoresTimesNodesAndSampling(t *testing.T) {
	for name, mutate := range map[string]func(start time.Time, number int, event eventlog.Event) []eventlog.Event{
		"everything takes three times as long": func(start time.Time, _ int, event eventlog.Event) []eventlog.Event {
			event.Time = start.Add(3 * event.Time.Sub(start))
			return []eventlog.Event{event}
		},
		"the nodes have other names": func(_ time.Time, _ int, event eventlog.Event) []eventlog.Event {
			if event.Pod != nil && event.Pod.Node != "" {
				event.Pod.Node = "kind-" + event.Pod.Node
			}
			return []eventlog.Event{event}
		},
		"the models are others, and equal again": func(_ time.Time, _ int, event eventlog.Event) []eventlog.Event {
			if event.Result != nil {
				event.Result.SHA256, event.Result.UndisturbedSHA256 = "77", "77"
			}
			return []eventlog.Event{event}
		},
		"every other report of progress is missing": func(_ time.Time, number int, event eventlog.Event) []eventlog.Event {
			if event.Job != nil && event.Job.Status.StepsDone > 50 && event.Job.Status.Phase == trainingjob.PhaseRunning && number%2 == 1 {
				return nil
			}
			return []eventlog.Event{event}
		},
		"every running job waits once for workers that stopped responding": func(_ time.Time, _ int, event eventlog.Event) []eventlog.Event {
			if event.Job == nil || event.Job.Status.Phase != trainingjob.PhaseRunning {
				return []eventlog.Event{event}
			}
			waits := *event.Job
			waits.Status.Phase, waits.Status.WorkersRunning = trainingjob.PhaseWaiting, 0
			waits.Status.Workers = []trainingjob.WorkerStatus{{State: "starting", Reason: "it stopped responding at step 0, and has sent no hello since"}}
			before := event
			before.Job = &waits
			return []eventlog.Event{before, event}
		},
		"a workload loses its node once, and is admitted again": func(_ time.Time, _ int, event eventlog.Event) []eventlog.Event {
			if event.Workload == nil || !event.Workload.Admitted || event.Workload.Finished || event.Workload.Name != "job-high-0b9e4" {
				return []eventlog.Event{event}
			}
			gone, evicted := *event.Workload, event
			gone.Admitted, gone.Evicted = false, kueue.WorkloadEvictedDueToNodeFailures
			evicted.Workload = &gone
			return []eventlog.Event{event, evicted, event}
		},
		"every state is seen twice": func(_ time.Time, _ int, event eventlog.Event) []eventlog.Event {
			if event.Pod != nil || event.Workload != nil || event.Job != nil {
				return []eventlog.Event{event, event}
			}
			return []eventlog.Event{event}
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, scenario := range Scenarios(ForTests) {
				want := scenario.Outline(goodLog(t, scenario.Name))
				events := goodLog(t, scenario.Name)
				start := events[0].Time
				var mutated []eventlog.Event
				for i, event := range events {
					mutated = append(mutated, mutate(start, i, event)...)
				}
				if diff := differences(want, scenario.Outline(mutated)); diff != "" {
					t.Errorf("%s:\n%s", scenario.Name, diff)
				}
			}
		})
	}
}

// TestBackendsHaveTheSameOutline compares the logs of the last runs on the embedded cluster and on kind with each
// other, if both exist.
func TestBackendsHaveTheSameOutline(t *testing.T) {
	for _, scenario := range Scenarios(ForTests) {
		t.Run(scenario.Name, func(t *testing.T) {
			embedded, kind := "test-"+scenario.Name+"-auto", filepath.Join("kind", scenario.Name)
			outlines := map[string]string{}
			for _, backend := range []string{embedded, kind} {
				path := filepath.Join(OutDir(filepath.Join("..", ".."), backend), "events.jsonl")
				events, err := eventlog.ReadFile(path)
				if errors.Is(err, os.ErrNotExist) {
					t.Skipf("this scenario has not run on both backends yet: there is no %s", path)
				}
				if err != nil {
					t.Fatal(err)
				}
				if eventlog.Replay(events).Leftovers == nil {
					t.Skipf("this run did not end: %s", path)
				}
				outlines[backend] = scenario.Outline(events)
			}
			if diff := differences(outlines[embedded], outlines[kind]); diff != "" {
				t.Errorf("the outlines of the embedded cluster (-) and of kind (+) differ:\n%s", diff)
			}
		})
	}
}

func scenarioNamed(t *testing.T, name string) Scenario {
	t.Helper()
	for _, scenario := range Scenarios(ForTests) {
		if scenario.Name == name {
			return scenario
		}
	}
	t.Fatalf("there is no scenario %s", name)
	return Scenario{}
}
