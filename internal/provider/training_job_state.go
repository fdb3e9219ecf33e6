package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
)

// observe copies the master's report, and the state of the Job and its queue where the master cannot report.
func (m *observedModel) observe(ctx context.Context, seen observation) diag.Diagnostics {
	w, status := &flattener{ctx: ctx}, seen.status
	m.Phase, m.Message = types.StringValue(string(seen.phase())), textOrNull(seen.message())
	m.StepsDone, m.StepsTotal = types.Int64Value(status.StepsDone), types.Int64Value(status.StepsTotal)
	m.Loss = types.Float64PointerValue(status.Loss)
	m.WorkersRunning, m.WorkersPending = types.Int64Value(int64(status.WorkersRunning)), types.Int64Value(int64(status.WorkersPending))
	m.Preemptions = types.Int64Value(int64(status.Preemptions))
	m.ModelSHA256 = textOrNull(status.ModelSHA256)
	m.Metrics = w.mapOf(types.Float64Type, status.Metrics, len(status.Metrics))
	m.OutputFiles = w.list(types.StringType, status.OutputFiles, len(status.OutputFiles))
	return w.diags
}

// hasNotStarted reports whether a job's pods should exist and it has done no step yet.
func (m *observedModel) hasNotStarted() bool {
	phase := trainingjob.Phase(m.Phase.ValueString())
	return (phase == trainingjob.PhasePending || phase == trainingjob.PhaseWaiting) && m.StepsDone.ValueInt64() == 0
}

// asReported is the status in the state; Pending if there is none. Phases that the master does not report are
// determined again.
func (m *observedModel) asReported() trainingjob.Status {
	s := trainingjob.Status{
		Phase: trainingjob.Phase(m.Phase.ValueString()), StepsDone: m.StepsDone.ValueInt64(), StepsTotal: m.StepsTotal.ValueInt64(),
		Loss: m.Loss.ValueFloat64Pointer(), WorkersRunning: int(m.WorkersRunning.ValueInt64()), WorkersPending: int(m.WorkersPending.ValueInt64()),
		Preemptions: int(m.Preemptions.ValueInt64()), ModelSHA256: m.ModelSHA256.ValueString(), Message: m.Message.ValueString(),
	}
	for name, value := range m.Metrics.Elements() {
		if number, ok := value.(types.Float64); ok {
			if s.Metrics == nil {
				s.Metrics = map[string]float64{}
			}
			s.Metrics[name] = number.ValueFloat64()
		}
	}
	for _, value := range m.OutputFiles.Elements() {
		if text, ok := value.(types.String); ok {
			s.OutputFiles = append(s.OutputFiles, text.ValueString())
		}
	}
	if s.Phase == "" || s.Phase == trainingjob.PhaseSuspended || s.Phase == trainingjob.PhaseQueued {
		s.Phase, s.Message = trainingjob.PhasePending, "" // the message was the queue's
	}
	return s
}

// observation is the last observation of a job.
type observation struct {
	status trainingjob.Status
	job    *batchv1.Job    // nil when it was not
	group  *kueue.Workload // of the master and the minimum; nil without a queue, and when it cannot be read

	groupPending bool // the job has a group, whose first observation has not arrived
}

// phase is the phase that the master reports, unless the master cannot: a Job that has failed by its own rules has
// failed, whatever the last status was; one that a user has suspended is suspended, and one that its queue does not let
// run is queued.
func (s observation) phase() trainingjob.Phase {
	phase := trainingjob.PhaseOf(s.status, s.job)
	switch {
	case phase.Finished():
		return phase
	case phase == trainingjob.PhaseSuspended, s.group != nil && isInactive(s.group):
		return trainingjob.PhaseSuspended
	case s.group != nil && whyQueued(s.group) != "":
		return trainingjob.PhaseQueued
	default:
		return phase
	}
}

// message is why the job is in its phase, from the component that decides that: the queue, the Job's rules, or the
// master; "" where there is nothing to say.
func (s observation) message() string {
	phase := s.phase()
	if s.group != nil && (phase == trainingjob.PhaseQueued || phase == trainingjob.PhaseSuspended) {
		status := workloadStatusOf(s.group)
		return sentenceOf(status.reason, status.message)
	}
	if phase == trainingjob.PhaseFailed && s.status.Phase != trainingjob.PhaseFailed && s.job != nil {
		if failed := trainingjob.JobCondition(s.job, batchv1.JobFailed); failed != nil {
			return sentenceOf(failed.Reason, failed.Message)
		}
	}
	return s.status.Message
}

// isInactive reports whether a Workload was deactivated, which is how a user suspends a job in a queue.
func isInactive(w *kueue.Workload) bool { return workloadStatusOf(w).phase == workloadInactive }

