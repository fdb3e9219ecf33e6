package group

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/coordinator"
)

// Identity is what two processes must have in common to compute the same thing.
type Identity = coordinator.Identity

// member is a worker whose script is ready, or computes.
type member struct {
	held        int64 // steps in its state, as far as known; NoState for none
	of          int64 // the newest generation whose members had the same state
	checkpoint  int64
	address     string
	idle        bool // it waits for a generation
	unwinding   bool // its generation was aborted, and it has not answered
	leaving     bool // it ends at the next boundary
	finishing   bool // the master has sent it Finish
	announced   bool
	running     running
	away        time.Duration // until when it may connect again, while its command goes on; 0: it is connected
	awayReason  string
	silentTicks int
	steps       int64 // committed steps that it was a member for
}

// eligible reports whether a worker can be a member of a new generation.
func (m *member) eligible() bool { return m.idle && !m.leaving && !m.finishing }

// ready makes a worker one that can become a member, or refuses it.
func (g *Group) ready(e Ready) {
	if g.returned(e) {
		return
	}
	if g.members[e.Worker] != nil {
		g.remove(e.Worker, "connected anew")
	}
	if g.over > 0 {
		g.emit(coordinator.Dismiss{Worker: e.Worker})
		return
	}
	reason := g.cfg.Identity.Refusal(e.Identity)
	if e.Held > g.cfg.Steps || e.Checkpoint > g.cfg.Steps {
		reason = cmp.Or(reason, fmt.Sprintf("its state is at step %d of a job of %d steps", max(e.Held, e.Checkpoint), g.cfg.Steps))
	}
	if reason != "" {
		g.emit(coordinator.Refuse{Worker: e.Worker, Reason: reason})
		return
	}
	g.members[e.Worker] = &member{
		held: max(e.Held, NoState), of: e.Of, checkpoint: max(e.Checkpoint, g.written, NoState), address: e.Address,
		idle: !e.Finishing && e.Running == 0, finishing: e.Finishing, running: running{generation: e.Running, rank: e.Rank, world: e.World},
	}
	if e.Finishing {
		g.finishElsewhere(e.Worker)
	}
	g.newest = max(g.newest, e.Checkpoint)
	if p := g.pods.byWorker[e.Worker]; p != nil {
		p.left = ""
	}
}

// announce emits one Notice for each worker that becomes a member.
func (g *Group) announce(id int, m *member) {
	if !m.announced {
		m.announced = true
		g.notice(false, "WorkerJoined", "worker %d joined%s", id, g.where())
	}
}

// idle is a member that has unwound from a generation.
func (g *Group) idle(e Idle) {
	m := g.members[e.Worker]
	if m == nil {
		return
	}
	current := g.current != nil && g.current.number == e.Generation && slices.Contains(g.current.members, e.Worker)
	if !current && !m.unwinding && (m.running.generation == 0 || m.running.generation != e.Generation) {
		return
	}
	m.idle, m.unwinding, m.held, m.of, m.running = true, false, e.Held, e.Of, running{}
	if e.Address != "" {
		m.address = e.Address
	}
	if g.saver == e.Worker {
		g.saver, m.finishing = noWorker, false
	}
	if current && !g.dropFinisher(e.Worker) {
		known := g.someoneIsAway() // whose end is the reason
		g.abort()
		if e.Reason != "" && !known {
			g.collectiveFailed(e)
		}
	}
}

// collectiveFailed waits a moment for the reason of a failure, and longer after each one without.
func (g *Group) collectiveFailed(e Idle) {
	g.broken++
	g.failed, g.failedHow = e.Generation, fmt.Sprintf("worker %d could not complete step %d: %s", e.Worker, g.step, e.Reason)
	what := "process groups"
	if g.cfg.Restart != nil {
		g.failedHow, what = fmt.Sprintf("worker %d: %s", e.Worker, e.Reason), "starts of the command"
	}
	if g.broken >= g.cfg.MaxFailures {
		g.fail(fmt.Sprintf("%d %s failed one after the other; the last: %s", g.broken, what, g.failedHow))
		return
	}
	pause := g.cfg.Settle
	if g.broken > 1 {
		pause = max(pause, min(time.Minute, g.cfg.RetryInterval<<min(g.broken-2, 10)))
	}
	g.earliest = max(g.earliest, g.now+pause)
}

// dropFinisher takes a member out of a generation whose last step is done and whose saver goes on without it.
func (g *Group) dropFinisher(id int) bool {
	if g.step < g.cfg.Steps || g.saver == noWorker || g.saver == id {
		return false
	}
	c := g.current
	c.members = slices.DeleteFunc(c.members, func(other int) bool { return other == id })
	return true
}

// leaving is a worker that was signalled to stop: it completes the step in flight.
func (g *Group) leaving(id int) {
	if m := g.members[id]; m != nil {
		m.leaving = true // reconcileKeeping lets it go
	}
}

// release lets a leaving worker go, in good order.
func (g *Group) release(id int) {
	g.emit(coordinator.Dismiss{Worker: id})
	g.remove(id, "left")
}

func (g *Group) lost(e coordinator.Lost) {
	if g.mayReturn(e) {
		return
	}
	if e.Fault && g.members[e.Worker] != nil {
		g.broken++
	}
	g.remove(e.Worker, e.Reason)
	if g.broken >= g.cfg.MaxFailures {
		g.fail(fmt.Sprintf("workers failed %d times without completing a step; the last, worker %d: %s", g.broken, e.Worker, e.Reason))
	}
}

// remove forgets a member. A step in flight that it takes part in is computed again by the others; nothing happens to
// the others between two steps and after the last.
func (g *Group) remove(id int, reason string) {
	m := g.members[id]
	if m == nil {
		return
	}
	delete(g.members, id)
	if g.over == 0 && !m.finishing {
		g.notice(false, "WorkerLeft", "worker %d %s%s; %d left", id, reason, g.where(), len(g.members))
	}
	if p := g.pods.byWorker[id]; p != nil {
		p.left = fmt.Sprintf("it %s%s, and has not connected since", reason, g.where())
	}
	if c := g.current; c != nil && slices.Contains(c.members, id) {
		if g.over == 0 && !g.dropFinisher(id) {
			g.abort()
		}
	}
	if g.saver == id {
		g.saver = noWorker
	}
	if g.keeper == id {
		g.keeper = noWorker
	}
	if g.failed > 0 && g.failed == g.number { // this is why its collective failed
		g.broken, g.failed, g.earliest = g.broken-1, 0, g.now
	}
}

// tick counts missed heartbeats.
func (g *Group) tick(e coordinator.Tick) {
	for _, id := range e.Heard {
		if m := g.members[id]; m != nil {
			m.silentTicks = 0
		}
	}
	for _, id := range sorted(g.members) {
		m := g.members[id]
		if m == nil || m.away > 0 { // removed with another one, or without a stream
			continue
		}
		if e.Late {
			m.silentTicks = 0
			continue
		}
		if m.silentTicks++; m.silentTicks > g.cfg.SilentTicks {
			g.emit(coordinator.Disconnect{Worker: id, Reason: "no heartbeat"})
			g.remove(id, "stopped responding")
		}
	}
}
