// Package eventlogtest builds event logs for tests: a small elastic-scheduling scenario without failures, which tests
// modify.
package eventlogtest

import (
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
)

// Builder adds events at seconds since the scenario's start.
type Builder struct {
	start  time.Time
	Events []eventlog.Event
}

// New starts a log at a fixed time.
func New() *Builder {
	return &Builder{start: time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)}
}

// Add appends an event.
func (b *Builder) Add(second float64, event eventlog.Event) {
	event.Time = b.start.Add(time.Duration(second * float64(time.Second)))
	b.Events = append(b.Events, event)
}

// Pod appends a state of a pod that belongs to a job with that priority class.
func (b *Builder) Pod(second float64, pod eventlog.Pod) {
	pod.UID = "uid-" + pod.Name
	b.Add(second, eventlog.Event{Pod: &pod})
}

// Starts appends the states of a pod that finds room at once: created, bound, running.
func (b *Builder) Starts(second float64, pod eventlog.Pod) {
	node := pod.Node
	pod.Node, pod.Phase = "", "Pending"
	b.Pod(second, pod)
	pod.Node = node
	b.Pod(second+0.02, pod)
	pod.Phase = "Running"
	b.Pod(second+0.4, pod)
}

// Ends appends the states of a running pod whose process has exited with a code.
func (b *Builder) Ends(second float64, pod eventlog.Pod, code int32) {
	pod.Phase, pod.ExitCode, pod.Reason = "Succeeded", &code, "Completed"
	if code != 0 {
		pod.Phase, pod.Reason = "Failed", "Error"
	}
	b.Pod(second, pod)
	pod.Deleted = true
	b.Pod(second+0.05, pod)
}

// Job appends a master's report.
func (b *Builder) Job(second float64, name string, status trainingjob.Status) {
	b.Add(second, eventlog.Event{Job: &eventlog.Job{Name: name, Status: status}})
}

// Pod states of the scenario.
var (
	LowMaster   = eventlog.Pod{Name: "low-prio-job-x2k9p", Job: "low-prio-job", Role: "master", PriorityClass: "high-priority", Node: "node-0"}
	LowWorker0  = eventlog.Pod{Name: "low-prio-job-worker-0", Job: "low-prio-job", Role: "worker", PriorityClass: "low-priority", Node: "node-1"}
	LowWorker1  = eventlog.Pod{Name: "low-prio-job-worker-1", Job: "low-prio-job", Role: "worker", PriorityClass: "low-priority", Node: "node-2"}
	LowWorker2  = eventlog.Pod{Name: "low-prio-job-worker-2", Job: "low-prio-job", Role: "worker", PriorityClass: "low-priority", Node: "node-2"}
	HighMaster  = eventlog.Pod{Name: "high-prio-job-7hq2m", Job: "high-prio-job", Role: "master", PriorityClass: "high-priority", Node: "node-0"}
	HighWorker0 = eventlog.Pod{Name: "high-prio-job-worker-0", Job: "high-prio-job", Role: "worker", PriorityClass: "high-priority", Node: "node-2"}
)

// NoRoom is what the scheduler says of a pod without room.
const NoRoom = "0/3 nodes are available: 3 Insufficient cpu."

