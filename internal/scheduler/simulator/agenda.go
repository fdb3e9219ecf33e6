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
	nodeReady
	nodeIdle
	quotaRetries
	stageBegins
)

// event is something that happens at a time. subject and detail are numbers of what it is about (a job, a pod, a node);
// it is void when stamp is not the subject's any more.
type event struct {
	at      Time
	seq     int64
	kind    kind
	subject int
	detail  int
	stamp   int
}

func (e *event) before(other *event) bool {
	if e.at != other.at {
		return e.at < other.at
	}
	return e.seq < other.seq
}

// agenda is a heap of events, ordered by time, then by the order in which they were made.
type agenda struct {
	events []event
	seq    int64
}

func (a *agenda) add(e event) {
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

// next takes the first event out; the agenda is not empty.
func (a *agenda) next() event {
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
