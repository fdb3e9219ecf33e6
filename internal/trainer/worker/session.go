package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/gradient"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/job"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/kernel"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/nn"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/wire"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/wire/wirepb"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainingjob"
)

const (
	heartbeat = 100 * time.Millisecond
	// masterSilence ends a stream on which nothing comes: the master beats ten times a second. It outlasts a pause of the
	// whole machine of a few seconds; a process that dies closes its connections at once.
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
	broken chan error             // why the stream cannot go on; the first reason
	over   chan struct{}          // closed when the stream has ended
	loaded atomic.Pointer[worker] // set once the job is loaded: only then may tensors come
}

// session works on one stream until it ends. met says whether the job's master answered. Each stream has a connection
// of its own: one to a machine that has vanished would be taken for good until TCP gives up, many minutes later.
func (w *worker) session(ctx context.Context) (met bool, err error) {
	conn, err := wire.Dial(w.cfg.Master, w.cfg.Credentials)
	if err != nil {
		return false, &brokenError{err}
	}
	defer func() { _ = conn.Close() }()
	// The stream outlives ctx, so that a worker can say good-bye; only a connection that is still being made does not.
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
	if err := s.begin(ctx, first.message); err != nil {
		return !errors.Is(err, errSuperseded), err
	}
	return true, s.work(ctx)
}

// errSuperseded: an older master still answers, or a connection to it does.
var errSuperseded = errors.New("a newer master has taken over")

// start runs the stream's sender, receiver and heart. What it returns stops and awaits them.
func (s *session) start(ctx context.Context, cancel context.CancelFunc) (stop func()) {
	done := make(chan struct{}, 3)
	run := func(f func()) {
		go func() {
			f()
			done <- struct{}{}
		}()
	}
	run(func() {
		err := s.queue.Run(ctx, s.stream)
		if err == nil {
			err = s.stream.CloseSend()
		}
		if err != nil && !errors.Is(err, io.EOF) { // at io.EOF the receiver learns why
			s.fail(err)
		}
	})
	run(func() {
		s.fail(s.receive(ctx))
		close(s.over)
	})
	run(func() {
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
		for range cap(done) {
			<-done
		}
	}
}

// fail says that the stream cannot go on.
func (s *session) fail(err error) {
	select {
	case s.broken <- err:
	default: // somebody else has said so
	}
}

// receive assembles tensors and hands whole messages on. A stream on which nothing comes is broken.
func (s *session) receive(ctx context.Context) error {
	silence := time.AfterFunc(masterSilence, func() { s.fail(errors.New("nothing heard from the master for " + masterSilence.String())) })
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
			return fmt.Errorf("the master sent %T before the job was loaded", f.Message.Kind)
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
			return err
		}
		if r.floats == nil && carriesTensor(f.Message) {
			continue // more pieces follow
		}
		silence.Stop() // while this worker computes, it is not the master that is silent
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

// asRefusal turns a master's refusal on the level of gRPC into one of ours.
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
		return received{}, s.lastWord(err)
	case <-ctx.Done():
		return received{}, ErrLeft
	}
}

