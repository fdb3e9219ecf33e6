package provider

import (
	"context"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
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
	was, is := jobFields(&prior), jobFields(&live)
	was["queue"], is["queue"] = prior.Queue.Classes(), live.Queue.Classes()
	was["topology"], is["topology"] = prior.Queue.Place(), live.Queue.Place()
	changed := map[string]bool{"workers": m.at("workers").IsNull()}
	for name := range is {
		attribute, _, _ := strings.Cut(name, ".")
		changed[attribute] = changed[attribute] || !equality.Semantic.DeepEqual(was[name], is[name])
	}
	live.Job.ProcessesPerWorker = processesOf(live)
	for attribute, differs := range changed {
		if differs {
			m.defined[attribute] = w.ofJob(attribute, is)
		}
	}
	diags.Append(w.diags...)
	return diags
}

// ofJob is the value of an attribute for the fields of a definition; those of attributes in it are by "workers.min".
func (w *flattener) ofJob(attribute string, fields map[string]any) attr.Value {
	own, isSet := map[string]attr.Value{}, false
	for name, field := range fields {
		if inner, isInner := strings.CutPrefix(name, attribute+"."); isInner {
			own[inner] = w.field(attributesWithin(w.attributes[attribute])[inner], field)
			isSet = isSet || !own[inner].IsNull()
		}
	}
	settings, isPod := fields[attribute].(*trainingjob.PodSettings)
	switch {
	case isPod:
		return w.pod(attribute, *settings, own)
	case isSet:
		return types.ObjectValueMust(attributesOf(w.attributes[attribute].GetType()), own)
	default:
		return w.field(w.attributes[attribute], fields[attribute])
	}
}

// processesOf is 0 where it is as it is without being set.
func processesOf(d trainingjob.Definition) int {
	if n := d.Job.Processes(); d.Job.OwnGroup() && n != max(1, trainingjob.Accelerators(d.Workers.Resources)) {
		return n
	}
	return 0
}
