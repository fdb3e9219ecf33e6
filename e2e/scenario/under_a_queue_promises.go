package scenario

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
)

// UnderAQueuePromises are what the story of an elastic job under a queue is checked for, in the order of its telling.
func UnderAQueuePromises() Promises {
	return Promises{
		{"master and floor are one workload, and every worker above the floor one of its own", oneGroupAndSingleWorkers},
		{"the urgent job takes two workers above the floor, and nothing else", urgentTakesTwoWorkers},
		{"meanwhile the job goes on with two workers", shrunkJobGoesOn},
		{"it grows back to four, under new names", jobGrowsBack},
		{"the larger job evicts master and floor, and the workers above them leave too", everybodyLeaves},
		{"nothing of the job runs until the larger job has ended", nothingRunsMeanwhile},
		{"the same workload of master and floor is admitted again, and the job succeeds", groupComesAgain},
		{
			"terraform plan is empty after every apply, after the job has grown back, and at the end",
			plansAreEmptyAfter(StageSubmit, StageShrink, StageGrow, StageEvict, StageFinished),
		},
		{"terraform destroy leaves nothing", nothingIsLeft},
		{"the final model is that of an undisturbed run, bit for bit", modelOf(ElasticJob)},
	}
}

// theGroup is the one workload of the elastic job's master and floor, by its name.
func theGroup(h *eventlog.History) (group *eventlog.WorkloadLife, problem string) {
	var groups []*eventlog.WorkloadLife
	for _, workload := range h.Workloads {
		if strings.HasPrefix(workload.Name, trainingjob.FloorName(ElasticJob)+"-") {
			groups = append(groups, workload)
		}
	}
	if len(groups) != 1 {
		return nil, fmt.Sprintf("there were %d workloads of master and floor", len(groups))
	}
	return groups[0], ""
}

// isBurst says whether a pod is a worker above the floor, which only the master names.
func isBurst(life *eventlog.Life) bool {
	return life.Job == ElasticJob && strings.HasPrefix(life.Name, ElasticJob+"-worker-")
}

// takenDuring are the job's pods whose quota the queue took during a stage.
func takenDuring(h *eventlog.History, stage string) []*eventlog.Life {
	from, to := stageSpan(h, stage)
	var taken []*eventlog.Life
	for _, life := range h.Pods {
		if life.Job == ElasticJob && life.Preempted() && life.Disrupted.After(from) && life.Disrupted.Before(to) {
			taken = append(taken, life)
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

func oneGroupAndSingleWorkers(h *eventlog.History) string {
	group, problem := theGroup(h)
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
	taken := takenDuring(h, StageShrink)
	for _, life := range taken {
		if !isBurst(life) {
			return life.Name + " was taken"
		}
		if life.ExitCode == nil || *life.ExitCode != trainingjob.ExitStopped {
			return life.Name + " did not leave in good order"
		}
	}
	if len(taken) != elasticWorkers-shrunkWorkers {
		return fmt.Sprintf("taken were %v", names(taken))
	}
	return ""
}

func shrunkJobGoesOn(h *eventlog.History) string {
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
		return fmt.Sprintf("from step %d with two workers it came to step %d", first, last)
	}
	return ""
}

func jobGrowsBack(h *eventlog.History) string {
	taken := takenDuring(h, StageShrink)
	from, _ := stageSpan(h, StageShrink)
	to, _ := stageSpan(h, StageEvict)
	var again []string
	for _, life := range h.Pods {
		if !isBurst(life) || life.Created.Before(from) || life.Running.IsZero() || life.Running.After(to) {
			continue
		}
		if slices.ContainsFunc(taken, func(t *eventlog.Life) bool { return t.Name == life.Name }) {
			return life.Name + " was used again"
		}
		again = append(again, life.Name)
	}
	if len(again) != elasticWorkers-shrunkWorkers {
		return fmt.Sprintf("%v came for %v", again, names(taken))
	}
	return ""
}

// everybodyLeaves looks at the pods that ran when the larger job came.
func everybodyLeaves(h *eventlog.History) string {
	from, to := stageSpan(h, StageEvict)
	group, problem := theGroup(h)
	if problem != "" {
		return problem
	}
	admitted := admissions(group)
	if len(admitted) == 0 || admitted[0].Evicted != eventlog.EvictedByPreemption {
		return "master and floor were not preempted"
	}
	left := 0
	for _, life := range h.Pods {
		if life.Job != ElasticJob || life.Running.IsZero() || life.Running.After(from) || (!life.Ended.IsZero() && life.Ended.Before(from)) {
			continue
		}
		if life.Ended.IsZero() || life.Ended.After(to) {
			return life.Name + " stayed"
		}
		if isBurst(life) && !life.Preempted() {
			left++
		}
	}
	if left == 0 {
		return "the queue took every worker by itself: the story did not come to what it is about"
	}
	return ""
}

func nothingRunsMeanwhile(h *eventlog.History) string {
	_, from := stageSpan(h, StageEvict)
	to := h.Job(LargeJob).Reached(trainingjob.PhaseSucceeded)
	if to.IsZero() {
		return LargeJob + " did not succeed"
	}
	for _, life := range h.Pods {
		if life.Job == ElasticJob && life.Running.After(from) && life.Running.Before(to) {
			return fmt.Sprintf("%s ran %s before it had", life.Name, to.Sub(life.Running).Round(time.Millisecond))
		}
	}
	return ""
}

func groupComesAgain(h *eventlog.History) string {
	group, problem := theGroup(h)
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
