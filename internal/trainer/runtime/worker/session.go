package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/nn"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/wire/wirepb"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/job"
)

// errSuperseded: an older master still answers, or a connection to it does.
var errSuperseded = errors.New("a newer master has taken over")

// jobOf is the job in a master's first message, unless the master ends the stream or a newer one has taken over.
func (s *session) jobOf(m *wirepb.Message) (*wirepb.Job, error) {
	if err := ending(m); err != nil {
		return nil, err
	}
	j := m.GetJob()
	if j == nil {
		return nil, fmt.Errorf("the master began with %T", m.Kind)
	}
	if j.Generation < s.generation {
		return nil, fmt.Errorf("%w: this one has generation %d, the newer %d", errSuperseded, j.Generation, s.generation)
	}
	s.generation = j.Generation
	return j, nil
}

// begin loads the job, unless it is the current one, and reports the state of this worker.
func (s *session) begin(ctx context.Context, m *wirepb.Message) error {
	j, err := s.jobOf(m)
	if err != nil {
		return err
	}
	if s.job != nil {
		s.gather()
	}
	s.evaluating = evaluating{}
	s.todo, s.planned, s.round, s.again = nil, -1, nil, len(s.computed) // assignments of an earlier stream are void; computed sums are not
	if err := s.loadFrom(ctx, j); err != nil {
		if ctx.Err() != nil {
			return s.leave()
		}
		s.queue.Send(problem(err, false))
		s.flush()
		return &brokenError{err}
	}
	s.loaded.Store(s.worker)
	id := s.job.Identity
	hello := &wirepb.Hello{
		Lineage: id.Lineage, JobDigest: id.Job, Step: s.step, Hash: s.hash(), Cpu: processor(), Kernel: s.job.Kernel.Name, Validation: id.Validation,
	}
	for _, g := range s.computed {
		hello.InHand = append(hello.InHand, &wirepb.Span{Lo: g.message.Lo, Hi: g.message.Hi})
	}
	if s.exchange != nil {
		self := s.exchange.Self()
		hello.Address, hello.Certificate = self.Address, self.Certificate
	}
	s.queue.Send(&wirepb.Message{Kind: &wirepb.Message_Hello{Hello: hello}})
	return nil
}

// loadFrom loads the job, unless it is the current one and the data are still those of the master: they may
// have been replaced between two masters.
func (s *session) loadFrom(ctx context.Context, m *wirepb.Job) error {
	files, err := filesOf(m)
	if err != nil {
		return err
	}
	if s.job != nil && s.source == string(m.JobJson)+string(m.Model) {
		err := s.job.Match(files)
		if err == nil {
			return nil
		}
		s.log.Info("the data are read anew: they are not those of the master any more", "difference", err)
	}
	spec, err := trainingjob.DecodeJob(m.JobJson)
	if err != nil {
		return err
	}
	j, err := job.Load(ctx, spec, m.ModelName, m.Model, s.cfg.Job)
	if err != nil {
		return err
	}
	if err := j.Match(files); err != nil {
		return errors.Join(err, j.Close())
	}
	s.source = string(m.JobJson) + string(m.Model)
	return s.load(j)
}

// filesOf returns the files of the data sets as the master has read them.
func filesOf(m *wirepb.Job) (files job.Files, err error) {
	for _, list := range []struct {
		text []byte
		into *[]data.File
	}{{m.DataFiles, &files.Training}, {m.ValidationFiles, &files.Validation}} {
		if len(list.text) == 0 {
			continue
		}
		if err := json.Unmarshal(list.text, list.into); err != nil {
			return files, fmt.Errorf("the master's list of data files: %w", err)
		}
	}
	return files, nil
}

func problem(err error, fatal bool) *wirepb.Message {
	return &wirepb.Message{Kind: &wirepb.Message_Problem{Problem: &wirepb.Problem{Reason: err.Error(), Fatal: fatal}}}
}

