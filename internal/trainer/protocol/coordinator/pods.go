package coordinator

import (
	"fmt"
	"slices"
)

// podSet is the pods of the workers, and how many there should be.
type podSet struct {
	byWorker    map[int]*pod
	started     bool // all pods of an earlier master are known
	lastID      int  // the highest worker number ever used
	min, max    int  // the size of the job
	preemptions int

	failures int // workers that failed since any worker contributed something
	// backoffFailures is the same since a worker contributed for the first time: contributions of workers that were
	// healthy all along do not shorten the back-off of one that keeps failing.
	backoffFailures int
	backoff         int // ticks until pods may be created again
}

// pod is a worker's pod, or its process, as last seen.
type pod struct {
	name     string
	state    PodState
	minimum  bool // one of the minimum's pods
	reason   string
	left     string // how it ceased to be a member, the last time
	retiring bool   // the coordinator is deleting it
	ending   bool   // it is terminating, for any reason
}

// alive reports whether a pod counts towards the size of the job: it runs or will run, and is not being deleted.
func (p *pod) alive() bool { return p.state != PodEnded && !p.retiring && !p.ending }

// podChanged records the newest state of a pod. Only streams decide who is a member; pods decide only how many more are
// needed.
func (c *Coordinator) podChanged(e PodChanged) {
	p := c.pods.byWorker[e.Worker]
	if p == nil {
		if e.State == PodEnded {
			c.pods.lastID = max(c.pods.lastID, e.Worker)
			return
		}
		p = &pod{minimum: e.Minimum}
		c.pods.byWorker[e.Worker] = p
		c.pods.lastID = max(c.pods.lastID, e.Worker)
	}
	if e.Terminating && !p.ending {
		p.ending = true
		if !p.retiring && !c.finished() {
			if e.Preempted {
				c.pods.preemptions++
				c.emit(Notice{Warning: true, Reason: "WorkerPreempted", Message: fmt.Sprintf(
					"worker %d was preempted at step %d%s; it is replaced as soon as there is capacity", e.Worker, c.step, e.Cause.Why())})
			} else {
				c.emit(Notice{Warning: true, Reason: "WorkerDeleted", Message: fmt.Sprintf(
					"worker %d is being deleted by another client at step %d%s", e.Worker, c.step, e.Cause.Why())})
			}
		}
	}
	p.name, p.state, p.reason = e.Name, e.State, e.Reason
	if e.State != PodEnded {
		return
	}
	delete(c.pods.byWorker, e.Worker)
	delete(c.silences.away, e.Worker) // it will not return
	c.stopAwaiting(e.Worker)
	if p.retiring || c.finished() || e.Disrupted || p.ending {
		return
	}
	c.pods.failures++
	c.pods.backoffFailures++
	c.emit(Notice{Warning: true, Reason: "WorkerFailed", Message: fmt.Sprintf("worker %d failed: %s", e.Worker, e.Reason)})
	if c.pods.failures >= c.cfg.MaxFailures {
		c.fail(fmt.Sprintf("%d workers failed one after the other and none contributed anything; the last, worker %d: %s",
			c.pods.failures, e.Worker, e.Reason))
		return
	}
	c.pods.backoff = min(maxBackoff, backoffTicks<<min(c.pods.backoffFailures-1, 10))
}

// resize sets a new minimum and maximum; reconcilePods does the rest.
func (c *Coordinator) resize(e Resize) {
	if c.cfg.MinPodsExternal {
		e.Min = c.pods.min
	}
	if c.finished() || e.Min < 1 || e.Max < e.Min || (e.Min == c.pods.min && e.Max == c.pods.max) {
		return
	}
	c.emit(Notice{
		Reason:  "Resized",
		Message: fmt.Sprintf("workers from %d–%d to %d–%d at step %d", c.pods.min, c.pods.max, e.Min, e.Max, c.step),
	})
	c.pods.min, c.pods.max = e.Min, e.Max
	c.emit(Report{})
}

// reconcilePods creates and retires pods until max are alive, min of them with the priority class of the minimum. It
// waits until all pods of an earlier master are known: a new pod in place of one that is not known yet would make that
// one surplus.
func (c *Coordinator) reconcilePods() {
	if !c.pods.started || c.finished() || c.stopped {
		return
	}
	alive, minimum := c.countPods()
	if c.cfg.MinPodsExternal {
		alive, minimum = alive-minimum+c.pods.min, c.pods.min // somebody else creates the missing ones
	}
	// The priority of a pod is immutable. Where the minimum lacks pods, new ones are created beyond max, and burst pods
	// are retired once the new ones are ready.
	for c.pods.backoff == 0 && (alive < c.pods.max || minimum < c.pods.min) {
		c.pods.lastID++
		p := &pod{minimum: minimum < c.pods.min}
		c.pods.byWorker[c.pods.lastID] = p
		alive++
		if p.minimum {
			minimum++
		}
		c.emit(CreatePod{Worker: c.pods.lastID, Minimum: p.minimum})
	}
	for _, id := range c.surplus(alive - c.pods.max) {
		c.retire(id, fmt.Sprintf("the job now has at most %d workers", c.pods.max))
	}
}

// surplus picks n pods to retire: pending ones first, then by the highest number. It picks a pod of the minimum only if
// there are more of them than the minimum, and a running burst pod only when the minimum's pods that replace it are
// ready.
func (c *Coordinator) surplus(n int) []int {
	var picked []int
	_, remaining := c.countPods()
	pick := func(state PodState, ofMinimum bool) {
		ids := sortedKeys(c.pods.byWorker)
		slices.Reverse(ids)
		for _, id := range ids {
			p := c.pods.byWorker[id]
			if len(picked) >= n || p.state != state || p.minimum != ofMinimum || !p.alive() || slices.Contains(picked, id) {
				continue
			}
			if ofMinimum {
				if remaining <= c.pods.min {
					continue
				}
				remaining--
			} else if state == PodRunning && !c.minimumReady() {
				continue
			}
			picked = append(picked, id)
		}
	}
	for _, state := range []PodState{PodPending, PodRunning} {
		pick(state, false)
		pick(state, true)
	}
	return picked
}

// minimumReady reports whether every living pod of the minimum is a ready member.
func (c *Coordinator) minimumReady() bool {
	for id, p := range c.pods.byWorker {
		if p.alive() && p.minimum && (c.members[id] == nil || !c.members[id].ready) {
			return false
		}
	}
	return true
}

func (c *Coordinator) countPods() (alive, minimum int) {
	for _, p := range c.pods.byWorker {
		if p.alive() {
			alive++
			if p.minimum {
				minimum++
			}
		}
	}
	return alive, minimum
}

// retireOwnPods deletes every pod that the coordinator has created, because the next master may start much later.
func (c *Coordinator) retireOwnPods(cause StopCause) {
	for _, id := range sortedKeys(c.pods.byWorker) {
		if p := c.pods.byWorker[id]; p.alive() && (!p.minimum || !c.cfg.MinPodsExternal) {
			c.retire(id, cause.String())
		}
	}
}

func (c *Coordinator) retire(worker int, reason string) {
	c.pods.byWorker[worker].retiring = true
	c.emit(DeletePod{Worker: worker, Reason: reason})
}
