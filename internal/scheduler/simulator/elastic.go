package simulator

import (
	"slices"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/simulator/scenariofile"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/coordinator"
)

// elastic is an elastic training job. Its master's decisions are made by the real coordinator: to it the whole of the
// job is one step, whose gradient comes when the speed of the workers that it had says that all steps are done.
type elastic struct {
	*simulation
	job
	spec *scenariofile.Elastic

	core    *coordinator.Coordinator // nil while there is no master
	events  []coordinator.Event      // that it is still to be told
	telling bool
	master  *pod
	masters int // so far
	// workers by number, those that are gone left out.
	workers []*pod
	lastID  int
	min     int
	max     int

	group *workload // of master and minimum workers; nil without a queue

	progress
	reported trainingjob.Status
}

func (e *elastic) arrives() {
	e.min, e.max, e.lastID = e.spec.Workers.Min, e.spec.Workers.Max, -1
	e.total = e.spec.Steps * workPerStep
	for _, r := range e.spec.Resize {
		e.agenda.add(event{at: max(e.now, Time(r.At)), kind: jobResizes, subject: e.id, detail: r.Min<<16 | r.Max})
	}
	q := e.spec.Queue
	if q == nil {
		e.makeMaster()
		return
	}
	class := q.MinPriorityClass
	if class == "" {
		class = q.PriorityClass
	}
	e.group = e.newWorkload(e, trainingjob.MinJobName(e.name), q.Name, class, e.class(e.spec.Master.PriorityClass), e.groupPods(),
		set{masterRole, 1, &e.spec.Master}, set{workerRole, e.min, &e.spec.Workers.Pod})
	e.createMinPods()
}

func (e *elastic) priority() int32 {
	if q := e.spec.Queue; q != nil && q.PriorityClass != "" {
		return e.workloadClasses[q.PriorityClass]
	}
	return e.class(e.spec.Workers.PriorityClass)
}

func (e *elastic) admitted(w *workload) {
	for _, p := range append(slices.Clone(e.workers), e.master) {
		if p != nil && p.quota == w && p.phase == gated {
			e.ungate(p)
		}
	}
}

func (e *elastic) evicted(w *workload) {
	if w == e.group {
		e.tell(coordinator.Stop{Cause: coordinator.Evicted})
	}
	for _, p := range append(slices.Clone(e.workers), e.master) {
		if p != nil && p.quota == w && p.phase != gated {
			e.stop(p, unquoted)
		}
	}
}

func (e *elastic) podRuns(p *pod) {
	if p == e.master {
		e.takesOver()
		return
	}
	e.tell(e.podState(p))
	e.agenda.add(event{at: e.now + Time(e.spec.Workers.Joins), kind: workerJoins, subject: e.id, detail: p.id})
}

// takesOver is a master that begins, perhaps after another one.
func (e *elastic) takesOver() {
	e.core = coordinator.New(coordinator.Config{
		Steps: 1, Minibatches: func(int64) int { return 1 }, Min: e.min, Max: e.max, MinPodsExternal: e.group != nil, LastWorkerID: e.lastID,
		SilentTicks: 1, RetainedUpdates: 1, HashEvery: 1, MaxFailures: 1, // of no effect: no worker is silent, wrong, or fails by itself
	})
	for _, p := range e.workers {
		e.tell(e.podState(p))
	}
	e.tell(coordinator.Start{})
	for _, p := range e.workers {
		if p.joined && !p.leaving {
			e.tell(coordinator.Hello{Worker: p.number})
		}
	}
}

// podState is what the master sees of a worker's pod.
func (e *elastic) podState(p *pod) coordinator.PodChanged {
	c := coordinator.PodChanged{Worker: p.number, Name: p.name, Minimum: p.minimum, Terminating: p.leaving, Preempted: p.leaving && (p.why == outranked || p.why == unquoted)}
	switch p.phase {
	case running:
		c.State = coordinator.PodRunning
	case ended:
		c.State, c.Disrupted = coordinator.PodEnded, true
	}
	return c
}

func (e *elastic) podLeaves(p *pod) {
	if p == e.master {
		e.tell(coordinator.Stop{}) // it writes a checkpoint
		return
	}
	e.tell(e.podState(p))
}