// readDefinition copies what the cluster holds if it differs in meaning from the state. Otherwise the state keeps the
// user's spelling, and absent values stay absent.
func (m *trainingJobModel) readDefinition(ctx context.Context, live trainingjob.Definition) diag.Diagnostics {
	prior, diags := m.definition(ctx)
	w := &flattener{ctx: ctx, attributes: trainingJobSchema(ctx).Attributes}
	changed := func(was, is any, isUnset bool) bool { return isUnset || !equality.Semantic.DeepEqual(was, is) }

	modelOf := func(d trainingjob.Definition) any { return []string{d.ModelText, d.Job.Model.Name} }
	if changed(modelOf(prior), modelOf(live), false) {
		m.Model = types.ObjectNull(attributesOf(w.attributes["model"].GetType()))
		if live.ModelText != "" || live.Job.Model.Name != "" {
			m.Model = w.object("model", trainedModel{File: textOrNull(live.ModelText), Name: textOrNull(live.Job.Model.Name)})
		}
	}
	if changed(prior.Job.Data, live.Job.Data, false) {
		m.Data = types.ObjectNull(attributesOf(w.attributes["data"].GetType())) // for a command that has its own
		if live.Job.Data != (trainingjob.Data{}) {
			m.Data = flatten[types.Object](w, "data", live.Job.Data)
		}
	}
	if changed(prior.Job.Training, live.Job.Training, false) {
		m.Training = types.ObjectNull(attributesOf(w.attributes["training"].GetType()))
		if live.Job.Training != (trainingjob.Training{}) {
			m.Training = flatten[types.Object](w, "training", live.Job.Training)
		}
	}
	if changed(prior.Master, live.Master, false) {
		m.Master = w.pod("master", live.Master, nil)
	}
	workersOf := func(d trainingjob.Definition) any {
		return []any{d.Min, d.Max, d.MinPriorityClassName, d.Job.Command, d.Job.Elastic, d.Job.Restart, d.Job.ProcessesPerWorker, d.Job.Step, d.Workers}
	}
	if changed(workersOf(prior), workersOf(live), m.Workers.IsNull()) {
		m.Workers = w.pod("workers", live.Workers, w.objectOf(withoutPod(attributesOf(w.attributes["workers"].GetType())), workersModel{
			Min: types.Int64Value(int64(live.Min)), Max: types.Int64Value(int64(live.Max)),
			MinPriorityClassName: textOrNull(live.MinPriorityClassName),
			Command:              w.list(types.StringType, live.Job.Command, len(live.Job.Command)), Elastic: textOrNull(live.Job.Elastic),
			Processes: processesOf(live), Step: countOrNull(int64(live.Job.Step)), RestartInterval: restartIntervalOf(live.Job),
		}).Attributes())
	}
	if changed(prior.Queue.Place(), live.Queue.Place(), false) {
		m.Topology = flatten[types.Object](w, "topology", live.Queue.Place())
	}
	if changed(prior.Queue.Classes(), live.Queue.Classes(), false) {
		m.Queue = flatten[types.Object](w, "queue", live.Queue)
	}
	if changed(prior.Job.Checkpoint, live.Job.Checkpoint, false) {
		m.Checkpoint = flatten[types.Object](w, "checkpoint", live.Job.Checkpoint)
	}
	if changed(prior.Job.Evaluation, live.Job.Evaluation, false) {
		m.Evaluation = flatten[types.Object](w, "evaluation", live.Job.Evaluation)
	}
	if changed(prior.ActiveDeadlineSeconds, live.ActiveDeadlineSeconds, false) {
		m.ActiveDeadlineSeconds = types.Int64PointerValue(live.ActiveDeadlineSeconds)
	}
	if changed(prior.Volumes, live.Volumes, false) {
		m.Volumes = flatten[types.List](w, "volumes", live.Volumes)
	}
	if changed(prior.ImagePullSecrets, live.ImagePullSecrets, false) {
		m.ImagePullSecrets = w.list(types.StringType, live.ImagePullSecrets, len(live.ImagePullSecrets))
	}
	for value, is := range map[*types.String]string{
		&m.Image: live.Image, &m.ImagePullPolicy: string(live.ImagePullPolicy), &m.ServiceAccountName: live.ServiceAccountName, &m.Output: live.Job.Output,
	} {
		if value.ValueString() != is {
			*value = textOrNull(is)
		}
	}
	diags.Append(w.diags...)
	return diags
}

// processesOf is null where it is as it is without being set.
func processesOf(d trainingjob.Definition) types.Int64 {
	if n := d.Job.Processes(); d.Job.OwnGroup() && n != max(1, trainingjob.Accelerators(d.Workers.Resources)) {
		return types.Int64Value(int64(n))
	}
	return types.Int64Null()
}

func restartIntervalOf(j trainingjob.Job) types.Int64 {
	if j.Restart == nil {
		return types.Int64Null()
	}
	return countOrNull(j.Restart.IntervalSeconds)
}

func countOrNull(n int64) types.Int64 {
	if n == 0 {
		return types.Int64Null()
	}
	return types.Int64Value(n)
}
