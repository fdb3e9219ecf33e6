package eventlog

import (
	"slices"
	"strings"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainingjob"
)

// History is a log told by pod and by job. Times are zero for what did not happen.
type History struct {
	Start, End time.Time
	Nodes      []Node
	Pods       []*Life         // by Created
	Workloads  []*WorkloadLife // by Created
	Jobs       []*JobHistory
	Stages     []StageAt
	Faults     []FaultAt
	Plans      []Plan
	Listings   []Listing
	Answers    []Answer
	Results    []Result
	Left       *Left // nil until something was destroyed
}

// StageAt is a stage and when it began.
type StageAt struct {
	Stage
	Time time.Time
}

// FaultAt is a fault and when it happened.
type FaultAt struct {
	Fault
	Time time.Time
}

// Life is one pod's way: seen, without room, bound, running, asked to go, ended.
type Life struct {
	Pod // as last seen while it existed

	Created       time.Time
	Unschedulable time.Time // first seen without room
	Why           string    // the scheduler's first message about it
	Bound         time.Time
	Running       time.Time
	Disrupted     time.Time // DisruptionTarget
	Deleting      time.Time
	Ended         time.Time // a terminal phase, or gone
}

// Preempted says whether the scheduler took this pod's room, or a queue its quota.
func (l *Life) Preempted() bool {
	return l.Disruption == PreemptionByScheduler || l.Disruption == PreemptionByQueue
}

// JobHistory is what a job's master reported, in order.
type JobHistory struct {
	Name   string
	Points []Point
}

// Point is one report.
type Point struct {
	Time   time.Time
	Status trainingjob.Status
}

// Last is the newest report, the zero Point without one.
func (j *JobHistory) Last() Point {
	if len(j.Points) == 0 {
		return Point{}
	}
	return j.Points[len(j.Points)-1]
}

// Reached is when a phase was first reported; zero when it was not.
func (j *JobHistory) Reached(phase trainingjob.Phase) time.Time {
	for _, point := range j.Points {
		if point.Status.Phase == phase {
			return point.Time
		}
	}
	return time.Time{}
}

// Job is the history of the job with that name, without reports when the log does not mention it.
func (h *History) Job(name string) *JobHistory {
	for _, job := range h.Jobs {
		if job.Name == name {
			return job
		}
	}
	return &JobHistory{Name: name}
}

// PodsOf are the pods of a job in a role, in the order of their creation.
func (h *History) PodsOf(job, role string) []*Life {
	var lives []*Life
	for _, life := range h.Pods {
		if life.Job == job && life.Role == role {
			lives = append(lives, life)
		}
	}
	return lives
}

// Replay folds a log into its history. It can be fed a log that has not ended.
func Replay(events []Event) *History {
	h := &History{}
	byUID := map[string]*Life{}
	workloads := map[string]*WorkloadLife{}
	for _, event := range events {
		if h.Start.IsZero() {
			h.Start = event.Time
		}
		h.End = event.Time
		switch {
		case event.Node != nil:
			h.Nodes = append(h.Nodes, *event.Node)
		case event.Pod != nil:
			life := byUID[event.Pod.UID]
			if life == nil {
				life = &Life{Created: event.Time}
				byUID[event.Pod.UID] = life
				h.Pods = append(h.Pods, life)
			}
			life.observe(event.Time, *event.Pod)
		case event.Workload != nil:
			workload := workloads[event.Workload.UID]
			if workload == nil {
				workload = &WorkloadLife{Created: event.Time}
				workloads[event.Workload.UID] = workload
				h.Workloads = append(h.Workloads, workload)
			}
			if workload.observe(event.Time, *event.Workload) {
				h.disrupt(event.Time, event.Workload)
			}
		case event.Job != nil:
			job := h.Job(event.Job.Name)
			if len(job.Points) == 0 {
				h.Jobs = append(h.Jobs, job)
			}
			job.Points = append(job.Points, Point{Time: event.Time, Status: event.Job.Status})
		case event.Stage != nil:
			h.Stages = append(h.Stages, StageAt{Stage: *event.Stage, Time: event.Time})
		case event.Fault != nil:
			h.Faults = append(h.Faults, FaultAt{Fault: *event.Fault, Time: event.Time})
		case event.Plan != nil:
			h.Plans = append(h.Plans, *event.Plan)
		case event.Listing != nil:
			h.Listings = append(h.Listings, *event.Listing)
		case event.Answer != nil:
			h.Answers = append(h.Answers, *event.Answer)
		case event.Result != nil:
			h.Results = append(h.Results, *event.Result)
		case event.Left != nil:
			h.Left = event.Left
		}
	}
	slices.SortFunc(h.Nodes, func(a, b Node) int { return strings.Compare(a.Name, b.Name) })
	return h
}

// disrupt marks the pods whose workload was preempted.
func (h *History) disrupt(at time.Time, workload *Workload) {
	for _, life := range h.Pods {
		if life.Ended.IsZero() && life.Disruption == "" && workload.standsFor(&life.Pod) {
			life.Disruption, life.Cause, life.Disrupted = PreemptionByQueue, workload.Cause, at
		}
	}
}

// observe takes one more state of the pod: every time is that of the first state that shows it.
func (l *Life) observe(at time.Time, pod Pod) {
	first := func(t *time.Time, happened bool) {
		if happened && t.IsZero() {
			*t = at
		}
	}
	first(&l.Unschedulable, pod.Unschedulable != "")
	first(&l.Bound, pod.Node != "")
	first(&l.Running, pod.Phase == "Running")
	first(&l.Disrupted, pod.Disruption != "")
	first(&l.Deleting, pod.Deleting)
	first(&l.Ended, pod.Deleted || pod.Phase == "Succeeded" || pod.Phase == "Failed")
	if l.Why == "" {
		l.Why = pod.Unschedulable
	}
	// What is once known of a pod is not forgotten because its last state, that of a deleted object, leaves it out.
	if pod.Disruption == "" {
		pod.Disruption, pod.Cause = l.Disruption, l.Cause
	}
	if pod.Node == "" {
		pod.Node = l.Node
	}
	if pod.ExitCode == nil {
		pod.ExitCode = l.ExitCode
	}
	l.Pod = pod
}
