package scenario

import (
	"fmt"
	"strings"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
)

// Names of the scenario's jobs.
const (
	LowJob  = "low-prio-job"
	HighJob = "high-prio-job"
)

// minStartGap is the least time between the starts of the low job's workers: the scheduler prefers to preempt the pod
// that started last, and start times have a resolution of one second.
const minStartGap = 2 * time.Second

// ElasticSchedulingAssertions are the assertions of the elastic-scheduling scenario.
func ElasticSchedulingAssertions() Assertions {
	return Assertions{
		{"the low job's two workers start at least 2 s apart, so that the preemption victim is determined", workersStartApart},
		{"the tutorial's label selector lists the low job's master and both workers", listingIsComplete},
		{"the plan of the high job names the worker that it preempts, and says that the low job continues with the other", forecastNamesTheWorker},
		{"the high job's worker is Pending, unschedulable, before it runs", highWorkerWaits},
		{"exactly one worker of the low job is preempted, the one that started last, and no master", oneWorkerIsPreempted},
		{"the low job continues with one worker", lowJobContinues},
		{"the low job's replacement worker is Pending while the high job's worker runs", replacementWaits},
		{"the replacement worker runs again and contributes gradients before the low job ends", replacementContributes},
		{"both jobs reach Succeeded with all their steps done", bothSucceed},
		{"the low job's model is that of an undisturbed run", modelIsUndisturbed(LowJob)},
		{"terraform plan is empty after every apply, also while the low job runs with one worker", plansAreEmptyAfter(StageSubmitLow, StageGrowLow, StageSubmitHigh, StageFinished)},
		{"terraform destroy leaves nothing", nothingIsLeft},
	}
}

func workersStartApart(h *eventlog.History) string {
	workers := h.PodsOf(LowJob, "worker")
	if len(workers) < 2 {
		return fmt.Sprintf("%d workers were observed", len(workers))
	}
	first, second := workers[0], workers[1]
	if first.Running.IsZero() || second.Running.IsZero() {
		return fmt.Sprintf("%s and %s did not both run", first.Name, second.Name)
	}
	if gap := second.Running.Sub(first.Running); gap < minStartGap {
		return fmt.Sprintf("%s started %s after %s", second.Name, gap.Round(time.Millisecond), first.Name)
	}
	return ""
}

func listingIsComplete(h *eventlog.History) string {
	selector := LowSelector
	for _, listing := range h.Listings {
		if listing.Selector != selector {
			continue
		}
		want := map[string]int{"master": 1, "worker": 2}
		for _, name := range listing.Pods {
			for _, pod := range h.Pods {
				if pod.Name == name && pod.Job == LowJob {
					want[pod.Role]--
				}
			}
		}
		if want["master"] != 0 || want["worker"] != 0 {
			return fmt.Sprintf("%s lists %v", selector, listing.Pods)
		}
		return ""
	}
	return "no listing of " + selector
}

func forecastNamesTheWorker(h *eventlog.History) string {
	evictions := forecastEvictions(h, StageSubmitHigh)
	victims := preempted(h)
	if len(evictions) != 1 || len(victims) != 1 {
		return fmt.Sprintf("it names %q, and %v were preempted", evictions, names(victims))
	}
	for _, part := range []string{"/" + victims[0].Name + " ", "job " + LowJob + " continues with 1 of 2 workers"} {
		if !strings.Contains(evictions[0], part) {
			return fmt.Sprintf("it says %q, without %q", evictions[0], part)
		}
	}
	return ""
}

func highWorkerWaits(h *eventlog.History) string {
	worker, problem := highWorker(h)
	switch {
	case problem != "":
		return problem
	case worker.Unschedulable.IsZero():
		return worker.Name + " was never reported unschedulable"
	case worker.Running.IsZero():
		return worker.Name + " never ran"
	case !worker.Unschedulable.Before(worker.Running):
		return worker.Name + " ran before it was reported unschedulable"
	}
	return ""
}

func oneWorkerIsPreempted(h *eventlog.History) string {
	victims := preempted(h)
	if len(victims) != 1 {
		return fmt.Sprintf("%d pods were preempted: %v", len(victims), names(victims))
	}
	victim := victims[0]
	if victim.Job != LowJob || victim.Role != "worker" {
		return fmt.Sprintf("the %s %s of %s was preempted", victim.Role, victim.Name, victim.Job)
	}
	for _, other := range h.PodsOf(LowJob, "worker") {
		ranBefore := !other.Running.IsZero() && other.Running.Before(victim.Disrupted)
		if other != victim && ranBefore && other.Running.After(victim.Running) {
			return fmt.Sprintf("%s was preempted, though %s had started later", victim.Name, other.Name)
		}
	}
	if reported := h.Job(LowJob).Last().Status.Preemptions; reported != 1 {
		return fmt.Sprintf("the low job's status counts %d preemptions", reported)
	}
	if reported := h.Job(HighJob).Last().Status.Preemptions; reported != 0 {
		return fmt.Sprintf("the high job's status counts %d preemptions", reported)
	}
	return ""
}

