package master

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/job"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/worker"
)

// keeper holds the master's state. What is done with a state takes the longer the larger it is, and the loop has
// heartbeats to send, so the loop only requests it: the keeper does one thing after the other, in the order of the
// requests, and hands what follows back to the loop.
//
// A version of the state that somebody reads is not changed. The next update then makes a copy, and otherwise none is
// ever made.
type keeper struct {
	network job.Network
	hash    func(state []float32) string
	ended   <-chan struct{} // closed when the loop has ended; requests that have not begun are dropped
	results chan func()     // to be called by the loop
	freed   chan struct{}   // capacity 1: a version has lost its last reader
	running sync.WaitGroup

	// These belong to the loop.
	newest    chan struct{} // closed when the newest request is done
	unapplied int           // updates that were requested and whose result has not come back

	// These belong to the request that is being carried out.
	current *version
	broken  bool // an update could not be applied
}

// version is the state at one step.
type version struct {
	step    int64
	floats  []float32
	readers atomic.Int32
}

func newKeeper(network job.Network, hash func([]float32) string, ended <-chan struct{}, step int64, state []float32) *keeper {
	k := &keeper{
		network: network, hash: hash, ended: ended, results: make(chan func(), 16), freed: make(chan struct{}, 1),
		newest: make(chan struct{}), current: &version{step: step, floats: state},
	}
	close(k.newest)
	return k
}

// request has something done after everything that was requested before. It is for the loop, as are the requests below.
func (k *keeper) request(work func()) {
	before, done := k.newest, make(chan struct{})
	k.newest = done
	k.running.Go(func() {
		defer close(done)
		<-before
		select {
		case <-k.ended:
		default:
			if !k.broken {
				work()
			}
		}
	})
}

// result hands something back to the loop.
func (k *keeper) result(then func()) {
	select {
	case k.results <- then:
	case <-k.ended:
	}
}

// apply brings the state to the next step. The update must not change any more.
func (k *keeper) apply(u update, then func(error)) {
	k.request(func() {
		next := &version{step: u.step + 1, floats: k.current.floats}
		if k.current.readers.Load() > 0 {
			next.floats = slices.Clone(next.floats)
		}
		err := worker.ApplyUpdate(k.network, next.floats, u.floats, u.rows, u.step)
		k.current, k.broken = next, err != nil
		k.result(func() { then(err) })
	})
}

// adopt replaces the state.
func (k *keeper) adopt(step int64, state []float32) {
	k.request(func() { k.current = &version{step: step, floats: state} })
}

// hashOwn hashes the state as it is after all updates so far.
func (k *keeper) hashOwn(then func(hash string)) {
	k.request(func() {
		hash := k.hash(k.current.floats)
		k.result(func() { then(hash) })
	})
}

// hashOf hashes another state.
func (k *keeper) hashOf(state []float32, then func(hash string)) {
	k.request(func() {
		hash := k.hash(state)
		k.result(func() { then(hash) })
	})
}

// lend passes the state, as it is after all updates so far, to a reader, which is not called by the loop and releases
// it.
func (k *keeper) lend(to func(*version)) {
	k.request(func() {
		k.current.readers.Add(1)
		to(k.current)
	})
}

// retain adds a reader to a version that has one already, and reports whether it still had.
func (v *version) retain() bool {
	for n := v.readers.Load(); n > 0; n = v.readers.Load() {
		if v.readers.CompareAndSwap(n, n+1) {
			return true
		}
	}
	return false
}

// release ends one reading. It is called from any goroutine.
func (k *keeper) release(v *version) {
	if v.readers.Add(-1) > 0 {
		return
	}
	select {
	case k.freed <- struct{}{}:
	default:
	}
}
