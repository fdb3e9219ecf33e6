package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/gradient"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/kernel"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/wire"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/wire/wirepb"
)

const (
	heartbeat = 100 * time.Millisecond
	// masterSilence ends a stream without messages: the master sends ten heartbeats a second. It outlasts a pause of
	// a few seconds of the whole machine; a process that dies closes its connections at once.
	masterSilence = 5 * time.Second
	// leaveTimeout bounds how long the last gradients may take to be sent.
	leaveTimeout = 5 * time.Second
)

// received is a whole message, with its tensor.
type received struct {
	message *wirepb.Message
	floats  []float32
}

// session is one stream.
type session struct {
	*worker
	stream grpc.ClientStream
	queue  *wire.Queue
	in     chan received
	broken chan error             // why the stream cannot continue; the first reason
	over   chan struct{}          // closed when the stream has ended
	loaded atomic.Pointer[worker] // set once the job is loaded: only then may tensors come
}

// session works on one stream until it ends. met reports whether the job's master answered. Each stream has a
// connection of its own: a connection to a machine that has vanished would seem good until TCP gives up, many minutes
// later.
func (w *worker) session(ctx context.Context) (met bool, err error) {
	conn, err := wire.Dial(w.cfg.Master, w.cfg.Credentials)
	if err != nil {
		return false, &brokenError{err}
	}
	defer func() { _ = conn.Close() }()
	// The stream outlives ctx, so that a worker can leave in order; only connecting ends with ctx.
	streamCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	opened := context.AfterFunc(ctx, cancel)
	stream, err := wire.Open(streamCtx, conn)
	if !opened() {
		return false, ErrLeft
	}
	if err != nil {
		return false, asRefusal(err)
	}
	s := &session{worker: w, stream: stream, queue: wire.NewQueue(math.MaxInt), in: make(chan received, 4), broken: make(chan error, 1), over: make(chan struct{})}
	stop := s.start(streamCtx, cancel)
	defer stop()

	s.queue.Send(&wirepb.Message{Kind: &wirepb.Message_Join{Join: &wirepb.Join{
		Worker: int64(w.cfg.ID), Numerics: kernel.NumericsVersion, Build: w.cfg.Build, Generation: w.generation, Node: w.cfg.Node,
	}}})
	first, err := s.next(ctx)
	if err != nil {
		return false, err
	}
	switch w.cfg.Elastic {
	case trainingjob.ElasticCollectives:
		err := s.membership(ctx, first.message)
		return !errors.Is(err, errSuperseded), err
	case trainingjob.ElasticRestart:
		err := s.commanding(ctx, first.message)
		return !errors.Is(err, errSuperseded), err
	}
	if err := s.begin(ctx, first.message); err != nil {
		return !errors.Is(err, errSuperseded), err
	}
	return true, s.work(ctx)
}

// start runs the stream's sender, receiver and heartbeat. The returned function stops them and waits.
func (s *session) start(ctx context.Context, cancel context.CancelFunc) (stop func()) {
	var running sync.WaitGroup
	running.Go(func() {
		err := s.queue.Run(ctx, s.stream)
		if err == nil {
			err = s.stream.CloseSend()
		}
		if err != nil && !errors.Is(err, io.EOF) { // at io.EOF the receiver gets the reason
			s.fail(err)
		}
	})
	running.Go(func() {
		err := s.receive(ctx)
		s.fail(err)
		if misunderstood := (*protocolError)(nil); errors.As(err, &misunderstood) {
			s.drain()
		}
		close(s.over)
	})
	running.Go(func() {
		t := time.NewTicker(heartbeat)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				s.queue.Urgent(&wirepb.Message{Kind: &wirepb.Message_Heartbeat{Heartbeat: &wirepb.Heartbeat{}}})
			case <-ctx.Done():
				return
			}
		}
	})
	return func() {
		cancel()
		running.Wait()
	}
}

