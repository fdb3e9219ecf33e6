package history

import (
	"slices"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/coordinator"
)

// Of a run with very many workers one after the other the newest are kept, and of one that comes and goes without end the
// newest of its times.
const (
	mostLives = 200
	mostSpans = 48
	mostMarks = 24
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

// Doing is what a worker does in a state, in a reader's words.
func Doing(s State) string {
	switch s {
	case Pending:
		return "waiting for room"
	case Ready:
		return "computing"
	default:
		return string(s)
	}
}

// Life is a worker from its creation to its end.
type Life struct {
	Worker    int
	Pod       string
	Spans     []Span // one after the other
	Marks     []Mark
	Reason    string // why it is as it is
	Gradients int64  // of virtual workers, that were taken from it
	Gone      bool

	told bool // why it goes is known already, so that the end of its stream and of its pod are no news
}

// Span is a time in one state.
type Span struct {
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

// Mark is a moment at which a worker was taken away.
type Mark struct {
	At     time.Duration
	Kind   Kind
	Reason string
}

// State is the worker's now; "" when it is gone.
func (l *Life) State() State {
	if n := len(l.Spans); n > 0 && !l.Gone {
		return l.Spans[n-1].State
	}
	return ""
}

// From and To are the ends of what is known of it.
func (l *Life) From() time.Duration { return l.Spans[0].From }

// To is when it ended, or the newest moment.
func (l *Life) To() time.Duration { return l.Spans[len(l.Spans)-1].To }

// workers takes the states of those that are there; the others have gone.
func (h *History) workers(now time.Duration, all []trainingjob.WorkerStatus) {
	there := map[int]bool{}
	for _, w := range all {
		there[w.ID] = true
		h.life(w.ID, now).is(now, w)
	}
	for _, l := range h.Lives {
		if !there[l.Worker] && !l.Gone {
			l.leave(now)
		}
	}
	for len(h.Lives) > mostLives {
		i := max(0, slices.IndexFunc(h.Lives, func(l *Life) bool { return l.Gone }))
		h.Lives = slices.Delete(h.Lives, i, i+1)
		h.Dropped++
	}
}

// life is a worker's, new or not.
func (h *History) life(worker int, now time.Duration) *Life {
	if l := h.find(worker); l != nil {
		return l
	}
	l := &Life{Worker: worker, Spans: []Span{{State: Pending, From: now, To: now}}}
	h.Lives = append(h.Lives, l)
	return l
}

func (h *History) find(worker int) *Life {
	for i := len(h.Lives) - 1; i >= 0; i-- {
		if h.Lives[i].Worker == worker {
			return h.Lives[i]
		}
	}
	return nil
}

func (l *Life) is(now time.Duration, w trainingjob.WorkerStatus) {
	state := State(w.State)
	last := &l.Spans[len(l.Spans)-1]
	switch {
	case l.Gone: // the floor's workers under a queue come again with their numbers
		l.Gone, l.told = false, false
		l.Spans = append(l.Spans, Span{State: state, From: now, To: now})
	case last.State == state:
		last.To = now
	default:
		last.To = now
		if last.From == now && len(l.Spans) == 1 {
			last.State = state // it was met in it
		} else {
			l.Spans = append(l.Spans, Span{State: state, From: now, To: now})
		}
	}
	if state == Ready {
		l.told = false
	}
	l.Spans = newest(l.Spans, mostSpans)
	l.Pod, l.Reason = w.Pod, w.Reason
	l.Gradients = max(l.Gradients, w.Gradients)
}

func (l *Life) leave(now time.Duration) {
	if l.Gone {
		return
	}
	l.Spans[len(l.Spans)-1].To = now
	l.Gone = true
}

// Met takes an event of the coordinator's: of interest here is how workers are taken away.
func (h *History) Met(at time.Time, e coordinator.Event) {
	if h.Status.Phase.Finished() || h.Over {
		return // they end because the job has
	}
	switch e := e.(type) {
	case coordinator.Lost: // or disconnected
		if e.Reason != coordinator.LostInOrder {
			h.taken(at, e.Worker, Lost, e.Reason)
		}
	case coordinator.Left:
		if l := h.find(e.Worker); l != nil {
			l.told = true // it was asked to go, by whom the pod says
		}
	case coordinator.PodChanged:
		switch {
		case e.Terminating && e.Preempted:
			h.taken(at, e.Worker, Preempted, e.Reason)
		case e.Terminating:
			h.taken(at, e.Worker, Deleted, e.Reason)
		case e.State == coordinator.PodEnded && !e.Disrupted:
			h.taken(at, e.Worker, Failed, e.Reason)
		}
	}
}

// taken marks the end of a worker, once: of what follows from it nothing is news, but that it was preempted.
func (h *History) taken(at time.Time, worker int, kind Kind, reason string) {
	l := h.find(worker)
	if l == nil || l.Gone {
		return
	}
	now := h.since(at)
	if l.told {
		if n := len(l.Marks); kind == Preempted && n > 0 && l.Marks[n-1].Kind == Lost {
			l.Marks[n-1].Kind = Preempted
			h.Losses--
			h.Preemptions++
		}
		return
	}
	l.told = true
	if kind == Preempted {
		h.Preemptions++
	} else {
		h.Losses++
	}
	l.Marks = newest(append(l.Marks, Mark{At: now, Kind: kind, Reason: reason}), mostMarks)
}
