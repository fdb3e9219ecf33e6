package simulator

import (
	"cmp"
	"fmt"
	"maps"
	"math/big"
	"slices"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/simulator/scenariofile"
)

// shareUnit is a whole in a Share.
const shareUnit = 10_000

// Share is a part of a whole in ten-thousandths: a number that is the same on every machine.
type Share int

func (s Share) String() string { return fmt.Sprintf("%d.%02d %%", s/100, s%100) }

// MarshalJSON writes it as a number from 0 to 1.
func (s Share) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, "%d.%04d", s/shareUnit, s%shareUnit), nil
}

// Summary is a run in numbers. Times are milliseconds.
type Summary struct {
	Scenario string `json:"scenario"`
	Seed     uint64 `json:"seed"`

	// Jobs that arrived, and how many of them ended.
	Jobs     int `json:"jobs"`
	Finished int `json:"finished"`
	// Makespan is from the first arrival to the last job's end, or to the simulation's where a job did not end.
	Makespan scenariofile.Duration `json:"makespan_ms"`
	// Waits are by priority, the highest first.
	Waits []Waits `json:"waits"`
	// Utilisation of each resource that nodes have and jobs ask for: what pods held of it, of what was there, over the
	// makespan.
	Utilisation []Utilisation `json:"utilisation"`

	// Preemptions are pods that the scheduler evicted, Evictions workloads that lost their quota, Losses lost nodes.
	Preemptions int `json:"preemptions"`
	Evictions   int `json:"evictions"`
	Losses      int `json:"node_losses"`

	// Counted is the resource by which work is counted, the commonest accelerator or else the cpu.
	Counted string `json:"counted"`
	// Held, Useful and Lost are seconds of it: held by pods that compute (masters are no such), of work that is in a
	// result or would be, and of work that was done and lost.
	Held   int64 `json:"held_seconds"`
	Useful int64 `json:"useful_seconds"`
	Lost   int64 `json:"lost_seconds"`
	// Goodput is useful ÷ held.
	Goodput Share `json:"goodput"`

	// Events that happened, and how often the scheduler tried a pod.
	Events int64 `json:"events"`
	Asked  int   `json:"asked"`
	// Unfinished are the first jobs that did not end.
	Unfinished []string `json:"unfinished,omitempty"`
}

// Waits are the jobs of one priority: how long they waited from their arrival until they computed for the first time,
// and how long they took to their end.
type Waits struct {
	Priority int32        `json:"priority"`
	Arrived  int          `json:"arrived"`
	Jobs     int          `json:"jobs"` // of those, that ended: whose times these are
	Waiting  Distribution `json:"waiting_ms"`
	Taking   Distribution `json:"taking_ms"`
}

// Distribution of times: their mean, and that half of them are at most P50, and so on.
type Distribution struct {
	Mean scenariofile.Duration `json:"mean"`
	P50  scenariofile.Duration `json:"p50"`
	P90  scenariofile.Duration `json:"p90"`
	P95  scenariofile.Duration `json:"p95"`
	P99  scenariofile.Duration `json:"p99"`
	Max  scenariofile.Duration `json:"max"`
}

// Utilisation is of one resource.
type Utilisation struct {
	Resource string `json:"resource"`
	Share    Share  `json:"share"`
}

// stats is what a summary is made of, counted along the way.
type stats struct {
	events      int64
	arrived     int
	preemptions int
	evictions   int
	losses      int

	capacity, taken []int64 // now
	there, used     []area
	span            Time // how long anything was counted

	holding            int64 // of the resource that is counted, by pods that compute
	held, useful, lost area

	arrivedAt       map[int32]int // by priority
	waiting, taking map[int32][]Time
	last            Time // a job's end
}

// pass counts a time in which nothing changed.
func (t *stats) pass(d Time) {
	if d == 0 {
		return
	}
	t.span += d
	for i := range t.capacity {
		t.there[i].add(t.capacity[i], d)
		t.used[i].add(t.taken[i], d)
	}
	t.held.add(t.holding, d)
}

func (t *stats) grow(capacity []int64, sign int64) {
	for i, amount := range capacity {
		t.capacity[i] += sign * amount
	}
}

func (t *stats) take(requests []int64, sign int64, weighed int64) {
	for i, amount := range requests {
		t.taken[i] += sign * amount
	}
	t.holding += sign * weighed
}

func (t *stats) arrive(priority int32) {
	if t.arrivedAt == nil {
		t.arrivedAt = map[int32]int{}
	}
	t.arrived++
	t.arrivedAt[priority]++
}

func (t *stats) finish(j *job, priority int32, now Time) {
	if t.waiting == nil {
		t.waiting, t.taking = map[int32][]Time{}, map[int32][]Time{}
	}
	t.waiting[priority] = append(t.waiting[priority], j.started-j.submitted)
	t.taking[priority] = append(t.taking[priority], now-j.submitted)
	t.last = now
}

// distribution sorts the times.
func distribution(times []Time) Distribution {
	slices.Sort(times)
	rank := func(percent int) scenariofile.Duration { // nearest rank
		return scenariofile.Duration(times[max((len(times)*percent+99)/100, 1)-1])
	}
	return Distribution{mean(times), rank(50), rank(90), rank(95), rank(99), rank(100)}
}

func mean(times []Time) scenariofile.Duration {
	sum := Time(0) // a million jobs of a hundred years each do not overflow it
	for _, t := range times {
		sum += t
	}
	return scenariofile.Duration(sum) / scenariofile.Duration(len(times))
}

const maxUnfinished = 10

func (s *simulation) summarize(seed uint64) *Summary {
	t := &s.stats
	out := &Summary{
		Scenario: s.scenario.Name, Seed: seed, Jobs: t.arrived, Finished: s.ended,
		Preemptions: t.preemptions, Evictions: t.evictions, Losses: t.losses, Counted: string(s.resources[s.weighed]),
		Events: t.events, Asked: s.tries,
	}
	first := Time(-1)
	end := t.last
	for _, o := range s.jobs {
		j := o.asJob()
		if first < 0 || j.submitted < first {
			first = j.submitted
		}
		if !j.over && j.submitted <= s.now {
			end = s.now
			if len(out.Unfinished) < maxUnfinished {
				out.Unfinished = append(out.Unfinished, j.name)
			}
		}
	}
	out.Makespan = scenariofile.Duration(max(end-max(first, 0), 0))
	for _, priority := range slices.SortedFunc(maps.Keys(t.waiting), func(a, b int32) int { return cmp.Compare(b, a) }) {
		out.Waits = append(
			out.Waits,
			Waits{priority, t.arrivedAt[priority], len(t.waiting[priority]), distribution(t.waiting[priority]), distribution(t.taking[priority])},
		)
	}
	for i, name := range s.resources {
		if there := t.there[i].big(); i != s.podSlot && there.Sign() > 0 && s.requested[name] {
			out.Utilisation = append(out.Utilisation, Utilisation{string(name), shareOf(t.used[i].big(), there)})
		}
	}
	out.Held, out.Useful, out.Lost = s.seconds(t.held), s.seconds(t.useful), s.seconds(t.lost)
	out.Goodput = shareOf(t.useful.big(), t.held.big())
	return out
}

// seconds is an area of the resource that is counted, in seconds of one of it.
func (s *simulation) seconds(a area) int64 {
	unit := int64(1000) // milliseconds
	if s.weighed == 0 {
		unit *= 1000 // millicores
	}
	return new(big.Int).Quo(a.big(), big.NewInt(unit)).Int64()
}
