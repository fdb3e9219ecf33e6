package simulator

import (
	"cmp"
	"slices"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/simulator/scenariofile"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/coordinator"
)

// elastic is an elastic training job. The real coordinator makes its master's decisions. For the coordinator the whole
// job is one step, whose gradient arrives when all steps are done at the speed of the workers.
type elastic struct {
	*simulation
	job
	spec *scenariofile.Elastic

	core    *coordinator.Coordinator // nil while there is no master
	events  []coordinator.Event      // to be delivered to core
	telling bool
	master  *pod
	masters int // so far
	// workers, in the order of their numbers, without those that have ended.
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
		e.eventQueue.add(event{at: max(e.now, Time(r.At)), kind: jobResizes, subject: e.id, workers: workerRange{int32(r.Min), int32(r.Max)}})
	}
	q := e.spec.Queue
	if q == nil {
		e.makeMaster()
		return
	}
	class := cmp.Or(q.MinPriorityClass, q.PriorityClass)
	e.group = e.newWorkload(e, trainingjob.MinJobName(e.name), q.Name, class, e.class(e.spec.Master.PriorityClass), e.groupPods(),
		set{masterRole, 1, &e.spec.Master, e.spec.Topology.OfCore(masterRole)},
		set{workerRole, e.min, &e.spec.Workers.Pod, e.spec.Topology.OfCore(workerRole)})
	e.createMinPods()
}

func (e *elastic) priority() int32 {
	if q := e.spec.Queue; q != nil && q.PriorityClass != "" {
		return e.workloadClasses[q.PriorityClass]
	}
	return e.class(e.spec.Workers.PriorityClass)
}

func (e *elastic) admitted(w *workload) {
	if w == e.group { // the eviction of a worker above the minimum loses nothing
		e.reports(w)
	}
	for _, p := range append(slices.Clone(e.workers), e.master) {
		if p != nil && p.quota == w && p.phase == gated {
			e.ungate(p)
		}
	}
}

func (e *elastic) evicted(w *workload) {
	if w == e.group {
		e.deliver(coordinator.Stop{Cause: coordinator.Evicted})
	}
	for _, p := range append(slices.Clone(e.workers), e.master) {
		if p != nil && p.quota == w && p.phase != gated {
			e.stop(p, quotaRevoked)
		}
	}
}

func (e *elastic) podRuns(p *pod) {
	if p == e.master {
		e.startMaster()
		return
	}
	e.deliver(e.podState(p))
	e.eventQueue.add(event{at: e.now + Time(e.spec.Workers.Joins), kind: workerJoins, subject: e.id, pod: p.id})
}

// startMaster starts a coordinator, possibly as the successor of another one.
func (e *elastic) startMaster() {
	e.core = coordinator.New(coordinator.Config{
		Steps: 1, Minibatches: func(int64) int { return 1 }, Min: e.min, Max: e.max, MinPodsExternal: e.group != nil, LastWorkerID: e.lastID,
		SilentTicks: 1, RetainedUpdates: 1, HashEvery: 1, MaxFailures: 1, // of no effect: no worker is silent, wrong, or fails by itself
	})
	for _, p := range e.workers {
		e.deliver(e.podState(p))
	}
	e.deliver(coordinator.Start{})
	for _, p := range e.workers {
		if p.joined && !p.leaving {
			e.deliver(coordinator.Hello{Worker: p.number})
		}
	}
}

// podState is the master's view of a worker's pod.
func (e *elastic) podState(p *pod) coordinator.PodChanged {
	c := coordinator.PodChanged{
		Worker: p.number, Name: p.name, Minimum: p.minimum, Terminating: p.leaving,
		Preempted: p.leaving && (p.why == preempted || p.why == quotaRevoked),
	}
	switch p.phase {
	case running:
		c.State = coordinator.PodRunning
	case ended:
		c.State, c.Disrupted = coordinator.PodEnded, true
	}
	return c
}

func (e *elastic) podStopping(p *pod) {
	if p == e.master {
		e.deliver(coordinator.Stop{}) // it writes a checkpoint
		return
	}
	e.deliver(e.podState(p))
}

func (e *elastic) podEnded(p *pod) {
	if p == e.master {
		e.masterEnded(p)
		return
	}
	e.workers = slices.DeleteFunc(e.workers, func(other *pod) bool { return other == p })
	if p.joined {
		if p.why.lost() {
			e.deliver(coordinator.Lost{Worker: p.number, Reason: "was lost"})
		} else {
			e.deliver(coordinator.Left{Worker: p.number})
		}
	}
	e.deliver(e.podState(p))
	e.mayLoseState(p.why)
	switch {
	case p.quota == nil:
	case p.quota != e.group && p.why == completed:
		e.finishes(p.quota)
	case p.quota != e.group:
		e.withdraws(p.quota)
	case e.over || p.why == completed:
	default:
		e.createMinPods() // the Job of the minimum workers recreates its pods
	}
}

// masterEnded handles the end of a master. Its Job creates another one, unless the job is over or its quota was
// revoked.
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
		if at := slices.IndexFunc(e.workers, func(p *pod) bool { return p.id == ev.pod }); at >= 0 && !e.workers[at].leaving {
			e.workers[at].joined = true
			e.deliver(coordinator.Hello{Worker: e.workers[at].number})
		}
	case jobResizes:
		e.min, e.max = int(ev.workers.min), int(ev.workers.max)
		e.deliver(coordinator.Resize{Min: e.min, Max: e.max})
	case workDone:
		if ev.version == e.version {
			e.settle(e.now)
			e.deliver(coordinator.Gradient{Worker: e.ready()[0].number, Hi: 1})
		}
	}
}

// deliver passes an event to the coordinator and carries out its effects. Events that these cause are delivered
// afterwards, in order.
func (e *elastic) deliver(event coordinator.Event) {
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
				[]eventlog.Owner{{Kind: "Pod", Name: name}}, set{mainSet, 1, &e.spec.Workers.Pod, e.spec.Topology.OfBurst()})
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

func (e *elastic) fails(master bool) *pod {
	runs := func(p *pod) bool { return p != nil && p.phase == running && !p.leaving }
	if master {
		if runs(e.master) {
			return e.master
		}
		return nil
	}
	if at := slices.IndexFunc(e.workers, runs); at >= 0 {
		return e.workers[at]
	}
	return nil
}

func (e *elastic) unfinished() {
	if !e.over {
		e.settle(e.now)
		e.keep()
	}
}
