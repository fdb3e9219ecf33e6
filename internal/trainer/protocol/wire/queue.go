package wire

import (
	"context"
	"sync"
	"sync/atomic"

	"google.golang.org/protobuf/proto"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/wire/wirepb"
)

// Sender is the sending half of a stream.
type Sender interface{ SendMsg(m any) error }

// Queue is what one peer still has to be sent. Heartbeats overtake tensors between their pieces. It holds at most
// `limit` tensors: a peer that reads too slowly neither slows the others nor grows us.
type Queue struct {
	limit  int
	wake   chan struct{} // capacity 1
	frames atomic.Int64  // that were sent

	mu      sync.Mutex
	urgent  *wirepb.Message // not sent yet
	items   []item
	tensors int
	closed  bool
}

type item struct {
	message *wirepb.Message
	floats  []float32
	tensor  bool
	sent    func() // may be nil
}

func (i item) done() {
	if i.sent != nil {
		i.sent()
	}
}

// NewQueue returns a queue for at most limit tensors.
func NewQueue(limit int) *Queue { return &Queue{limit: limit, wake: make(chan struct{}, 1)} }

// Urgent queues a heartbeat ahead of everything. It takes the place of one that has not been sent: a peer that does
// not read for an hour has one heartbeat to read afterwards.
func (q *Queue) Urgent(m *wirepb.Message) {
	q.mu.Lock()
	if !q.closed {
		q.urgent = m
	}
	q.mu.Unlock()
	q.signal()
}

// Send queues a message without a tensor.
func (q *Queue) Send(m *wirepb.Message) { q.push(item{message: m}) }

// SendTensor queues a message and its floats, which must not change until sent is called: when they have been sent or
// thrown away, from whatever goroutine. sent may be nil. It reports false, and queues nothing, when the queue is full.
func (q *Queue) SendTensor(m *wirepb.Message, floats []float32, sent func()) bool {
	return q.push(item{message: m, floats: floats, tensor: true, sent: sent})
}

func (q *Queue) push(i item) bool {
	q.mu.Lock()
	if q.closed || (i.tensor && q.tensors >= q.limit) {
		full := !q.closed
		q.mu.Unlock()
		if !full {
			i.done()
		}
		return !full
	}
	if i.tensor {
		q.tensors++
	}
	q.items = append(q.items, i)
	q.mu.Unlock()
	q.signal()
	return true
}

// Drop empties the queue of everything that has not begun to be sent.
func (q *Queue) Drop() {
	q.mu.Lock()
	dropped := q.items
	q.items, q.tensors = nil, 0
	q.mu.Unlock()
	for _, i := range dropped {
		i.done()
	}
}

// Close lets Run return once everything queued before has been sent; what is queued later is thrown away.
func (q *Queue) Close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.signal()
}

func (q *Queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// Frames is how many frames were sent. It stands still while the peer reads nothing.
func (q *Queue) Frames() int64 { return q.frames.Load() }

// Run sends what is queued until ctx ends, Close has been honoured, or the stream breaks.
func (q *Queue) Run(ctx context.Context, s Sender) error {
	for {
		i, ok, closed := q.next()
		switch {
		case ok:
			if err := q.send(s, i); err != nil {
				return err
			}
		case closed:
			return nil
		default:
			select {
			case <-q.wake:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
}

func (q *Queue) next() (i item, ok, closed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.urgent != nil {
		i = item{message: q.urgent}
		q.urgent = nil
		return i, true, false
	}
	if len(q.items) > 0 {
		i = q.items[0]
		q.items = q.items[1:]
		if i.tensor {
			q.tensors--
		}
		return i, true, false
	}
	return item{}, false, q.closed
}

func (q *Queue) send(s Sender, i item) error {
	defer i.done()
	if !i.tensor {
		return q.frame(s, &Frame{Message: i.message})
	}
	message := proto.CloneOf(i.message) // shared between the queues of all workers
	return pieces(len(i.floats), func(p *wirepb.Piece, lo, hi int) error {
		setPiece(message, p)
		if err := q.frame(s, &Frame{Message: message, floats: i.floats[lo:hi]}); err != nil || hi == len(i.floats) {
			return err
		}
		return q.sendUrgent(s)
	})
}

// sendUrgent lets a heartbeat through between two pieces of a tensor.
func (q *Queue) sendUrgent(s Sender) error {
	q.mu.Lock()
	urgent := q.urgent
	q.urgent = nil
	q.mu.Unlock()
	if urgent == nil {
		return nil
	}
	return q.frame(s, &Frame{Message: urgent})
}

func (q *Queue) frame(s Sender, f *Frame) error {
	defer q.frames.Add(1)
	return s.SendMsg(f)
}
