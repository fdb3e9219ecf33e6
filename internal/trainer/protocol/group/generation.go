package group

import (
	"cmp"
	"slices"
	"time"
)

// generation is one process group.
type generation struct {
	number  int64
	members []int // by rank
	began   time.Duration
	reduced map[int]Reduced // of the step in flight, by worker
}

// source is where the state of a new generation comes from.
type source struct {
	worker int
	step   int64
	load   bool // from a checkpoint
}

// reconcileGeneration begins a generation where there is none and there may be one.
func (g *Group) reconcileGeneration() {
	if g.current != nil || !g.started || g.stopped || g.ended() || g.over > 0 || g.keeper != noWorker || g.saver != noWorker || g.now < g.gather || g.now < g.earliest {
		return
	}
	if g.now < g.unwindBy && g.unwinding() {
		return
	}
	chosen := g.choose()
	if len(chosen) == 0 || g.waitsForOthers(len(chosen)) {
		return
	}
	g.unwindBy, g.lastCall = 0, 0
	g.begin(chosen)
}

// unwinding reports whether a member of an aborted generation has not answered yet.
func (g *Group) unwinding() bool {
	for _, m := range g.members {
		if m.unwinding {
			return true
		}
	}
	return false
}

// choose picks the members of the next generation, by rank: those with the newest state first, so that rank 0, which
// writes checkpoints, is one that stays; then by number. It is empty while there are too few. After the last step there is
// nothing to compute, and one member finishes the job.
func (g *Group) choose() []int {
	var ids []int
	for _, id := range sorted(g.members) {
		if m := g.members[id]; m.eligible() {
			ids = append(ids, id)
		}
	}
	slices.SortStableFunc(ids, func(a, b int) int { return cmp.Compare(g.members[b].held, g.members[a].held) })
	if len(ids) > 0 {
		if s := g.newestState(ids); s.step == g.cfg.Steps {
			return []int{s.worker}
		}
	}
	return ids[:g.world(len(ids))]
}

// world is the number of members of a generation for which so many workers are ready; 0 if they are too few.
func (g *Group) world(ready int) int {
	n := min(ready, g.pods.max)
	n -= n % g.cfg.Multiple
	if n < g.pods.min {
		return 0
	}
	return n
}

// newestState is the newest state that a new generation can continue from: a member's, or a checkpoint's where no member
// has one as new, or that of step 0 as the member of rank 0 has built it.
func (g *Group) newestState(chosen []int) source {
	s := source{worker: chosen[0]}
	for _, id := range chosen {
		if m := g.members[id]; m.held > s.step || (m.held == s.step && g.members[s.worker].held < m.held) {
			s = source{worker: id, step: m.held}
		}
	}
	for _, id := range chosen {
		if m := g.members[id]; m.checkpoint > s.step {
			s = source{worker: id, step: m.checkpoint, load: true}
		}
	}
	return s
}

func (g *Group) begin(chosen []int) {
	if g.failed > 0 && g.failed == g.number {
		if g.cfg.Restart != nil {
			g.notice(true, "CommandFailed", "the command is started again; %s", g.failedHow)
		} else {
			g.notice(true, "CollectiveFailed", "%s; no worker was lost, and the step is computed again", g.failedHow)
		}
	}
	s := g.newestState(chosen)
	if s.step < g.step {
		g.notice(true, "StateLost", "no worker holds the state of step %d any more; training continues from step %d", g.step, s.step)
	}
	if s.step > g.step && g.number == g.cfg.LastGeneration && g.cfg.Restart == nil {
		g.notice(false, "Resumed", "training continues from step %d", s.step)
	}
	g.step = s.step
	g.number++
	g.current = &generation{number: g.number, members: chosen, began: g.now, reduced: map[int]Reduced{}}
	broadcast, of := false, g.members[s.worker].of
	for _, id := range chosen {
		m := g.members[id]
		m.idle, m.unwinding, m.running = false, false, running{}
		if m.held != s.step || m.of != of {
			broadcast = len(chosen) > 1
			m.held = NoState // until a commit, or an Idle that says otherwise
		}
		g.announce(id, m)
	}
	g.emit(Begin{
		Generation: g.number, Members: slices.Clone(chosen), Store: g.members[chosen[0]].address, Step: s.step,
		Source: slices.Index(chosen, s.worker), Load: s.load, Broadcast: broadcast,
	})
}

// reduced commits the step in flight when all members have the sum.
func (g *Group) reduced(e Reduced) {
	c := g.current
	if m := g.members[e.Worker]; c == nil && m != nil && m.running.generation == e.Generation {
		m.running.reduced = &e // of a generation that this master has not taken over yet
	}
	if c == nil || c.number != e.Generation || e.Step != g.step || g.step >= g.cfg.Steps || !slices.Contains(c.members, e.Worker) {
		return
	}
	c.reduced[e.Worker] = e
	if len(c.reduced) < len(c.members) {
		return
	}
	commit := Commit{Generation: c.number, Step: g.step, Members: slices.Clone(c.members)}
	for _, id := range c.members {
		commit.LossSum += c.reduced[id].LossSum
		commit.Records += c.reduced[id].Records
	}
	g.step++
	g.broken, g.failed, g.pods.failures = 0, 0, 0
	for _, id := range c.members {
		m := g.members[id]
		m.held, m.of, m.steps = g.step, c.number, m.steps+1
	}
	done := g.step == g.cfg.Steps // the saver writes the last checkpoint
	commit.Save = !done && g.cfg.CheckpointEvery > 0 && g.step%g.cfg.CheckpointEvery == 0
	commit.Last = !done && (g.stopped || g.wantsOther())
	g.emit(commit)
	clear(c.reduced)
	if commit.Last {
		g.endAtBoundary()
	}
}

// wantsOther reports whether the next step should be computed by other members.
func (g *Group) wantsOther() bool {
	for _, id := range g.current.members {
		if g.members[id].leaving {
			return true
		}
	}
	at := g.joinAt()
	return len(g.current.members) > g.pods.max || at > 0 && at <= g.now
}

// joinAt is when the current generation may end for workers that are ready to join; 0 without any.
func (g *Group) joinAt() time.Duration {
	if g.current == nil || g.step >= g.cfg.Steps {
		return 0
	}
	ready := 0
	for id, m := range g.members {
		if m.eligible() || slices.Contains(g.current.members, id) && !m.leaving {
			ready++
		}
	}
	if g.world(ready) <= len(g.current.members) {
		return 0
	}
	return max(1, g.current.began+g.cfg.JoinInterval)
}

// endAtBoundary ends the current generation after a commit: its members wait.
func (g *Group) endAtBoundary() {
	members := g.current.members
	g.current = nil
	for _, id := range members {
		g.members[id].idle = true
	}
}

// abort ends the current generation within a step.
func (g *Group) abort() {
	c := g.current
	g.forgive()
	g.current = nil
	g.unwindBy = g.now + g.cfg.IdleTimeout
	if r := g.cfg.Restart; r != nil {
		g.earliest = max(g.earliest, g.now+r.Settle)
	}
	var notified []int
	for _, id := range c.members {
		m := g.members[id]
		if m != nil && m.away > 0 {
			g.remove(id, m.awayReason) // it hears of nothing; what it runs is stopped when it comes back
			continue
		}
		if m != nil && !m.idle {
			m.unwinding = true
			notified = append(notified, id)
		}
	}
	if len(notified) > 0 {
		g.emit(Abort{Generation: c.number, Members: notified})
	}
}
