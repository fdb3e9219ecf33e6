package simulator

import (
	"maps"
	"slices"
	"strconv"

	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/placement"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/simulator/scenariofile"
)

// phase is a pod's phase.
type phase uint8

const (
	gated   phase = iota // waits for quota
	pending              // waits for a node
	starting
	running
	ended
)

// ending is how a pod ends, or why it is terminated.
type ending uint8

const (
	completed    ending = iota // its work is done
	retired                    // its job no longer needs it
	preempted                  // by the scheduler, for a pod of higher priority
	quotaRevoked               // its workload was evicted
	nodeGone                   // its node was lost
	deleted                    // a fault of the scenario
	killed                     // the same, without a grace period
)

// lost reports whether a pod that ends so has no time to write a checkpoint.
func (e ending) lost() bool { return e == nodeGone || e == killed }

// exitTerminated is the exit code of a process that ends because of SIGTERM.
const exitTerminated = 143

// pod is one pod.
type pod struct {
	id      int
	name    string
	owner   owner
	role    string
	number  int // a worker's
	class   string
	minimum bool

	behaviour *scenariofile.Pod
	shape     *shape
	domain    string         // where the topology has placed it; "": it says nothing
	place     *placement.Pod // nil until it may be scheduled
	quota     *workload      // whose quota it uses; nil: none

	phase   phase
	node    *node
	created Time
	leaving bool // it is terminating
	why     ending
	version int

	ran    bool // it has begun to run
	joined bool // it is a worker that computes, when the job does

	waits   bool   // unschedulable
	noted   string // the last logged reason
	victims int    // whose end it waits for
	waiters []*pod // pods that wait for its end
	scaled  *scaler
}

// owner is a job. Its methods are called when its pods change.
type owner interface {
	arrives()
	podRuns(p *pod)
	podStopping(p *pod) // it begins to terminate, not by its job
	podEnded(p *pod)    // p.why is the reason
	timer(e event)
	admitted(w *workload)
	evicted(w *workload)
	asJob() *job
	priority() int32
	unfinished() // the simulation has ended, and the job has not
	// fails is the running pod that a fault deletes: the master, or else the one with the lowest number; nil for none.
	fails(master bool) *pod
	// checkpointed is when the job wrote its last checkpoint, the simulation's start without one, and whether it computes.
	checkpointed() (at Time, computes bool)
}

// bound reports whether the pod has a node.
func (p *pod) bound() bool { return p.phase == starting || p.phase == running }

// newPod makes a pod. With a workload it is gated until that has quota.
func (s *simulation) newPod(o owner, role string, number int, name string, behaviour *scenariofile.Pod, class string, w *workload) *pod {
	p := &pod{
		id: len(s.pods), name: name, owner: o, role: role, number: number, class: class,
		behaviour: behaviour, created: s.now, quota: w, phase: gated,
	}
	s.pods = append(s.pods, p)
	if w != nil && s.placesPods() {
		w.placed = append(w.placed, p)
	}
	s.logPod(p)
	if w == nil || w.holds() {
		s.ungate(p)
	}
	return p
}

// schedulerSees is the time between a pod's creation and its arrival at the scheduler: the shortest time, because an
// effect must come after its cause.
const schedulerSees = 1

// ungate removes a pod's scheduling gate, if its place is known where a topology says where it goes.
func (s *simulation) ungate(p *pod) {
	if p.quota.placeOf(p.role) != nil {
		s.placePods(p.quota, p.role)
		return
	}
	s.pends(p, nil)
}

// pends lets the scheduler see a pod, which is to go to nodes with the labels of its domain.
func (s *simulation) pends(p *pod, domain map[string]string) {
	var selection flavorSelection
	if p.quota != nil {
		selection = p.quota.selection(s, p.role)
		p.quota.pods++
	}
	if len(domain) > 0 {
		if selection.labels == nil {
			selection.labels = map[string]string{}
		}
		maps.Copy(selection.labels, domain)
	}
	p.shape = s.shapeOf(p.behaviour, p.class, selection)
	place := *p.shape.template
	place.Name, place.Created = p.name, s.clock(p.created)
	p.place, p.phase = &place, pending
	s.byPlace[p.place] = p
	s.eventQueue.add(event{at: s.now + schedulerSees, kind: podSeen, subject: p.id, version: p.version})
}

// bind puts a pod on a node.
func (s *simulation) bind(p *pod, n *node) {
	s.dequeue(p)
	p.place.Started = s.clock(s.now)
	s.cluster.AddPod(p.place, n.name)
	n.take(p)
	p.node, p.phase, p.noted = n, starting, ""
	s.seesPod(p)
	s.stats.take(p.shape.requests, 1, s.counted(p))
	s.logPod(p)
	if p.behaviour.Starts == 0 {
		s.runs(p)
		return
	}
	s.eventQueue.add(event{at: s.now + Time(p.behaviour.Starts), kind: podStarts, subject: p.id, version: p.version})
}

