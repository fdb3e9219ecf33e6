// Package audit lists the disruptions of jobs, and adds up their cost by the priority class of the preemptor. It is a
// function of an event log, or of the status of a cluster's jobs and Workloads, which its callers read.
package audit

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue/preemption"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
)

// Entry is one disruption: of a pod, or of a Workload with all of its pods.
type Entry struct {
	Namespace string `json:"namespace,omitempty"`
	Job       string `json:"job"`
	Class     string `json:"priority_class,omitempty"`
	ByClass   string `json:"preemptor_priority_class,omitempty"`
	trainingjob.Disruption
}

// Sum is of the entries of one kind, with one priority class of the preemptor and one of the victim.
type Sum struct {
	Kind        trainingjob.DisruptionKind `json:"kind"`
	ByClass     string                     `json:"preemptor_priority_class"` // "" where it is not known, or there is none
	Class       string                     `json:"priority_class"`
	Count       int                        `json:"count"`
	LostSteps   int64                      `json:"lost_steps"`
	LostSeconds float64                    `json:"lost_seconds"`
}

// Report is an audit.
type Report struct {
	Disruptions []Entry `json:"disruptions"` // by time
	Sums        []Sum   `json:"sums"`        // the most seconds lost first
}

// Of sorts entries and adds them up.
func Of(entries []Entry) Report {
	r := Report{Disruptions: slices.Clone(entries), Sums: []Sum{}}
	if r.Disruptions == nil {
		r.Disruptions = []Entry{}
	}
	slices.SortStableFunc(r.Disruptions, func(a, b Entry) int { return a.At.Compare(b.At) })
	for _, e := range r.Disruptions {
		i := slices.IndexFunc(r.Sums, func(s Sum) bool { return s.Kind == e.Kind && s.ByClass == e.ByClass && s.Class == e.Class })
		if i < 0 {
			i = len(r.Sums)
			r.Sums = append(r.Sums, Sum{Kind: e.Kind, ByClass: e.ByClass, Class: e.Class})
		}
		s := &r.Sums[i]
		s.Count, s.LostSteps, s.LostSeconds = s.Count+1, s.LostSteps+e.LostSteps, s.LostSeconds+e.LostSeconds
	}
	slices.SortStableFunc(r.Sums, func(a, b Sum) int { return cmp.Compare(b.LostSeconds, a.LostSeconds) })
	return r
}

// OfLog is the audit of an event log. Where a master has reported its own record, as it does in a real cluster, that is
// taken, with what the log knows besides: it is more exact.
func OfLog(events []eventlog.Event) Report {
	l := &logReader{
		jobs: map[string]*jobLog{}, pods: map[string]eventlog.Pod{}, workloads: map[string]eventlog.Workload{},
		classes: map[string]string{}, owners: map[string]string{}, nodesLost: map[string]bool{},
	}
	for _, event := range events {
		switch {
		case event.Node != nil:
			l.nodesLost[event.Node.Name] = event.Node.Lost
		case event.Pod != nil:
			l.pod(event.Time, *event.Pod)
		case event.Workload != nil:
			l.workload(event.Time, *event.Workload)
		case event.Job != nil:
			l.status(event.Time, event.Job.Name, event.Job.Status)
		case event.Lost != nil:
			l.lost(*event.Lost)
		}
	}
	var entries []Entry
	for _, name := range slices.Sorted(maps.Keys(l.jobs)) {
		entries = append(entries, l.of(name, l.jobs[name])...)
	}
	return Of(entries)
}

// nodeLost is the reason of a pod that is gone with its node.
const nodeLost = "NodeLost"

// logReader is an event log up to an event.
type logReader struct {
	jobs      map[string]*jobLog
	pods      map[string]eventlog.Pod      // the last state, by UID
	workloads map[string]eventlog.Workload // the same
	classes   map[string]string            // of pods, by name
	owners    map[string]string            // jobs of pods, by name
	nodesLost map[string]bool
}

// jobLog is a job's part of it.
type jobLog struct {
	seen     []*Entry
	running  map[string]bool // pods, by UID
	status   trainingjob.Status
	mastered bool                     // a master reports
	stopped  bool                     // it did not compute since the oldest disruption that is not recovered
	reported []trainingjob.Disruption // by the master
}

func (l *logReader) job(name string) *jobLog {
	j := l.jobs[name]
	if j == nil {
		j = &jobLog{running: map[string]bool{}}
		l.jobs[name] = j
	}
	return j
}

// of are the entries of a job.
func (l *logReader) of(name string, j *jobLog) (entries []Entry) {
	if len(j.reported) == 0 {
		for _, e := range j.seen {
			e.Job = name
			entries = append(entries, *e)
		}
		return entries
	}
	for _, d := range j.reported {
		e := Entry{Job: name, Class: l.classes[d.Pod], Disruption: d}
		for _, seen := range j.seen {
			if seen.Pod == d.Pod && d.Pod != "" {
				e.By, e.ByClass = cmp.Or(d.By, seen.By), seen.ByClass
			}
		}
		if by, known := l.workloads[d.ByUID]; known {
			e.By, e.ByClass = cmp.Or(e.By, "workload "+by.Name), by.PriorityClass
		}
		if by, known := l.pods[d.ByUID]; known {
			e.By, e.ByClass = cmp.Or(e.By, "pod "+by.Name), by.PriorityClass
		}
		entries = append(entries, e)
	}
	return entries
}

