package scenario

import (
	"fmt"
	"strings"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
)

// Names of the story's jobs, and what `terraform plan` and the listing are asked after.
const (
	LowJob  = "low-prio-job"
	HighJob = "high-prio-job"
)

// minStartGap is how far apart the low job's workers start at least: the scheduler prefers to evict the pod that
// started last, and start times have a resolution of one second.
const minStartGap = 2 * time.Second

// ElasticSchedulingPromises are what the elastic-scheduling story is checked for, in the order of its telling.
func ElasticSchedulingPromises() Promises {
	return Promises{
		{"the low job's two workers start at least 2 s apart, so that the victim is determined", workersStartApart},
		{"the tutorial's label selector lists the low job's master and both workers", listingIsComplete},
		{"the high job's worker is Pending for lack of room before it runs", highWorkerWaits},
		{"exactly one worker of the low job is preempted, the one that started last, and no master", oneWorkerIsPreempted},
		{"the low job goes on with one worker", lowJobGoesOn},
		{"the low job's replacement worker is Pending while there is no room", replacementWaits},
		{"the replacement worker runs again and contributes gradients before the low job ends", replacementContributes},
		{"both jobs reach Succeeded with all their steps done", bothSucceed},
		{"the low job's model is that of an undisturbed run", modelOf(LowJob)},
		{"terraform plan is empty after every apply, also while the job is shrunk", plansAreEmptyAfter(StageSubmitLow, StageGrowLow, StageSubmitHigh, StageFinished)},
		{"terraform destroy leaves nothing", nothingIsLeft},
	}
}

func workersStartApart(h *eventlog.History) string {
	workers := h.PodsOf(LowJob, "worker")
	if len(workers) < 2 {
		return fmt.Sprintf("%d workers were seen", len(workers))
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
	return "nobody asked for " + selector
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

func lowJobGoesOn(h *eventlog.History) string {
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

func highWorker(h *eventlog.History) (worker *eventlog.Life, problem string) {
	workers := h.PodsOf(HighJob, "worker")
	if len(workers) != 1 {
		return nil, fmt.Sprintf("the high job had %d workers: %v", len(workers), names(workers))
	}
	return workers[0], ""
}

// victimAndReplacement are the low job's preempted worker and the worker that its master made in its place.
func victimAndReplacement(h *eventlog.History) (victim, replacement *eventlog.Life, problem string) {
	victims := preempted(h)
	if len(victims) == 0 {
		return nil, nil, "nobody was preempted"
	}
	victim = victims[0]
	for _, worker := range h.PodsOf(LowJob, "worker") {
		if !worker.Created.Before(victim.Disrupted) {
			return victim, worker, ""
		}
	}
	return nil, nil, "no worker was made in place of " + victim.Name
}

func preempted(h *eventlog.History) []*eventlog.Life {
	var victims []*eventlog.Life
	for _, life := range h.Pods {
		if life.Preempted() {
			victims = append(victims, life)
		}
	}
	return victims
}

func names(lives []*eventlog.Life) []string {
	var all []string
	for _, life := range lives {
		all = append(all, life.Name)
	}
	return all
}
