package worker

import (
	"context"
	"net"
	"path/filepath"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/group"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/wire/wirepb"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/job"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/torchrun"
)

// ranks are the processes of a command that is started again when the job's workers change, and what this worker knows
// of their run. They live as long as the worker, over all streams: a command goes on while its master is replaced.
type ranks struct {
	command torchrun.Command
	host    string // at which other workers reach this one

	run         *torchrun.Run // nil while there are no processes
	stopping    bool          // they have been signalled to end
	generation  int64         // of the run, also when it has ended well; 0: none
	rank, world int           // of this worker
	well        bool          // all processes of this worker have ended with exit code 0
	held        int64         // 1 when those of all workers have
	finished    bool
}

// generationMask takes the number of a master's generation out of that of all masters'.
const generationMask = 1<<32 - 1

// commanding works on one stream: it starts and stops the command as the master says, and reports how it ends.
func (s *session) commanding(ctx context.Context, first *wirepb.Message) error {
	if err := s.takeJob(ctx, first); err != nil {
		return err
	}
	if s.ranks == nil {
		host, err := s.peerHost()
		if err != nil {
			return s.report(err)
		}
		s.ranks = &ranks{host: host, command: s.command(first.GetJob().ModelName)}
	}
	r := s.ranks
	if r.stopping { // the next run begins when this one is gone
		select {
		case <-r.run.Done():
			_ = r.take() // it was stopped
		case <-ctx.Done():
			return ErrLeft
		}
	}
	if r.run != nil {
		select {
		case <-r.run.Done():
			if err := r.take(); err != nil {
				s.log.Warn("the command has failed while there was no master", "error", err)
			}
		default:
		}
	}
	if err := s.sendRanks(); err != nil {
		return s.report(err)
	}
	return s.serveRanks(ctx)
}

// command is the job's, as this worker runs it.
func (w *worker) command(name string) torchrun.Command {
	spec, o := w.job.Spec, job.ScriptOptions(w.job.Spec, name, w.job.ModelText, w.cfg.Job)
	c := torchrun.Command{
		Line: spec.Command, Name: o.Name, Script: o.Script, Processes: spec.Processes(), Job: spec.Name,
		Grace: w.cfg.StopGrace, Output: w.cfg.Job.ScriptOutput,
	}
	if filepath.IsAbs(spec.Model.File) {
		c.Beside = o.Beside
	}
	return c
}

// serveRanks passes on what happens until the stream ends.
func (s *session) serveRanks(ctx context.Context) error {
	r := s.ranks
	stop := ctx.Done()
	for {
		var ended <-chan struct{}
		if r.run != nil {
			ended = r.run.Done()
		}
		select {
		case m := <-s.in:
			if err := left(ctx, ending(m.message)); err != nil {
				return err
			}
			if err := s.obey(m.message); err != nil {
				return err
			}
		case err := <-s.broken:
			return left(ctx, s.readFinalMessage(err))
		case <-ended:
			generation := r.generation
			err := r.take()
			if r.well {
				s.sendEndedWell()
			} else if err := s.sendIdle(generation, err); err != nil {
				return s.report(err)
			}
		case <-stop:
			s.queue.Send(&wirepb.Message{Kind: &wirepb.Message_Leaving{Leaving: &wirepb.Leaving{Reason: "asked to stop", AfterStep: true}}})
			r.stop()
			stop = nil
		}
	}
}

