package differential

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
)

// Each calls do for every seed, several at a time: most of a decision's time is waiting for another goroutine.
func Each(first, count uint64, atATime int, do func(seed uint64)) {
	var next atomic.Uint64
	var workers sync.WaitGroup
	for range atATime {
		workers.Go(func() {
			for at := next.Add(1) - 1; at < count; at = next.Add(1) - 1 {
				do(first + at)
			}
		})
	}
	workers.Wait()
}

// A Tally counts compared decisions by family. Its zero value is ready, and may be used by several goroutines.
type Tally struct {
	mutex    sync.Mutex
	families map[string]Counts
}

// Counts are numbers of decisions.
type Counts struct {
	Bound, Preempting, Waiting int
	Results                    [Different + 1]int
}

// Decisions is the number of all decisions.
func (c Counts) Decisions() int { return c.Bound + c.Preempting + c.Waiting }

func (c Counts) plus(other Counts) Counts {
	c.Bound, c.Preempting, c.Waiting = c.Bound+other.Bound, c.Preempting+other.Preempting, c.Waiting+other.Waiting
	for i, n := range other.Results {
		c.Results[i] += n
	}
	return c
}

// Count adds a decision on a snapshot of a family.
func (t *Tally) Count(family string, compared *Comparison) {
	var one Counts
	switch d := compared.Step.Decision; {
	case d.Node != "":
		one.Bound = 1
	case d.Nominated != "":
		one.Preempting = 1
	default:
		one.Waiting = 1
	}
	one.Results[compared.Result] = 1
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.families == nil {
		t.families = map[string]Counts{}
	}
	t.families[family] = t.families[family].plus(one)
}

// Of are the counts of a family.
func (t *Tally) Of(family string) Counts {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.families[family]
}

// Sum are the counts of all families.
func (t *Tally) Sum() (sum Counts) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	for _, c := range t.families {
		sum = sum.plus(c)
	}
	return sum
}

// String is a table of the families, with the sum in its last row.
func (t *Tally) String() string {
	var b strings.Builder
	row := func(name string, c Counts) {
		fmt.Fprintf(&b, "%-30s %10d %8d %11d %8d %6d %12d %12d\n", name, c.Decisions(), c.Bound, c.Preempting, c.Waiting,
			c.Results[Tied], c.Results[Approximate], c.Results[Different])
	}
	fmt.Fprintf(&b, "%-30s %10s %8s %11s %8s %6s %12s %12s\n", "family", "decisions", "bound", "preempting", "waiting", "ties", "approximate", "different")
	for _, name := range Families() {
		if c := t.Of(name); c.Decisions() > 0 {
			row(name, c)
		}
	}
	row("all", t.Sum())
	return b.String()
}
