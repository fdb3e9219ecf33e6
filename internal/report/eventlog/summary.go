package eventlog

import (
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
)

// Summary is a job in a few numbers.
type Summary struct {
	Job         string
	Phase       trainingjob.Phase
	StepsDone   int64
	StepsTotal  int64
	Loss        *float64
	Accuracy    *float64 // of the validation data, 0 to 1
	Preemptions int
	Took        time.Duration // from its first pod to its last
	Waited      time.Duration // of its workers for room, added up
	SHA256      string        // of its final model
}

// AccuracyMetric is the accuracy's name in a report.
const AccuracyMetric = "accuracy"

// Summarize tells every job in a few numbers, in the order in which the jobs turned up.
func (h *History) Summarize() []Summary {
	byName := map[string]*Summary{}
	first, last := map[string]time.Time{}, map[string]time.Time{}
	names := h.JobNames()
	for _, name := range names {
		byName[name] = &Summary{Job: name}
	}
	for _, job := range h.Jobs {
		summary, status := byName[job.Name], job.Last().Status
		summary.Phase, summary.StepsDone, summary.StepsTotal = status.Phase, status.StepsDone, status.StepsTotal
		summary.Loss, summary.Preemptions, summary.SHA256 = status.Loss, status.Preemptions, status.ModelSHA256
		if accuracy, ok := status.Metrics[AccuracyMetric]; ok {
			summary.Accuracy = &accuracy
		}
	}
	for _, life := range h.Pods {
		if before, seen := first[life.Job]; !seen || life.Created.Before(before) {
			first[life.Job] = life.Created
		}
		if ended := life.EndedBy(h.End); ended.After(last[life.Job]) {
			last[life.Job] = ended
		}
		if wait, waited := life.Waited(h.End); waited && life.Role == "worker" {
			byName[life.Job].Waited += wait
		}
	}
	summaries := make([]Summary, 0, len(names))
	for _, name := range names {
		byName[name].Took = last[name].Sub(first[name])
		summaries = append(summaries, *byName[name])
	}
	return summaries
}

// JobNames are the names of the jobs whose pods or reports were seen, in that order.
func (h *History) JobNames() []string {
	var all []string
	seen := map[string]bool{}
	add := func(name string) {
		if !seen[name] {
			seen[name] = true
			all = append(all, name)
		}
	}
	for _, life := range h.Pods {
		add(life.Job)
	}
	for _, job := range h.Jobs {
		add(job.Name)
	}
	return all
}

// EndedBy is when the pod ended, or the end of the log where it had not.
func (l *Life) EndedBy(end time.Time) time.Time {
	if l.Ended.IsZero() {
		return end
	}
	return l.Ended
}

// Waited is how long the pod waited for room, and whether it had to.
func (l *Life) Waited(end time.Time) (time.Duration, bool) {
	if l.Unschedulable.IsZero() {
		return 0, false
	}
	end = l.EndedBy(end)
	if !l.Bound.IsZero() {
		end = l.Bound
	}
	return end.Sub(l.Created), true
}

// JobOf is the job that a workload belongs to: its owner, or that of the pods which own it.
func (h *History) JobOf(workload *WorkloadLife) string {
	for _, owner := range workload.Owners {
		if owner.Kind != "Pod" {
			return owner.Name
		}
		for _, life := range h.Pods {
			if life.Name == owner.Name {
				return life.Job
			}
		}
	}
	return workload.Title()
}
