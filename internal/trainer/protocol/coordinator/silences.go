package coordinator

import (
	"fmt"
	"maps"
	"slices"
)

// silences is what people have been told of workers that fell silent. On a machine or network that is too busy they do so by
// the hundred, and again and again: the first are named at once, and after that there is a line a minute with their number.
type silences struct {
	away   map[int]bool // those that are not back yet
	told   bool         // … and somebody has been told that some went
	quiet  int          // ticks for which others are counted only
	times  int          // that were counted
	ofThem map[int]bool // the workers
}

// quietTicks is the time between two lines about workers that fell silent.
const quietTicks = 600

// fellSilent removes members from which nothing has been heard for too long.
func (c *Coordinator) fellSilent(workers []int) {
	if len(workers) == 0 {
		return
	}
	for _, id := range workers {
		c.emit(Disconnect{Worker: id, Reason: fmt.Sprintf("nothing heard for %d ticks", c.cfg.SilentTicks)})
		c.silences.away[id] = true
	}
	if c.silences.quiet > 0 {
		c.silences.times += len(workers)
		for _, id := range workers {
			c.silences.ofThem[id] = true
		}
	} else if !c.finished() {
		c.silences.quiet, c.silences.told = quietTicks, true
		c.emit(Notice{Reason: "WorkerLeft", Message: fmt.Sprintf("%s fell silent at step %d; %d left", Named(workers), c.step, len(c.members)-len(workers))})
	}
	for _, id := range workers {
		c.drop(id, "fell silent")
	}
}

// tickSilences tells of those that were counted, when a minute has passed.
func (c *Coordinator) tickSilences() {
	s := &c.silences
	if s.quiet == 0 {
		return
	}
	if s.quiet--; s.quiet > 0 || s.times == 0 || c.finished() {
		return
	}
	c.emit(Notice{Reason: "WorkerLeft", Message: fmt.Sprintf("in the last minute workers fell silent %d more times: %s; at step %d %d are there. The machine or the network is too busy for so many",
		s.times, Named(slices.Sorted(maps.Keys(s.ofThem))), c.step, len(c.members))})
	s.quiet, s.times, s.told = quietTicks, 0, true
	clear(s.ofThem)
}

// backFromSilence reports whether a joining worker had fallen silent. The last one to return is reported for all.
func (c *Coordinator) backFromSilence(worker int) bool {
	s := &c.silences
	if !s.away[worker] {
		return false
	}
	delete(s.away, worker)
	if len(s.away) == 0 && s.told {
		s.told = false
		c.emit(Notice{Reason: "WorkerJoined", Message: fmt.Sprintf("all workers that had fallen silent are back at step %d", c.step)})
	}
	return true
}

// Named is "worker 3" or "workers 1, 5–9".
func Named(workers []int) string {
	if len(workers) == 1 {
		return fmt.Sprintf("worker %d", workers[0])
	}
	return "workers " + list(workers)
}
