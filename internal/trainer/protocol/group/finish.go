package group

import (
	"slices"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/coordinator"
)

// reconcileFinish ends the job after its last step: the member of rank 0 writes the final checkpoint and goes on to the
// end of its script. If it is lost on the way, the next generation's rank 0 takes its place.
func (g *Group) reconcileFinish() {
	if g.ended() {
		return
	}
	if g.over > 0 {
		if len(g.members) == 0 || g.now >= g.over {
			g.exit(coordinator.Done, coordinator.ExitDone, "")
		}
		return
	}
	idle := g.current == nil && (g.cfg.Restart == nil || !g.unwinding()) // a command may write a checkpoint when it is stopped
	if g.cfg.Restart != nil && g.replaced && g.step < g.cfg.Steps {
		idle = true // the next master takes the generation over
	}
	if g.stopped && idle && g.keeper == noWorker {
		g.exit(coordinator.Done, coordinator.ExitInterrupted, g.stopWhy)
		return
	}
	if g.stopped && g.now >= g.stopBy {
		g.exit(coordinator.Done, coordinator.ExitInterrupted, g.stopWhy+"; the step in flight and its checkpoint were not complete in time")
		return
	}
	if g.step < g.cfg.Steps || g.current == nil || g.saver != noWorker {
		return
	}
	g.saver = g.current.members[0]
	g.members[g.saver].finishing = true
	g.emit(Finish{Generation: g.current.number, Worker: g.saver, Saver: true})
}

// finishElsewhere takes a worker back that finishes the job already.
func (g *Group) finishElsewhere(id int) {
	if g.current != nil && g.step < g.cfg.Steps {
		g.abort()
	}
	g.step = g.cfg.Steps
	if g.current == nil && g.saver == noWorker {
		g.saver = id
	}
}

// finished is a script that has ended as it should. The first is a saver's: then all others may end too.
func (g *Group) finished(e Finished) {
	m := g.members[e.Worker]
	if m == nil {
		return
	}
	delete(g.members, e.Worker)
	g.emit(coordinator.Dismiss{Worker: e.Worker})
	if g.over > 0 {
		return
	}
	g.over = g.now + finishPatience
	for _, id := range sorted(g.members) {
		switch o := g.members[id]; {
		case o.finishing:
		case g.current != nil && slices.Contains(g.current.members, id):
			o.finishing = true
			g.emit(Finish{Generation: g.current.number, Worker: id})
		default:
			g.emit(coordinator.Dismiss{Worker: id})
			delete(g.members, id)
		}
	}
	for _, id := range sorted(g.pods.byWorker) {
		if p := g.pods.byWorker[id]; p.alive() && g.members[id] == nil && id != e.Worker {
			g.retire(id, "the job is done")
		}
	}
}

// saved notes a checkpoint.
func (g *Group) saved(e Saved) {
	g.newest, g.written = max(g.newest, e.Step), max(g.written, e.Step)
	for _, m := range g.members {
		m.checkpoint = max(m.checkpoint, e.Step)
	}
	g.notice(false, coordinator.ReasonCheckpointed, "the state of step %d is in a checkpoint", e.Step)
	if g.keeper == e.Worker {
		g.keeper = noWorker
	}
}

// Checkpointed is the step of the newest checkpoint that was reported; 0 for none.
func (g *Group) Checkpointed() int64 { return g.newest }

// stop ends the master after the step in flight and its checkpoint.
func (g *Group) stop(e coordinator.Stop) {
	if g.stopped {
		return
	}
	g.stopped, g.stopWhy, g.replaced = true, "stopped", e.Cause == coordinator.Replaced
	if e.Cause != coordinator.Replaced {
		g.stopWhy = e.Cause.String()
		for _, id := range sorted(g.pods.byWorker) {
			if p := g.pods.byWorker[id]; p.alive() && g.members[id] == nil && (!p.minimum || !g.cfg.MinPodsExternal) {
				g.retire(id, g.stopWhy)
			}
		}
	}
	g.stopBy = g.now + stopPatience
	if g.cfg.Restart != nil {
		g.stopBy += stopPatience
	}
}

// fail ends the job for a reason that a restart would not solve.
func (g *Group) fail(reason string) {
	if g.ended() {
		return
	}
	g.reason = reason
	g.notice(true, "JobFailed", "%s", reason)
	for _, id := range sorted(g.pods.byWorker) {
		if p := g.pods.byWorker[id]; p.alive() && g.members[id] == nil {
			g.retire(id, "the job failed")
		}
	}
	for _, id := range sorted(g.members) {
		g.emit(coordinator.Dismiss{Worker: id})
	}
	g.exit(coordinator.Failed, coordinator.ExitJobFailed, reason)
}

// exit ends the master, after a last status.
func (g *Group) exit(phase coordinator.Phase, code int, reason string) {
	g.phase = phase
	g.emit(coordinator.Report{})
	g.emit(coordinator.Exit{Code: code, Reason: reason})
}
