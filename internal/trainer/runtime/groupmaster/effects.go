package groupmaster

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/observe/goodput"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/coordinator"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/group"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/wire/wirepb"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/master"
	"github.com/elastic-training/terraform-provider-elastic/internal/wording"
)

// do carries out one effect.
func (m *Master) do(e group.Effect) {
	switch e := e.(type) {
	case group.Begin:
		m.begin(e)
	case group.Commit:
		if !e.Again && !m.cfg.Job.Spec.Restarts() {
			m.observe(e)
		}
		for rank, id := range e.Members {
			m.send(id, &wirepb.Message{Kind: &wirepb.Message_GroupCommit{GroupCommit: &wirepb.GroupCommit{
				Generation: e.Generation, Step: e.Step, Last: e.Last, Save: e.Save && rank == 0,
			}}})
		}
	case group.Abort:
		for _, id := range e.Members {
			m.send(id, &wirepb.Message{Kind: &wirepb.Message_GroupAbort{GroupAbort: &wirepb.GroupAbort{Generation: e.Generation}}})
		}
	case group.Save:
		m.send(e.Worker, &wirepb.Message{Kind: &wirepb.Message_GroupSave{GroupSave: &wirepb.GroupSave{Step: e.Step}}})
	case group.Finish:
		m.send(e.Worker, &wirepb.Message{Kind: &wirepb.Message_GroupFinish{GroupFinish: &wirepb.GroupFinish{Generation: e.Generation, Saver: e.Saver}}})
	case coordinator.Refuse:
		m.log.Warn("rejected a worker", "worker", e.Worker, "reason", e.Reason)
		m.gaveUp[e.Worker] = e.Reason
		m.last(e.Worker, &wirepb.Message{Kind: &wirepb.Message_Refusal{Refusal: &wirepb.Refusal{Reason: e.Reason}}})
	case coordinator.Dismiss:
		m.last(e.Worker, &wirepb.Message{Kind: &wirepb.Message_Dismissal{Dismissal: &wirepb.Dismissal{Reason: "finished"}}})
	case coordinator.Disconnect:
		if c := m.conns[e.Worker]; c != nil {
			m.cfg.History.OnEvent(coordinator.Lost{Worker: e.Worker, Reason: e.Reason}) // the end of the stream is not reported again
			c.closing = true
			c.End(errors.New(e.Reason))
		}
	case coordinator.CreatePod:
		m.cfg.Launcher.Create(e.Worker, e.Minimum)
	case coordinator.DeletePod:
		m.log.Info("ending a worker", "worker", e.Worker, "reason", e.Reason)
		m.cfg.History.OnRetire(e.Worker)
		m.cfg.Launcher.Delete(e.Worker)
	case coordinator.Report:
		m.published.Publish(true, m.status)
	case coordinator.Notice:
		m.published.Notice(e)
	case coordinator.Exit:
		m.result = &master.Result{Code: e.Code, Reason: e.Reason}
	default:
		panic(fmt.Sprintf("groupmaster: unknown effect %T", e))
	}
}

func (m *Master) send(worker int, message *wirepb.Message) {
	if c := m.conns[worker]; c != nil && !c.closing {
		c.Queue.Send(message)
	}
}

// last sends a worker its last message.
func (m *Master) last(worker int, message *wirepb.Message) {
	if c := m.conns[worker]; c != nil {
		c.closing = true
		c.Queue.Send(message)
		c.Queue.Close()
	}
}

func (m *Master) begin(e group.Begin) {
	m.log.Info("a process group begins", "generation", e.Generation, "workers", e.Members, "step", e.Step)
	for rank, id := range e.Members {
		m.send(id, &wirepb.Message{Kind: &wirepb.Message_GroupBegin{GroupBegin: &wirepb.GroupBegin{
			Generation: e.Generation, Rank: int32(rank), World: int32(len(e.Members)), Store: e.Store, Step: e.Step,
			Source: int32(e.Source), Load: e.Load, Broadcast: e.Broadcast,
		}}})
	}
}

// running is how many workers run the command.
func running(s coordinator.Status) (n int) {
	for _, w := range s.Workers {
		if w.State == coordinator.WorkerReady {
			n++
		}
	}
	return n
}

// What a master cannot know of a script's time.
const (
	unknownOfCollectives = "computing includes the time in which the script evaluates or saves; " +
		"saving is the time from the last step to the script's end"
	unknownOfRestarts = "computing includes the time in which the command starts, recomputes lost steps, evaluates or saves"
)

// status is the published status of the job.
func (m *Master) status() trainingjob.Status {
	c, j := m.core.Status(), m.cfg.Job
	s := trainingjob.Status{
		Phase: master.PhaseOf(c.Phase), Message: c.Reason, Generation: m.cfg.Fence.Generation(),
		Epoch: j.Schedule.Epoch(min(c.Step, j.Schedule.Steps()-1)), StepsDone: c.Step, StepsTotal: j.Schedule.Steps(),
		JobDigest: j.Identity.Job, CheckpointStep: m.core.Checkpointed(), Preemptions: c.Preemptions, Loss: m.loss,
		GoodputSplit: &trainingjob.GoodputSplit{Phase: goodput.PhaseOf(c), Unknown: unknownOfCollectives},
	}
	switch {
	case c.Phase == coordinator.Done && c.Step < j.Schedule.Steps():
		s.Phase, s.Message = trainingjob.PhaseWaiting, "the master was stopped; the job continues when it is started again"
	case c.Phase == coordinator.Waiting:
		s.Message = cmp.Or(c.Reason, master.WaitingFor(c))
	case c.Phase == coordinator.Saving:
		s.Phase, s.Message = trainingjob.PhaseRunning, "all steps are done; the script finishes"
	}
	if n := j.Spec.Processes(); n > 1 {
		s.Processes = n
	}
	if j.Spec.Restarts() { // how far a command has come is not known here
		s.StepsDone, s.StepsTotal, s.Loss, s.Starts = 0, 0, nil, m.core.Starts()
		s.GoodputSplit.Unknown = unknownOfRestarts
		if s.Phase == trainingjob.PhaseRunning && s.Message == "" {
			s.Message = fmt.Sprintf("the command runs on %s", wording.Number(running(c), "worker"))
		}
	}
	master.AddWorkers(&s, c, j.Spec.Name, c.Phase >= coordinator.Saving)
	return s
}
