// Package starttime estimates when a workload that waits for quota is admitted. It continues the quota engine many
// times in virtual time, each time with other run times of the workloads that hold quota and of those before it in the
// queues, and with other arrivals: the result is the interval in which the workload starts with a probability of 80 %.
// The package is pure: the same input has the same result.
package starttime

import (
	"cmp"
	"container/heap"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/quota"
)

const (
	// mostDraws is the number of continuations; more make an interval no better than the run times that are known.
	mostDraws = 200
	// leastDraws are necessary for an interval.
	leastDraws = 40
	// mostCycles bounds the scheduling cycles of all continuations, and mostSteps the events of one.
	mostCycles = 50_000
	mostSteps  = 5_000
	// mostIdle bounds how often in a row the queues are looked at to no avail.
	mostIdle = 5
	// horizon is what a continuation does not look beyond.
	horizon = 60 * 24 * time.Hour
)

// Probability is that of the interval: as many starts are earlier as are later.
const Probability = 0.8

// Run is a workload that holds quota.
type Run struct {
	Class Class
	Ran   time.Duration
	// Left is how much longer it runs, by its progress or deadline: the u-quantile. nil: what its class says.
	Left func(u float64) time.Duration
	// Together names workloads that end at the same time, as the pods of one job do; "" is for one of its own.
	Together string
}

// Arrival is a workload like those that may arrive.
type Arrival struct {
	Workload quota.Workload
	Class    Class
}

// Queues are the queues and workloads of a cluster at one time.
type Queues struct {
	Engine *quota.Engine // is not changed
	Now    time.Time
	// Running are the workloads that hold quota, Waiting those that do not. One that is missing does not end.
	Running map[types.NamespacedName]Run
	Waiting map[types.NamespacedName]Class
	Times   RunTimes
	// Arrivals came within the Window before Now; as many like them come in every such time after it.
	Arrivals []Arrival
	Window   time.Duration
}

// Interval is when a workload is admitted, as times from now.
type Interval struct {
	Earliest, Median, Latest time.Duration
	// Draws is the number of continuations that it is made of.
	Draws int
}

// Of is the interval in which a waiting workload is admitted. ok is false where no such interval is known: workloads of
// unknown run time are in its way, or its start is farther away than can be looked at.
func Of(q Queues, target types.NamespacedName) (i Interval, ok bool) {
	if !q.anyEnds() {
		return Interval{}, false
	}
	var starts []time.Duration // never is the longest
	cycles := 0
	for draw := range uint64(mostDraws) {
		if cycles > mostCycles {
			break
		}
		c := newContinuation(&q, target, draw)
		start := c.run()
		cycles += c.cycles
		if start < 0 {
			start = math.MaxInt64
		}
		starts = append(starts, start)
		if len(starts) == leastDraws && slices.Min(starts) == math.MaxInt64 {
			return Interval{}, false // the rest would hardly be another
		}
	}
	if len(starts) < leastDraws {
		return Interval{}, false
	}
	slices.Sort(starts)
	quantile := func(p float64) time.Duration { return starts[min(int(p*float64(len(starts))), len(starts)-1)] }
	const tail = (1 - Probability) / 2
	i = Interval{Earliest: quantile(tail), Median: quantile(0.5), Latest: quantile(1 - tail), Draws: len(starts)}
	return i, i.Latest < math.MaxInt64
}

// anyEnds reports whether the end of any workload that runs is known.
func (q *Queues) anyEnds() bool {
	for _, run := range q.Running {
		if run.Left != nil || q.Times.Known(run.Class) {
			return true
		}
	}
	return false
}

// continuation is one way in which things may go on.
type continuation struct {
	queues *Queues
	target types.NamespacedName
	engine *quota.Engine
	random *rand.Rand
	now    time.Duration // since the queues' Now
	events events
	// versions count the admissions of workloads: the end of an earlier one does not count.
	versions map[types.NamespacedName]int
	classes  map[types.NamespacedName]Class // of those that arrived
	arrived  int
	cycles   int
}

func newContinuation(q *Queues, target types.NamespacedName, seed uint64) *continuation {
	c := &continuation{
		queues: q, target: target, engine: q.Engine.Clone(), random: rand.New(rand.NewPCG(seed, 0x57a27)), //nolint:gosec // a simulation
		versions: map[types.NamespacedName]int{}, classes: map[types.NamespacedName]Class{},
	}
	together := map[string]time.Duration{}
	names := make([]types.NamespacedName, 0, len(q.Running))
	for name := range q.Running {
		names = append(names, name)
	}
	slices.SortFunc(names, compare)
	for _, name := range names {
		run := q.Running[name]
		left, drawn := together[run.Together]
		if run.Together == "" || !drawn {
			u := c.random.Float64()
			switch {
			case run.Left != nil:
				left = run.Left(u)
			case q.Times.Known(run.Class):
				left = q.Times.Left(run.Class, run.Ran, u)
			default:
				continue
			}
			together[run.Together] = left
		}
		c.add(event{at: left, ends: name})
	}
	if len(q.Arrivals) > 0 && q.Window > 0 {
		c.addArrival()
	}
	return c
}

