package kueuedecisions

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"

	"github.com/elastic-training/terraform-provider-elastic/e2e/kueuedecisions/draw"
)

// Drawn names a scenario: a family and a seed.
type Drawn struct {
	Family string
	Seed   uint64
}

// All are scenarios of some families, count of each, beginning with the seed first: seed by seed, so that each part of them
// has all families.
func All(families []string, first, count uint64) (all []Drawn) {
	for seed := first; seed < first+count; seed++ {
		for _, family := range families {
			all = append(all, Drawn{family, seed})
		}
	}
	return all
}

// Each draws and compares scenarios, as many at a time as there are processors. It calls done with each comparison, one at a
// time. It stops at the first scenario that cannot be played, or when ctx ends.
func Each(ctx context.Context, all []Drawn, done func(Drawn, *Comparison)) error {
	// Next to no memory is kept, but much is used: collecting it took a third of the time.
	defer debug.SetGCPercent(debug.SetGCPercent(1600))
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	jobs := make(chan Drawn)
	var lock sync.Mutex
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for drawn := range jobs {
				c, err := drawn.compare()
				if err != nil {
					fail(fmt.Errorf("family %s, seed %d: %w", drawn.Family, drawn.Seed, err))
					continue
				}
				lock.Lock()
				done(drawn, c)
				lock.Unlock()
			}
		})
	}
	for _, drawn := range all {
		if ctx.Err() != nil {
			break
		}
		jobs <- drawn
	}
	close(jobs)
	workers.Wait()
	return context.Cause(ctx)
}

func (d Drawn) compare() (*Comparison, error) {
	s, err := draw.Scenario(d.Family, d.Seed)
	if err != nil {
		return nil, err
	}
	return Compare(s)
}
