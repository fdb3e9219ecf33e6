package nn

import (
	"sync"
	"sync/atomic"
)

// threads run the units of a phase. The caller is one of them; the others wait between phases and end with close.
type threads struct {
	own   thread // of the caller
	wake  []chan struct{}
	done  sync.WaitGroup // of the phase
	ended sync.WaitGroup

	phase *phase
	units int64
	next  atomic.Int64
}

func startThreads(count int) *threads {
	p := &threads{}
	for id := 1; id < count; id++ {
		wake := make(chan struct{}, 1)
		p.wake = append(p.wake, wake)
		p.ended.Add(1)
		go func() {
			defer p.ended.Done()
			t := thread{id: id}
			for range wake {
				p.take(&t)
				p.done.Done()
			}
		}()
	}
	return p
}

// do runs all units of the phase and returns when they are done.
func (p *threads) do(ph *phase, units int) {
	p.phase, p.units = ph, int64(units)
	p.next.Store(0)
	helpers := min(len(p.wake), units-1)
	if helpers > 0 {
		p.done.Add(helpers)
		for _, wake := range p.wake[:helpers] {
			wake <- struct{}{}
		}
	}
	p.take(&p.own)
	p.done.Wait()
}

func (p *threads) take(t *thread) {
	for {
		unit := p.next.Add(1) - 1
		if unit >= p.units {
			return
		}
		p.phase.run(t, int(unit))
	}
}

func (p *threads) close() {
	for _, wake := range p.wake {
		close(wake)
	}
	p.wake = nil
	p.ended.Wait()
}