// work follows the master's messages, and computes the assigned work between them.
func (s *session) work(ctx context.Context) error {
	stop := ctx.Done()
	var late <-chan time.Time // for a worker that is signalled to stop during a round
	for {
		if err := s.takeSums(); err != nil {
			return err
		}
		mayCompute := len(s.todo) > 0 && s.planned == s.step
		busy := mayCompute || s.mayEvaluate()
		turn, err := s.turn(stop, late, busy)
		switch misunderstood := (*protocolError)(nil); {
		case errors.As(err, &misunderstood):
			return s.reportProtocolError(misunderstood)
		case err != nil:
			return left(ctx, err)
		case turn.message != nil:
			err := left(ctx, s.handle(turn.received))
			if misunderstood := (*protocolError)(nil); errors.As(err, &misunderstood) {
				return s.reportProtocolError(misunderstood)
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

// turn is the next input: a message, a request to stop, or a result of the exchange; it is empty
// if there is something to compute.
type turn struct {
	received
	stop, woken bool
}

func (s *session) turn(stop <-chan struct{}, late <-chan time.Time, busy bool) (turn, error) {
	ready := make(chan struct{})
	if busy {
		close(ready)
		select { // input comes before computing
		case r := <-s.in:
			return turn{received: r}, nil
		case err := <-s.broken:
			return turn{}, s.readFinalMessage(err)
		case <-stop:
			return turn{stop: true}, nil
		default:
		}
	}
	select {
	case r := <-s.in:
		return turn{received: r}, nil
	case err := <-s.broken:
		return turn{}, s.readFinalMessage(err)
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

// report sends the master the reason why this worker cannot continue. A loss that is not finite would be the same on
// every worker.
func (s *session) report(err error) error {
	s.queue.Send(problem(err, errors.Is(err, nn.ErrNotFinite)))
	s.flush()
	return &brokenError{err}
}

// protocolError is a message that violates the protocol. A new stream may help.
type protocolError struct{ reason string }

func (e *protocolError) Error() string { return e.reason }

func protocolErrorf(format string, args ...any) error {
	return &protocolError{fmt.Sprintf(format, args...)}
}

// reportProtocolError sends the master the reason why this worker ends the stream and reconnects. The master counts
// these.
func (s *session) reportProtocolError(err *protocolError) error {
	s.queue.Send(&wirepb.Message{Kind: &wirepb.Message_Problem{Problem: &wirepb.Problem{Reason: err.reason, Again: true}}})
	s.flush()
	return err
}

func (s *session) handle(r received) error {
	if err := ending(r.message); err != nil {
		return err
	}
	switch k := r.message.Kind.(type) {
	case *wirepb.Message_State:
		if s.exchange == nil || k.State.Step >= s.step { // keep updates that were applied after an older state was sent
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
		m := &wirepb.Message{Kind: &wirepb.Message_State{State: &wirepb.State{
			Step: s.step, Last: s.last, Evaluations: s.evaluations, Validation: s.job.Identity.Validation,
		}}}
		s.queue.SendTensor(m, slices.Clone(s.state), nil) // nothing else is queued before a worker is admitted
	case *wirepb.Message_Update:
		return s.update(k.Update, r.floats)
	case *wirepb.Message_Assign:
		s.round = nil
		if k.Assign.Step == s.step {
			s.assign(s.resend(k.Assign.VirtualWorkers))
		}
	case *wirepb.Message_Evaluate:
		s.round = nil
		return s.assignParts(k.Evaluate)
	case *wirepb.Message_Evaluation:
		s.remember(k.Evaluation)
	default:
		return protocolErrorf("the master sent an unexpected %T", k)
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
		return protocolErrorf("an update of step %d reached a state at step %d", u.Step, s.step)
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
		s.assign(u.Next)
		return nil
	}
	s.sendApplied()
	return nil
}

func (s *session) sendApplied() {
	s.queue.Send(&wirepb.Message{Kind: &wirepb.Message_Applied{Applied: &wirepb.Applied{Step: s.step, Measured: s.last}}})
}

// leave sends the finished part of the step and a message that this worker leaves.
func (s *session) leave() error {
	if s.round == nil {
		s.sendGradients()
	}
	s.queue.Send(&wirepb.Message{Kind: &wirepb.Message_Leaving{Leaving: &wirepb.Leaving{Reason: "asked to stop"}}})
	s.flush()
	return ErrLeft
}

// left is the error of a session that ends with err: a worker that the master dismisses after it was signalled to stop
// has left, and the step is complete.
func left(ctx context.Context, err error) error {
	if errors.Is(err, errDismissed) && ctx.Err() != nil {
		return ErrLeft
	}
	return err
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
