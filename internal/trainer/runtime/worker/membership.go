package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/wire/wirepb"
)

// membership works on one stream as a member of a group: it starts the script, unless it runs already, and passes on what
// master and script say to each other. The group decides; the script computes.
func (s *session) membership(ctx context.Context, first *wirepb.Message) error {
	if err := s.takeJob(ctx, first); err != nil {
		return err
	}
	if s.member == nil {
		host, err := s.peerHost()
		if err == nil {
			s.member, err = s.startMember(ctx, first.GetJob().ModelName, host)
		}
		if err != nil {
			if ctx.Err() != nil {
				return ErrLeft
			}
			return s.report(err)
		}
	}
	err := s.serveMember(ctx)
	var broken *brokenError
	var refused *RefusedError
	if errors.As(err, &broken) || errors.As(err, &refused) || errors.Is(err, ErrLeft) || errors.Is(err, errDismissed) {
		return err
	}
	return errors.Join(err, s.unwind(ctx))
}

// takeJob loads the job that the master sent, unless it is the current one.
func (s *session) takeJob(ctx context.Context, m *wirepb.Message) error {
	j, err := s.jobOf(m)
	if err != nil {
		return err
	}
	if (s.member != nil || s.ranks != nil) && s.source != string(j.JobJson)+string(j.Model) {
		return &brokenError{errors.New("the job has changed; its script is started again")}
	}
	if err := s.loadFrom(ctx, j); err != nil {
		if ctx.Err() != nil {
			return ErrLeft
		}
		return s.report(err)
	}
	return nil
}

// serveMember passes messages on until the stream, the script or the membership ends.
func (s *session) serveMember(ctx context.Context) error {
	m := s.member
	if m.address != "" {
		s.sendReady()
	}
	ping := time.NewTicker(pingInterval)
	defer ping.Stop()
	stop, heard := ctx.Done(), time.Now()
	for {
		select {
		case r := <-s.in:
			if err := ending(r.message); errors.Is(err, errDismissed) && ctx.Err() != nil {
				return ErrLeft
			} else if err != nil {
				return err
			}
			if err := s.instruct(r.message); err != nil {
				return err
			}
		case err := <-s.broken:
			return s.readFinalMessage(err)
		case r, open := <-m.reports:
			if !open {
				return s.scriptEnded(ctx)
			}
			if err := s.take(r); err != nil {
				return err
			}
		case <-m.alive:
			heard = time.Now()
		case now := <-ping.C:
			if now.Sub(heard) > pingTimeout {
				return s.report(fmt.Errorf("the script has not answered for %v; it is stopped, or blocks its interpreter", pingTimeout))
			}
			if err := m.tell(instruction{Kind: "ping"}); err != nil {
				return s.report(err)
			}
		case <-stop:
			if m.address == "" {
				return ErrLeft // it is no member yet
			}
			s.queue.Send(&wirepb.Message{Kind: &wirepb.Message_Leaving{Leaving: &wirepb.Leaving{Reason: "asked to stop", AfterStep: true}}})
			stop = nil
		}
	}
}

func (s *session) sendReady() {
	m := s.member
	id := s.job.Identity
	s.queue.Send(&wirepb.Message{Kind: &wirepb.Message_GroupReady{GroupReady: &wirepb.GroupReady{
		Lineage: id.Lineage, JobDigest: id.Job, Held: m.held, Of: m.of, Checkpoint: m.checkpoint, Finishing: m.finishing, Address: m.address,
	}}})
}

