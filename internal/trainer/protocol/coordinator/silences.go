package coordinator

import (
	"fmt"
	"maps"
	"slices"
)

// silences limits the Notices about workers whose heartbeats stopped. On a machine or network that is too busy that
// happens to hundreds of workers, and again and again: a Notice names the first ones at once, and then there is one a
// minute with the number of the others.
type silences struct {
	away    map[int]bool // those that have not returned yet
	noticed bool         // … and there was a Notice about some of them
	timer   int          // ticks until the next Notice; 0: it may come at once
	count   int          // how often workers stopped responding since the last Notice
	workers map[int]bool // which workers
}

// silenceNoticeTicks is the time between two Notices about workers that stopped responding.
const silenceNoticeTicks = 600

// removeSilent removes members whose heartbeats stopped for too long.
func (c *Coordinator) removeSilent(workers []int) {
	if len(workers) == 0 {
		return
	}
	s := &c.silences
	for _, id := range workers {
		c.emit(Disconnect{Worker: id, Reason: fmt.Sprintf("no message for %d ticks", c.cfg.SilentTicks)})
		s.away[id] = true
	}
	if s.timer > 0 {
		s.count += len(workers)
		for _, id := range workers {
			s.workers[id] = true
		}
	} else if !c.finished() {
		s.timer, s.noticed = silenceNoticeTicks, true
		c.emit(Notice{Reason: "WorkerLeft", Message: fmt.Sprintf(
			"%s stopped responding at step %d; %d left", WorkerNames(workers), c.step, len(c.members)-len(workers))})
	}
	for _, id := range workers {
		c.drop(id, "stopped responding")
	}
}

// tickSilences reports the workers that were only counted, when a minute has passed.
func (c *Coordinator) tickSilences() {
	s := &c.silences
	if s.timer == 0 {
		return
	}
	if s.timer--; s.timer > 0 || s.count == 0 || c.finished() {
		return
	}
	c.emit(Notice{Reason: "WorkerLeft", Message: fmt.Sprintf(
		"in the last minute workers stopped responding %d more times: %s; at step %d the job has %d workers. The machine or the "+
			"network is too busy for more", s.count, WorkerNames(slices.Sorted(maps.Keys(s.workers))), c.step, len(c.members))})
	s.timer, s.count, s.noticed = silenceNoticeTicks, 0, true
	clear(s.workers)
}

// returnedFromSilence reports whether a joining worker had stopped responding. There is one Notice when the last of them
// returns.
func (c *Coordinator) returnedFromSilence(worker int) bool {
	s := &c.silences
	if !s.away[worker] {
		return false
	}
	delete(s.away, worker)
	if len(s.away) == 0 && s.noticed {
		s.noticed = false
		c.emit(Notice{Reason: "WorkerJoined", Message: fmt.Sprintf("all workers that had stopped responding are back at step %d", c.step)})
	}
	return true
}

// WorkerNames is "worker 3" or "workers 1, 5–9".
func WorkerNames(workers []int) string {
	if len(workers) == 1 {
		return fmt.Sprintf("worker %d", workers[0])
	}
	return "workers " + list(workers)
}
