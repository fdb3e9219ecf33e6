package scenario

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
)

// ElasticPyTorchAssertions are the assertions of the elastic-pytorch scenario.
func ElasticPyTorchAssertions() Assertions {
	return Assertions{
		{"the plan names the workers above the minimum of both jobs, and says that both continue with one worker", forecastNamesVictims},
		{"the urgent task preempts exactly those, and they exit gracefully", urgentTakesWhatWasForecast},
		{"the masters and minimum workers of both jobs run until the end", minimumStays},
		{"both jobs grow back to three workers", bothGrowBack},
		{"both jobs succeed, under one master each", bothPyTorchJobsSucceed},
		{"the loop has used each record once per epoch, and has the weights of an undisturbed run", loopIsUndisturbed},
		{"the command was started on three workers, and on three again after it had run on one, each time where it had stopped", commandLosesNothing},
		{"and it has the weights of an undisturbed run", commandIsUndisturbed},
		{
			"terraform plan is empty after every apply, after the jobs have grown back, and at the end",
			plansAreEmptyAfter(StageSubmit, StageShrink, StageGrow, StageFinished),
		},
		{"terraform destroy leaves nothing", nothingIsLeft},
	}
}

// ofPyTorchJobs reports whether a pod is of one of the scenario's two jobs.
func ofPyTorchJobs(pod *eventlog.PodHistory) bool { return pod.Job == LoopJob || pod.Job == DDPJob }

// takenForUrgent are the names of the pods that Kueue preempted for the urgent task.
func takenForUrgent(h *eventlog.History) []string {
	from, to := stageSpan(h, StageShrink)
	var taken []string
	for _, pod := range h.Pods {
		if ofPyTorchJobs(pod) && pod.Preempted() && pod.Disrupted.After(from) && pod.Disrupted.Before(to) {
			taken = append(taken, pod.Name)
		}
	}
	slices.Sort(taken)
	return taken
}

var pyTorchWorkerName = regexp.MustCompile(`\b(` + LoopJob + `|` + DDPJob + `)-worker-\d+\b`)

// forecastVictims are the names of the workers in the plan's warning.
func forecastVictims(h *eventlog.History) []string {
	var named []string
	for _, eviction := range forecastEvictions(h, StageShrink) {
		named = append(named, pyTorchWorkerName.FindAllString(eviction, -1)...)
	}
	slices.Sort(named)
	return slices.Compact(named)
}

func forecastNamesVictims(h *eventlog.History) string {
	var want []string
	for _, job := range []string{DDPJob, LoopJob} {
		for id := pyTorchMinimum; id < pyTorchWorkers; id++ {
			want = append(want, trainingjob.WorkerName(job, id))
		}
	}
	if named := forecastVictims(h); !slices.Equal(named, want) {
		return fmt.Sprintf("it names %v", named)
	}
	for _, job := range []string{LoopJob, DDPJob} {
		continues := fmt.Sprintf("job %s continues with %d of %d workers", job, pyTorchMinimum, pyTorchWorkers)
		if !slices.ContainsFunc(forecastEvictions(h, StageShrink), func(line string) bool { return strings.Contains(line, continues) }) {
			return "it does not say: " + continues
		}
	}
	return ""
}

func urgentTakesWhatWasForecast(h *eventlog.History) string {
	taken := takenForUrgent(h)
	if named := forecastVictims(h); len(taken) == 0 || !slices.Equal(taken, named) {
		return fmt.Sprintf("%v were preempted, and %v were forecast", taken, named)
	}
	for _, pod := range h.Pods {
		if slices.Contains(taken, pod.Name) && (pod.ExitCode == nil || *pod.ExitCode != trainingjob.ExitStopped) {
			return pod.Name + " did not exit gracefully"
		}
	}
	return ""
}

func minimumStays(h *eventlog.History) string {
	found := 0
	for _, pod := range h.Pods {
		if !ofPyTorchJobs(pod) || strings.HasPrefix(pod.Name, pod.Job+"-worker-") {
			continue
		}
		found++
		if !pod.Disrupted.IsZero() || pod.Phase != "Succeeded" {
			return pod.Name + " did not run until the end"
		}
	}
	if want := 2 * (1 + pyTorchMinimum); found != want {
		return fmt.Sprintf("there were %d such pods instead of %d", found, want)
	}
	return ""
}

