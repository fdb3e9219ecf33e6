package scenario

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
)

// UnderAQueueAssertions are the assertions of the under-a-queue scenario.
func UnderAQueueAssertions() Assertions {
	return Assertions{
		{"master and minimum workers are one workload, and every worker above the minimum is its own", groupAndSingleWorkloads},
		{"the urgent job preempts two workers above the minimum, and nothing else", urgentTakesTwoWorkers},
		{"meanwhile the elastic job continues with two workers", shrunkJobContinues},
		{"it grows back to four workers, with new pod names", jobGrowsBack},
		{"the larger job evicts master and minimum, and the workers above the minimum end too", largerJobEvictsAllPods},
		{"no pod of the elastic job runs until the larger job has finished", nothingRunsMeanwhile},
		{"the same workload of master and minimum is admitted again, and the job succeeds", groupIsReadmitted},
		{
			"terraform plan is empty after every apply, after the job has grown back, and at the end",
			plansAreEmptyAfter(StageSubmit, StageShrink, StageGrow, StageEvict, StageFinished),
		},
		{"terraform destroy leaves nothing", nothingIsLeft},
		{"the final model is that of an undisturbed run, bit for bit", modelIsUndisturbed(ElasticJob)},
	}
}

// groupWorkload is the only workload of the elastic job's master and minimum workers, found by its name.
func groupWorkload(h *eventlog.History) (group *eventlog.WorkloadHistory, problem string) {
	var groups []*eventlog.WorkloadHistory
	for _, workload := range h.Workloads {
		if strings.HasPrefix(workload.Name, trainingjob.MinJobName(ElasticJob)+"-") {
			groups = append(groups, workload)
		}
	}
	if len(groups) != 1 {
		return nil, fmt.Sprintf("there were %d workloads of master and minimum", len(groups))
	}
	return groups[0], ""
}

// isWorkerAboveMinimum reports whether a pod is a worker above the minimum: only the master creates pods of this name.
func isWorkerAboveMinimum(pod *eventlog.PodHistory) bool {
	return pod.Job == ElasticJob && strings.HasPrefix(pod.Name, ElasticJob+"-worker-")
}

// preemptedDuring are the elastic job's pods that Kueue preempted during a stage.
func preemptedDuring(h *eventlog.History, stage string) []*eventlog.PodHistory {
	from, to := stageSpan(h, stage)
	var taken []*eventlog.PodHistory
	for _, pod := range h.Pods {
		if pod.Job == ElasticJob && pod.Preempted() && pod.Disrupted.After(from) && pod.Disrupted.Before(to) {
			taken = append(taken, pod)
		}
	}
	return taken
}

// stageSpan is from a stage's beginning to the next one's, or to the log's end.
func stageSpan(h *eventlog.History, stage string) (from, to time.Time) {
	i := slices.IndexFunc(h.Stages, func(s eventlog.StageAt) bool { return s.Name == stage })
	if i < 0 {
		return h.End, h.End
	}
	if i+1 < len(h.Stages) {
		return h.Stages[i].Time, h.Stages[i+1].Time
	}
	return h.Stages[i].Time, h.End
}

func groupAndSingleWorkloads(h *eventlog.History) string {
	group, problem := groupWorkload(h)
	if problem != "" {
		return problem
	}
	from, to := stageSpan(h, StageSubmit)
	var others []string
	for _, workload := range h.Workloads {
		if workload != group && workload.Created.After(from) && workload.Created.Before(to) {
			others = append(others, workload.Title())
		}
	}
	slices.Sort(others)
	var want []string
	for id := 1; id < elasticWorkers; id++ {
		want = append(want, trainingjob.WorkerName(ElasticJob, id))
	}
	if !slices.Equal(others, want) {
		return fmt.Sprintf("besides the group's there were workloads of %v", others)
	}
	return ""
}

