package provider

import (
	"cmp"
	"context"
	"maps"
	"strconv"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
	"github.com/elastic-training/terraform-provider-elastic/internal/task"
	"github.com/elastic-training/terraform-provider-elastic/internal/task/accelerator"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainingjob"
)

// observe takes over how the task goes. What a Workload said stays known when it is gone: Kueue may remove it some time
// after the end.
func (m *taskObservedModel) observe(p taskProgress) {
	m.Phase, m.Reason, m.Restarts = types.StringValue(p.phase), textOrNull(p.reason), types.Int64Value(p.restarts)
	m.Preemptions = types.Int64Value(max(p.preemptions, m.Preemptions.ValueInt64()))
	if p.workload != "" || !taskFinished(p.phase) || m.Workload.IsUnknown() {
		m.Workload = textOrNull(p.workload)
	}
}

// readMetadata takes over the Job's labels and annotations that are the user's. Those that the file says, and that are
// as it says, are no attribute's.
func (m *taskModel) readMetadata(client *cluster.Client, job *batchv1.Job, file task.Task) diag.Diagnostics {
	var diags, more diag.Diagnostics
	users := &metav1.ObjectMeta{Labels: maps.Clone(job.Labels), Annotations: maps.Clone(job.Annotations), ManagedFields: job.ManagedFields}
	said := m.Labels.Elements()
	maps.DeleteFunc(users.Labels, func(key, value string) bool {
		inFile, ok := file.Labels[key]
		_, attribute := said[key]
		return task.ReservedLabel(key) || ok && inFile == value && !attribute
	})
	maps.DeleteFunc(users.Annotations, func(key, _ string) bool { return task.ReservedLabel(key) })
	m.Labels, more = ownedEntries(client, users, "labels", m.Labels)
	diags.Append(more...)
	m.Annotations, more = ownedEntries(client, users, "annotations", m.Annotations)
	diags.Append(more...)
	return diags
}

// readTask takes over what the cluster holds where it means something else than the state. Where it means the same the
// state keeps the user's spelling, and what the file says or has a default stays absent.
func (m *taskModel) readTask(ctx context.Context, live task.Task, imported bool) diag.Diagnostics {
	a, diags := m.asked(ctx)
	prior := a.Task
	w := &writer{ctx: ctx, types: taskSchema(ctx).Type().(basetypes.ObjectType).AttrTypes} //nolint:forcetypeassert // a schema's type is an object
	changed := func(was, is any) bool { return !equality.Semantic.DeepEqual(was, is) }

	for value, of := range map[*types.String]struct{ was, is string }{
		&m.Run: {prior.Run, live.Run}, &m.Setup: {prior.Setup, live.Setup}, &m.CPUs: {prior.CPUs, live.CPUs}, &m.Memory: {prior.Memory, live.Memory},
		&m.Queue: {prior.Queue, queueSeen(prior.Queue, live.Queue)}, &m.PriorityClass: {prior.PriorityClass, live.PriorityClass},
		&m.ImagePullPolicy: {string(prior.ImagePullPolicy), string(live.ImagePullPolicy)}, &m.PriorityClassName: {prior.PriorityClassName, live.PriorityClassName},
		&m.ServiceAccountName: {prior.ServiceAccountName, live.ServiceAccountName}, &m.RuntimeClassName: {prior.RuntimeClassName, live.RuntimeClassName},
	} {
		if of.was != of.is {
			*value = textOrNull(of.is)
		}
	}
	// A release of the provider may have another default; what runs keeps the image that it was made with.
	if image := cmp.Or(prior.Image, task.DefaultImage); live.Image != image && (imported || prior.Image != "") {
		m.Image = types.StringValue(live.Image)
	}
	if prior.TrainerImage != "" && live.TrainerImage != prior.TrainerImage {
		m.TrainerImage = types.StringValue(live.TrainerImage)
	}
	if prior.NumNodes != live.NumNodes {
		m.NumNodes = types.Int64Value(int64(live.NumNodes))
	}
	for value, of := range map[*types.Map]struct{ was, is map[string]string }{
		&m.Envs: {prior.Envs, live.Envs}, &m.Workdir: {prior.Workdir, live.Workdir}, &m.NodeSelector: {prior.NodeSelector, live.NodeSelector},
	} {
		if changed(of.was, of.is) {
			*value = w.texts(of.is)
		}
	}
	if prior.Ordered != live.Ordered || changed(prior.Accelerators, live.Accelerators) {
		m.Accelerators = acceleratorsValue(live.Accelerators, live.Ordered)
	}
	if changed(prior.AcceleratorLabels, live.AcceleratorLabels) {
		m.AcceleratorLabels = w.acceleratorLabels(live.AcceleratorLabels)
	}
	if changed(prior.Recovery, live.Recovery) {
		m.Recovery = w.recovery(live.Recovery)
	}
	if changed(prior.Secrets, live.Secrets) {
		m.Secrets = w.secrets(live.Secrets)
	}
	if changed(prior.Volumes, live.Volumes) {
		m.Volumes = w.taskVolumes(live.Volumes)
	}
	if changed(prior.ImagePullSecrets, live.ImagePullSecrets) {
		m.ImagePullSecrets = w.list(types.StringType, live.ImagePullSecrets, len(live.ImagePullSecrets))
	}
	if changed(prior.Tolerations, live.Tolerations) {
		m.Tolerations = w.tolerations(w.types["tolerations"], live.Tolerations)
	}
	if changed(prior.TerminationGracePeriodSeconds, live.TerminationGracePeriodSeconds) {
		m.TerminationGracePeriodSeconds = types.Int64PointerValue(live.TerminationGracePeriodSeconds)
	}
	if changed(prior.TTLSecondsAfterFinished, live.TTLSecondsAfterFinished) {
		m.TTLSecondsAfterFinished = types.Int64Null()
		if live.TTLSecondsAfterFinished != nil {
			m.TTLSecondsAfterFinished = types.Int64Value(int64(*live.TTLSecondsAfterFinished))
		}
	}
	if string(prior.PodOverrides) != string(live.PodOverrides) {
		m.PodOverrides = w.json(live.PodOverrides, len(live.PodOverrides) == 0)
	}
	diags.Append(w.diags...)
	return diags
}

