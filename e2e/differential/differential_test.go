package differential

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var (
	oneSeed   = flag.Uint64("seed", 0, "decide on the snapshot of this seed only, and show it")
	firstSeed = flag.Uint64("first", 0, "the first seed; 0: always the same, or one that was never used before where $ELASTIC_SOAK is set")
	seedCount = flag.Uint64("seeds", 0, "how many seeds; 0: hundreds, or thousands where $ELASTIC_SOAK is set")
)

// seeds are the seeds of a run: from the first on, count of them.
func seeds(few, many uint64) (first, count uint64) {
	first, count = 1, few
	if os.Getenv("ELASTIC_SOAK") != "" {
		first, count = uint64(time.Now().Unix())<<16, many
	}
	if *firstSeed != 0 {
		first = *firstSeed
	}
	if *seedCount != 0 {
		count = *seedCount
	}
	if *oneSeed != 0 {
		first, count = *oneSeed, 1
	}
	return first, count
}

func TestTheEngineDecidesAsKubeSchedulersCodeDoes(t *testing.T) {
	first, count := seeds(600, 10_000)
	begin := time.Now()
	var tally tally
	each(first, count, 4*runtime.NumCPU(), func(seed uint64) {
		snapshot, family := Generate(seed)
		if *oneSeed != 0 {
			t.Logf("seed %d, family %q:\n%s", seed, family, snapshot)
		}
		steps, _, err := DecideInProcess(t.Context(), snapshot)
		if err != nil {
			t.Errorf("seed %d, family %q: %v", seed, family, err)
			return
		}
		for _, step := range steps {
			if *oneSeed != 0 {
				t.Logf("%s %s", nameOf(step.Pod), step.Decision.withEquals())
			}
			difference, err := Compare(t.Context(), &step)
			if err != nil {
				t.Errorf("seed %d, family %q, pod %s: %v\n%s", seed, family, nameOf(step.Pod), err, step.Before)
				return
			}
			if tally.count(family, step, difference) && difference != nil {
				t.Errorf("seed %d, family %q; replay with: go -C e2e test ./differential -run %s -seed %d -v\n%s",
					seed, family, t.Name(), seed, difference.Minimal(t.Context()))
			}
		}
	})
	t.Logf("seeds %d to %d in %s\n%s", first, first+count-1, time.Since(begin).Round(time.Second), &tally)
}

// each calls do for every seed, several at a time: most of a decision's time is waiting for another goroutine.
func each(first, count uint64, atATime int, do func(seed uint64)) {
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

// mostShown is the number of differences that are reduced and shown.
const mostShown = 5

// A tally counts decisions by family.
type tally struct {
	mutex       sync.Mutex
	families    map[string]*counts
	differences int
}

type counts struct{ decisions, bound, preempting, waiting, ties, differences int }

// count reports whether there were not too many differences before to show one more.
func (t *tally) count(family string, step Step, difference *Difference) bool {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.families == nil {
		t.families = map[string]*counts{}
	}
	c := t.families[family]
	if c == nil {
		c = &counts{}
		t.families[family] = c
	}
	c.decisions++
	switch d := step.Decision; {
	case d.Node != "":
		c.bound++
	case d.Nominated != "":
		c.preempting++
	default:
		c.waiting++
	}
	if step.Decision.Equals != nil {
		c.ties++
	}
	if difference != nil {
		c.differences++
		t.differences++
	}
	return t.differences <= mostShown
}

func (t *tally) String() string {
	var b strings.Builder
	row := func(name string, c counts) {
		fmt.Fprintf(&b, "%-20s %10d %8d %11d %8d %6d %12d\n", name, c.decisions, c.bound, c.preempting, c.waiting, c.ties, c.differences)
	}
	fmt.Fprintf(&b, "%-20s %10s %8s %11s %8s %6s %12s\n", "family", "decisions", "bound", "preempting", "waiting", "ties", "differences")
	var sum counts
	for _, name := range Families() {
		c := t.families[name]
		if c == nil {
			continue
		}
		row(name, *c)
		sum.decisions, sum.bound, sum.preempting = sum.decisions+c.decisions, sum.bound+c.bound, sum.preempting+c.preempting
		sum.waiting, sum.ties, sum.differences = sum.waiting+c.waiting, sum.ties+c.ties, sum.differences+c.differences
	}
	row("all", sum)
	return b.String()
}
