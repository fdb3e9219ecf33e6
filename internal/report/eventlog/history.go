package eventlog

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
)

// History is a log grouped by pod, workload and job. The time of anything that did not happen is zero.
type History struct {
	Start, End time.Time
	Nodes      []*NodeHistory     // by name
	Pods       []*PodHistory      // by Created
	Workloads  []*WorkloadHistory // by Created
	Jobs       []*JobHistory
	Stages     []StageAt
	Faults     []FaultAt
	Plans      []Plan
	Forecasts  []Forecast
	Listings   []Listing
	Queried    []QueriedWorkloads
	Results    []Result
	Scripts    []ScriptResult
	Leftovers  *Leftovers // nil before terraform destroy
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

// NodeHistory is a node and the times at which it existed.
type NodeHistory struct {
	Node    // as last observed while it existed
	Present []Span
}

// Span is an interval of time; To is zero while it has not ended.
type Span struct{ From, To time.Time }

// PodHistory is a pod and the times of its states: created, unschedulable, bound, running, being deleted, ended.
type PodHistory struct {
	Pod // as last observed while it existed

	Created       time.Time
	Unschedulable time.Time // first observed as unschedulable
	FirstMessage  string    // the scheduler's first message about that
	Bound         time.Time
	Running       time.Time
	Disrupted     time.Time // DisruptionTarget
	Deleting      time.Time
	Ended         time.Time // in a terminal phase, or deleted
}

// Preempted reports whether kube-scheduler preempted this pod, or Kueue its workload.
func (p *PodHistory) Preempted() bool {
	return p.Disruption == PreemptionByScheduler || p.Disruption == PreemptionByQueue
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
func (h *History) PodsOf(job, role string) []*PodHistory {
	var pods []*PodHistory
	for _, pod := range h.Pods {
		if pod.Job == job && pod.Role == role {
			pods = append(pods, pod)
		}
	}
	return pods
}

// Replay returns the history of a log, which need not be complete.
func Replay(events []Event) *History {
	var b Builder
	for _, event := range events {
		b.Add(event)
	}
	return b.History()
}

// Builder builds a history event by event, for logs that are not kept in memory. The zero Builder has no events.
type Builder struct {
	history   History
	pods      map[string]*PodHistory // by UID
	byName    map[string][]*PodHistory
	byJob     map[string][]*PodHistory
	workloads map[string]*WorkloadHistory
	nodes     map[string]*NodeHistory
	jobs      map[string]*JobHistory
}

// History returns the history of the events so far.
func (b *Builder) History() *History {
	slices.SortFunc(b.history.Nodes, func(x, y *NodeHistory) int { return naturally(x.Name, y.Name) })
	return &b.history
}

// naturally compares names in natural order, node-9 before node-10.
func naturally(a, b string) int {
	for a != "" && b != "" {
		digitsA, digitsB := leadingDigits(a), leadingDigits(b)
		if digitsA == 0 || digitsB == 0 {
			if a[0] != b[0] {
				return cmp.Compare(a[0], b[0])
			}
			a, b = a[1:], b[1:]
			continue
		}
		numberA, numberB := strings.TrimLeft(a[:digitsA], "0"), strings.TrimLeft(b[:digitsB], "0")
		if c := cmp.Or(cmp.Compare(len(numberA), len(numberB)), strings.Compare(numberA, numberB)); c != 0 {
			return c
		}
		a, b = a[digitsA:], b[digitsB:]
	}
	return cmp.Compare(len(a), len(b))
}

func leadingDigits(text string) int { return len(text) - len(strings.TrimLeft(text, "0123456789")) }

// Add adds an event.
func (b *Builder) Add(event Event) {
	h := &b.history
	if h.Start.IsZero() {
		h.Start = event.Time
		b.pods, b.byName, b.byJob = map[string]*PodHistory{}, map[string][]*PodHistory{}, map[string][]*PodHistory{}
		b.workloads, b.nodes, b.jobs = map[string]*WorkloadHistory{}, map[string]*NodeHistory{}, map[string]*JobHistory{}
	}
	h.End = event.Time
	switch {
	case event.Node != nil:
		b.node(event.Time, *event.Node)
	case event.Pod != nil:
		pod := b.pods[event.Pod.UID]
		if pod == nil {
			pod = &PodHistory{Created: event.Time}
			b.pods[event.Pod.UID] = pod
			b.byName[event.Pod.Name] = append(b.byName[event.Pod.Name], pod)
			b.byJob[event.Pod.Job] = append(b.byJob[event.Pod.Job], pod)
			h.Pods = append(h.Pods, pod)
		}
		pod.observe(event.Time, *event.Pod)
	case event.Workload != nil:
		workload := b.workloads[event.Workload.UID]
		if workload == nil {
			workload = &WorkloadHistory{Created: event.Time}
			b.workloads[event.Workload.UID] = workload
			h.Workloads = append(h.Workloads, workload)
		}
		if workload.observe(event.Time, *event.Workload) {
			b.disrupt(event.Time, event.Workload)
		}
	case event.Job != nil:
		job := b.jobs[event.Job.Name]
		if job == nil {
			job = &JobHistory{Name: event.Job.Name}
			b.jobs[event.Job.Name] = job
			h.Jobs = append(h.Jobs, job)
		}
		job.Points = append(job.Points, Point{Time: event.Time, Status: event.Job.Status})
	case event.Stage != nil:
		h.Stages = append(h.Stages, StageAt{Stage: *event.Stage, Time: event.Time})
	case event.Fault != nil:
		h.Faults = append(h.Faults, FaultAt{Fault: *event.Fault, Time: event.Time})
	case event.Plan != nil:
		h.Plans = append(h.Plans, *event.Plan)
	case event.Forecast != nil:
		h.Forecasts = append(h.Forecasts, *event.Forecast)
	case event.Listing != nil:
		h.Listings = append(h.Listings, *event.Listing)
	case event.Queried != nil:
		h.Queried = append(h.Queried, *event.Queried)
	case event.Result != nil:
		h.Results = append(h.Results, *event.Result)
	case event.Script != nil:
		h.Scripts = append(h.Scripts, *event.Script)
	case event.Leftovers != nil:
		h.Leftovers = event.Leftovers
	}
}

// node adds a state of a node: present, or lost.
func (b *Builder) node(at time.Time, node Node) {
	history := b.nodes[node.Name]
	if history == nil {
		history = &NodeHistory{}
		b.nodes[node.Name] = history
		b.history.Nodes = append(b.history.Nodes, history)
	}
	last := len(history.Present) - 1
	present := last >= 0 && history.Present[last].To.IsZero()
	switch {
	case node.Lost && present:
		history.Present[last].To = at
	case !node.Lost && !present:
		history.Present = append(history.Present, Span{From: at})
	}
	history.Node = node
}

// disrupt marks the pods whose workload was preempted.
func (b *Builder) disrupt(at time.Time, workload *Workload) {
	for _, owner := range workload.Owners {
		pods := b.byJob[owner.Name]
		if owner.Kind == "Pod" {
			pods = b.byName[owner.Name]
		} else if owner.Kind != "Job" {
			continue
		}
		for _, pod := range pods {
			if pod.Ended.IsZero() && pod.Disruption == "" {
				pod.Disruption, pod.Cause, pod.Disrupted = PreemptionByQueue, workload.Cause, at
			}
		}
	}
}

// observe adds a state of the pod. Every time is that of the first state that shows it.
func (p *PodHistory) observe(at time.Time, pod Pod) {
	first := func(t *time.Time, happened bool) {
		if happened && t.IsZero() {
			*t = at
		}
	}
	first(&p.Unschedulable, pod.Unschedulable != "")
	first(&p.Bound, pod.Node != "")
	first(&p.Running, pod.Phase == "Running")
	first(&p.Disrupted, pod.Disruption != "")
	first(&p.Deleting, pod.Deleting)
	first(&p.Ended, pod.Deleted || pod.Phase == "Succeeded" || pod.Phase == "Failed")
	p.FirstMessage = cmp.Or(p.FirstMessage, pod.Unschedulable)
	// Keep what earlier states showed: the last state, that of a deleted object, may leave it out.
	if pod.Disruption == "" {
		pod.Disruption, pod.Cause = p.Disruption, p.Cause
	}
	pod.Node = cmp.Or(pod.Node, p.Node)
	if pod.ExitCode == nil {
		pod.ExitCode = p.ExitCode
	}
	if pod.Requests == nil {
		pod.Requests = p.Requests
	}
	p.Pod = pod
}