func (s *simulation) runs(p *pod) {
	p.phase, p.ran = running, true
	s.logPod(p)
	p.owner.podRuns(p)
}

// stop terminates a pod. A pod without a node, or one that has not started, ends at once.
func (s *simulation) stop(p *pod, why ending) {
	if p.phase == ended || p.leaving {
		return
	}
	p.leaving, p.why = true, why
	p.version++
	if why == preempted {
		s.stats.preemptions++
	}
	if !p.bound() {
		s.gone(p)
		return
	}
	s.cluster.Evict(p.place, p.node.name)
	s.logPod(p)
	if why == killed {
		s.gone(p)
		return
	}
	if why != retired {
		p.owner.podStopping(p)
	}
	if stops := Time(*p.behaviour.Stops); p.phase == running && stops > 0 {
		s.eventQueue.add(event{at: s.now + stops, kind: podStops, subject: p.id, version: p.version})
		return
	}
	s.gone(p)
}

// losesPod deletes the pod of a job that a fault names; none if the job has no such pod that runs.
func (s *simulation) losesPod(fault *scenariofile.Fault) {
	at := slices.IndexFunc(s.jobs, func(o owner) bool { return o.asJob().name == fault.Job })
	p := s.jobs[at].fails(fault.Master)
	if p == nil {
		return
	}
	kind, why := eventlog.PodDeleted, deleted
	if fault.Kill {
		kind, why = eventlog.PodKilled, killed
	}
	if s.log != nil {
		s.write(eventlog.Event{Fault: &eventlog.Fault{Kind: kind, Target: p.name}})
	}
	s.stop(p, why)
}

// complete ends a pod whose work is done.
func (s *simulation) complete(p *pod) {
	if p.phase == ended {
		return
	}
	p.why = completed
	s.gone(p)
}

// gone removes an ended pod from its node, and notifies the pods that wait for its end and its job.
func (s *simulation) gone(p *pod) {
	if p.phase == ended {
		return
	}
	p.version++
	if p.place != nil {
		delete(s.byPlace, p.place)
		if p.bound() {
			p.node.giveBack(p)
			s.missesPod(p)
			s.stats.take(p.shape.requests, -1, s.counted(p))
			if !p.node.lost {
				s.cluster.RemovePod(p.place, p.node.name)
				s.touch(p.node)
				s.emptied(p.node)
			}
		} else {
			s.dequeue(p)
			s.cluster.Denominate(p.place)
		}
	}
	p.phase = ended
	if p.quota != nil {
		p.quota.placed = slices.DeleteFunc(p.quota.placed, func(other *pod) bool { return other == p })
	}
	for _, preemptor := range p.waiters {
		if preemptor.victims--; preemptor.victims == 0 && preemptor.phase == pending {
			preemptor.shape.awaiting.remove(preemptor)
			s.ready = append(s.ready, preemptor)
		}
	}
	s.logPod(p)
	if p.quota != nil && p.place != nil {
		s.releasePod(p)
	}
	s.pods[p.id] = nil // frees the memory of a trace's millions of pods
	p.owner.podEnded(p)
}

// counted is what a pod holds of the resource by which work is counted; nothing if it does not compute.
func (s *simulation) counted(p *pod) int64 {
	if p.role == masterRole {
		return 0
	}
	return p.shape.requests[s.weighed]
}

func (s *simulation) logPod(p *pod) {
	if s.log == nil {
		return
	}
	state := eventlog.Pod{Name: p.name, UID: strconv.Itoa(p.id), Job: p.owner.asJob().name, Role: p.role, PriorityClass: p.class, Phase: "Pending"}
	if p.node != nil {
		state.Node = p.node.name
	}
	if p.phase == running {
		state.Phase = "Running"
	}
	if p.phase <= pending && !p.waits && !p.leaving {
		state.Requests = requestsText(p.behaviour)
	}
	state.Unschedulable = p.noted
	if p.leaving {
		state.Deleting = true
		if p.why == preempted {
			state.Disruption, state.Cause = eventlog.PreemptionByScheduler, p.noted
			state.Unschedulable = ""
			if n := len(p.waiters); n > 0 {
				state.Preemptor = p.waiters[n-1].name
			}
		}
	}
	if p.phase == ended {
		switch {
		case p.why == completed:
			state.Phase, state.ExitCode, state.Reason = "Succeeded", new(int32(0)), "Completed"
		case p.ran && !p.why.lost():
			state.Phase, state.ExitCode, state.Reason, state.Deleted = "Failed", new(int32(exitTerminated)), "Error", true
		default:
			state.Deleted = true
		}
	}
	s.write(eventlog.Event{Pod: &state})
}

// logLost logs work that a job has to do again.
func (s *simulation) logLost(job string, steps int64, work Time) {
	if s.log != nil && (steps > 0 || work > 0) {
		s.write(eventlog.Event{Lost: &eventlog.Lost{Job: job, Steps: steps, Seconds: float64(work) / 1000}})
	}
}
