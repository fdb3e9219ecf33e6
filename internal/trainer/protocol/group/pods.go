package group

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/coordinator"
)

// pods are the workers' pods, and how many there should be.
type pods struct {
	byWorker    map[int]*pod
	started     bool // all pods of an earlier master are known
	lastID      int  // the highest worker number ever used
	min, max    int
	preemptions int
	failures    int           // workers that failed since the last commit
	retryAt     time.Duration // no pod is created before
}

// pod is a worker's pod, or its process, as last seen.
type pod struct {
	name     string
	state    coordinator.PodState
	minimum  bool
	reason   string
	left     string // how it ceased to be a member, the last time
	retiring bool   // the group is deleting it
	ending   bool   // it is terminating, for any reason
}

func (p *pod) alive() bool { return p.state != coordinator.PodEnded && !p.retiring && !p.ending }

// Pauses before a failed worker is replaced: the first, doubled with each further failure, up to the longest.
const (
	firstPodRetry   = time.Second
	longestPodRetry = time.Minute
)

// podChanged records the newest state of a pod. Only streams decide who is a member.
func (g *Group) podChanged(e coordinator.PodChanged) {
	g.pods.lastID = max(g.pods.lastID, e.Worker)
	p := g.pods.byWorker[e.Worker]
	if p == nil {
		if e.State == coordinator.PodEnded {
			return
		}
		p = &pod{minimum: e.Minimum}
		g.pods.byWorker[e.Worker] = p
	}
	if e.Terminating && !p.ending {
		p.ending = true
		if !p.retiring && g.over == 0 {
			if e.Preempted {
				g.pods.preemptions++
				g.notice(true, "WorkerPreempted", "worker %d was preempted%s%s; it is replaced as soon as there is room", e.Worker, g.where(), e.Cause.Why())
			} else {
				g.notice(true, "WorkerDeleted", "worker %d is being deleted by somebody else%s%s", e.Worker, g.where(), e.Cause.Why())
			}
		}
	}
	p.name, p.state, p.reason = e.Name, e.State, e.Reason
	if e.State != coordinator.PodEnded {
		return
	}
	delete(g.pods.byWorker, e.Worker)
	if m := g.members[e.Worker]; m != nil && m.away > 0 {
		g.remove(e.Worker, m.awayReason)
	}
	g.forgive()
	if p.retiring || p.ending || e.Disrupted || g.over > 0 || g.saver == e.Worker {
		return
	}
	g.pods.failures++
	g.notice(true, "WorkerFailed", "worker %d failed: %s", e.Worker, e.Reason)
	if g.pods.failures >= g.cfg.MaxFailures {
		g.fail(fmt.Sprintf("%d workers failed one after the other without completing a step; the last, worker %d: %s",
			g.pods.failures, e.Worker, e.Reason))
		return
	}
	g.pods.retryAt = g.now + min(longestPodRetry, firstPodRetry<<min(g.pods.failures-1, 10))
}

// resize sets a new minimum and maximum.
func (g *Group) resize(e coordinator.Resize) {
	if g.cfg.MinPodsExternal {
		e.Min = g.pods.min
	}
	if e.Min < 1 || e.Max < e.Min || e.Min%g.cfg.Multiple != 0 || (e.Min == g.pods.min && e.Max == g.pods.max) {
		return
	}
	g.notice(false, "Resized", "workers from %d–%d to %d–%d%s", g.pods.min, g.pods.max, e.Min, e.Max, g.where())
	g.pods.min, g.pods.max = e.Min, e.Max
	g.emit(coordinator.Report{})
}

// reconcilePods creates and retires pods until max are alive, min of them of the minimum.
func (g *Group) reconcilePods() {
	if !g.pods.started || g.over > 0 || g.stopped || g.ended() {
		return
	}
	alive, minimum := 0, 0
	for _, p := range g.pods.byWorker {
		if p.alive() {
			alive++
			if p.minimum {
				minimum++
			}
		}
	}
	if g.cfg.MinPodsExternal {
		alive, minimum = alive-minimum+g.pods.min, g.pods.min // somebody else creates the missing ones
	}
	for g.now >= g.pods.retryAt && alive < g.pods.max {
		g.pods.lastID++
		p := &pod{minimum: minimum < g.pods.min}
		if p.minimum {
			minimum++
		}
		g.pods.byWorker[g.pods.lastID] = p
		alive++
		g.emit(coordinator.CreatePod{Worker: g.pods.lastID, Minimum: p.minimum})
	}
	for _, id := range g.surplus(alive - g.pods.max) {
		g.retire(id, fmt.Sprintf("the job now has at most %d workers", g.pods.max))
	}
}

// surplus picks n pods to retire: those that do not run first, then by the highest number; never one of the minimum
// while there is another.
func (g *Group) surplus(n int) []int {
	if n <= 0 {
		return nil
	}
	ids := slices.DeleteFunc(sorted(g.pods.byWorker), func(id int) bool { return !g.pods.byWorker[id].alive() })
	slices.Reverse(ids)
	rank := func(id int) int {
		p, r := g.pods.byWorker[id], 0
		if p.minimum {
			r = 2
		}
		if p.state == coordinator.PodRunning {
			r++
		}
		return r
	}
	slices.SortStableFunc(ids, func(a, b int) int { return rank(a) - rank(b) })
	return ids[:min(n, len(ids))]
}

func (g *Group) retire(worker int, reason string) {
	g.pods.byWorker[worker].retiring = true
	g.emit(coordinator.DeletePod{Worker: worker, Reason: reason})
}

// Status is the state of the run as of the last event, in the coordinator's terms.
func (g *Group) Status() coordinator.Status {
	s := coordinator.Status{
		Phase: g.phase, Step: g.step, Reason: g.reason, Min: g.pods.min, Max: g.pods.max, Preemptions: g.pods.preemptions,
	}
	seen := map[int]coordinator.WorkerStatus{}
	for id, p := range g.pods.byWorker {
		if p.retiring {
			continue
		}
		w := coordinator.WorkerStatus{Worker: id, Pod: p.name, State: coordinator.WorkerPending, Minimum: p.minimum, Reason: p.reason}
		if p.state == coordinator.PodRunning {
			w.State = coordinator.WorkerStarting
			w.Reason = cmp.Or(w.Reason, p.left)
		}
		seen[id] = w
	}
	for id, m := range g.members {
		w := seen[id]
		w.Worker, w.State, w.Reason, w.Gradients = id, coordinator.WorkerJoining, "", m.steps
		if g.current != nil && slices.Contains(g.current.members, id) {
			w.State = coordinator.WorkerReady
		}
		seen[id] = w
	}
	for _, id := range sorted(seen) {
		s.Workers = append(s.Workers, seen[id])
	}
	return s
}