// fail reports that the stream cannot continue.
func (s *session) fail(err error) {
	select {
	case s.broken <- err:
	default: // already reported
	}
}

// drain reads to the end of the stream: while a stream is not read, flow control can block what is sent, too.
func (s *session) drain() {
	for {
		f := &wire.Frame{}
		if s.stream.RecvMsg(f) != nil {
			return
		}
		f.Release()
	}
}

// receive assembles tensors and passes on complete messages. A stream without messages is broken.
func (s *session) receive(ctx context.Context) error {
	silence := time.AfterFunc(masterSilence, func() { s.fail(errors.New("no message from the master for " + masterSilence.String())) })
	defer silence.Stop()
	var state, update wire.Assembly
	for {
		f := &wire.Frame{}
		if err := s.stream.RecvMsg(f); err != nil {
			return asRefusal(err)
		}
		silence.Reset(masterSilence)
		r := received{message: f.Message}
		var err error
		w := s.loaded.Load()
		if carriesTensor(f.Message) && w == nil {
			f.Release()
			return protocolErrorf("the master sent %T before the job was loaded", f.Message.Kind)
		}
		switch k := f.Message.Kind.(type) {
		case *wirepb.Message_Heartbeat:
			f.Release()
			continue
		case *wirepb.Message_State:
			n := w.job.Network.StateSize()
			r.floats, err = state.Add(f, k.State.Piece, n, func() []float32 { return make([]float32, n) })
		case *wirepb.Message_Update:
			var n int
			if n, err = w.updateSize(k.Update); err == nil {
				r.floats, err = update.Add(f, k.Update.Piece, n, w.buffers.Get)
			}
		}
		f.Release()
		if err != nil {
			return protocolErrorf("%v", err)
		}
		if r.floats == nil && carriesTensor(f.Message) {
			continue // more pieces follow
		}
		silence.Stop() // while this worker computes, it does not read, and the master is not silent
		select {
		case s.in <- r:
		case <-ctx.Done():
			return ctx.Err()
		}
		silence.Reset(masterSilence)
	}
}

// updateSize is the length of an update in floats.
func (w *worker) updateSize(u *wirepb.Update) (int, error) {
	k := w.job.Schedule.Minibatches(u.Step)
	packed, err := gradient.PackedLen(w.tables, u.Rows, k*w.job.Spec.Training.MinibatchSize)
	if err != nil {
		return 0, fmt.Errorf("the master's update of step %d: %w", u.Step, err)
	}
	return w.job.Network.TrainableSize() + k*w.job.Network.StatsSize() + packed, nil
}

func carriesTensor(m *wirepb.Message) bool { return m.GetState() != nil || m.GetUpdate() != nil }

// asRefusal turns a refusal by gRPC status into a RefusedError.
func asRefusal(err error) error {
	if s := status.Convert(err); s.Code() == codes.Unauthenticated {
		return &RefusedError{Reason: s.Message()}
	}
	return err
}

// next waits for a message.
func (s *session) next(ctx context.Context) (received, error) {
	select {
	case r := <-s.in:
		return r, nil
	case err := <-s.broken:
		return received{}, s.readFinalMessage(err)
	case <-ctx.Done():
		return received{}, ErrLeft
	}
}

// readFinalMessage prefers the master's last message over the end of the stream that followed it.
func (s *session) readFinalMessage(err error) error {
	for {
		select {
		case r := <-s.in:
			if end := ending(r.message); end != nil {
				return end
			}
		default:
			return err
		}
	}
}

// flush waits a while until the master has read everything queued: the master ends the stream when it has read our end.
// Ending the stream earlier would discard what the transport has not sent yet.
func (s *session) flush() {
	s.queue.Close()
	late := time.NewTimer(leaveTimeout)
	defer late.Stop()
	for {
		select {
		case <-s.over:
			return
		case <-s.in: // later messages of the master do not matter
		case <-late.C:
			return
		}
	}
}
