package allreduce

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"google.golang.org/grpc"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/reduce"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/wire"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/wire/wirepb"
)

// link is a stream on which this worker sends to another one. What the other sends arrives on a stream of its own.
type link struct {
	queue *wire.Queue
	end   context.CancelFunc
}

// send queues a slice for another worker, and makes a link if there is none. It is called with the lock held.
func (e *Exchange) send(worker int, s *wirepb.Slice, floats []float32) {
	l := e.links[worker]
	if l == nil {
		if l = e.dial(worker); l == nil {
			e.reportPeerError(worker, errors.New("its address is unknown"))
			return
		}
	}
	if !l.queue.SendTensor(&wirepb.Message{Kind: &wirepb.Message_Slice{Slice: s}}, floats, nil) {
		e.unlink(worker)
		e.reportPeerError(worker, errors.New("it reads too slowly"))
	}
}

// dial begins a link, which connects in the background. It returns nil if the peer is unknown.
func (e *Exchange) dial(worker int) *link {
	peer, known := e.peers[worker]
	if !known || e.ctx.Err() != nil {
		return nil
	}
	ctx, end := context.WithCancel(e.ctx)
	l := &link{queue: wire.NewQueue(e.cfg.Most + keptSteps), end: end}
	e.links[worker] = l
	e.running.Go(func() {
		defer end()
		err := e.run(ctx, l, peer)
		e.mu.Lock()
		defer e.mu.Unlock()
		l.queue.Close()
		l.queue.Drop()
		if e.links[worker] == l { // it was not ended on purpose
			delete(e.links, worker)
			e.reportPeerError(worker, err)
		}
	})
	return l
}

// unlink ends a link. It is called with the lock held.
func (e *Exchange) unlink(worker int) {
	if l := e.links[worker]; l != nil {
		delete(e.links, worker)
		l.end()
	}
}

// reportPeerError is called with the lock held.
func (e *Exchange) reportPeerError(worker int, err error) {
	if e.ctx.Err() != nil {
		return
	}
	e.peerErrors = append(e.peerErrors, PeerError{Round: e.round.Number, Peer: worker, Reason: err.Error()})
	e.signal()
}

// run sends what is queued until ctx ends or the other side closes the stream. The other side sends nothing
// else.
func (e *Exchange) run(ctx context.Context, l *link, peer Peer) error {
	conn, err := wire.Dial(peer.Address, wire.Credentials{Certificate: peer.Certificate, Token: e.cfg.Token}, wire.CountSentBytes(&e.sent))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	stream, err := wire.Open(ctx, conn)
	if err != nil {
		return fmt.Errorf("%s: %w", peer.Address, err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		end(stream.RecvMsg(&wire.Frame{}))
	}()
	err = l.queue.Run(ctx, points{stream, e})
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		err = cause
	}
	end(nil)
	<-ended
	return fmt.Errorf("%s: %w", peer.Address, err)
}

// points reports which Point has been reached.
type points struct {
	stream grpc.ClientStream
	e      *Exchange
}

func (p points) SendMsg(m any) error {
	err := p.stream.SendMsg(m)
	if f, ok := m.(*wire.Frame); ok && err == nil {
		p.e.payload.Add(int64(4 * f.FloatsLen()))
		if s := f.Message.GetSlice(); s.GetFinished() {
			p.e.cfg.At(FinishedSome, s.Step)
		} else if s != nil {
			p.e.cfg.At(SentSome, s.Step)
		}
	}
	return err
}

// errOver is returned to goroutines that wait for a round when the exchange ends.
var errOver = errors.New("the exchange is over")

// serve receives what another worker sends on a stream, until the stream ends.
func (e *Exchange) serve(stream grpc.ServerStream) error {
	e.mu.Lock()
	if e.ctx.Err() != nil {
		e.mu.Unlock()
		return errOver
	}
	e.running.Add(1)
	e.mu.Unlock()
	defer e.running.Done()
	ctx, end := context.WithCancel(stream.Context())
	defer end()
	defer context.AfterFunc(e.ctx, end)()
	defer context.AfterFunc(ctx, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.changed.Broadcast()
	})()
	var assembly wire.Assembly
	for {
		f := &wire.Frame{}
		if err := stream.RecvMsg(f); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		s := f.Message.GetSlice()
		size, err := e.expects(s)
		if err != nil {
			f.Release()
			return err
		}
		floats, err := assembly.Add(f, s.Piece, size, func() []float32 { return make([]float32, size) })
		f.Release()
		if err != nil {
			return err
		}
		if floats == nil {
			continue // more pieces follow
		}
		if err := e.take(ctx, s, floats); err != nil {
			return err
		}
	}
}

// expects is the length of a slice's tensor in floats. The job's sizes bound what a peer can make this worker
// allocate.
func (e *Exchange) expects(s *wirepb.Slice) (int, error) {
	span := int(s.GetHi()) - int(s.GetLo())
	if s == nil || s.Count < 1 || s.Count > maxOwners || s.Index < 0 || s.Index >= s.Count || s.Lo < 0 || span < 1 || int(s.Hi) > e.cfg.Most || s.Step < 0 {
		return 0, fmt.Errorf("a worker sent a message that is not a slice: %v", s)
	}
	measured := span
	if s.Finished {
		measured = 1
		if k := e.cfg.VirtualWorkers(s.Step); s.Lo != 0 || int(s.Hi) != k {
			return 0, fmt.Errorf("worker %d sent the finished sum of %d virtual workers, and step %d has %d", s.From, span, s.Step, k)
		}
	}
	if s.Index == 0 && len(s.Measured) != measured {
		return 0, fmt.Errorf("worker %d sent the losses of %d virtual workers, %d expected", s.From, len(s.Measured), measured)
	}
	return e.cfg.Layout.size(e.cfg.Layout.share(int(s.Index), int(s.Count)), span, s.Rows)
}

// take gathers a finished slice, and adds any other slice to this worker's. A slice of a round that this worker does
// not know yet waits for it; a slice of an earlier round is discarded.
func (e *Exchange) take(ctx context.Context, s *wirepb.Slice, floats []float32) error {
	share := e.cfg.Layout.share(int(s.Index), int(s.Count))
	span := reduce.Span{Lo: int(s.Lo), Hi: int(s.Hi)}
	sum, parts, err := e.cfg.Layout.unpack(share, span.Len(), floats, s.Rows)
	if err != nil {
		return fmt.Errorf("worker %d: %w", s.From, err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if s.Finished {
		e.gather(s, sum, parts)
		return nil
	}
	for s.Round > e.round.Number {
		if ctx.Err() != nil {
			return errOver
		}
		e.changed.Wait()
	}
	if s.Round < e.round.Number {
		return nil
	}
	if int(s.Count) != len(e.round.Owners) || int(s.Index) != slices.Index(e.round.Owners, e.cfg.Self) {
		return fmt.Errorf("worker %d sent slice %d of %d, which is not ours in round %d", s.From, s.Index, s.Count, s.Round)
	}
	return e.merge(span, sum, parts, s.Measured)
}

var _ wire.Sender = points{}