func urgentTakesTwoWorkers(h *eventlog.History) string {
	taken := preemptedDuring(h, StageShrink)
	for _, pod := range taken {
		if !isWorkerAboveMinimum(pod) {
			return pod.Name + " was preempted"
		}
		if pod.ExitCode == nil || *pod.ExitCode != trainingjob.ExitStopped {
			return pod.Name + " did not exit gracefully"
		}
	}
	if len(taken) != elasticWorkers-shrunkWorkers {
		return fmt.Sprintf("%v were preempted", names(taken))
	}
	return ""
}

func shrunkJobContinues(h *eventlog.History) string {
	from, _ := stageSpan(h, StageShrink)
	to, _ := stageSpan(h, StageEvict)
	first, last := int64(-1), int64(-1)
	for _, point := range h.Job(ElasticJob).Points {
		if point.Time.Before(from) || point.Time.After(to) {
			continue
		}
		if point.Status.StepsDone < last {
			return fmt.Sprintf("it fell back from step %d to %d", last, point.Status.StepsDone)
		}
		last = point.Status.StepsDone
		if first < 0 && point.Status.WorkersRunning == shrunkWorkers {
			first = point.Status.StepsDone
		}
	}
	if first < 0 || last <= first {
		return fmt.Sprintf("with two workers it advanced from step %d to step %d", first, last)
	}
	return ""
}

func jobGrowsBack(h *eventlog.History) string {
	taken := preemptedDuring(h, StageShrink)
	from, _ := stageSpan(h, StageShrink)
	to, _ := stageSpan(h, StageEvict)
	var again []string
	for _, pod := range h.Pods {
		if !isWorkerAboveMinimum(pod) || pod.Created.Before(from) || pod.Running.IsZero() || pod.Running.After(to) {
			continue
		}
		if slices.ContainsFunc(taken, func(t *eventlog.PodHistory) bool { return t.Name == pod.Name }) {
			return "the name " + pod.Name + " was used again"
		}
		again = append(again, pod.Name)
	}
	if len(again) != elasticWorkers-shrunkWorkers {
		return fmt.Sprintf("%v replaced %v", again, names(taken))
	}
	return ""
}

// largerJobEvictsAllPods checks the pods that ran when the larger job was submitted.
func largerJobEvictsAllPods(h *eventlog.History) string {
	from, to := stageSpan(h, StageEvict)
	group, problem := groupWorkload(h)
	if problem != "" {
		return problem
	}
	admitted := admissions(group)
	if len(admitted) == 0 || admitted[0].Evicted != eventlog.EvictedByPreemption {
		return "master and minimum were not preempted"
	}
	left := 0
	for _, pod := range h.Pods {
		if pod.Job != ElasticJob || pod.Running.IsZero() || pod.Running.After(from) || (!pod.Ended.IsZero() && pod.Ended.Before(from)) {
			continue
		}
		if pod.Ended.IsZero() || pod.Ended.After(to) {
			return pod.Name + " did not end"
		}
		if isWorkerAboveMinimum(pod) && !pod.Preempted() {
			left++
		}
	}
	if left == 0 {
		return "Kueue preempted every worker by itself, so the scenario did not show that workers end with their master"
	}
	return ""
}

func nothingRunsMeanwhile(h *eventlog.History) string {
	_, from := stageSpan(h, StageEvict)
	to := h.Job(LargeJob).Reached(trainingjob.PhaseSucceeded)
	if to.IsZero() {
		return LargeJob + " did not succeed"
	}
	for _, pod := range h.Pods {
		if pod.Job == ElasticJob && pod.Running.After(from) && pod.Running.Before(to) {
			return fmt.Sprintf("%s ran %s before it had", pod.Name, to.Sub(pod.Running).Round(time.Millisecond))
		}
	}
	return ""
}

func groupIsReadmitted(h *eventlog.History) string {
	group, problem := groupWorkload(h)
	if problem != "" {
		return problem
	}
	if n := len(admissions(group)); n != 2 {
		return fmt.Sprintf("it was admitted %d times", n)
	}
	if !group.Finished {
		return "it has not finished"
	}
	if h.Job(ElasticJob).Reached(trainingjob.PhaseSucceeded).IsZero() {
		return "the job did not succeed"
	}
	return ""
}
