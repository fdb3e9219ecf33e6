package master

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/nn"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/observe/goodput"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/observe/history"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/observe/page"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/coordinator"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/job"
)

// observe records loss and metrics of the published step for the status: sums in the order of virtual workers.
func (m *Master) observe(step int64, k int) {
	m.last = nn.Result{}
	for v := range k {
		m.last.Add(m.results[v])
	}
	m.last.Records = m.cfg.Job.Schedule.Step(step).Records
	m.cfg.History.OnStep(history.Step{Records: m.last.Records, LossSum: m.last.LossSum})
}

// Record begins the history of a job.
func Record(j *job.Job) *history.Recorder {
	t := j.Spec.Training
	return history.NewRecorder(history.Job{
		Name: j.Spec.Name, Model: j.Graph.Name, Epochs: t.Epochs, Records: int(j.Training.Records()), Minibatch: t.MinibatchSize,
		GradsToWait: t.GradsToWait, Digest: j.Identity.Job, Kernel: j.Kernel.Name,
	})
}

// notice logs and publishes a message for users.
func (m *Master) notice(n coordinator.Notice) { m.published.Notice(n) }

var phases = map[coordinator.Phase]trainingjob.Phase{
	coordinator.Waiting:    trainingjob.PhaseWaiting,
	coordinator.Running:    trainingjob.PhaseRunning,
	coordinator.Evaluating: trainingjob.PhaseEvaluating,
	coordinator.Saving:     trainingjob.PhaseEvaluating,
	coordinator.CannotSave: trainingjob.PhaseCannotSave,
	coordinator.Dismissing: trainingjob.PhaseSucceeded,
	coordinator.Done:       trainingjob.PhaseSucceeded,
	coordinator.Failed:     trainingjob.PhaseFailed,
}

// PhaseOf is a phase of the coordinator as in the job's status.
func PhaseOf(p coordinator.Phase) trainingjob.Phase { return phases[p] }

// status is the published status of the job.
func (m *Master) status() trainingjob.Status {
	if m.info != nil {
		return m.withWorkers(m.finishedStatus())
	}
	c := m.core.Status()
	j := m.cfg.Job
	s := trainingjob.Status{
		Phase: PhaseOf(c.Phase), Message: c.Reason, Generation: m.cfg.Fence.Generation(),
		Epoch: j.Schedule.Epoch(min(c.Step, j.Schedule.Steps()-1)), StepsDone: c.Step, StepsTotal: j.Schedule.Steps(),
		JobDigest: j.Identity.Job, CheckpointStep: m.kept, Evaluations: newestOf(m.evaluations.all),
		GoodputSplit: &trainingjob.GoodputSplit{Phase: goodput.PhaseOf(c)},
	}
	if c.Phase == coordinator.Done { // ended without a model: interrupted, to be resumed
		s.Phase = trainingjob.PhaseWaiting
		s.Message = "the master was stopped; the job continues when it is started again"
	}
	if m.allReduce() != nil {
		s.Aggregation = aggregation(c)
	}
	if m.last.Records > 0 {
		s.Loss, s.Metrics = m.means(m.last)
	}
	s = m.withWorkers(s)
	ready := func(w coordinator.WorkerStatus) bool { return w.State == coordinator.WorkerReady }
	if c.Phase == coordinator.Waiting || c.Phase == coordinator.Evaluating && !slices.ContainsFunc(c.Workers, ready) {
		s.Message = cmp.Or(c.Reason, WaitingFor(c))
	}
	return s
}

func (m *Master) withWorkers(s trainingjob.Status) trainingjob.Status {
	if m.core == nil {
		return s
	}
	c := m.core.Status()
	s.Preemptions = c.Preemptions
	AddWorkers(&s, c, m.cfg.Job.Spec.Name, m.info != nil)
	return s
}

// AddWorkers adds the workers of a job. When all steps are done (dismissed), those that do not run were dismissed, or
// are no longer waited for.
func AddWorkers(s *trainingjob.Status, c coordinator.Status, job string, dismissed bool) {
	for _, w := range c.Workers {
		switch {
		case w.State == coordinator.WorkerReady, w.State == coordinator.WorkerJoining:
			s.WorkersRunning++
		case dismissed:
			continue
		default:
			s.WorkersPending++
		}
		s.Workers = append(s.Workers, trainingjob.WorkerStatus{
			ID: w.Worker, Pod: cmp.Or(w.Pod, trainingjob.WorkerName(job, w.Worker)), State: string(w.State), Reason: w.Reason, Gradients: w.Gradients,
		})
	}
}

// mostMissing is how many kinds of missing workers are named in a status.
const mostMissing = 4

// WaitingFor describes which workers are missing, and why, grouped by reason.
func WaitingFor(c coordinator.Status) string {
	ready := 0
	var alike []string
	missing := map[string][]int{}
	for _, w := range c.Workers {
		if w.State == coordinator.WorkerReady {
			ready++
			continue
		}
		how := string(w.State)
		if w.Reason != "" {
			how += " (" + w.Reason + ")"
		}
		if missing[how] == nil {
			alike = append(alike, how)
		}
		missing[how] = append(missing[how], w.Worker)
	}
	text := fmt.Sprintf("%d of at least %d workers are ready", ready, c.Min)
	for i, how := range alike {
		if i == mostMissing {
			others := 0
			for _, how := range alike[i:] {
				others += len(missing[how])
			}
			return text + fmt.Sprintf("; and %d others are missing", others)
		}
		separator, are := "; ", "are"
		if i == 0 {
			separator = ": "
		}
		if len(missing[how]) == 1 {
			are = "is"
		}
		text += fmt.Sprintf("%s%s %s %s", separator, coordinator.WorkerNames(missing[how]), are, how)
	}
	return text
}

// finishedStatus is the status of a finished job.
func (m *Master) finishedStatus() trainingjob.Status {
	steps := m.cfg.Job.Schedule.Steps()
	loss := m.info.Loss
	s := trainingjob.Status{
		Phase: trainingjob.PhaseSucceeded, Generation: m.cfg.Fence.Generation(), Epoch: m.cfg.Job.Spec.Training.Epochs - 1,
		StepsDone: steps, StepsTotal: steps, Loss: &loss, ModelSHA256: m.info.SHA256, JobDigest: m.info.Job, OutputFiles: m.info.Files, Metrics: m.info.Metrics, Evaluations: newestOf(m.info.Evaluations),
	}
	return s
}

// means are loss and metrics over the records of a result.
func (m *Master) means(r nn.Result) (*float64, map[string]float64) {
	loss := r.LossSum / float64(r.Records)
	return &loss, m.cfg.Job.Metrics.Values(loss, r.Counts, r.Records)
}

// reportTimeout bounds the writing of the report: the end of a job should not wait for it.
const reportTimeout = 5 * time.Second

// SaveReport saves the page of a run that has ended, beside the model if there is one, and returns the page's path. A
// failure does no harm.
func SaveReport(ctx context.Context, cfg Config, reason string) string {
	cfg.History.OnFinish(reason)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reportTimeout)
	defer cancel()
	name := ReportName{Job: cfg.Job.Identity.Job, Generation: cfg.Fence.Generation()}
	file, err := cfg.Store.SaveReport(ctx, name, page.Report(cfg.History.Snapshot(), time.Now()), cfg.Fence.Check)
	switch {
	case err != nil:
		cfg.Log.Warn("the report of the run cannot be written", "error", err)
	case file != "":
		cfg.Log.Info("wrote the report of the run", "file", file)
	}
	return file
}