// lastWord prefers what the master said last over the end of the stream that followed it.
func (s *session) lastWord(err error) error {
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

// ending is the error by which a message ends the session, or nil.
func ending(m *wirepb.Message) error {
	switch k := m.Kind.(type) {
	case *wirepb.Message_Dismissal:
		return errDismissed
	case *wirepb.Message_Refusal:
		return &RefusedError{Reason: k.Refusal.Reason}
	}
	return nil
}

// begin loads the job, unless it is the one in hand, and says what this worker holds.
func (s *session) begin(ctx context.Context, m *wirepb.Message) error {
	if err := ending(m); err != nil {
		return err
	}
	j := m.GetJob()
	if j == nil {
		return fmt.Errorf("the master began with %T", m.Kind)
	}
	if j.Generation < s.generation {
		return fmt.Errorf("%w: this one has generation %d, the newer %d", errSuperseded, j.Generation, s.generation)
	}
	s.generation = j.Generation
	if s.job != nil {
		s.gather()
	}
	s.evaluating = evaluating{}
	s.todo, s.planned, s.round, s.again = nil, -1, nil, len(s.inHand) // what another stream was dealt is void, and what was computed is not
	if s.job == nil || s.source != string(j.JobJson)+string(j.Model) {
		if err := s.loadFrom(ctx, j); err != nil {
			if ctx.Err() != nil {
				return s.leave()
			}
			s.queue.Send(problem(err, false))
			s.flush()
			return &brokenError{err}
		}
	}
	s.loaded.Store(s.worker)
	id := s.job.Identity
	hello := &wirepb.Hello{
		Lineage: id.Lineage, JobDigest: id.Job, Step: s.step, Hash: s.hash(), Cpu: processor(), Kernel: s.job.Kernel.Name,
	}
	for _, g := range s.inHand {
		hello.InHand = append(hello.InHand, &wirepb.Span{Lo: g.message.Lo, Hi: g.message.Hi})
	}
	if s.exchange != nil {
		self := s.exchange.Self()
		hello.Address, hello.Certificate = self.Address, self.Certificate
	}
	s.queue.Send(&wirepb.Message{Kind: &wirepb.Message_Hello{Hello: hello}})
	return nil
}

func (s *session) loadFrom(ctx context.Context, m *wirepb.Job) error {
	spec, err := trainingjob.DecodeJob(m.JobJson)
	if err != nil {
		return err
	}
	j, err := job.Load(ctx, spec, m.ModelName, m.Model, s.cfg.Job)
	if err != nil {
		return err
	}
	var files []data.File
	if err := json.Unmarshal(m.DataFiles, &files); err != nil {
		return errors.Join(fmt.Errorf("the master's list of data files: %w", err), j.Close())
	}
	if err := j.Training.Match(files); err != nil {
		return errors.Join(err, j.Close())
	}
	s.source = string(m.JobJson) + string(m.Model)
	return s.load(j)
}

func problem(err error, fatal bool) *wirepb.Message {
	return &wirepb.Message{Kind: &wirepb.Message_Problem{Problem: &wirepb.Problem{Reason: err.Error(), Fatal: fatal}}}
}

// work does what the master says, and between two messages what is in hand.
func (s *session) work(ctx context.Context) error {
	stop := ctx.Done()
	var late <-chan time.Time // of a worker that is asked to stop and takes part in a round
	for {
		if err := s.takeSums(); err != nil {
			return err
		}
		mayCompute := len(s.todo) > 0 && s.planned == s.step
		busy := mayCompute || s.mayEvaluate()
		turn, err := s.turn(stop, late, busy)
		switch {
		case err != nil:
			return err
		case turn.message != nil:
			err := s.handle(turn.received)
			if errors.Is(err, errDismissed) && ctx.Err() != nil {
				return ErrLeft // the step in hand is complete
			}
			if err != nil {
				return err
			}
		case turn.stop && s.round != nil && late == nil:
			s.queue.Send(&wirepb.Message{Kind: &wirepb.Message_Leaving{Leaving: &wirepb.Leaving{Reason: "asked to stop", AfterStep: true}}})
			stop, late = nil, time.After(stepTimeout)
		case turn.stop:
			return s.leave()
		case turn.woken || !busy:
		default:
			if !mayCompute {
				if err := s.evaluateNext(ctx); err != nil {
					return err
				}
				continue
			}
			if err := s.compute(ctx); err != nil {
				return s.report(err)
			}
			if len(s.todo) > 0 {
				continue
			}
			if s.round == nil {
				s.sendGradients()
			} else if err := s.contribute(); err != nil {
				return s.report(err)
			}
		}
	}
}

// turn is what comes next: a message, the wish that this worker stops, or that the exchange has something; nothing of it
// where there is something to compute.
type turn struct {
	received
	stop, woken bool
}

func (s *session) turn(stop <-chan struct{}, late <-chan time.Time, busy bool) (turn, error) {
	ready := make(chan struct{})
	if busy {
		close(ready)
		select { // what has come goes before what is to be computed
		case r := <-s.in:
			return turn{received: r}, nil
		case err := <-s.broken:
			return turn{}, s.lastWord(err)
		case <-stop:
			return turn{stop: true}, nil
		default:
		}
	}
	select {
	case r := <-s.in:
		return turn{received: r}, nil
	case err := <-s.broken:
		return turn{}, s.lastWord(err)
	case <-stop:
		return turn{stop: true}, nil
	case <-late:
		return turn{stop: true}, nil
	case <-s.wake():
		return turn{woken: true}, nil
	case <-ready:
		return turn{}, nil
	}
}

// report tells the master why this worker cannot go on. A loss that is not finite would be so on every worker.
func (s *session) report(err error) error {
	s.queue.Send(problem(err, errors.Is(err, nn.ErrNotFinite)))
	s.flush()
	return &brokenError{err}
}

func (s *session) handle(r received) error {
	if err := ending(r.message); err != nil {
		return err
	}
	switch k := r.message.Kind.(type) {
	case *wirepb.Message_State:
		if s.exchange == nil || k.State.Step >= s.step { // what was applied since an older one was sent stays
			s.state, s.step, s.last, s.planned, s.todo = r.floats, k.State.Step, k.State.Last, -1, nil
			s.evaluations, s.evaluating = k.State.Evaluations, evaluating{}
			s.forget()
			s.stateTaken()
		}
		s.sendApplied()
	case *wirepb.Message_Round:
		return s.beginRound(k.Round)
	case *wirepb.Message_Relay:
		s.relay(k.Relay)
	case *wirepb.Message_Fetch:
		m := &wirepb.Message{Kind: &wirepb.Message_State{State: &wirepb.State{Step: s.step, Last: s.last, Evaluations: s.evaluations}}}
		s.queue.SendTensor(m, slices.Clone(s.state), nil) // nothing else is queued before a worker is admitted
	case *wirepb.Message_Update:
		return s.update(k.Update, r.floats)
	case *wirepb.Message_Assign:
		s.round = nil
		if k.Assign.Step == s.step {
			s.deal(s.sendAgain(k.Assign.VirtualWorkers))
		}
	case *wirepb.Message_Evaluate:
		s.round = nil
		return s.dealParts(k.Evaluate)
	case *wirepb.Message_Evaluation:
		s.remember(k.Evaluation)
	default:
		return fmt.Errorf("the master sent an unexpected %T", k)
	}
	return nil
}

// update applies s → s+1 and ignores what it has applied.
func (s *session) update(u *wirepb.Update, floats []float32) error {
	defer s.buffers.Put(floats)
	s.round = nil
	switch {
	case u.Step < s.step:
		return nil
	case u.Step > s.step:
		return fmt.Errorf("an update of step %d reached a state at step %d", u.Step, s.step)
	}
	if err := s.apply(floats, u.Rows); err != nil {
		return s.report(err)
	}
	s.forget()
	s.stateTaken()
	s.last = u.Measured
	if u.Hash {
		s.queue.Send(&wirepb.Message{Kind: &wirepb.Message_StateHash{StateHash: &wirepb.StateHash{Step: s.step, Hash: s.hash()}}})
	}
	if len(u.Next) > 0 && s.step < s.job.Schedule.Steps() {
		s.deal(u.Next)
		return nil
	}
	s.sendApplied()
	return nil
}

func (s *session) sendApplied() {
	s.queue.Send(&wirepb.Message{Kind: &wirepb.Message_Applied{Applied: &wirepb.Applied{Step: s.step, Measured: s.last}}})
}

// leave sends what is done of the step, says so, and ends.
func (s *session) leave() error {
	if s.round == nil {
		s.sendGradients()
	}
	s.queue.Send(&wirepb.Message{Kind: &wirepb.Message_Leaving{Leaving: &wirepb.Leaving{Reason: "asked to stop"}}})
	s.flush()
	return ErrLeft
}

// flush waits until the master has read everything queued, for a while: it ends the stream when it has read our end.
// Ending the stream earlier would throw away what the transport has not sent yet.
func (s *session) flush() {
	s.queue.Close()
	late := time.NewTimer(leaveTimeout)
	defer late.Stop()
	for {
		select {
		case <-s.over:
			return
		case <-s.in: // what the master still says does not matter
		case <-late.C:
			return
		}
	}
}
