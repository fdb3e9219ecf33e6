package simulator

// Time is milliseconds since the start of the simulation.
type Time int64

// kind is what an event is about.
type kind uint8

const (
	jobArrives kind = iota
	jobResizes
	podSeen
	podStarts
	podStops
	workerJoins
	workDone
	nodeLost
	nodeReturns
	podFails
	nodeReady
	nodeIdle
	quotaRetries
	stageBegins
	agesSeen
)

// event is something that happens at a time. It is about the job, pod, node or stage with number subject, and is void
// when version is no longer the subject's.
type event struct {
	at      Time
	seq     int64
	kind    kind
	subject int
	version int
	pod     int         // workerJoins: the worker's pod
	outage  Time        // nodeLost: how long the node is away; 0 for ever
	workers workerRange // jobResizes: the new size
}

// workerRange is the minimum and the maximum number of an elastic job's workers.
type workerRange struct{ min, max int32 }

func (e *event) before(other *event) bool {
	if e.at != other.at {
		return e.at < other.at
	}
	return e.seq < other.seq
}

// eventQueue is a heap of events, ordered by time, then by the order in which they were made.
type eventQueue struct {
	events []event
	seq    int64
}

func (a *eventQueue) add(e event) {
	a.seq++
	e.seq = a.seq
	a.events = append(a.events, e)
	at := len(a.events) - 1
	for at > 0 {
		parent := (at - 1) / 2
		if a.events[parent].before(&a.events[at]) {
			break
		}
		a.events[parent], a.events[at] = a.events[at], a.events[parent]
		at = parent
	}
}

// next removes the first event; the queue must not be empty.
func (a *eventQueue) next() event {
	first := a.events[0]
	last := len(a.events) - 1
	a.events[0] = a.events[last]
	a.events = a.events[:last]
	for at := 0; ; {
		least := at
		for child := 2*at + 1; child <= 2*at+2 && child < last; child++ {
			if a.events[child].before(&a.events[least]) {
				least = child
			}
		}
		if least == at {
			return first
		}
		a.events[at], a.events[least] = a.events[least], a.events[at]
		at = least
	}
}