func lowJobContinues(h *eventlog.History) string {
	victim, replacement, problem := victimAndReplacement(h)
	if problem != "" {
		return problem
	}
	var shrunk []eventlog.Point
	for _, point := range h.Job(LowJob).Points {
		before := replacement.Running.IsZero() || point.Time.Before(replacement.Running)
		if point.Time.After(victim.Ended) && before && point.Status.WorkersRunning == 1 {
			shrunk = append(shrunk, point)
		}
	}
	if len(shrunk) < 2 {
		return fmt.Sprintf("%d reports with one running worker between the preemption and the replacement", len(shrunk))
	}
	first, last := shrunk[0].Status.StepsDone, shrunk[len(shrunk)-1].Status.StepsDone
	if last <= first {
		return fmt.Sprintf("no step was done between the preemption and the replacement (step %d)", last)
	}
	return ""
}

func replacementWaits(h *eventlog.History) string {
	_, replacement, problem := victimAndReplacement(h)
	if problem != "" {
		return problem
	}
	high, problem := highWorker(h)
	if problem != "" {
		return problem
	}
	switch {
	case replacement.Unschedulable.IsZero():
		return replacement.Name + " was never reported unschedulable"
	case high.Ended.IsZero():
		return high.Name + " never ended"
	case !replacement.Running.IsZero() && replacement.Running.Before(high.Ended):
		return fmt.Sprintf("%s ran %s before %s had ended", replacement.Name,
			high.Ended.Sub(replacement.Running).Round(time.Millisecond), high.Name)
	}
	return ""
}

func replacementContributes(h *eventlog.History) string {
	_, replacement, problem := victimAndReplacement(h)
	if problem != "" {
		return problem
	}
	if replacement.Running.IsZero() {
		return replacement.Name + " never ran"
	}
	low := h.Job(LowJob)
	for _, point := range low.Points {
		if total := point.Status.StepsTotal; total > 0 && point.Status.StepsDone >= total {
			break
		}
		for _, worker := range point.Status.Workers {
			if worker.Pod == replacement.Name && worker.Gradients > 0 && point.Status.WorkersRunning == 2 {
				return ""
			}
		}
	}
	ended := "the job did not end"
	if done := low.Reached(trainingjob.PhaseSucceeded); !done.IsZero() {
		ended = fmt.Sprintf("the job ended %s after it ran", done.Sub(replacement.Running).Round(time.Millisecond))
	}
	return fmt.Sprintf("no report before the last step counts a gradient of %s; %s", replacement.Name, ended)
}

func bothSucceed(h *eventlog.History) string {
	var problems []string
	for _, name := range []string{LowJob, HighJob} {
		status := h.Job(name).Last().Status
		switch {
		case status.Phase != trainingjob.PhaseSucceeded:
			problems = append(problems, strings.TrimSpace(fmt.Sprintf("%s is %q %s", name, status.Phase, status.Message)))
		case status.StepsTotal == 0 || status.StepsDone != status.StepsTotal:
			problems = append(problems, fmt.Sprintf("%s did %d of %d steps", name, status.StepsDone, status.StepsTotal))
		}
	}
	low, high := h.Job(LowJob).Reached(trainingjob.PhaseSucceeded), h.Job(HighJob).Reached(trainingjob.PhaseSucceeded)
	if len(problems) == 0 && low.Before(high) {
		problems = append(problems, "the low job ended before the high one")
	}
	return strings.Join(problems, "; ")
}

func highWorker(h *eventlog.History) (worker *eventlog.PodHistory, problem string) {
	workers := h.PodsOf(HighJob, "worker")
	if len(workers) != 1 {
		return nil, fmt.Sprintf("the high job had %d workers: %v", len(workers), names(workers))
	}
	return workers[0], ""
}

// victimAndReplacement are the low job's preempted worker and the worker that its master created as a replacement.
func victimAndReplacement(h *eventlog.History) (victim, replacement *eventlog.PodHistory, problem string) {
	victims := preempted(h)
	if len(victims) == 0 {
		return nil, nil, "no pod was preempted"
	}
	victim = victims[0]
	for _, worker := range h.PodsOf(LowJob, "worker") {
		if !worker.Created.Before(victim.Disrupted) {
			return victim, worker, ""
		}
	}
	return nil, nil, "no worker replaced " + victim.Name
}

func preempted(h *eventlog.History) []*eventlog.PodHistory {
	var victims []*eventlog.PodHistory
	for _, pod := range h.Pods {
		if pod.Preempted() {
			victims = append(victims, pod)
		}
	}
	return victims
}

func names(pods []*eventlog.PodHistory) []string {
	var all []string
	for _, pod := range pods {
		all = append(all, pod.Name)
	}
	return all
}
