package provider

import (
	"context"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/task"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
)

// observe copies the task's progress. The content of a Workload stays when it is gone: Kueue may remove it some time
// after the end.
func (m *taskObservedModel) observe(p taskProgress) {
	m.Phase, m.Reason, m.Restarts = types.StringValue(p.phase), textOrNull(p.reason), types.Int64Value(p.restarts)
	m.Preemptions = types.Int64Value(max(p.preemptions, m.Preemptions.ValueInt64()))
	if p.workload != "" || !taskFinished(p.phase) || m.Workload.IsUnknown() {
		m.Workload = textOrNull(p.workload)
	}
}

// withoutLabels is a Job without the labels that the file sets and that have the file's values: they belong to no
// attribute, unless the attribute sets them too.
func withoutLabels(job *batchv1.Job, file map[string]string, attribute types.Map) *batchv1.Job {
	job = job.DeepCopy()
	maps.DeleteFunc(job.Labels, func(key, value string) bool {
		inFile, ok := file[key]
		_, configured := attribute.Elements()[key]
		return ok && inFile == value && !configured
	})
	return job
}

// readTask copies what the cluster holds if it differs in meaning from the state. Otherwise the state keeps the user's
// spelling, and values of the file and defaults stay absent.
func (m *taskModel) readTask(ctx context.Context, live task.Task, imported bool) diag.Diagnostics {
	a, diags := m.spec(ctx)
	prior := a.Task
	w := &flattener{ctx: ctx, attributes: taskSchema(ctx).Attributes}
	changed := func(was, is any) bool { return !equality.Semantic.DeepEqual(was, is) }

	is := fieldsIn(&live)
	for name, was := range fieldsIn(&prior) {
		_, isDefined := m.defined[name]
		unlikeItsField := name == "queue" || name == "accelerators" || name == "recovery" // below
		if isDefined && !unlikeItsField && changed(was, is[name]) {
			m.defined[name] = w.field(w.attributes[name], is[name])
		}
	}
	queue := into[taskQueueModel](&expander{ctx: ctx}, m.queue())
	if seen := queueSeen(prior.Queue, live.Queue); seen != prior.Queue {
		queue.Name = textOrNull(seen)
	}
	if live.PriorityClass != prior.PriorityClass {
		queue.WorkloadPriorityClass = textOrNull(live.PriorityClass)
	}
	if !m.queue().IsNull() || !queue.Name.IsNull() || !queue.WorkloadPriorityClass.IsNull() {
		m.defined["queue"] = w.object("queue", queue)
	}
	if prior.Ordered != live.Ordered || changed(prior.Accelerators, live.Accelerators) {
		m.defined["accelerators"] = acceleratorsValue(live.Accelerators, live.Ordered)
	}
	if changed(prior.Recovery, live.Recovery) {
		m.defined["recovery"] = w.recovery(live.Recovery)
	}
	if imported {
		m.defined["secrets_wo_version"] = types.Int64PointerValue(live.SecretsVersion)
	}
	diags.Append(w.diags...)
	return diags
}

// queueSeen is the queue of a task from the user's view: it is no change if Kueue has put a task into the namespace's
// default queue.
func queueSeen(configured, live string) string {
	if configured == "" && live == trainingjob.DefaultQueue {
		return ""
	}
	return live
}

func (w *flattener) recovery(r task.Recovery) types.Object {
	if r.MaxRestartsOnErrors == 0 && len(r.RecoverOnExitCodes) == 0 {
		return types.ObjectNull(attributesOf(w.attributes["recovery"].GetType()))
	}
	m := recoveryModel{
		MaxRestartsOnErrors: types.Int64Value(int64(r.MaxRestartsOnErrors)),
		RecoverOnExitCodes:  w.list(types.NumberType, r.RecoverOnExitCodes, len(r.RecoverOnExitCodes)),
	}
	return w.object("recovery", m)
}
