package eventlog

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
)

// History is a log told by pod and by job. Times are zero for what did not happen.
type History struct {
	Start, End time.Time
	Nodes      []*NodeLife     // by name
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

// NodeLife is a node and when it was there.
type NodeLife struct {
	Node  // as last seen while it was there
	There []Span
}

// Span is a time; To is zero while it goes on.
type Span struct{ From, To time.Time }

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
	var t Telling
	for _, event := range events {
		t.Add(event)
	}
	return t.History()
}

// Telling is a history in the making, for logs that are not kept. The zero Telling has no event yet.
type Telling struct {
	history   History
	pods      map[string]*Life // by UID
	named     map[string][]*Life
	ofJob     map[string][]*Life
	workloads map[string]*WorkloadLife
	nodes     map[string]*NodeLife
	jobs      map[string]*JobHistory
}

// History is what has been told so far.
func (t *Telling) History() *History {
	slices.SortFunc(t.history.Nodes, func(a, b *NodeLife) int { return naturally(a.Name, b.Name) })
	return &t.history
}

// naturally orders names as people do, node-9 before node-10.
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

// Add tells one more event.
func (t *Telling) Add(event Event) {
	h := &t.history
	if h.Start.IsZero() {
		h.Start = event.Time
		t.pods, t.named, t.ofJob = map[string]*Life{}, map[string][]*Life{}, map[string][]*Life{}
		t.workloads, t.nodes, t.jobs = map[string]*WorkloadLife{}, map[string]*NodeLife{}, map[string]*JobHistory{}
	}
	h.End = event.Time
	switch {
	case event.Node != nil:
		t.node(event.Time, *event.Node)
	case event.Pod != nil:
		life := t.pods[event.Pod.UID]
		if life == nil {
			life = &Life{Created: event.Time}
			t.pods[event.Pod.UID] = life
			t.named[event.Pod.Name] = append(t.named[event.Pod.Name], life)
			t.ofJob[event.Pod.Job] = append(t.ofJob[event.Pod.Job], life)
			h.Pods = append(h.Pods, life)
		}
		life.observe(event.Time, *event.Pod)
	case event.Workload != nil:
		workload := t.workloads[event.Workload.UID]
		if workload == nil {
			workload = &WorkloadLife{Created: event.Time}
			t.workloads[event.Workload.UID] = workload
			h.Workloads = append(h.Workloads, workload)
		}
		if workload.observe(event.Time, *event.Workload) {
			t.disrupt(event.Time, event.Workload)
		}
	case event.Job != nil:
		job := t.jobs[event.Job.Name]
		if job == nil {
			job = &JobHistory{Name: event.Job.Name}
			t.jobs[event.Job.Name] = job
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

// node takes one more state of a node: there, or lost.
func (t *Telling) node(at time.Time, node Node) {
	life := t.nodes[node.Name]
	if life == nil {
		life = &NodeLife{}
		t.nodes[node.Name] = life
		t.history.Nodes = append(t.history.Nodes, life)
	}
	last := len(life.There) - 1
	there := last >= 0 && life.There[last].To.IsZero()
	switch {
	case node.Lost && there:
		life.There[last].To = at
	case !node.Lost && !there:
		life.There = append(life.There, Span{From: at})
	}
	life.Node = node
}

// disrupt marks the pods whose workload was preempted.
func (t *Telling) disrupt(at time.Time, workload *Workload) {
	for _, owner := range workload.Owners {
		lives := t.ofJob[owner.Name]
		if owner.Kind == "Pod" {
			lives = t.named[owner.Name]
		} else if owner.Kind != "Job" {
			continue
		}
		for _, life := range lives {
			if life.Ended.IsZero() && life.Disruption == "" {
				life.Disruption, life.Cause, life.Disrupted = PreemptionByQueue, workload.Cause, at
			}
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
	if pod.Requests == nil {
		pod.Requests = l.Requests
	}
	l.Pod = pod
}
