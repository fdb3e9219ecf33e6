package master

import (
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"google.golang.org/grpc"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/gradient"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/wire"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/wire/wirepb"
)

// connection is one worker's stream.
type connection struct {
	*wire.Stream
	address     string // under which other workers reach it; owned by the loop, as are the following fields
	certificate []byte
	sentPeers   map[int]string // by worker: the peers that it has received
	fetching    atomic.Bool    // its state has been requested
	follows     following      // owned by the loop
	receiving   atomic.Int32   // states that are on their way to it
	frames      int64          // sent to it by the last tick; owned by the loop
	stalled     int            // ticks since that changed, while others wait; owned by the loop
	closing     bool           // a last message was sent or received; owned by the loop
}

// input is what a stream's goroutine sends to the loop: a message, with the gradient or the state that it carries, or
// the end of the stream.
type input struct {
	conn     *connection
	message  *wirepb.Message
	gradient []float32
	rows     []gradient.Rows // of the gradient
	state    []float32
	hash     string // of the state, once it is known
	hashing  bool   // that was requested
	ended    error
}

// serve serves one stream.
func (m *Master) serve(stream grpc.ServerStream) error {
	s, first, err := wire.Accept(stream, queueUpdates)
	if err != nil {
		return err
	}
	defer s.End(nil)
	c := &connection{Stream: s, sentPeers: map[int]string{}}
	if !m.deliver(&input{conn: c, message: first}) {
		return errEnded
	}
	return s.Serve(&m.streams, m.ended, func() error { return m.receive(c) }, func(err error) { m.deliver(&input{conn: c, ended: err}) })
}

var errEnded = errors.New("the master has ended")

// deliver passes an input to the loop, unless the loop has ended.
func (m *Master) deliver(i *input) bool {
	select {
	case m.in <- i:
		return true
	case <-m.ended:
		return false
	}
}

// receive passes complete messages to the loop until the stream ends. A regular end is io.EOF.
func (m *Master) receive(c *connection) error {
	var sum, state wire.Assembly
	n := m.network
	for {
		f, err := c.Receive()
		if err != nil {
			return err
		}
		i := &input{conn: c, message: f.Message}
		g, s := f.Message.GetGradient(), f.Message.GetState()
		switch {
		case g != nil:
			span := int(g.Hi) - int(g.Lo)
			if span < 1 || span > m.cfg.Job.Spec.Training.GradsToWait || len(g.LossSums) != span || len(g.Counts) != span*m.cfg.Job.Metrics.Size() || len(g.Hashes) != span {
				f.Release()
				return protocolErrorf("a gradient of virtual workers %d to %d with %d losses and %d counts", g.Lo, g.Hi, len(g.LossSums), len(g.Counts))
			}
			unpacked := n.TrainableSize() + span*n.StatsSize()
			packed, err := gradient.PackedLen(m.tables, g.Rows, span*m.cfg.Job.Spec.Training.MinibatchSize)
			if err == nil {
				i.gradient, err = sum.Add(f, g.Piece, unpacked+packed, m.buffers.Get)
			}
			f.Release()
			if err != nil {
				return protocolErrorf("a gradient: %v", err)
			}
			if i.gradient == nil {
				continue // more pieces follow
			}
			if i.rows, err = gradient.Unpack(m.tables, g.Rows, i.gradient[unpacked:]); err != nil {
				return protocolErrorf("a gradient: %v", err)
			}
		case s != nil && c.fetching.Load():
			i.state, err = state.Add(f, s.Piece, n.StateSize(), func() []float32 { return make([]float32, n.StateSize()) })
			f.Release()
			if err != nil {
				return protocolErrorf("a state: %v", err)
			}
			if i.state == nil {
				continue
			}
			c.fetching.Store(false)
		default:
			f.Release()
		}
		if f.Message.GetHeartbeat() != nil {
			continue
		}
		if !m.deliver(i) {
			return io.EOF
		}
	}
}

// protocolError is a violation of the protocol by a worker.
type protocolError struct{ reason string }

func (e *protocolError) Error() string { return "it sent " + e.reason }

func protocolErrorf(format string, args ...any) error {
	return &protocolError{fmt.Sprintf(format, args...)}
}