func (l *logReader) begin(j *jobLog, e *Entry) {
	if !slices.ContainsFunc(j.seen, open) {
		j.stopped = false
	}
	e.Workers, e.Step = len(j.running), j.status.StepsDone
	j.seen = append(j.seen, e)
}

func open(e *Entry) bool { return e.Recovered == nil }

func (l *logReader) pod(at time.Time, p eventlog.Pod) {
	before := l.pods[p.UID]
	l.classes[p.Name], l.owners[p.Name] = cmp.Or(p.PriorityClass, l.classes[p.Name]), p.Job
	j := l.job(p.Job)
	disrupted := p.Disruption != "" && before.Disruption == "" && !p.Deleted
	if p.Deleted && before.Phase == "Running" && !before.Deleting && l.nodesLost[before.Node] {
		disrupted, p.Disruption = true, nodeLost
	}
	if disrupted {
		e := &Entry{Class: p.PriorityClass, Disruption: trainingjob.Disruption{At: at, Role: p.Role, DisruptionCause: trainingjob.DisruptionCause{
			Pod: p.Name, UID: p.UID, Kind: trainingjob.DisruptionEvicted, Reason: p.Disruption, Message: p.Cause,
		}}}
		if p.Disruption == eventlog.PreemptionByScheduler {
			e.Kind = trainingjob.DisruptionPreempted
		}
		if p.Preemptor != "" {
			e.By, e.ByClass = "pod "+p.Preemptor, l.classes[p.Preemptor]
		}
		l.begin(j, e)
	}
	l.pods[p.UID] = p
	if p.Phase == "Running" && !p.Deleting && !p.Deleted {
		j.running[p.UID] = true
	} else {
		delete(j.running, p.UID)
	}
	j.settle(at, false)
}

func (l *logReader) workload(at time.Time, w eventlog.Workload) {
	before := l.workloads[w.UID]
	l.workloads[w.UID] = w
	if w.Evicted == "" || before.Evicted != "" {
		return
	}
	e := &Entry{Class: w.PriorityClass, Disruption: trainingjob.Disruption{At: at, DisruptionCause: trainingjob.DisruptionCause{
		Pod: "workload " + w.Name, Kind: trainingjob.DisruptionEvicted, Reason: cmp.Or(w.Preempted, w.Evicted), Message: w.Cause,
	}}}
	if w.Evicted == eventlog.EvictedByPreemption {
		e.Kind = trainingjob.DisruptionPreempted
		e.ByUID, _, _ = preemption.ParseMessage(w.Cause)
		if by, known := l.workloads[e.ByUID]; known {
			e.By, e.ByClass = "workload "+by.Name, by.PriorityClass
		}
	}
	job := w.Title()
	for _, o := range w.Owners { // a group of pods belongs to their job
		if o.Kind == "Pod" {
			job = cmp.Or(l.owners[o.Name], job)
		}
	}
	l.begin(l.job(job), e)
}

func (l *logReader) status(at time.Time, name string, s trainingjob.Status) {
	j := l.job(name)
	j.status, j.mastered = s, true
	j.stopped = j.stopped || s.Phase != trainingjob.PhaseRunning
	j.settle(at, true)
	if s.Disruptions == nil {
		return
	}
	for _, d := range s.Disruptions.Newest {
		same := func(of trainingjob.Disruption) bool { return of.Pod == d.Pod && of.At.Equal(d.At) }
		if i := slices.IndexFunc(j.reported, same); i >= 0 {
			j.reported[i] = d
		} else {
			j.reported = append(j.reported, d)
		}
	}
}

// settle notes which disruptions are over. A job without a master computes while as many of its pods run as before, and
// one with a master when that says so.
func (j *jobLog) settle(at time.Time, reported bool) {
	workers, again := 0, 0.0
	var over []*Entry
	for _, e := range j.seen {
		if since := at.Sub(e.At).Seconds(); e.FullSize == nil && since > 0 && len(j.running) >= e.Workers {
			e.FullSize = &since
		}
		if open(e) {
			workers, again, over = max(workers, e.Workers), again+e.LostSeconds, append(over, e)
		}
	}
	computes := len(j.running) >= workers
	if j.mastered {
		computes = reported && j.status.Phase == trainingjob.PhaseRunning
	}
	if len(over) == 0 || !computes || !at.After(over[len(over)-1].At) {
		return
	}
	for i, e := range over { // as in a master's record the newest is charged
		since, until := at.Sub(e.At).Seconds()+again, at // new work begins when what was lost is done again
		if i+1 < len(over) {
			until = over[i+1].At
		}
		e.Recovered = &since
		if j.stopped || !j.mastered {
			e.LostSeconds += until.Sub(e.At).Seconds()
		}
	}
}

// lost charges the newest disruption of the job: it was the reason.
func (l *logReader) lost(of eventlog.Lost) {
	if j := l.job(of.Job); len(j.seen) > 0 && open(j.seen[len(j.seen)-1]) {
		e := j.seen[len(j.seen)-1]
		e.LostSteps, e.LostSeconds = e.LostSteps+of.Steps, e.LostSeconds+of.Seconds
	}
}
