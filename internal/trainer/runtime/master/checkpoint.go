package master

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/artifact/checkpoint"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/nn"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/coordinator"
)

// CheckpointName identifies a checkpoint in a store.
type CheckpointName struct {
	Lineage    string
	Step       int64
	Job        string // digest of the job whose master writes it: two jobs may have one lineage
	Generation int64  // of that master
	// Trusted is the step up to which the computation is verified. The newest checkpoint up to it is kept, however many
	// there are: those after it may be withdrawn.
	Trusted int64
}

// StoredCheckpoint is a checkpoint in a store.
type StoredCheckpoint struct {
	Step int64
	Path string // for messages
	Read func() ([]byte, error)
}

type writtenCheckpoint struct {
	step int64
	err  error
}

// checkpointTimeout bounds the writing of one.
const checkpointTimeout = 60 * time.Second

// resumeFromCheckpoint loads the newest intact checkpoint of the job's lineage, and returns its step and state; without
// one, step 0 and the state that it is given. It reports the checkpoints that it cannot load, and leaves them in place.
func (m *Master) resumeFromCheckpoint(state []float32) (int64, []float32) {
	id := m.cfg.Job.Identity
	stored, err := m.cfg.Store.Checkpoints(id.Lineage)
	if err != nil {
		m.notice(coordinator.Notice{Warning: true, Reason: "CheckpointsNotRead", Message: fmt.Sprintf("the checkpoints cannot be listed: %v", err)})
	}
	slices.SortFunc(stored, func(a, b StoredCheckpoint) int { return int(b.Step - a.Step) })
	for _, s := range stored {
		if s.Step > m.cfg.Job.Schedule.Steps() {
			continue // of a job with more epochs
		}
		c, restored, err := m.restore(s)
		if err != nil {
			m.notice(coordinator.Notice{Warning: true, Reason: "CheckpointRejected", Message: fmt.Sprintf("checkpoint %s is skipped: %v", s.Path, err)})
			continue
		}
		m.last = m.measuredAt(c.Step, c.LossSum, c.Counts)
		m.kept = c.Step
		m.notice(coordinator.Notice{Reason: "Resumed", Message: fmt.Sprintf("training resumes from step %d of %d, whose checkpoint is %s", c.Step, m.cfg.Job.Schedule.Steps(), s.Path)})
		m.takeEvaluations(c.Step, c.Evaluations, c.Validation)
		return c.Step, restored
	}
	return 0, state
}

func (m *Master) restore(s StoredCheckpoint) (checkpoint.Checkpoint, []float32, error) {
	file, err := s.Read()
	if err != nil {
		return checkpoint.Checkpoint{}, nil, err
	}
	c, err := checkpoint.Decode(file)
	if err != nil {
		return checkpoint.Checkpoint{}, nil, err
	}
	if want := m.cfg.Job.Identity.Lineage; c.Lineage != want || c.Step != s.Step {
		return checkpoint.Checkpoint{}, nil, fmt.Errorf("it is of step %d of lineage %.12s, and its name says step %d of lineage %.12s", c.Step, c.Lineage, s.Step, want)
	}
	state := make([]float32, m.network.StateSize())
	return c, state, m.network.Restore(state, c.Tensors)
}

// checkpoint writes the current state in the background.
func (m *Master) checkpoint(step, trusted int64) {
	id := m.cfg.Job.Identity
	name := CheckpointName{Lineage: id.Lineage, Step: step, Job: id.Job, Generation: m.cfg.Fence.Generation(), Trusted: trusted}
	last, before := m.last, m.evaluations.before(step)
	m.inBackground(checkpointTimeout, func(ctx context.Context, state []float32) {
		file, err := checkpoint.Encode(checkpoint.Checkpoint{
			Lineage: id.Lineage, Step: step, Generation: name.Generation, LossSum: last.LossSum, Counts: last.Counts, Evaluations: before, Validation: id.Validation, Tensors: m.network.Snapshot(state),
		})
		if err == nil {
			err = m.cfg.Store.SaveCheckpoint(ctx, name, file, m.cfg.Fence.Check)
		}
		m.checkpointed <- writtenCheckpoint{step, err}
	})
}

func (m *Master) checkpointWritten(w writtenCheckpoint) {
	if w.err != nil {
		m.step(coordinator.CheckpointNotWritten{Step: w.step, Reason: w.err.Error()})
		return
	}
	m.kept, m.written = w.step, append(m.written, w.step)
	m.cfg.History.OnCheckpoint()
	m.log.Info("wrote a checkpoint", "step", w.step)
	m.cfg.Reporter.Notice(coordinator.Notice{Reason: coordinator.ReasonCheckpointed, Message: fmt.Sprintf("the state of step %d of %d is in a checkpoint", w.step, m.cfg.Job.Schedule.Steps())})
	m.step(coordinator.CheckpointWritten{Step: w.step})
}

// withdraw renames the checkpoints that this master has written since a machine may have computed wrongly, after the
// last write is complete, so that no later master resumes from them.
func (m *Master) withdraw(ctx context.Context) {
	if m.withdrawAfter == nil {
		return
	}
	select {
	case w := <-m.checkpointed: // it was in flight when the loop ended
		if w.err == nil {
			m.written = append(m.written, w.step)
		}
	default:
	}
	doubted := slices.DeleteFunc(m.written, func(step int64) bool { return step <= *m.withdrawAfter })
	if len(doubted) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), checkpointTimeout)
	defer cancel()
	err := m.cfg.Fence.Check(ctx)
	var paths []string
	if err == nil {
		paths, err = m.cfg.Store.WithdrawCheckpoints(ctx, m.cfg.Job.Identity.Lineage, doubted)
	}
	if err != nil {
		m.notice(coordinator.Notice{Warning: true, Reason: "CheckpointInvalidationFailed", Message: fmt.Sprintf("checkpoints after step %d may contain wrong results and could not be invalidated: %v; remove them before you start the job again", *m.withdrawAfter, err)})
	}
	for _, path := range paths {
		m.notice(coordinator.Notice{Warning: true, Reason: "CheckpointInvalidated", Message: fmt.Sprintf("checkpoint %s may contain wrong results: it was renamed, and no run resumes from it", path)})
	}
}

// checkpointEvery is the number of steps between two checkpoints, by default those of an epoch. 0: the store
// has no place for them.
func (m *Master) checkpointEvery(stateBytes int) int64 {
	if !m.cfg.Store.KeepsCheckpoints(stateBytes) {
		return 0
	}
	if c := m.cfg.Job.Spec.Checkpoint; c != nil && c.Steps > 0 {
		return c.Steps
	}
	return m.cfg.Job.Schedule.StepsPerEpoch()
}

// measuredAt is loss and metrics of the step before a state, from the checkpoint.
func (m *Master) measuredAt(step int64, lossSum float64, counts []int64) nn.Result {
	if step == 0 {
		return nn.Result{}
	}
	if size := m.cfg.Job.Metrics.Size(); len(counts) != size { // the model file had other metrics then: the lineage does not cover them
		known := counts
		counts = make([]int64, size)
		copy(counts[:1], known) // the right answers
	}
	return nn.Result{Records: m.cfg.Job.Schedule.Step(step - 1).Records, LossSum: lossSum, Counts: counts}
}
