package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/wire/wirepb"
)

// membership works on one stream as a member of a group: it starts the script, unless it runs already, and passes on
// what master and script say to each other. The group decides; the script computes.
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
	for _, p := range m.processes {
		p.lastAnswer.Store(time.Now().UnixNano())
	}
	stop := ctx.Done()
	for {
		select {
		case r := <-s.in:
			if err := left(ctx, ending(r.message)); err != nil {
				return err
			}
			if err := s.instruct(r.message); err != nil {
				return err
			}
		case err := <-s.broken:
			return left(ctx, s.readFinalMessage(err))
		case r := <-m.reports:
			if r.Kind == processEnded {
				if err := s.processEnded(ctx, r.process); err != nil {
					return err
				}
			} else if err := s.take(r); err != nil {
				return err
			}
		case now := <-ping.C:
			if err := m.ping(now); err != nil {
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

// ping asks the processes whether they live. The error names one that has not answered for long.
func (m *member) ping(now time.Time) error {
	for local, p := range m.processes {
		if !p.ended && now.Sub(time.Unix(0, p.lastAnswer.Load())) > pingTimeout {
			return m.named(local, fmt.Errorf("the script has not answered for %v; it is stopped, or blocks its interpreter", pingTimeout))
		}
	}
	return m.instructAll(instruction{Kind: "ping"}, nil)
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
		return errors.Join(m.begin(k.GroupBegin), s.nextStep())
	case *wirepb.Message_GroupCommit:
		c := k.GroupCommit
		if c.Generation != m.generation || c.Step != m.step {
			return protocolErrorf("the master committed step %d of generation %d; the script computes step %d of generation %d", c.Step, c.Generation, m.step, m.generation)
		}
		m.step = c.Step + 1
		m.hold(m.step, m.generation)
		if err := m.instructAll(instruction{Kind: "commit", Generation: c.Generation, Step: c.Step, Last: c.Last}, func(local int, i *instruction) {
			i.Save = c.Save && local == 0
		}); err != nil {
			return err
		}
		if c.Last {
			m.generation = 0
			return nil
		}
		return s.nextStep()
	case *wirepb.Message_GroupAbort:
		if k.GroupAbort.Generation == m.generation {
			return m.abort()
		}
	case *wirepb.Message_GroupSave:
		return m.processes[0].instruct(instruction{Kind: "save", Step: k.GroupSave.Step})
	case *wirepb.Message_GroupFinish:
		if k.GroupFinish.Generation == m.generation {
			m.finishing = true
			return m.instructAll(instruction{Kind: "finish", Generation: m.generation}, func(local int, i *instruction) {
				i.Saver = k.GroupFinish.Saver && local == 0
			})
		}
	default:
		return protocolErrorf("the master sent an unexpected %T", k)
	}
	return nil
}

// begin has all processes meet, as ranks of a new process group.
func (m *member) begin(b *wirepb.GroupBegin) error {
	n := len(m.processes)
	m.generation, m.rank, m.world, m.step, m.aborted, m.reason = b.Generation, int(b.Rank), int(b.World), b.Step, false, ""
	for _, p := range m.processes {
		p.idle, p.reduced = false, nil
	}
	// A worker that is alone may still have to bring its processes to one state.
	broadcast := b.Broadcast || b.World == 1 && n > 1 && (b.Load || m.held != b.Step || m.of == m.apart())
	return m.instructAll(instruction{
		Kind: "begin", Generation: b.Generation, World: m.world * n, Store: b.Store, Source: int(b.Source) * n,
		Load: b.Load, Broadcast: broadcast, Step: b.Step,
	}, func(local int, i *instruction) { i.Rank = m.rank*n + local })
}

// abort takes the processes out of their generation.
func (m *member) abort() error {
	m.aborted = true
	return m.instructAll(instruction{Kind: "abort", Generation: m.generation}, nil)
}

// hold notes that all processes hold the same state.
func (m *member) hold(held, of int64) {
	m.held, m.of = held, of
	for _, p := range m.processes {
		p.held, p.of = held, of
	}
}

// apart is the number of no generation, and of no other worker: that of a state which the first process has and another
// one has not. With it the master has the state sent in the next generation, by any worker that holds it.
func (m *member) apart() int64 { return -1 - int64(m.worker) }

// nextStep sends the processes their shares of the step, if there is one.
func (s *session) nextStep() error {
	m := s.member
	if m.step >= s.job.Schedule.Steps() {
		return nil
	}
	for local, p := range m.processes {
		if err := p.instruct(s.share(local)); err != nil {
			return err
		}
	}
	return nil
}

// take notes a report of a process, and sends the master what follows for this worker.
func (s *session) take(r report) error {
	m := s.member
	switch r.Kind {
	case "ready":
		if m.isReady(r) {
			s.sendReady()
		}
	case "reduced":
		if lossSum, records, all := m.hasReduced(r); all {
			s.queue.Send(&wirepb.Message{Kind: &wirepb.Message_GroupReduced{GroupReduced: &wirepb.GroupReduced{
				Generation: r.Generation, Step: r.Step, LossSum: lossSum, Records: records,
			}}})
		}
	case "idle":
		idle, err := m.isIdle(r)
		if err != nil {
			return s.report(err)
		}
		if idle {
			s.queue.Send(&wirepb.Message{Kind: &wirepb.Message_GroupIdle{GroupIdle: &wirepb.GroupIdle{
				Generation: r.Generation, Held: m.held, Of: m.of, Reason: m.reason,
			}}})
		}
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

// isReady notes that a process waits for its first generation, and reports whether now all do.
func (m *member) isReady(r report) bool {
	p := m.processes[r.process]
	p.store, p.held, p.checkpoint = r.Store, r.Held, r.Checkpoint
	for _, p := range m.processes {
		if p.store == "" {
			return false
		}
	}
	first := m.processes[0]
	m.address, m.held, m.checkpoint = first.store, first.held, first.checkpoint
	return true
}

// hasReduced notes that a process holds the sum of a step's gradients, and reports whether now all do, and their losses
// and records in the order of ranks.
func (m *member) hasReduced(r report) (lossSum float64, records int64, all bool) {
	if r.Generation != m.generation || r.Step != m.step {
		return 0, 0, false
	}
	m.processes[r.process].reduced = &r
	for _, p := range m.processes {
		if p.reduced == nil || p.reduced.Step != r.Step {
			return 0, 0, false
		}
		lossSum += p.reduced.LossSum
		records += p.reduced.Records
	}
	return lossSum, records, true
}

// isIdle notes that a process has left the generation, and reports whether now all have. The first one ends it for the
// others: they may wait for it for ever.
func (m *member) isIdle(r report) (bool, error) {
	if r.Generation != m.generation {
		return false, nil
	}
	p := m.processes[r.process]
	p.idle, p.held, p.of = true, r.Held, r.Of
	if !m.aborted {
		m.reason = r.Reason
		if err := m.abort(); err != nil {
			return false, err
		}
	}
	first := m.processes[0]
	of := first.of
	for _, p := range m.processes {
		if !p.idle {
			return false, nil
		}
		if p.held != first.held || p.of != first.of {
			of = m.apart()
		}
	}
	m.generation, m.held, m.of = 0, first.held, of
	return true, nil
}

// processEnded notes that a process has ended as it should, after a finish, and reports it to the master when all have.
// Any other end is a fault of this worker, which ends the other processes too.
func (s *session) processEnded(ctx context.Context, local int) error {
	m := s.member
	err := m.failure(local)
	if m.finishing && m.exitedWell(local) {
		m.processes[local].ended = true
		for _, p := range m.processes {
			if !p.ended {
				return nil
			}
		}
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

func (m *member) exitedWell(local int) bool {
	script := m.processes[local].script
	select {
	case <-script.Ended():
		return script.Err() == nil
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
	if err := m.abort(); err != nil {
		return &brokenError{err}
	}
	late := time.NewTimer(pingTimeout)
	defer late.Stop()
	for m.generation != 0 {
		select {
		case r := <-m.reports:
			switch r.Kind {
			case processEnded:
				return &brokenError{m.failure(r.process)}
			case "idle":
				if _, err := m.isIdle(r); err != nil {
					return &brokenError{err}
				}
			case "saved":
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
