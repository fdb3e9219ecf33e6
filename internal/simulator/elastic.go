package simulator

import (
	"fmt"
	"slices"

	"github.com/elastic-training/terraform-provider-elastic/internal/eventlog"
	"github.com/elastic-training/terraform-provider-elastic/internal/simulator/scenario"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/coordinator"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainingjob"
)

// elastic is an elastic training job. Its master's decisions are made by the real coordinator: to it the whole of the job is one step, whose gradient
// comes when the speed of the workers that it had says that all steps are done.
type elastic struct {
	*simulation
	job
	spec *scenario.Elastic

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

	group *workload // of master and floor; nil without a queue

	progress
	reported trainingjob.Status
}

// The roles of pods, and their pod sets in a queue.
const (
	masterRole = trainingjob.RoleMaster
	workerRole = trainingjob.RoleWorker
)

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
	class := q.FloorPriorityClass
	if class == "" {
		class = q.PriorityClass
	}
	e.group = e.newWorkload(e, trainingjob.FloorName(e.name), q.Name, class, e.class(e.spec.Master.PriorityClass), e.groupPods(),
		set{masterRole, 1, &e.spec.Master}, set{workerRole, e.min, &e.spec.Workers.Pod})
	e.makeFloor()
}

func (e *elastic) priority() int32 {
	if q := e.spec.Queue; q != nil && q.PriorityClass != "" {
		return e.workloadClasses[q.PriorityClass]
	}
	return e.class(e.spec.Workers.PriorityClass)
}

func (e *elastic) makeMaster() {
	e.master = e.newPod(e, masterRole, 0, e.masterName(e.masters), &e.spec.Master, e.spec.Master.PriorityClass, e.group)
	e.masters++
}

func (e *elastic) makeWorker(id int, floor bool, w *workload) {
	class := e.spec.Workers.PriorityClass
	if floor && e.spec.Workers.FloorPriorityClass != "" {
		class = e.spec.Workers.FloorPriorityClass
	}
	name := trainingjob.WorkerName(e.name, id)
	if e.group != nil && floor {
		name = e.floorName(id)
	}
	p := e.newPod(e, workerRole, id, name, &e.spec.Workers.Pod, class, w)
	p.floor = floor
	e.workers = append(e.workers, p)
	e.lastID = max(e.lastID, id)
}

// groupPods are the pods of master and floor, of which a queue knows their workload.
func (e *elastic) groupPods() []eventlog.Owner {
	owners := []eventlog.Owner{{Kind: "Pod", Name: e.masterName(max(e.masters-1, 0))}}
	for id := range e.min {
		owners = append(owners, eventlog.Owner{Kind: "Pod", Name: e.floorName(id)})
	}
	return owners
}

func (e *elastic) masterName(n int) string {
	return fmt.Sprintf("%s-%d", trainingjob.MasterName(e.name), n)
}

// floorName is of a pod that a Job makes, not the master.
func (e *elastic) floorName(id int) string {
	return fmt.Sprintf("%s-%d", trainingjob.FloorName(e.name), id)
}

// makeFloor makes the master and the floor of a job under a queue, those that are missing; they wait there to be admitted.
func (e *elastic) makeFloor() {
	if e.master == nil {
		e.makeMaster()
	}
	for id := range e.min {
		if e.worker(id) == nil {
			e.makeWorker(id, true, e.group)
			e.tell(e.podState(e.worker(id)))
		}
	}
	e.group.kinds = e.groupPods()
}

func (e *elastic) worker(id int) *pod {
	if at := slices.IndexFunc(e.workers, func(p *pod) bool { return p.number == id }); at >= 0 {
		return e.workers[at]
	}
	return nil
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
		Steps: 1, Minibatches: func(int64) int { return 1 }, Min: e.min, Max: e.max, FloorIsGiven: e.group != nil, LastWorkerID: e.lastID,
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
	c := coordinator.PodChanged{Worker: p.number, Name: p.name, Floor: p.floor, Terminating: p.leaving, Preempted: p.leaving && (p.why == outranked || p.why == unquoted)}
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
		e.makeFloor() // the Job of the floor makes its pods again
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
		e.makeFloor()
	default:
		e.makeMaster()
	}
	e.report()
}

// mayLoseState goes back to the last checkpoint when nobody is left who has the state. Those who were asked to end have written one.
func (e *elastic) mayLoseState(why ending) {
	if e.master != nil && e.core != nil || slices.ContainsFunc(e.workers, func(p *pod) bool { return p.joined }) {
		return
	}
	if why == nodeGone {
		e.tally.lost.add(e.weightOf(&e.spec.Workers.Pod), e.fallBack())
	} else {
		e.checkpoint(e.now, e.done, 0)
	}
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
		e.makeWorker(effect.Worker, effect.Floor, w)
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

// ready are the workers that compute.
func (e *elastic) ready() []*pod {
	var all []*pod
	for _, p := range e.workers {
		if p.joined && p.phase == running {
			all = append(all, p)
		}
	}
	return all
}

// pace notes what the job does from now on: as fast as the workers that it has, if the coordinator says that it runs.
func (e *elastic) pace() {
	e.settle(e.now)
	workers, rate := 0, scenario.Rate(0)
	if e.core != nil && e.core.Status().Phase == coordinator.Running {
		if workers = len(e.ready()); workers > 0 {
			rate = e.spec.Speed.At(workers)
			e.starts(&e.job)
		}
	}
	if !e.goesAt(e.now, rate, workers) {
		return
	}
	if at, ends := e.endsAt(); ends {
		e.agenda.add(event{at: at, kind: workDone, subject: e.id, stamp: e.stamp})
	}
}

// settle counts the work up to a time.
func (e *elastic) settle(now Time) {
	e.progress.settle(now, Time(e.spec.CheckpointEvery))
}

// keep counts what the workers have done and not lost.
func (e *elastic) keep() {
	e.tally.useful.add(e.weightOf(&e.spec.Workers.Pod), e.worked)
	e.worked = 0
}

func (e *elastic) unfinished() {
	if !e.over {
		e.settle(e.now)
		e.keep()
	}
}

// report logs the job's status, when it has changed.
func (e *elastic) report() {
	if e.log == nil || e.reported.Phase == trainingjob.PhaseSucceeded {
		return
	}
	status := trainingjob.Status{
		Phase: trainingjob.PhasePending, Generation: int64(e.masters), StepsDone: e.steps(), StepsTotal: e.spec.Steps,
	}
	for _, p := range e.workers {
		switch {
		case p.joined:
			status.WorkersRunning++
		case !p.leaving:
			status.WorkersPending++
		}
	}
	var said coordinator.Status
	if e.core != nil {
		said = e.core.Status()
		status.Preemptions = said.Preemptions
	}
	switch {
	case e.over:
		status.Phase = trainingjob.PhaseSucceeded
	case e.core != nil:
		status.Phase = map[coordinator.Phase]trainingjob.Phase{coordinator.Running: trainingjob.PhaseRunning}[said.Phase]
		if status.Phase == "" {
			status.Phase = trainingjob.PhaseWaiting
		}
	case e.group != nil && e.group.admission == nil:
		status.Phase = trainingjob.PhaseQueued
	}
	if last := e.reported; last.Phase == status.Phase && last.WorkersRunning == status.WorkersRunning && last.WorkersPending == status.WorkersPending &&
		last.Preemptions == status.Preemptions && last.Generation == status.Generation {
		return
	}
	e.reported = status
	e.write(eventlog.Event{Job: &eventlog.Job{Name: e.name, Status: status}})
}
