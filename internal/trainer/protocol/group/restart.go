package group

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/coordinator"
)

// Restart configures a job whose script is a command that is started again, on all workers, whenever its members
// change: any script for torchrun. Its whole run is the job's only step, so that the rules of a step apply to it: it
// counts when every rank has reported Reduced, which is the command's end with exit code 0, and until then a lost
// member ends the generation, and the next one starts the command again. What the script can continue from is its own
// matter.
//
// Three rules differ. A step can be waited for, but not a run: workers that join or leave end the generation too, as do
// new limits to their number. A restart is expensive: joining workers wait for the age JoinInterval of the generation,
// a broken stream does not end it at once, and a new master takes over the generation that runs. And failures are
// forgiven after a while, because there is no commit that shows progress.
type Restart struct {
	// LastCall is how long a generation of fewer than Max members waits for workers that are about to be ready.
	LastCall time.Duration
	// Reconnect is how long a member whose stream broke may take to connect again while its command goes on.
	Reconnect time.Duration
	// Settle is how long the next generation waits after one was interrupted: workers often go one after the other.
	Settle time.Duration
	// Stable is the age of a generation that ends the count of failures before it.
	Stable time.Duration
}

// running is a rank whose command was running when its worker connected.
type running struct {
	generation  int64 // 0: none
	rank, world int
	reduced     *Reduced // it has ended well since
}

// reconcileRestart ends the generation where its members have to change, and takes over one of an earlier master.
func (g *Group) reconcileRestart() {
	if g.cfg.Restart == nil || g.over > 0 || g.ended() {
		return
	}
	for _, id := range sorted(g.members) {
		if m := g.members[id]; m != nil && m.away > 0 && m.away <= g.now {
			g.remove(id, m.awayReason)
		}
	}
	if g.current == nil && !g.stopped {
		g.adopt()
	}
	if why := g.reasonToRestart(); why != "" {
		g.notice(false, "CommandStopped", "the command is stopped on all workers: %s", why)
		g.abort()
	}
	g.interruptStrangers()
}

// reasonToRestart reports why the members of the current generation have to change; "" if they need not.
func (g *Group) reasonToRestart() string {
	c := g.current
	if c == nil || g.step >= g.cfg.Steps {
		return ""
	}
	for _, id := range c.members {
		if g.members[id].leaving {
			return fmt.Sprintf("worker %d is asked to stop", id)
		}
	}
	at := g.joinAt()
	switch {
	case g.stopped && !g.replaced:
		return g.stopWhy
	case len(c.members) > g.pods.max:
		return fmt.Sprintf("the job now has at most %d workers", g.pods.max)
	case at > 0 && at <= g.now && len(c.reduced) == 0:
		return fmt.Sprintf("more workers are ready than the %d that run it", len(c.members))
	}
	return ""
}

// adopt makes a generation current whose ranks were all running when they connected to this master.
func (g *Group) adopt() {
	newest := int64(0)
	for _, m := range g.members {
		if !m.unwinding {
			newest = max(newest, m.running.generation)
		}
	}
	if newest == 0 {
		return
	}
	ranks := map[int]int{} // rank → worker
	world := 0
	for _, id := range sorted(g.members) {
		if m := g.members[id]; m.running.generation == newest && !m.unwinding {
			ranks[m.running.rank], world = id, m.running.world
		}
	}
	if len(ranks) < world {
		return
	}
	c := &generation{number: newest, began: g.now, reduced: map[int]Reduced{}}
	for _, rank := range sorted(ranks) {
		c.members = append(c.members, ranks[rank])
		g.members[ranks[rank]].announced = true
	}
	g.current, g.unwindBy, g.lastCall = c, 0, 0
	g.notice(false, "Resumed", "the command went on without a master, on %d workers", world)
	for _, id := range c.members {
		if e := g.members[id].running.reduced; e != nil {
			g.reduced(*e)
		}
	}
}

// interruptStrangers stops commands of generations that have ended, once it is clear that their other ranks do not
// come.
func (g *Group) interruptStrangers() {
	if g.current == nil && g.now < g.gather {
		return
	}
	for _, id := range sorted(g.members) {
		m := g.members[id]
		if m.running.generation == 0 || m.unwinding || g.current != nil && slices.Contains(g.current.members, id) {
			continue
		}
		m.unwinding, g.unwindBy = true, g.now+g.cfg.IdleTimeout
		g.emit(Abort{Generation: m.running.generation, Members: []int{id}})
	}
}

// mayReturn notes that a member's stream broke while its command goes on, and reports whether it may come back.
func (g *Group) mayReturn(e coordinator.Lost) bool {
	m := g.members[e.Worker]
	if g.cfg.Restart == nil || !e.Broken || m == nil || m.leaving || g.over > 0 ||
		g.current == nil || !slices.Contains(g.current.members, e.Worker) {
		return false
	}
	if m.away == 0 {
		m.away, m.awayReason = g.now+g.cfg.Restart.Reconnect, e.Reason
	}
	return true
}

// someoneIsAway reports whether the stream of a member is broken.
func (g *Group) someoneIsAway() bool {
	for _, m := range g.members {
		if m.away > 0 {
			return true
		}
	}
	return false
}

// returned reports whether a worker that is ready is a member whose command went on.
func (g *Group) returned(e Ready) bool {
	m, c := g.members[e.Worker], g.current
	if m == nil || c == nil || e.Running == 0 || e.Running != c.number || !slices.Contains(c.members, e.Worker) {
		return false
	}
	m.away, m.silentTicks = 0, 0
	if g.step >= g.cfg.Steps { // what was sent meanwhile is lost
		g.emit(Commit{Generation: c.number, Step: g.step - 1, Members: []int{e.Worker}, Again: true})
		if g.saver == e.Worker {
			g.emit(Finish{Generation: c.number, Worker: e.Worker, Saver: true})
		}
	}
	return true
}

// waitsForOthers reports whether a new generation should wait a moment for more members: a command that is started a
// second later is not stopped soon after. Pods that do not run yet are waited for before the first generation only.
func (g *Group) waitsForOthers(chosen int) bool {
	r := g.cfg.Restart
	if r == nil || chosen+g.cfg.Multiple > g.pods.max || g.step >= g.cfg.Steps {
		return false
	}
	g.lastCall = cmp.Or(g.lastCall, g.now+r.LastCall)
	if g.now >= g.lastCall {
		return false
	}
	for id, p := range g.pods.byWorker {
		if g.members[id] == nil && p.alive() && (p.state == coordinator.PodRunning || g.number == g.cfg.LastGeneration) {
			return true
		}
	}
	return false
}

// forgive ends the count of failures when the current generation has lasted for long.
func (g *Group) forgive() {
	if r := g.cfg.Restart; r != nil && g.current != nil && g.now-g.current.began >= r.Stable {
		g.broken, g.pods.failures = 0, 0
	}
}

// where is where the job is, for the end of a message: a command that is restarted has no steps that are known here.
func (g *Group) where() string {
	if g.cfg.Restart != nil {
		return ""
	}
	return fmt.Sprintf(" at step %d", g.step)
}

// Starts is how many times this master has started the command, or formed a process group.
func (g *Group) Starts() int64 { return g.number - g.cfg.LastGeneration }
