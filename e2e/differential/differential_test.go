package differential

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestTry(t *testing.T) {
	begin := time.Now()
	var ties, bound, nominated, pending, steps, ptie atomic.Int64
	var wg sync.WaitGroup
	var next atomic.Uint64
	for range 12 {
		wg.Go(func() {
			for {
				seed := next.Add(1)
				if seed > 400 {
					return
				}
				s, name := Generate(seed)
				got, err := DecideInProcess(t.Context(), s)
				if err != nil {
					t.Error(seed, name, err)
				}
				for _, step := range got {
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
				}
			}
		})
	}
	wg.Wait()
	t.Log(time.Since(begin), steps.Load(), bound.Load(), nominated.Load(), pending.Load(), ties.Load(), ptie.Load())
}
