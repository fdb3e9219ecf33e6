package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/wire/wirepb"
)

// Stream is a worker's stream at its master.
type Stream struct {
	Worker   int
	Node     string
	Numerics int
	Queue    *Queue
	End      context.CancelCauseFunc // ends the stream at once, even while it sends

	stream   grpc.ServerStream
	ctx      context.Context //nolint:containedctx // the stream's own
	received atomic.Bool
}

// Accept receives a worker's Join, which it also returns. The stream's queue holds at most limit tensors. The caller
// calls End.
func Accept(stream grpc.ServerStream, limit int) (*Stream, *wirepb.Message, error) {
	first, err := First(stream)
	if err != nil {
		return nil, nil, err
	}
	join := first.GetJoin()
	if join == nil {
		return nil, nil, fmt.Errorf("a worker began with %T", first.Kind)
	}
	s := &Stream{Worker: int(join.Worker), Node: join.Node, Numerics: int(join.Numerics), Queue: NewQueue(limit), stream: stream}
	s.ctx, s.End = context.WithCancelCause(stream.Context())
	return s, first, nil
}

// First is the first message of a stream that is not a heartbeat: heartbeats overtake all others.
func First(stream grpc.ServerStream) (*wirepb.Message, error) {
	return (&Stream{stream: stream}).Message()
}

// Message is the next message that is not a heartbeat, without its tensor.
func (s *Stream) Message() (*wirepb.Message, error) {
	for {
		f, err := s.Receive()
		if err != nil {
			return nil, err
		}
		f.Release()
		if f.Message.GetHeartbeat() == nil {
			return f.Message, nil
		}
	}
}

// Receive is the next frame, which the caller releases. A regular end is io.EOF.
func (s *Stream) Receive() (*Frame, error) {
	f := &Frame{}
	if err := s.stream.RecvMsg(f); err != nil {
		return nil, err
	}
	s.received.Store(true)
	return f, nil
}

// Serve serves the stream until it ends: one goroutine sends what is queued, and another runs receive, which returns
// when nothing more comes. After ended is closed, what is queued is sent, and then the stream ends. A worker that neither
// reads nor writes may block both goroutines; they end with the stream, which ends when Serve returns.
func (s *Stream) Serve(goroutines *sync.WaitGroup, ended <-chan struct{}, receive func() error, atEnd func(error)) error {
	goroutines.Go(func() {
		select {
		case <-ended:
			s.Queue.Close()
		case <-s.ctx.Done():
		}
	})
	goroutines.Go(func() {
		s.End(s.Queue.Run(s.ctx, s.stream)) // all was sent, or nothing more can be
		s.Queue.Close()
		s.Queue.Drop()
	})
	goroutines.Go(func() {
		err := receive()
		s.End(err)
		atEnd(err)
	})
	<-s.ctx.Done()
	if err := context.Cause(s.ctx); !errors.Is(err, context.Canceled) && !errors.Is(err, io.EOF) {
		return status.Error(codes.Aborted, err.Error())
	}
	return nil
}

// beat sends a heartbeat of the master of that generation, and reports whether a frame came since the last call.
func (s *Stream) beat(generation int64) bool {
	s.Queue.Urgent(&wirepb.Message{Kind: &wirepb.Message_Heartbeat{Heartbeat: &wirepb.Heartbeat{Generation: generation}}})
	return s.received.Swap(false)
}

// Beat sends a heartbeat to every worker, and lists the workers from which a frame came since the last call.
func Beat[S interface{ beat(generation int64) bool }](streams map[int]S, generation int64) []int {
	var received []int
	for worker, s := range streams {
		if s.beat(generation) {
			received = append(received, worker)
		}
	}
	return received
}
