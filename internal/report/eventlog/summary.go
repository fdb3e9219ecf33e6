package eventlog

import (
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
)

// Summary is a job's result in a few numbers.
type Summary struct {
	Job         string
	Phase       trainingjob.Phase
	StepsDone   int64
	StepsTotal  int64
	Loss        *float64
	Accuracy    *float64 // of the validation data, 0 to 1
	Preemptions int
	Took        time.Duration // from its first pod to its last
	Waited      time.Duration // the sum of the times that its workers were unschedulable
	SHA256      string        // of its final model
}

// AccuracyMetric is the accuracy's name in a report.
const AccuracyMetric = "accuracy"

// Summarize returns a summary of every job, in the order of JobNames.
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
	for _, pod := range h.Pods {
		if before, seen := first[pod.Job]; !seen || pod.Created.Before(before) {
			first[pod.Job] = pod.Created
		}
		if ended := pod.EndedBy(h.End); ended.After(last[pod.Job]) {
			last[pod.Job] = ended
		}
		if wait, waited := pod.Waited(h.End); waited && pod.Role == "worker" {
			byName[pod.Job].Waited += wait
		}
	}
	summaries := make([]Summary, 0, len(names))
	for _, name := range names {
		byName[name].Took = last[name].Sub(first[name])
		summaries = append(summaries, *byName[name])
	}
	return summaries
}

// JobNames are the names of the jobs whose pods or reports were observed, in the order of their first appearance.
func (h *History) JobNames() []string {
	var all []string
	seen := map[string]bool{}
	add := func(name string) {
		if !seen[name] {
			seen[name] = true
			all = append(all, name)
		}
	}
	for _, pod := range h.Pods {
		add(pod.Job)
	}
	for _, job := range h.Jobs {
		add(job.Name)
	}
	return all
}

// EndedBy is when the pod ended, or the end of the log if it has not.
func (p *PodHistory) EndedBy(end time.Time) time.Time {
	if p.Ended.IsZero() {
		return end
	}
	return p.Ended
}

// Waited is how long the pod waited to be scheduled, and whether it ever was unschedulable.
func (p *PodHistory) Waited(end time.Time) (time.Duration, bool) {
	if p.Unschedulable.IsZero() {
		return 0, false
	}
	end = p.EndedBy(end)
	if !p.Bound.IsZero() {
		end = p.Bound
	}
	return end.Sub(p.Created), true
}

// JobOf is the job that a workload belongs to: its owner, or that of the pods which own it.
func (h *History) JobOf(workload *WorkloadHistory) string {
	for _, owner := range workload.Owners {
		if owner.Kind != "Pod" {
			return owner.Name
		}
		for _, pod := range h.Pods {
			if pod.Name == owner.Name {
				return pod.Job
			}
		}
	}
	return workload.Title()
}