func (e *elastic) podEnded(p *pod) {
	if p == e.master {
		e.masterEnded(p)
		return
	}
	e.workers = slices.DeleteFunc(e.workers, func(other *pod) bool { return other == p })
	if p.joined {
		if p.why == nodeGone {
			e.tell(coordinator.Lost{Worker: p.number, Reason: "was lost with its node"})
		} else {
			e.tell(coordinator.Left{Worker: p.number})
		}
	}
	e.tell(e.podState(p))
	e.mayLoseState(p.why)
	switch {
	case p.quota == nil:
	case p.quota != e.group && p.why == completed:
		e.finishes(p.quota)
	case p.quota != e.group:
		e.withdraws(p.quota)
	case e.over || p.why == completed:
	default:
		e.createMinPods() // the Job of the minimum workers makes its pods again
	}
}

// masterEnded is a master that is gone. Its Job makes another one, unless all is over or the queue took its quota.
func (e *elastic) masterEnded(p *pod) {
	e.master = nil
	if e.core != nil {
		e.core, e.events = nil, nil
	}
	e.pace()
	e.mayLoseState(p.why)
	switch {
	case e.over:
	case e.group != nil:
		e.createMinPods()
	default:
		e.makeMaster()
	}
	e.report()
}

func (e *elastic) timer(ev event) {
	switch ev.kind {
	case workerJoins:
		if at := slices.IndexFunc(e.workers, func(p *pod) bool { return p.id == ev.detail }); at >= 0 && !e.workers[at].leaving {
			e.workers[at].joined = true
			e.tell(coordinator.Hello{Worker: e.workers[at].number})
		}
	case jobResizes:
		e.min, e.max = ev.detail>>16, ev.detail&0xffff
		e.tell(coordinator.Resize{Min: e.min, Max: e.max})
	case workDone:
		if ev.stamp == e.stamp {
			e.settle(e.now)
			e.tell(coordinator.Gradient{Worker: e.ready()[0].number, Hi: 1})
		}
	}
}

// tell gives the coordinator an event, and does what it says. What that leads to is told afterwards, in order.
func (e *elastic) tell(event coordinator.Event) {
	if e.core == nil || e.over {
		return
	}
	e.events = append(e.events, event)
	if e.telling {
		return
	}
	e.telling = true
	for len(e.events) > 0 && e.core != nil {
		next := e.events[0]
		e.events = e.events[1:]
		for _, effect := range slices.Clone(e.core.Step(next)) {
			e.carryOut(effect)
		}
	}
	e.telling = false
	e.pace()
	e.report()
}

func (e *elastic) carryOut(effect coordinator.Effect) {
	switch effect := effect.(type) {
	case coordinator.CreatePod:
		var w *workload
		name := trainingjob.WorkerName(e.name, effect.Worker)
		if q := e.spec.Queue; q != nil {
			w = e.newWorkload(e, "pod-"+name, q.Name, q.PriorityClass, e.class(e.spec.Workers.PriorityClass),
				[]eventlog.Owner{{Kind: "Pod", Name: name}}, set{mainSet, 1, &e.spec.Workers.Pod})
		}
		e.makeWorker(effect.Worker, effect.Minimum, w)
	case coordinator.DeletePod:
		if p := e.worker(effect.Worker); p != nil {
			e.stop(p, retired)
		}
	case coordinator.SaveModel:
		e.events = append(e.events, coordinator.ModelSaved{})
	case coordinator.Dismiss:
		if p := e.worker(effect.Worker); p != nil {
			e.complete(p)
		}
	case coordinator.Exit:
		if effect.Code == coordinator.ExitDone {
			e.succeeds()
		}
	}
}

// succeeds is the end of the job: all its pods have been dismissed, the master is the last.
func (e *elastic) succeeds() {
	e.keep()
	e.ends(&e.job, e.priority())
	e.report()
	e.complete(e.master)
	for _, p := range slices.Clone(e.workers) {
		e.stop(p, retired)
	}
	if e.group != nil {
		e.finishes(e.group)
	}
}

func (e *elastic) unfinished() {
	if !e.over {
		e.settle(e.now)
		e.keep()
	}
}
