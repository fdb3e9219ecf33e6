package simulator

import (
	"cmp"
	"slices"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/simulator/scenariofile"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/coordinator"
)

// pace notes what the job does from now on: as fast as the workers that it has, if the coordinator says that it runs.
func (e *elastic) pace() {
	e.settle(e.now)
	workers, rate := 0, scenariofile.Rate(0)
	if e.core != nil && e.core.Status().Phase == coordinator.Running {
		if workers = len(e.ready()); workers > 0 {
			rate = e.spec.Speed.At(workers)
			e.starts(&e.job)
		}
	}
	if !e.setSpeed(e.now, rate, workers) {
		return
	}
	if at, ends := e.endsAt(); ends {
		e.eventQueue.add(event{at: at, kind: workDone, subject: e.id, version: e.version})
		e.watchAges()
	}
}

func (e *elastic) checkpointed() (at Time, computes bool) {
	if e.rate == 0 || e.spec.CheckpointEvery == 0 {
		return e.written, e.rate > 0
	}
	return e.now - (e.now-e.written)%Time(e.spec.CheckpointEvery), true
}

// settle adds the work up to a time.
func (e *elastic) settle(now Time) {
	e.progress.settle(now, Time(e.spec.CheckpointEvery))
}

// keep adds the work that was done and not lost to the statistics.
func (e *elastic) keep() {
	e.stats.useful.add(e.weightOf(&e.spec.Workers.Pod), e.worked)
	e.worked = 0
}

// mayLoseState returns to the last checkpoint when no worker is left that has the state. Workers that are terminating
// have written one.
func (e *elastic) mayLoseState(why ending) {
	if e.master != nil && e.core != nil || slices.ContainsFunc(e.workers, func(p *pod) bool { return p.joined }) {
		return
	}
	if why.lost() {
		steps, workers := e.steps(), Time(max(1, e.progress.workers))
		lost := e.fallBack()
		e.stats.lost.add(e.weightOf(&e.spec.Workers.Pod), lost)
		e.logLost(e.name, steps-e.steps(), lost/workers)
	} else {
		e.checkpoint(e.now, e.done, 0)
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
	var state coordinator.Status
	if e.core != nil {
		state = e.core.Status()
		status.Preemptions = state.Preemptions
	}
	switch {
	case e.over:
		status.Phase = trainingjob.PhaseSucceeded
	case e.core != nil:
		status.Phase = map[coordinator.Phase]trainingjob.Phase{coordinator.Running: trainingjob.PhaseRunning}[state.Phase]
		status.Phase = cmp.Or(status.Phase, trainingjob.PhaseWaiting)
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
