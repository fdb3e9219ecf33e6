package history

import (
	"slices"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
)

// A step that was not disturbed is one of the median time, with as many workers ready as ever were: fewer of them share
// the same virtual workers, and take longer.
const (
	minSteps     = 20  // for a median that says something
	maxDurations = 201 // the newest of them, so that a machine that slows down is no loss of goodput for ever
)

// goodput compares the time that workers lived with that which the steps would have taken them undisturbed.
type goodput struct {
	counting bool // the time that workers live now
	ready    int
	live     int
	since    time.Duration // up to when lived is counted
	last     time.Duration // of the step before; negative: the next one's time says nothing

	mostReady  int             // the most workers that were ever ready at once
	durations  []time.Duration // of the newest steps with so many
	steps      int64
	workerTime time.Duration // of workers, added up, while steps were or should have been computed
}

// onStep is a step at a time, and how long it took where that can be said.
func (g *goodput) onStep(now time.Duration) (took time.Duration, known bool) {
	g.addTime(now)
	took, known = now-g.last, g.last >= 0
	g.last = now
	if !known {
		return 0, false
	}
	g.steps++
	if g.ready == g.mostReady && g.mostReady > 0 {
		g.durations = newest(append(g.durations, took), maxDurations)
	}
	return took, true
}

// onWorkers reports who lives from now on. Evaluating and saving are no loss, waiting for workers is one of those that
// are there.
func (g *goodput) onWorkers(now time.Duration, phase trainingjob.Phase, ready, live int) {
	g.addTime(now)
	switch phase {
	case trainingjob.PhaseRunning:
		g.counting = true
		if g.last < 0 {
			g.last = now
		}
	case trainingjob.PhaseWaiting:
		g.counting, g.last = g.steps > 0, -1
	default:
		g.counting, g.last = false, -1
	}
	g.ready, g.live = ready, live
	if ready > g.mostReady {
		g.mostReady, g.durations = ready, nil
	}
}

// addTime counts the time up to now.
func (g *goodput) addTime(now time.Duration) {
	if g.counting {
		g.workerTime += time.Duration(g.live) * (now - g.since)
	}
	g.since = now
}

func (g *goodput) value(now time.Duration) *float64 {
	lived := g.workerTime
	if g.counting {
		lived += time.Duration(g.live) * (now - g.since)
	}
	if len(g.durations) < minSteps || lived <= 0 {
		return nil
	}
	sorted := slices.Sorted(slices.Values(g.durations))
	undisturbed := time.Duration(g.mostReady) * sorted[len(sorted)/2]
	share := min(1, float64(g.steps)*float64(undisturbed)/float64(lived))
	return &share
}
