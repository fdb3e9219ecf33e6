package differential

import (
	"flag"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var (
	first = flag.Uint64("first", 1, "")
	count = flag.Uint64("count", 400, "")
)

func TestTry(t *testing.T) {
	begin := time.Now()
	var ties, bound, nominated, pending, steps, ptie, bad, msg atomic.Int64
	var wg sync.WaitGroup
	var next atomic.Uint64
	next.Store(*first - 1)
	var mu sync.Mutex
	fams := map[string]int{}
	for range 12 {
		wg.Go(func() {
			for {
				seed := next.Add(1)
				if seed >= *first+*count {
					return
				}
				s, name := Generate(seed)
				got, err := DecideInProcess(t.Context(), s)
				if err != nil {
					t.Error(seed, name, err)
				}
				for i, step := range got {
					steps.Add(1)
					d := step.Decision
					switch {
					case d.Node != "":
						bound.Add(1)
					case d.Nominated != "":
						nominated.Add(1)
					default:
						pending.Add(1)
					}
					if len(d.Equals) > 0 {
						ties.Add(1)
						if d.Nominated != "" {
							ptie.Add(1)
						}
					}
					e, err := DecideByEngine(step.Before, nameOf(step.Pod).String())
					if err != nil {
						t.Error(seed, name, i, err)
						continue
					}
					set := func(d Decision) []Decision {
						if d.Equals != nil {
							return d.Equals
						}
						return []Decision{d}
					}
					if !slices.EqualFunc(set(e), set(d), func(a, b Decision) bool { return compareDecisions(a, b) == 0 }) {
						bad.Add(1)
						mu.Lock()
						fams[name]++
						fmt.Printf("seed %d %s step %d %s:\n  real   %v %v\n  engine %v %v\n", seed, name, i, nameOf(step.Pod), d, d.Equals, e, e.Equals)
						mu.Unlock()
					} else if e.Message != d.Message {
						if msg.Add(1) < 5 {
							fmt.Printf("seed %d %s step %d:\n  real   %s\n  engine %s\n", seed, name, i, d.Message, e.Message)
						}
					}
				}
			}
		})
	}
	wg.Wait()
	t.Log(time.Since(begin), "steps", steps.Load(), "bound", bound.Load(), "nom", nominated.Load(), "pend", pending.Load(), "ties", ties.Load(), ptie.Load(), "BAD", bad.Load(), "msg", msg.Load(), fams)
}

func TestOne(t *testing.T) {
	s, name := Generate(*first)
	steps, err := DecideInProcess(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range steps {
		d, err := Compare(step)
		if err != nil {
			t.Fatal(err)
		}
		if d != nil {
			t.Errorf("%s\n%s", name, d.Minimal(t.Context()))
		}
	}
}