func bothGrowBack(h *eventlog.History) string {
	for _, job := range []string{LoopJob, DDPJob} {
		if regrown(h, job).IsZero() {
			return job + " did not run with three workers after the urgent task"
		}
	}
	return ""
}

// regrown is when a job ran with all workers again after it had run with its minimum.
func regrown(h *eventlog.History, job string) time.Time {
	from, _ := stageSpan(h, StageShrink)
	shrunk := false
	for _, point := range h.Job(job).Points {
		switch {
		case point.Time.Before(from) || point.Status.Phase != trainingjob.PhaseRunning:
		case point.Status.WorkersRunning == pyTorchMinimum:
			shrunk = true
		case shrunk && point.Status.WorkersRunning == pyTorchWorkers:
			return point.Time
		}
	}
	return time.Time{}
}

func bothPyTorchJobsSucceed(h *eventlog.History) string {
	for _, job := range []string{LoopJob, DDPJob} {
		last := h.Job(job).Last().Status
		if last.Phase != trainingjob.PhaseSucceeded || last.Generation != 1 {
			return fmt.Sprintf("%s is %s under master %d: %s", job, last.Phase, last.Generation, last.Message)
		}
	}
	return ""
}

func scriptOf(h *eventlog.History, job string) (script eventlog.ScriptResult, problem string) {
	for _, script := range h.Scripts {
		if script.Job == job {
			return script, ""
		}
	}
	return script, "nothing was compared"
}

func loopIsUndisturbed(h *eventlog.History) string {
	script, problem := scriptOf(h, LoopJob)
	switch {
	case problem != "":
		return problem
	case len(script.Uses) == 0:
		return "it has counted no record"
	}
	if problem := unequalUses(script); problem != "" {
		return problem
	}
	return unequalWeights(script)
}

func commandLosesNothing(h *eventlog.History) string {
	script, problem := scriptOf(h, DDPJob)
	if problem != "" {
		return problem
	}
	if regrown(h, DDPJob).IsZero() {
		return "no report says that it ran on one worker, and on three again"
	}
	// On a busy machine a start on one worker may end before the script has noted it: Python loads torch first.
	var ranks []int
	for i, start := range script.Starts {
		if i > 0 && start.Records < script.Starts[i-1].Records {
			return fmt.Sprintf("start %d continues at record %d, after one at record %d", i, start.Records, script.Starts[i-1].Records)
		}
		ranks = append(ranks, start.Ranks)
	}
	if full := slices.Index(ranks, pyTorchWorkers); full < 0 || full == len(ranks)-1 || ranks[len(ranks)-1] != pyTorchWorkers {
		return fmt.Sprintf("it was started with %v ranks", ranks)
	}
	return ""
}

func commandIsUndisturbed(h *eventlog.History) string {
	script, problem := scriptOf(h, DDPJob)
	if problem != "" {
		return problem
	}
	return unequalWeights(script)
}

// unequalUses reports which record was not used once per epoch; "" if all were, or none are counted.
func unequalUses(s eventlog.ScriptResult) string {
	for record, n := range s.Uses {
		if n != float64(s.Epochs) {
			return fmt.Sprintf("record %d was used %v times in %d epochs", record, n, s.Epochs)
		}
	}
	return ""
}

func unequalWeights(s eventlog.ScriptResult) string {
	if !closeWeights(s.Weights, s.Undisturbed) {
		return fmt.Sprintf("its weights are %v, and %v undisturbed", s.Weights, s.Undisturbed)
	}
	return ""
}

// rounding is by how much weights may differ, relative to the larger one or to 1: sums of float32 in another order.
const rounding = 1e-4

func closeWeights(a, b []float64) bool {
	return len(a) > 0 && slices.EqualFunc(a, b, func(a, b float64) bool {
		return math.Abs(a-b) <= rounding*max(1, math.Abs(a), math.Abs(b))
	})
}
