package history

import (
	"slices"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/coordinator"
)

// Of a run with very many workers one after the other the newest are kept, and of one that comes and goes without end
// the newest of its times.
const (
	maxWorkers       = 200
	maxIntervals     = 48
	maxInterruptions = 24
)

// State is a worker's, as in the status.
type State = coordinator.WorkerState

// The coordinator's states.
const (
	Pending  = coordinator.WorkerPending
	Starting = coordinator.WorkerStarting
	Joining  = coordinator.WorkerJoining
	Ready    = coordinator.WorkerReady
)

// States are all of them, in the usual order.
func States() []State { return []State{Pending, Starting, Joining, Ready} }

// Describe is what a worker does in a state, in a reader's words.
func Describe(s State) string {
	switch s {
	case Pending:
		return "waiting for capacity"
	case Ready:
		return "computing"
	default:
		return string(s)
	}
}

// WorkerHistory is a worker from its creation to its end.
type WorkerHistory struct {
	Worker        int
	Pod           string
	Intervals     []Interval // one after the other
	Interruptions []Interruption
	Reason        string // why it is as it is
	Gradients     int64  // of virtual workers, that were taken from it
	Ended         bool

	endKnown bool // why it goes is known already, so that the end of its stream and of its pod are no news
}

// Interval is a time in one state.
type Interval struct {
	State    State
	From, To time.Duration
}

// Kind is how a worker was taken away.
type Kind string

// The kinds.
const (
	Preempted Kind = "preempted"
	Deleted   Kind = "deleted"
	Lost      Kind = "lost"
	Failed    Kind = "failed"
)

// Interruption is a moment at which a worker was taken away.
type Interruption struct {
	At     time.Duration
	Kind   Kind
	Reason string
}

// State is the worker's now; "" when it is gone.
func (l *WorkerHistory) State() State {
	if n := len(l.Intervals); n > 0 && !l.Ended {
		return l.Intervals[n-1].State
	}
	return ""
}

// From and To are the ends of what is known of it.
func (l *WorkerHistory) From() time.Duration { return l.Intervals[0].From }

// To is when it ended, or the newest moment.
func (l *WorkerHistory) To() time.Duration { return l.Intervals[len(l.Intervals)-1].To }

// updateWorkers takes the states of those that are there; the others have gone.
func (h *History) updateWorkers(now time.Duration, all []trainingjob.WorkerStatus) {
	there := map[int]bool{}
	for _, w := range all {
		there[w.ID] = true
		h.workerOf(w.ID, now).update(now, w)
	}
	for _, l := range h.Workers {
		if !there[l.Worker] && !l.Ended {
			l.end(now)
		}
	}
	for len(h.Workers) > maxWorkers {
		i := max(0, slices.IndexFunc(h.Workers, func(l *WorkerHistory) bool { return l.Ended }))
		h.Workers = slices.Delete(h.Workers, i, i+1)
		h.Dropped++
	}
}

// workerOf is a worker's, new or not.
func (h *History) workerOf(worker int, now time.Duration) *WorkerHistory {
	if l := h.find(worker); l != nil {
		return l
	}
	l := &WorkerHistory{Worker: worker, Intervals: []Interval{{State: Pending, From: now, To: now}}}
	h.Workers = append(h.Workers, l)
	return l
}

func (h *History) find(worker int) *WorkerHistory {
	for i := len(h.Workers) - 1; i >= 0; i-- {
		if h.Workers[i].Worker == worker {
			return h.Workers[i]
		}
	}
	return nil
}

func (l *WorkerHistory) update(now time.Duration, w trainingjob.WorkerStatus) {
	state := State(w.State)
	last := &l.Intervals[len(l.Intervals)-1]
	switch {
	case l.Ended: // the minimum workers under a queue come again with their numbers
		l.Ended, l.endKnown = false, false
		l.Intervals = append(l.Intervals, Interval{State: state, From: now, To: now})
	case last.State == state:
		last.To = now
	default:
		last.To = now
		if last.From == now && len(l.Intervals) == 1 {
			last.State = state // it was met in it
		} else {
			l.Intervals = append(l.Intervals, Interval{State: state, From: now, To: now})
		}
	}
	if state == Ready {
		l.endKnown = false
	}
	l.Intervals = newest(l.Intervals, maxIntervals)
	l.Pod, l.Reason = w.Pod, w.Reason
	l.Gradients = max(l.Gradients, w.Gradients)
}

func (l *WorkerHistory) end(now time.Duration) {
	if l.Ended {
		return
	}
	l.Intervals[len(l.Intervals)-1].To = now
	l.Ended = true
}

// OnEvent takes an event of the coordinator's: of interest here is how workers are taken away.
func (h *History) OnEvent(at time.Time, e coordinator.Event) {
	if h.Status.Phase.Finished() || h.Over {
		return // they end because the job has
	}
	h.disruptions.OnEvent(h.Began.Add(h.since(at)), e)
	switch e := e.(type) {
	case coordinator.Lost: // or disconnected
		if e.Reason != coordinator.LostInOrder {
			h.markEnd(at, e.Worker, Lost, e.Reason)
		}
	case coordinator.Left:
		if l := h.find(e.Worker); l != nil {
			l.endKnown = true // it was terminated; the pod has the cause
		}
	case coordinator.PodChanged:
		switch {
		case e.Terminating && e.Preempted:
			h.markEnd(at, e.Worker, Preempted, e.Reason)
		case e.Terminating:
			h.markEnd(at, e.Worker, Deleted, e.Reason)
		case e.State == coordinator.PodEnded && !e.Disrupted:
			h.markEnd(at, e.Worker, Failed, e.Reason)
		}
	}
}

// OnRetire notes that the master itself deletes a worker: that it was taken away is no news.
func (h *History) OnRetire(worker int) {
	h.disruptions.OnRetire(worker)
	if l := h.find(worker); l != nil {
		l.endKnown = true
	}
}

// markEnd marks the end of a worker, once: of what follows from it nothing is news, but that it was preempted.
func (h *History) markEnd(at time.Time, worker int, kind Kind, reason string) {
	l := h.find(worker)
	if l == nil || l.Ended {
		return
	}
	now := h.since(at)
	if l.endKnown {
		if n := len(l.Interruptions); kind == Preempted && n > 0 && l.Interruptions[n-1].Kind == Lost {
			l.Interruptions[n-1].Kind = Preempted
			h.Losses--
			h.Preemptions++
		}
		return
	}
	l.endKnown = true
	if kind == Preempted {
		h.Preemptions++
	} else {
		h.Losses++
	}
	l.Interruptions = newest(append(l.Interruptions, Interruption{At: now, Kind: kind, Reason: reason}), maxInterruptions)
}
