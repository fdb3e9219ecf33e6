package kueuedecisions

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"

	"github.com/elastic-training/terraform-provider-elastic/e2e/kueuedecisions/draw"
)

// Each draws and compares scenarios of some families, count of each, beginning with the seed first, as many at a time as
// there are processors. It calls done with each comparison, one at a time. It stops at the first scenario that cannot be
// played, or when ctx ends.
func Each(ctx context.Context, families []string, first, count uint64, done func(family string, seed uint64, c *Comparison)) error {
	// Next to no memory is kept, but much is used: collecting it took a third of the time.
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	type job struct {
		family string
		seed   uint64
	}
	jobs := make(chan job)
	var lock sync.Mutex
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for j := range jobs {
				c, err := compareDrawn(j.family, j.seed)
				if err != nil {
					fail(fmt.Errorf("family %s, seed %d: %w", j.family, j.seed, err))
					continue
				}
				lock.Lock()
				done(j.family, j.seed, c)
				lock.Unlock()
			}
		})
	}
	for _, family := range families {
		for seed := first; seed < first+count && ctx.Err() == nil; seed++ {
			jobs <- job{family, seed}
		}
	}
	close(jobs)
	workers.Wait()
	return context.Cause(ctx)
}

func compareDrawn(family string, seed uint64) (*Comparison, error) {
	s, err := draw.Scenario(family, seed)
	if err != nil {
		return nil, err
	}
	return Compare(s)
}
