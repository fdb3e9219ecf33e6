package provider

import (
	"context"
	"maps"
	"strconv"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/task"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/task/accelerator"
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

	for value, of := range map[*types.String]struct{ was, is string }{
		&m.Run: {prior.Run, live.Run}, &m.Setup: {prior.Setup, live.Setup}, &m.CPUs: {prior.CPUs, live.CPUs}, &m.Memory: {prior.Memory, live.Memory},
		&m.ImagePullPolicy: {string(prior.ImagePullPolicy), string(live.ImagePullPolicy)}, &m.PriorityClassName: {prior.PriorityClassName, live.PriorityClassName},
		&m.ServiceAccountName: {prior.ServiceAccountName, live.ServiceAccountName}, &m.RuntimeClassName: {prior.RuntimeClassName, live.RuntimeClassName},
	} {
		if of.was != of.is {
			*value = textOrNull(of.is)
		}
	}
	queue := into[taskQueueModel](&expander{ctx: ctx}, m.Queue)
	if seen := queueSeen(prior.Queue, live.Queue); seen != prior.Queue {
		queue.Name = textOrNull(seen)
	}
	if live.PriorityClass != prior.PriorityClass {
		queue.WorkloadPriorityClass = textOrNull(live.PriorityClass)
	}
	if !m.Queue.IsNull() || !queue.Name.IsNull() || !queue.WorkloadPriorityClass.IsNull() {
		m.Queue = w.object("queue", queue)
	}
	if changed(prior.Topology, live.Topology) {
		m.Topology = flatten[types.Object](w, "topology", live.Topology)
	}
	// A release of the provider may have another default; what runs keeps the image that it was made with.
	if live.Image != prior.Image {
		m.Image = types.StringValue(live.Image)
	}
	if live.TrainerImage != prior.TrainerImage {
		m.TrainerImage = types.StringValue(live.TrainerImage)
	}
	if prior.NumNodes != live.NumNodes {
		m.NumNodes = types.Int64Value(int64(live.NumNodes))
	}
	m.Rejoin = types.BoolValue(live.Rejoin)
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
		m.Secrets = flatten[types.Map](w, "secrets", live.Secrets)
	}
	if imported {
		m.SecretsWOVersion = types.Int64PointerValue(live.SecretsVersion)
	}
	if changed(prior.Volumes, live.Volumes) {
		m.Volumes = flatten[types.List](w, "volumes", live.Volumes)
	}
	if changed(prior.ImagePullSecrets, live.ImagePullSecrets) {
		m.ImagePullSecrets = w.list(types.StringType, live.ImagePullSecrets, len(live.ImagePullSecrets))
	}
	if changed(prior.Tolerations, live.Tolerations) {
		m.Tolerations = flatten[types.List](w, "tolerations", live.Tolerations)
	}
	if changed(prior.TerminationGracePeriodSeconds, live.TerminationGracePeriodSeconds) {
		m.TerminationGracePeriodSeconds = types.Int64PointerValue(live.TerminationGracePeriodSeconds)
	}
	if changed(prior.ActiveDeadlineSeconds, live.ActiveDeadlineSeconds) {
		m.ActiveDeadlineSeconds = types.Int64PointerValue(live.ActiveDeadlineSeconds)
	}
	if changed(prior.SecurityContext, live.SecurityContext) {
		m.SecurityContext = flatten[types.Object](w, "security_context", live.SecurityContext)
	}
	if changed(prior.InitContainers, live.InitContainers) {
		m.InitContainers = flatten[types.List](w, "init_containers", live.InitContainers)
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

func (w *flattener) acceleratorLabels(table map[string]accelerator.Definition) types.Map {
	models := map[string]acceleratorModel{}
	for name, d := range table {
		topologies := map[string]string{}
		for count, topology := range d.Topologies {
			topologies[strconv.Itoa(count)] = topology
		}
		models[name] = acceleratorModel{Resource: textOrNull(d.Resource), Labels: w.lists(d.Labels), Topologies: w.texts(topologies)}
	}
	return w.mapOf(types.ObjectType{AttrTypes: attributesOf(w.attributes["accelerator_labels"].GetType())}, models, len(models))
}