// ElasticScheduling is the scenario as it should go.
func ElasticScheduling() []eventlog.Event {
	b := New()
	for _, name := range []string{"node-0", "node-1", "node-2"} {
		b.Add(0, eventlog.Event{Node: &eventlog.Node{Name: name, CPU: "3920m", Memory: "15Gi"}})
	}
	stage := func(second float64, name, text string) {
		b.Add(second, eventlog.Event{Stage: &eventlog.Stage{Name: name, Text: text}})
	}
	plan := func(second float64, after string) {
		b.Add(second, eventlog.Event{Plan: &eventlog.Plan{After: after}})
	}
	report := func(second float64, job string, phase trainingjob.Phase, step, total int64, loss float64, preemptions int, workers ...trainingjob.WorkerStatus) {
		status := trainingjob.Status{Phase: phase, Generation: 1, StepsDone: step, StepsTotal: total, Workers: workers, Preemptions: preemptions}
		if step > 0 {
			status.Loss = &loss
		}
		for _, worker := range workers {
			if worker.State == "ready" {
				status.WorkersRunning++
			} else {
				status.WorkersPending++
			}
		}
		if phase == trainingjob.PhaseSucceeded {
			status.ModelSHA256 = "5f0c2e9d1b7a"
			status.Metrics = map[string]float64{"accuracy": 0.972}
		}
		b.Job(second, job, status)
	}
	ready := func(pod eventlog.Pod, gradients int64) trainingjob.WorkerStatus {
		return trainingjob.WorkerStatus{Pod: pod.Name, State: "ready", Gradients: gradients}
	}
	pending := func(pod eventlog.Pod) trainingjob.WorkerStatus {
		return trainingjob.WorkerStatus{Pod: pod.Name, State: "pending", Reason: NoRoom}
	}
	const low, high, running = "low-prio-job", "high-prio-job", trainingjob.PhaseRunning

	stage(0.1, "calibrate", "How fast is this machine?")
	stage(6, "submit-low", "terraform apply: low-prio-job, one worker for now.")
	b.Starts(7, LowMaster)
	report(7.5, low, trainingjob.PhasePending, 0, 0, 0, 0) // the total is known once the master has looked at the data
	b.Starts(8, LowWorker0)
	report(9, low, running, 20, 1000, 2.2, 0, ready(LowWorker0, 40))
	plan(10, "submit-low")
	stage(11, "grow-low", "terraform apply: a second worker, in place.")
	b.Starts(12, LowWorker1)
	plan(13, "grow-low")
	report(14, low, running, 100, 1000, 1.1, 0, ready(LowWorker0, 170), ready(LowWorker1, 30))
	b.Add(14.1, eventlog.Event{Listing: &eventlog.Listing{
		Selector: "elasticdl_job_name=low-prio-job", Pods: []string{LowMaster.Name, LowWorker0.Name, LowWorker1.Name},
	}})
	report(16, low, running, 160, 1000, 0.8, 0, ready(LowWorker0, 230), ready(LowWorker1, 90))

	stage(16.2, "forecast", "terraform plan: what would high-prio-job evict? There is no capacity for its worker.")
	b.Add(16.8, eventlog.Event{Forecast: &eventlog.Forecast{
		Before: "submit-high", Text: "high-prio-job will preempt\n" +
			"evicts  default/low-prio-job-worker-1 (priority 1000) on node-2: job low-prio-job continues with 1 of 2 workers\n" +
			"starts  master on node-0 immediately; worker 0 on node-2 after its victim has terminated (grace period 30s)",
	}})
	stage(17, "submit-high", "terraform apply: high-prio-job.")
	b.Starts(18, HighMaster)
	waiting := HighWorker0
	waiting.Node, waiting.Phase = "", "Pending"
	b.Pod(18.5, waiting)
	waiting.Unschedulable = NoRoom
	b.Pod(18.52, waiting)
	victim := LowWorker1
	victim.Phase, victim.Deleting = "Running", true
	victim.Disruption, victim.Cause = eventlog.PreemptionByScheduler, "preempting to accommodate a higher priority pod"
	b.Pod(18.54, victim)
	b.Ends(18.58, victim, 143)
	runs := HighWorker0
	runs.Phase = "Running"
	b.Pod(18.8, runs)
	replacement := LowWorker2
	replacement.Node, replacement.Phase = "", "Pending"
	b.Pod(19, replacement)
	replacement.Unschedulable = NoRoom
	b.Pod(19.02, replacement)
	report(19.5, low, running, 200, 1000, 0.7, 1, ready(LowWorker0, 300), pending(LowWorker2))
	report(20, high, running, 50, 300, 2.0, 0, ready(HighWorker0, 100))
	plan(21, "submit-high")
	report(24, high, running, 160, 300, 1.0, 0, ready(HighWorker0, 320))
	report(28, low, running, 360, 1000, 0.5, 1, ready(LowWorker0, 620), pending(LowWorker2))
	report(29, high, running, 280, 300, 0.7, 0, ready(HighWorker0, 560))
	report(30, high, trainingjob.PhaseSucceeded, 300, 300, 0.65, 0)
	b.Ends(30.1, HighWorker0, 0)
	b.Pod(30.12, LowWorker2)
	replaced := LowWorker2
	replaced.Phase = "Running"
	b.Pod(30.5, replaced)
	b.Ends(30.7, HighMaster, 0)
	report(32, low, running, 460, 1000, 0.4, 1, ready(LowWorker0, 780), ready(LowWorker2, 60))
	report(40, low, running, 780, 1000, 0.2, 1, ready(LowWorker0, 1100), ready(LowWorker2, 380))
	report(45, low, trainingjob.PhaseSucceeded, 1000, 1000, 0.15, 1)
	b.Ends(45.2, LowWorker0, 0)
	b.Ends(45.2, LowWorker2, 0)
	b.Ends(45.5, LowMaster, 0)
	stage(46, "finished", "Both jobs have finished.")
	plan(47, "finished")
	stage(48, "destroy", "terraform destroy.")
	b.Add(50, eventlog.Event{Leftovers: &eventlog.Leftovers{}})
	stage(50, "compare", "The same job once more, undisturbed.")
	b.Add(80, eventlog.Event{Result: &eventlog.Result{
		Job: low, SHA256: "5f0c2e9d1b7a", UndisturbedSHA256: "5f0c2e9d1b7a", UndisturbedTook: 30 * time.Second,
	}})
	return b.Events
}