// instruct passes a message of the master on to the script.
func (s *session) instruct(message *wirepb.Message) error {
	m := s.member
	switch k := message.Kind.(type) {
	case *wirepb.Message_GroupBegin:
		b := k.GroupBegin
		m.generation, m.rank, m.world, m.step = b.Generation, int(b.Rank), int(b.World), b.Step
		return errors.Join(m.tell(instruction{
			Kind: "begin", Generation: b.Generation, Rank: m.rank, World: m.world, Store: b.Store, Source: int(b.Source),
			Load: b.Load, Broadcast: b.Broadcast, Step: b.Step,
		}), s.nextStep())
	case *wirepb.Message_GroupCommit:
		c := k.GroupCommit
		if c.Generation != m.generation || c.Step != m.step {
			return protocolErrorf("the master committed step %d of generation %d; the script computes step %d of generation %d", c.Step, c.Generation, m.step, m.generation)
		}
		m.step, m.held, m.of = c.Step+1, c.Step+1, m.generation
		if err := m.tell(instruction{Kind: "commit", Generation: c.Generation, Step: c.Step, Last: c.Last, Save: c.Save}); err != nil {
			return err
		}
		if c.Last {
			m.generation = 0
			return nil
		}
		return s.nextStep()
	case *wirepb.Message_GroupAbort:
		if k.GroupAbort.Generation == m.generation {
			return m.tell(instruction{Kind: "abort", Generation: m.generation})
		}
	case *wirepb.Message_GroupSave:
		return m.tell(instruction{Kind: "save", Step: k.GroupSave.Step})
	case *wirepb.Message_GroupFinish:
		if k.GroupFinish.Generation == m.generation {
			m.finishing = true
			return m.tell(instruction{Kind: "finish", Generation: m.generation, Saver: k.GroupFinish.Saver})
		}
	default:
		return protocolErrorf("the master sent an unexpected %T", k)
	}
	return nil
}

// nextStep tells the script its share of the step, if there is one.
func (s *session) nextStep() error {
	m := s.member
	if m.step >= s.job.Schedule.Steps() {
		return nil
	}
	return m.tell(s.share())
}

// take passes a report of the script on to the master.
func (s *session) take(r report) error {
	m := s.member
	switch r.Kind {
	case "ready":
		m.address, m.held, m.checkpoint = r.Store, r.Held, r.Checkpoint
		s.sendReady()
	case "reduced":
		s.queue.Send(&wirepb.Message{Kind: &wirepb.Message_GroupReduced{GroupReduced: &wirepb.GroupReduced{
			Generation: r.Generation, Step: r.Step, LossSum: r.LossSum, Records: r.Records,
		}}})
	case "idle":
		m.isIdle(r)
		s.queue.Send(&wirepb.Message{Kind: &wirepb.Message_GroupIdle{GroupIdle: &wirepb.GroupIdle{
			Generation: r.Generation, Held: r.Held, Of: r.Of, Reason: r.Reason,
		}}})
	case "saved":
		m.checkpoint = max(m.checkpoint, r.Step)
		s.queue.Send(&wirepb.Message{Kind: &wirepb.Message_GroupSaved{GroupSaved: &wirepb.GroupSaved{Step: r.Step}}})
	case "diverged":
		s.queue.Send(problem(errors.New(r.Reason), true))
		s.flush()
		return &brokenError{errors.New(r.Reason)}
	default:
		return s.report(fmt.Errorf("the script sent a report of the unknown kind %q; use the module that `elastic-trainer python-module` writes", r.Kind))
	}
	return nil
}

func (m *member) isIdle(r report) {
	m.generation, m.held, m.of = 0, r.Held, r.Of
}

// scriptEnded reports the end of the script: as it should be after a finish, and a fault otherwise.
func (s *session) scriptEnded(ctx context.Context) error {
	err := s.member.failure()
	if s.member.finishing && s.member.exitedWell() {
		s.queue.Send(&wirepb.Message{Kind: &wirepb.Message_GroupFinished{GroupFinished: &wirepb.GroupFinished{}}})
		s.flush()
		return errDismissed
	}
	if ctx.Err() != nil {
		s.flush()
		return ErrLeft
	}
	return s.report(err)
}

func (m *member) exitedWell() bool {
	select {
	case <-m.script.Ended():
		return m.script.Err() == nil
	default:
		return false
	}
}

// unwind takes the script out of its generation when the stream has ended without a last message, so that it can join
// again on the next one.
func (s *session) unwind(ctx context.Context) error {
	m := s.member
	if m.generation == 0 || m.finishing || ctx.Err() != nil {
		return nil
	}
	if err := m.tell(instruction{Kind: "abort", Generation: m.generation}); err != nil {
		return &brokenError{err}
	}
	late := time.NewTimer(pingTimeout)
	defer late.Stop()
	for m.generation != 0 {
		select {
		case r, open := <-m.reports:
			switch {
			case !open:
				return &brokenError{m.failure()}
			case r.Kind == "idle":
				m.isIdle(r)
			case r.Kind == "saved":
				m.checkpoint = max(m.checkpoint, r.Step)
			}
		case <-late.C:
			return &brokenError{fmt.Errorf("the script did not leave its process group within %v of the end of the stream to the master", pingTimeout)}
		case <-ctx.Done():
			return ErrLeft
		}
	}
	return nil
}
