// Package allreduce adds the gradients of a step among the workers of a round, without the master: a direct
// reduce-scatter and all-gather. Each worker holds sums of whole subtrees of the fixed tree (package reduce), and sends
// to every owner that owner's slice of them. The owner finishes the tree for its slice, and sends the finished slice to
// all workers. A worker that has all slices has the sum of the step, with the same bits as if the master had added it.
//
// It guarantees that what it delivers is the sum of all virtual workers of the step, whatever messages were lost, late
// or sent twice, and it reports the workers that it cannot send to. Package coordinator decides which workers take
// part, which step they compute, and what happens when one is lost; its decisions arrive as rounds and relays.
package allreduce

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/reduce"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/wire"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/wire/wirepb"
)

// Config is the configuration of an exchange.
type Config struct {
	Self           int    // this worker's number
	Host           string // address under which others reach this process
	Token          string // the job's token, with which workers authenticate each other
	Layout         Layout
	VirtualWorkers func(step int64) int   // of a step; at least 1, and 0 where there is no such step
	Most           int                    // the most that any step has
	Add            func(dst, a []float32) // dst[i] ← dst[i] + a[i], rounded once
	// At is called at each Point of a step, from any goroutine; tests end the process there. It may be nil.
	At  func(p Point, step int64)
	Log *slog.Logger

	server []grpc.ServerOption // of tests
}

// Point is a moment of a step at which a worker may die.
type Point int

// The points, in the order of a step.
const (
	BeforeSending  Point = iota // it has computed its virtual workers, and sent none of them
	SentSome                    // it has sent its slice to one owner
	BeforeFinished              // it has finished its own slice, and not sent it
	FinishedSome                // it has sent the finished slice to one worker
	BeforeApplying              // it has the whole sum
	BeforeSaying                // it has applied the sum, and not reported that
	AfterSaying
)

// Peer is another worker.
type Peer struct {
	Worker      int
	Address     string // host:port
	Certificate []byte // PEM
}

// Round is the set of workers that compute a step together.
type Round struct {
	Number    int64 // the highest number is current
	Step      int64
	Owners    []int // in the order of their slices
	Listeners []int // receive finished slices too
}

// PeerError reports that a peer cannot be reached.
type PeerError struct {
	Round  int64
	Peer   int
	Reason string
}

// Traffic is the number of bytes that an exchange has sent: values, and all messages without the overhead of TLS and
// TCP.
type Traffic struct{ Payload, Framing int64 }

// maxOwners bounds what a peer can make us allocate for slices.
const maxOwners = 4096

// keptSteps is how many steps may be partly gathered: a worker that joins gathers while it waits for its state.
const keptSteps = 16

// Exchange is one worker's part in the exchange. It is safe for concurrent use.
type Exchange struct {
	cfg     Config
	self    Peer
	server  *wire.Server
	ctx     context.Context
	end     context.CancelFunc
	running sync.WaitGroup
	wake    chan struct{} // capacity 1

	payload, sent atomic.Int64 // bytes

	mu         sync.Mutex
	changed    *sync.Cond // the round, or the end
	round      Round
	tree       *reduce.Tree // of this worker's slice in this round
	stats      [][]float32  // of it, by virtual worker
	measured   []*wirepb.Measured
	peers      map[int]Peer
	links      map[int]*link
	step       int64 // slices of earlier steps are discarded
	gathered   map[int64]*gathering
	sums       []Sum
	peerErrors []PeerError
}

// New returns an exchange that is in no round yet, and listens on a free port of cfg.Host. It makes a
// certificate, by which others authenticate this process; it authenticates them by the job's token. Close ends it.
func New(cfg Config) (*Exchange, error) {
	if cfg.At == nil {
		cfg.At = func(Point, int64) {}
	}
	own, err := trainingjob.NewCredentials(rand.Reader, time.Now(), fmt.Sprintf("worker-%d", cfg.Self))
	if err != nil {
		return nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", net.JoinHostPort(cfg.Host, "0"))
	if err != nil {
		return nil, fmt.Errorf("listen for other workers: %w", err)
	}
	e := &Exchange{
		cfg: cfg, self: Peer{Worker: cfg.Self, Address: listener.Addr().String(), Certificate: own.Certificate},
		wake: make(chan struct{}, 1), tree: reduce.NewTree(cfg.Add, nil),
		peers: map[int]Peer{}, links: map[int]*link{}, gathered: map[int64]*gathering{},
	}
	e.ctx, e.end = context.WithCancel(context.Background())
	e.changed = sync.NewCond(&e.mu)
	credentials := wire.Credentials{Certificate: own.Certificate, PrivateKey: own.PrivateKey, Token: cfg.Token}
	if e.server, err = wire.NewServer(credentials, cfg.Log, e.serve, cfg.server...); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	e.running.Go(func() {
		if err := e.server.Serve(listener); err != nil && e.ctx.Err() == nil {
			cfg.Log.Error("other workers cannot reach this one any more", "error", err)
		}
	})
	return e, nil
}

// Close ends all connections and waits for their goroutines.
func (e *Exchange) Close() {
	e.end()
	e.mu.Lock()
	e.changed.Broadcast()
	e.mu.Unlock()
	e.server.Stop(0)
	e.running.Wait()
}

// Self describes how others reach this worker.
func (e *Exchange) Self() Peer { return e.self }

// Wake is signalled when Next or PeerError may have something new.
func (e *Exchange) Wake() <-chan struct{} { return e.wake }

func (e *Exchange) signal() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// Next returns the next complete sum of a step, each once, or false.
func (e *Exchange) Next() (Sum, bool) {
	return take(e, &e.sums)
}

// PeerError returns the next peer that it could not send to, each once, or false.
func (e *Exchange) PeerError() (PeerError, bool) {
	return take(e, &e.peerErrors)
}

// take removes the first element of one of the exchange's queues.
func take[T any](e *Exchange, queue *[]T) (first T, there bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(*queue) == 0 {
		return first, false
	}
	first, *queue = (*queue)[0], (*queue)[1:]
	return first, true
}

// Traffic returns what has been sent until now.
func (e *Exchange) Traffic() Traffic {
	payload := e.payload.Load()
	return Traffic{Payload: payload, Framing: e.sent.Load() - payload}
}

// Know stores how peers are reached.
func (e *Exchange) Know(peers []Peer) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, p := range peers {
		if old, known := e.peers[p.Worker]; known && old.Address != p.Address {
			e.unlink(p.Worker) // another process under the same number
		}
		e.peers[p.Worker] = p
	}
}

// Applied reports that the state is at a step: slices of earlier steps are discarded.
func (e *Exchange) Applied(step int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.step = step
	for s := range e.gathered {
		if s < step {
			delete(e.gathered, s)
		}
	}
	e.sums = slices.DeleteFunc(e.sums, func(s Sum) bool { return s.Step < step })
}