// run returns when the target is admitted; less than zero if never.
func (c *continuation) run() time.Duration {
	idle := 0 // looks at the queues in a row that changed nothing
	for range mostSteps {
		admitted, acted := c.settle()
		if admitted {
			return c.now
		}
		if idle++; acted {
			idle = 0
		}
		at, retries := c.engine.RequeueAt()
		due := at.Sub(c.queues.Now)
		// Some workloads are tried again for ever, to no avail.
		retries = retries && idle < mostIdle
		switch {
		case retries && (len(c.events) == 0 || due <= c.events[0].at):
			c.now = max(c.now, due)
			continue
		case len(c.events) == 0:
			return -1
		}
		idle = 0
		e := heap.Pop(&c.events).(event) //nolint:errcheck // it holds nothing else
		if c.now = max(c.now, e.at); c.now > horizon {
			return -1
		}
		c.happens(e)
	}
	return -1
}

// happens applies an event.
func (c *continuation) happens(e event) {
	switch {
	case e.arrives:
		a := c.queues.Arrivals[c.random.IntN(len(c.queues.Arrivals))]
		c.arrived++
		w := a.Workload
		w.Name = fmt.Sprintf("%s (arrival %d)", w.Name, c.arrived)
		w.UID, w.Created, w.Reservation, w.Evicted, w.Held = fmt.Sprintf("~arrival %09d", c.arrived), c.time(), nil, "", ""
		c.classes[w.NamespacedName] = a.Class
		c.engine.SetWorkload(w)
		c.addArrival()
	case c.versions[e.ends] == e.version:
		c.engine.DeleteWorkload(e.ends)
	}
}

// settle has the engine decide until nothing changes, and reports whether it admits the target, and whether it did
// anything.
func (c *continuation) settle() (admitted, acted bool) {
	for {
		result := c.engine.Cycle(c.time())
		c.cycles++
		for i := range result.Decisions {
			d := &result.Decisions[i]
			acted = acted || d.Kind != quota.Wait
			switch d.Kind {
			case quota.Admit:
				if d.Workload == c.target {
					return true, true
				}
				c.starts(d.Workload)
			case quota.Evict:
				c.stops(d.Workload)
			case quota.Preempt:
				for _, t := range d.Targets {
					c.stops(t.Workload)
				}
			}
		}
		if result.Settled || c.cycles > mostCycles {
			return false, acted
		}
	}
}

// starts draws the run time of a workload that has been admitted.
func (c *continuation) starts(name types.NamespacedName) {
	c.versions[name]++
	class, known := c.classes[name]
	if !known {
		class, known = c.queues.Waiting[name]
	}
	if !known { // it was evicted, and begins again
		class = c.queues.Running[name].Class
	}
	if c.queues.Times.Known(class) {
		c.add(event{at: c.now + c.queues.Times.Left(class, 0, c.random.Float64()), ends: name, version: c.versions[name]})
	}
}

// stops takes a workload's quota.
func (c *continuation) stops(name types.NamespacedName) {
	c.versions[name]++
	c.engine.Release(name)
}

func (c *continuation) addArrival() {
	mean := float64(c.queues.Window) / float64(len(c.queues.Arrivals))
	c.add(event{at: c.now + time.Duration(c.random.ExpFloat64()*mean), arrives: true})
}

func (c *continuation) add(e event) {
	heap.Push(&c.events, e)
}

func (c *continuation) time() time.Time { return c.queues.Now.Add(c.now) }

// event is an arrival, or the end of a workload.
type event struct {
	at      time.Duration
	arrives bool
	ends    types.NamespacedName
	version int // of its admission
}

// events are a heap, the earliest first.
type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(a, b int) bool {
	if e[a].at != e[b].at {
		return e[a].at < e[b].at
	}
	if e[a].arrives != e[b].arrives {
		return e[b].arrives
	}
	return compare(e[a].ends, e[b].ends) < 0
}
func (e events) Swap(a, b int) { e[a], e[b] = e[b], e[a] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) } //nolint:errcheck // heap.Push gives it an event
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

func compare(a, b types.NamespacedName) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