// queueSeen is the queue of a task as its user sees it: that Kueue has put one into the namespace's default queue is
// nobody's change.
func queueSeen(asked, live string) string {
	if asked == "" && live == trainingjob.DefaultQueue {
		return ""
	}
	return live
}

// defaults are for an imported task: what the cluster does not hold is as if it were not configured.
func (m *taskModel) defaults() {
	if m.WaitFor.IsNull() {
		m.WaitFor = types.StringValue(waitForCreated)
	}
	if m.OnFinished.IsNull() {
		m.OnFinished = types.StringValue(onFinishedKeep)
	}
	if m.FailOnError.IsNull() {
		m.FailOnError = types.BoolValue(false)
	}
}

func (w *writer) recovery(r task.Recovery) types.Object {
	if r.MaxRestartsOnErrors == 0 && len(r.RecoverOnExitCodes) == 0 {
		return types.ObjectNull(attributesOf(w.types["recovery"]))
	}
	m := recoveryModel{
		MaxRestartsOnErrors: types.Int64Value(int64(r.MaxRestartsOnErrors)),
		RecoverOnExitCodes:  w.list(types.Int64Type, r.RecoverOnExitCodes, len(r.RecoverOnExitCodes)),
	}
	return w.object("recovery", m)
}

func (w *writer) secrets(secrets map[string]task.SecretKey) types.Map {
	kind := types.ObjectType{AttrTypes: attributesOf(w.types["secrets"])}
	if len(secrets) == 0 {
		return types.MapNull(kind)
	}
	values := map[string]attr.Value{}
	for name, key := range secrets {
		values[name] = w.objectOf(kind.AttrTypes, secretKeyModel{SecretName: types.StringValue(key.SecretName), Key: types.StringValue(key.Key)})
	}
	value, diags := types.MapValue(kind, values)
	w.diags.Append(diags...)
	return value
}

func (w *writer) acceleratorLabels(table map[string]accelerator.Definition) types.Map {
	kind := types.ObjectType{AttrTypes: attributesOf(w.types["accelerator_labels"])}
	if len(table) == 0 {
		return types.MapNull(kind)
	}
	values := map[string]attr.Value{}
	for name, d := range table {
		topologies := map[string]string{}
		for count, topology := range d.Topologies {
			topologies[strconv.Itoa(count)] = topology
		}
		lists := types.ListType{ElemType: types.StringType}
		m := acceleratorModel{Resource: textOrNull(d.Resource), Labels: types.MapNull(lists), Topologies: w.texts(topologies)}
		if len(d.Labels) > 0 {
			var diags diag.Diagnostics
			m.Labels, diags = types.MapValueFrom(w.ctx, lists, d.Labels)
			w.diags.Append(diags...)
		}
		values[name] = w.objectOf(kind.AttrTypes, m)
	}
	value, diags := types.MapValue(kind, values)
	w.diags.Append(diags...)
	return value
}

func (w *writer) taskVolumes(volumes []task.Volume) types.List {
	element := attributesOf(w.types["volumes"])
	var models []volumeModel
	for _, v := range volumes {
		models = append(models, w.volume(element, v))
	}
	return w.list(types.ObjectType{AttrTypes: element}, models, len(models))
}
