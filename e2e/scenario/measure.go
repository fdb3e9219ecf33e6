package scenario

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
)

// Measurements are durations in a run, computed from the times of its log, which are those at which a watch of the API
// showed the states. The same function measures every backend.
type Measurements struct {
	// Start: from the creation of a pod that was scheduled at once until it ran.
	Start []Measurement `json:"start,omitempty"`
	// FirstGradient: from the creation of a worker that was scheduled at once until its master reported a gradient of
	// it. Masters report every two seconds, so it may be up to two seconds too long.
	FirstGradient []Measurement `json:"first_gradient,omitempty"`
	// Preemption: from the creation of a pod for which the scheduler preempted another one until it ran.
	Preemption []Measurement `json:"preemption,omitempty"`
	// Replacement: from a worker's preemption until its job's master created another one.
	Replacement []Measurement `json:"replacement,omitempty"`
	// QueuePreemption: from the creation of a workload for which Kueue preempted another one until its first pod ran.
	QueuePreemption []Measurement `json:"queue_preemption,omitempty"`
}

// Measurement is one of them.
type Measurement struct {
	Pod     string  `json:"pod"`
	Seconds float64 `json:"seconds"`
}

// Measure computes the measurements of a log. It leaves out what the log does not contain to its end.
func Measure(events []eventlog.Event) Measurements {
	h := eventlog.Replay(events)
	queued := map[string]bool{}
	for _, workload := range h.Workloads {
		queued[h.JobOf(workload)] = true
	}
	var m Measurements
	for _, pod := range h.Pods {
		if pod.Running.IsZero() {
			continue
		}
		switch {
		case queued[pod.Job]:
		case pod.Unschedulable.IsZero():
			add(&m.Start, pod, pod.Created, pod.Running)
			if at := firstGradient(h.Job(pod.Job), pod.Name); pod.Role == "worker" && !at.IsZero() {
				add(&m.FirstGradient, pod, pod.Created, at)
			}
		case preemptedFor(h, pod) != nil:
			add(&m.Preemption, pod, pod.Created, pod.Running)
		}
	}
	for _, victim := range h.Pods {
		if next := successor(h, victim); victim.Disruption == eventlog.PreemptionByScheduler && next != nil {
			add(&m.Replacement, victim, victim.Disrupted, next.Created)
		}
	}
	m.QueuePreemption = queuePreemptions(h)
	return m
}

func add(to *[]Measurement, pod *eventlog.PodHistory, from, until time.Time) {
	*to = append(*to, Measurement{Pod: pod.Name, Seconds: until.Sub(from).Seconds()})
}

// firstGradient is when a report first counted a gradient of a worker.
func firstGradient(job *eventlog.JobHistory, pod string) time.Time {
	for _, point := range job.Points {
		for _, worker := range point.Status.Workers {
			if worker.Pod == pod && worker.Gradients > 0 {
				return point.Time
			}
		}
	}
	return time.Time{}
}

// preemptedFor is a pod of another job that the scheduler preempted while this one was pending, nil without one.
func preemptedFor(h *eventlog.History, waiting *eventlog.PodHistory) *eventlog.PodHistory {
	for _, victim := range h.Pods {
		if victim.Disruption == eventlog.PreemptionByScheduler && victim.Job != waiting.Job &&
			!victim.Disrupted.Before(waiting.Created) && victim.Disrupted.Before(waiting.Running) {
			return victim
		}
	}
	return nil
}

// successor is the next worker that the master of a victim's job created, nil without one.
func successor(h *eventlog.History, victim *eventlog.PodHistory) *eventlog.PodHistory {
	for _, pod := range h.PodsOf(victim.Job, victim.Role) {
		if pod.Created.After(victim.Disrupted) {
			return pod
		}
	}
	return nil
}

// queuePreemptions are, for each queued job for which Kueue preempted others, the times from its first workload to its
// first running pod.
func queuePreemptions(h *eventlog.History) []Measurement {
	var found []Measurement
	seen := map[string]bool{}
	for _, workload := range h.Workloads {
		job := h.JobOf(workload)
		if seen[job] {
			continue
		}
		seen[job] = true
		for _, pod := range h.Pods {
			if pod.Job != job || pod.Running.IsZero() {
				continue
			}
			if tookQuota(h, workload, pod.Running) {
				add(&found, pod, workload.Created, pod.Running)
			}
			break
		}
	}
	return found
}

// tookQuota reports whether a less important workload was preempted between a workload's creation and the start of its
// pod.
func tookQuota(h *eventlog.History, workload *eventlog.WorkloadHistory, running time.Time) bool {
	for _, other := range h.Workloads {
		for _, interval := range other.Intervals {
			if other.Priority < workload.Priority && interval.Evicted == eventlog.EvictedByPreemption &&
				interval.To.After(workload.Created) && interval.To.Before(running) {
				return true
			}
		}
	}
	return false
}

// MeasurementsFile is the file of a run's measurements in its output directory.
const MeasurementsFile = "measurements.json"

// writeMeasurements writes them for reports (`make bench`).
func writeMeasurements(dir string, m Measurements) error {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return fmt.Errorf("write the measurements: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, MeasurementsFile), append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("write the measurements: %w", err)
	}
	return nil
}
