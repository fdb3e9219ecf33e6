package coordinator

import (
	"fmt"
	"slices"
)

// pod is a worker's pod, or its process, as last seen.
type pod struct {
	name     string
	state    PodState
	floor    bool
	reason   string
	left     string // how it ceased to be a member, the last time
	retiring bool   // we asked for its end
	ending   bool   // somebody did
}

// alive counts towards the size of the job: it runs or will, and nobody has asked for its end.
func (p *pod) alive() bool { return p.state != PodEnded && !p.retiring && !p.ending }

// podChanged takes the newest state of a pod. Members come and go by their streams alone; pods decide only how
// many more are needed.
func (c *Coordinator) podChanged(e PodChanged) {
	p := c.pods[e.Worker]
	if p == nil {
		if e.State == PodEnded {
			c.lastID = max(c.lastID, e.Worker)
			return
		}
		p = &pod{floor: e.Floor}
		c.pods[e.Worker] = p
		c.lastID = max(c.lastID, e.Worker)
	}
	if e.Terminating && !p.ending {
		p.ending = true
		if !p.retiring && !c.finished() {
			if e.Preempted {
				c.preemptions++
				c.emit(Notice{Warning: true, Reason: "WorkerPreempted", Message: fmt.Sprintf("worker %d was preempted at step %d; it is replaced as soon as there is room", e.Worker, c.step)})
			} else {
				c.emit(Notice{Warning: true, Reason: "WorkerDeleted", Message: fmt.Sprintf("worker %d is being deleted by somebody else at step %d", e.Worker, c.step)})
			}
		}
	}
	p.name, p.state, p.reason = e.Name, e.State, e.Reason
	if e.State != PodEnded {
		return
	}
	delete(c.pods, e.Worker)
	delete(c.silences.away, e.Worker) // it is not to be expected back
	c.heardOf(e.Worker)
	if p.retiring || c.finished() || e.Disrupted || p.ending {
		return
	}
	c.failures++
	c.repeats++
	c.emit(Notice{Warning: true, Reason: "WorkerFailed", Message: fmt.Sprintf("worker %d failed: %s", e.Worker, e.Reason)})
	if c.failures >= c.cfg.MaxFailures {
		c.fail(fmt.Sprintf("%d workers failed one after the other and none contributed anything; the last, worker %d: %s", c.failures, e.Worker, e.Reason))
		return
	}
	c.backoff = min(maxBackoff, backoffTicks<<min(c.repeats-1, 10))
}

// resize takes a new floor and size; reconcilePods does the rest.
func (c *Coordinator) resize(e Resize) {
	if c.cfg.FloorIsGiven {
		e.Min = c.min
	}
	if c.finished() || e.Min < 1 || e.Max < e.Min || (e.Min == c.min && e.Max == c.max) {
		return
	}
	c.emit(Notice{Reason: "Resized", Message: fmt.Sprintf("workers from %d–%d to %d–%d at step %d", c.min, c.max, e.Min, e.Max, c.step)})
	c.min, c.max = e.Min, e.Max
	c.emit(Report{})
}

// reconcilePods creates and retires pods until max are alive, min of them with the floor's class. Until all of those are
// known that an earlier master left, none is missing: a new one in the place of a pod of which nothing was heard yet would
// make that one surplus.
func (c *Coordinator) reconcilePods() {
	if !c.started || c.finished() || c.stopped {
		return
	}
	alive, floor := c.count()
	if c.cfg.FloorIsGiven {
		alive, floor = alive-floor+c.min, c.min // the missing ones will come
	}
	// Priority is immutable: where the floor lacks pods, new ones are made beyond max, and burst pods make room
	// once these are ready.
	for c.backoff == 0 && (alive < c.max || floor < c.min) {
		c.lastID++
		p := &pod{floor: floor < c.min}
		c.pods[c.lastID] = p
		alive++
		if p.floor {
			floor++
		}
		c.emit(CreatePod{Worker: c.lastID, Floor: p.floor})
	}
	for _, id := range c.surplus(alive - c.max) {
		c.retire(id, fmt.Sprintf("the job now has at most %d workers", c.max))
	}
}

// surplus picks pods to retire: pending ones first, then by the highest number; a floor pod only beyond the floor,
// and a burst pod that runs only when the floor pods that replace it are ready.
func (c *Coordinator) surplus(n int) []int {
	var picked []int
	_, floor := c.count()
	pick := func(state PodState, isFloor bool) {
		ids := sortedKeys(c.pods)
		slices.Reverse(ids)
		for _, id := range ids {
			p := c.pods[id]
			if len(picked) >= n || p.state != state || p.floor != isFloor || !p.alive() || slices.Contains(picked, id) {
				continue
			}
			if isFloor {
				if floor <= c.min {
					continue
				}
				floor--
			} else if state == PodRunning && !c.floorReady() {
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

// floorReady reports whether every living floor pod is a ready member.
func (c *Coordinator) floorReady() bool {
	for id, p := range c.pods {
		if p.alive() && p.floor && (c.members[id] == nil || !c.members[id].ready) {
			return false
		}
	}
	return true
}

func (c *Coordinator) count() (alive, floor int) {
	for _, p := range c.pods {
		if p.alive() {
			alive++
			if p.floor {
				floor++
			}
		}
	}
	return alive, floor
}

// leaveWithMaster ends every pod that is the coordinator's: the master that they would compute for is long in coming.
func (c *Coordinator) leaveWithMaster(cause StopCause) {
	for _, id := range sortedKeys(c.pods) {
		if p := c.pods[id]; p.alive() && (!p.floor || !c.cfg.FloorIsGiven) {
			c.retire(id, cause.String())
		}
	}
}

func (c *Coordinator) retire(worker int, reason string) {
	c.pods[worker].retiring = true
	c.emit(DeletePod{Worker: worker, Reason: reason})
}