// obey carries out a message of the master.
func (s *session) obey(message *wirepb.Message) error {
	r := s.ranks
	switch k := message.Kind.(type) {
	case *wirepb.Message_GroupBegin:
		b := k.GroupBegin
		if r.run != nil {
			return protocolErrorf("the master began generation %d while the command of generation %d runs", b.Generation, r.generation)
		}
		r.generation, r.rank, r.world, r.well = b.Generation, int(b.Rank), int(b.World), false
		if b.Step >= s.job.Schedule.Steps() {
			return nil // the command has been run
		}
		place := torchrun.Place{Rank: r.rank, World: r.world, Master: b.Store, Restarts: int(max(0, b.Generation&generationMask-1))}
		run, err := torchrun.Start(r.command, place)
		if err != nil {
			r.generation = 0
			return s.sendIdle(b.Generation, err)
		}
		r.run = run
	case *wirepb.Message_GroupAbort:
		switch {
		case k.GroupAbort.Generation != r.generation:
		case r.run != nil:
			r.stop()
		default:
			r.generation, r.well = 0, false
			return s.sendIdle(k.GroupAbort.Generation, nil)
		}
	case *wirepb.Message_GroupCommit:
		if k.GroupCommit.Generation == r.generation && r.well {
			r.held = 1
		}
	case *wirepb.Message_GroupFinish:
		r.finished = true
		s.queue.Send(&wirepb.Message{Kind: &wirepb.Message_GroupFinished{GroupFinished: &wirepb.GroupFinished{}}})
	default:
		return protocolErrorf("the master sent an unexpected %T", k)
	}
	return nil
}

// stop asks the processes to end, if there are any.
func (r *ranks) stop() {
	if r.run != nil {
		r.stopping = true
		r.run.Stop()
	}
}

// take notes the end of the run. The error is that of a process that failed by itself.
func (r *ranks) take() error {
	err := r.run.Err()
	if r.stopping {
		err = nil
	}
	r.well = err == nil && !r.stopping
	if !r.well {
		r.generation = 0
	}
	r.run, r.stopping = nil, false
	return err
}

// close stops the processes and waits for their end.
func (r *ranks) close() {
	if r != nil && r.run != nil {
		r.stop()
		<-r.run.Done()
	}
}

// sendRanks sends a master the state of this worker, and again what an earlier stream may have lost.
func (s *session) sendRanks() error {
	r, id := s.ranks, s.job.Identity
	address, err := freeAddress(r.host)
	if err != nil {
		return err
	}
	ready := &wirepb.GroupReady{
		Lineage: id.Lineage, JobDigest: id.Job, Held: r.held, Checkpoint: group.NoState, Finishing: r.finished, Address: address,
	}
	if r.generation != 0 && r.held == 0 {
		ready.Running, ready.Rank, ready.World = r.generation, int32(r.rank), int32(r.world) //nolint:gosec // they were int32
	}
	s.queue.Send(&wirepb.Message{Kind: &wirepb.Message_GroupReady{GroupReady: ready}})
	if r.well && r.held == 0 {
		s.sendEndedWell()
	}
	if r.finished {
		s.queue.Send(&wirepb.Message{Kind: &wirepb.Message_GroupFinished{GroupFinished: &wirepb.GroupFinished{}}})
	}
	return nil
}

func (s *session) sendEndedWell() {
	s.queue.Send(&wirepb.Message{Kind: &wirepb.Message_GroupReduced{GroupReduced: &wirepb.GroupReduced{Generation: s.ranks.generation, Records: 1}}})
}

// sendIdle reports that no process of the generation runs any more, and how one has failed.
func (s *session) sendIdle(generation int64, failure error) error {
	address, err := freeAddress(s.ranks.host)
	if err != nil {
		return err
	}
	idle := &wirepb.GroupIdle{Generation: generation, Address: address}
	if failure != nil {
		idle.Reason = failure.Error()
	}
	s.queue.Send(&wirepb.Message{Kind: &wirepb.Message_GroupIdle{GroupIdle: idle}})
	return nil
}

// freeAddress is an address at which a process of rank 0 can listen. Another program may take it before; the command
// then fails, and the next run has another one.
func freeAddress(host string) (string, error) {
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

// DefaultStopGrace is how long a command may take to end after SIGTERM, as in a pod with Kubernetes' own grace period.
const DefaultStopGrace = 25 * time.Second
