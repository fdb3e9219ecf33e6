package scenario

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
)

// Measurements are how long things took in a story, by the times of its log: those at which a watch of the API showed
// them. The same function measures every backend.
type Measurements struct {
	// Start: a pod that found room at once was created, until it ran.
	Start []Measurement `json:"start,omitempty"`
	// FirstGradient: a worker that found room at once was created, until its master's report counted a gradient of it. Masters
	// report every two seconds, so that it may be that much too long.
	FirstGradient []Measurement `json:"first_gradient,omitempty"`
	// Preemption: a pod for which the scheduler evicted another one was created, until it ran.
	Preemption []Measurement `json:"preemption,omitempty"`
	// Replacement: a preempted worker was told to go, until its job's master had made another one.
	Replacement []Measurement `json:"replacement,omitempty"`
	// QueuePreemption: a pod or task for which a queue took another one's quota was asked for, until it ran.
	QueuePreemption []Measurement `json:"queue_preemption,omitempty"`
}

// Measurement is one of them.
type Measurement struct {
	Pod     string  `json:"pod"`
	Seconds float64 `json:"seconds"`
}

// Measure is pure. What a log does not tell to its end is left out.
func Measure(events []eventlog.Event) Measurements {
	h := eventlog.Replay(events)
	queued := map[string]bool{}
	for _, workload := range h.Workloads {
		queued[h.JobOf(workload)] = true
	}
	var m Measurements
	for _, life := range h.Pods {
		if life.Running.IsZero() {
			continue
		}
		switch {
		case queued[life.Job]:
		case life.Unschedulable.IsZero():
			add(&m.Start, life, life.Created, life.Running)
			if at := firstGradient(h.Job(life.Job), life.Name); life.Role == "worker" && !at.IsZero() {
				add(&m.FirstGradient, life, life.Created, at)
			}
		case evictedFor(h, life) != nil:
			add(&m.Preemption, life, life.Created, life.Running)
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

func add(to *[]Measurement, life *eventlog.Life, from, until time.Time) {
	*to = append(*to, Measurement{Pod: life.Name, Seconds: until.Sub(from).Seconds()})
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

// evictedFor is a pod of another job that the scheduler evicted while this one waited, nil without one.
func evictedFor(h *eventlog.History, waiting *eventlog.Life) *eventlog.Life {
	for _, victim := range h.Pods {
		if victim.Disruption == eventlog.PreemptionByScheduler && victim.Job != waiting.Job &&
			!victim.Disrupted.Before(waiting.Created) && victim.Disrupted.Before(waiting.Running) {
			return victim
		}
	}
	return nil
}

// successor is the next worker that a victim's job was given, nil without one.
func successor(h *eventlog.History, victim *eventlog.Life) *eventlog.Life {
	for _, life := range h.PodsOf(victim.Job, victim.Role) {
		if life.Created.After(victim.Disrupted) {
			return life
		}
	}
	return nil
}

// queuePreemptions are, for each job in a queue that took others' quota, from its first workload to its first running
// pod.
func queuePreemptions(h *eventlog.History) []Measurement {
	var found []Measurement
	seen := map[string]bool{}
	for _, workload := range h.Workloads {
		job := h.JobOf(workload)
		if seen[job] {
			continue
		}
		seen[job] = true
		for _, life := range h.Pods {
			if life.Job != job || life.Running.IsZero() {
				continue
			}
			if tookQuota(h, workload, life.Running) {
				add(&found, life, workload.Created, life.Running)
			}
			break
		}
	}
	return found
}

// tookQuota says whether a less important workload lost its quota between a workload's creation and its pod's running.
func tookQuota(h *eventlog.History, workload *eventlog.WorkloadLife, running time.Time) bool {
	for _, other := range h.Workloads {
		for _, spell := range other.Spells {
			if other.Priority < workload.Priority && spell.Evicted == eventlog.EvictedByPreemption &&
				spell.To.After(workload.Created) && spell.To.Before(running) {
				return true
			}
		}
	}
	return false
}

// MeasurementsFile is where Tell leaves a story's measurements, in its output directory.
const MeasurementsFile = "measurements.json"

// writeMeasurements writes them for reports (`make bench`).
func writeMeasurements(dir string, m Measurements) error {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return fmt.Errorf("the measurements: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, MeasurementsFile), append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("the measurements: %w", err)
	}
	return nil
}
