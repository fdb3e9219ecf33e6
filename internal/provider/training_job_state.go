package provider

import (
	"context"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework-jsontypes/jsontypes"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
	"github.com/elastic-training/terraform-provider-elastic/internal/kueue"
	"github.com/elastic-training/terraform-provider-elastic/internal/provider/quantity"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainingjob"
)

// observe takes over what the master reports, and what the Job and its queue say where the master cannot.
func (m *observedModel) observe(ctx context.Context, seen sighting) diag.Diagnostics {
	var diags, more diag.Diagnostics
	status := seen.status
	m.Phase = types.StringValue(string(seen.phase()))
	m.StepsDone, m.StepsTotal = types.Int64Value(status.StepsDone), types.Int64Value(status.StepsTotal)
	m.Loss = types.Float64PointerValue(status.Loss)
	m.WorkersRunning, m.WorkersPending = types.Int64Value(int64(status.WorkersRunning)), types.Int64Value(int64(status.WorkersPending))
	m.Preemptions = types.Int64Value(int64(status.Preemptions))
	m.ModelSHA256 = types.StringNull()
	if status.ModelSHA256 != "" {
		m.ModelSHA256 = types.StringValue(status.ModelSHA256)
	}
	m.Metrics = types.MapNull(types.Float64Type)
	if len(status.Metrics) > 0 {
		m.Metrics, more = types.MapValueFrom(ctx, types.Float64Type, status.Metrics)
		diags.Append(more...)
	}
	m.OutputFiles = types.ListNull(types.StringType)
	if len(status.OutputFiles) > 0 {
		m.OutputFiles, more = types.ListValueFrom(ctx, types.StringType, status.OutputFiles)
		diags.Append(more...)
	}
	return diags
}

// sighting is what was seen of a job last.
type sighting struct {
	status trainingjob.Status
	job    *batchv1.Job    // nil when it was not
	group  *kueue.Workload // of the master and the floor; nil without a queue, and when it cannot be read
}

// phase is the master's word, unless it cannot speak: a Job that has failed by its own rules has failed, whatever the
// last status was, and one that its queue does not let run is queued.
func (s sighting) phase() trainingjob.Phase {
	switch {
	case s.status.Phase.Finished():
		return s.status.Phase
	case s.job != nil && jobCondition(s.job, batchv1.JobFailed) != nil:
		return trainingjob.PhaseFailed
	case s.group != nil && whyQueued(s.group) != "":
		return trainingjob.PhaseQueued
	default:
		return s.status.Phase
	}
}

func jobCondition(job *batchv1.Job, kind batchv1.JobConditionType) *batchv1.JobCondition {
	for i, c := range job.Status.Conditions {
		if c.Type == kind && c.Status == corev1.ConditionTrue {
			return &job.Status.Conditions[i]
		}
	}
	return nil
}

// readMetadata takes over the Job's labels and annotations that are the user's.
func (m *trainingJobModel) readMetadata(client *cluster.Client, job *batchv1.Job) diag.Diagnostics {
	var diags, more diag.Diagnostics
	users := &metav1.ObjectMeta{Labels: maps.Clone(job.Labels), Annotations: maps.Clone(job.Annotations), ManagedFields: job.ManagedFields}
	for _, entries := range []map[string]string{users.Labels, users.Annotations} {
		maps.DeleteFunc(entries, func(key, _ string) bool { return trainingjob.ReservedLabel(key) })
	}
	m.Labels, more = ownedEntries(client, users, "labels", m.Labels)
	diags.Append(more...)
	m.Annotations, more = ownedEntries(client, users, "annotations", m.Annotations)
	diags.Append(more...)
	return diags
}

// readDefinition takes over what the cluster holds where it means something else than the state. Where it means the
// same the state keeps the user's spelling, and absent stays absent.
func (m *trainingJobModel) readDefinition(ctx context.Context, live trainingjob.Definition) diag.Diagnostics {
	prior, diags := m.definition(ctx)
	w := &writer{ctx: ctx, types: trainingJobSchema(ctx).Type().(basetypes.ObjectType).AttrTypes} //nolint:forcetypeassert // a schema's type is an object
	changed := func(was, is any, isUnset bool) bool { return isUnset || !equality.Semantic.DeepEqual(was, is) }

	modelOf := func(d trainingjob.Definition) any { return []string{d.ModelText, d.Job.Model.Name} }
	if changed(modelOf(prior), modelOf(live), m.Model.IsNull()) {
		m.Model = w.object("model", trainedModel{File: textOrNull(live.ModelText), Name: textOrNull(live.Job.Model.Name)})
	}
	if changed(prior.Job.Data, live.Job.Data, m.Data.IsNull()) {
		m.Data = w.object("data", dataModel{
			Training: types.StringValue(live.Job.Data.Training), Validation: textOrNull(live.Job.Data.Validation),
			Format: types.StringValue(live.Job.Data.Format), Codec: types.StringValue(live.Job.Data.Codec),
			RecordsPerTask: types.Int64Value(int64(live.Job.Data.RecordsPerTask)), CSV: w.csv(live.Job.Data.CSV),
		})
	}
	if changed(prior.Job.Training, live.Job.Training, m.Training.IsNull()) {
		m.Training = w.object("training", runModel{
			Epochs: types.Int64Value(int64(live.Job.Training.Epochs)), MinibatchSize: types.Int64Value(int64(live.Job.Training.MinibatchSize)),
			GradsToWait: types.Int64Value(int64(live.Job.Training.GradsToWait)), Seed: types.Int64Value(int64(live.Job.Training.Seed)), //nolint:gosec // written from an int64
			LearningRate: types.Float64PointerValue(live.Job.Training.LearningRate), Aggregation: textOrNull(live.Job.Training.Aggregation),
		})
	}
	if changed(prior.Master, live.Master, false) {
		m.Master = w.object("master", w.pod("master", live.Master))
	}
	workersOf := func(d trainingjob.Definition) any {
		return []any{d.Min, d.Max, d.FloorPriorityClassName, d.Job.Command, d.Workers}
	}
	if changed(workersOf(prior), workersOf(live), m.Workers.IsNull()) {
		m.Workers = w.object("workers", workersModel{
			Min: types.Int64Value(int64(live.Min)), Max: types.Int64Value(int64(live.Max)),
			FloorPriorityClassName: textOrNull(live.FloorPriorityClassName),
			Command:                w.list(types.StringType, live.Job.Command, len(live.Job.Command)), podModel: w.pod("workers", live.Workers),
		})
	}
	if changed(prior.Queue, live.Queue, false) {
		m.Queue = types.ObjectNull(attributesOf(w.types["queue"]))
		if q := live.Queue; q != nil {
			m.Queue = w.object("queue", jobQueueModel{
				Name: types.StringValue(q.Name), PriorityClass: textOrNull(q.PriorityClass), FloorPriorityClass: textOrNull(q.FloorPriorityClass),
			})
		}
	}
	if changed(prior.Job.Checkpoint, live.Job.Checkpoint, false) {
		m.Checkpoint = types.ObjectNull(attributesOf(w.types["checkpoint"]))
		if c := live.Job.Checkpoint; c != nil {
			value := checkpointModel{Steps: types.Int64Null(), Directory: textOrNull(c.Directory)}
			if c.Steps > 0 {
				value.Steps = types.Int64Value(c.Steps)
			}
			if c.KeepMax != nil {
				value.KeepMax = types.Int64Value(int64(*c.KeepMax))
			}
			m.Checkpoint = w.object("checkpoint", value)
		}
	}
	if changed(prior.Job.Evaluation, live.Job.Evaluation, false) {
		m.Evaluation = types.ObjectNull(attributesOf(w.types["evaluation"]))
		if e := live.Job.Evaluation; e != nil {
			value := evaluationModel{Steps: types.Int64Null(), Epochs: types.Int64Null()}
			for number, is := range map[*types.Int64]int64{&value.Steps: e.Steps, &value.Epochs: e.Epochs} {
				if is > 0 {
					*number = types.Int64Value(is)
				}
			}
			m.Evaluation = w.object("evaluation", value)
		}
	}
	if changed(prior.Volumes, live.Volumes, false) {
		m.Volumes = w.volumes(live.Volumes)
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

// writer turns plain values into framework ones, absent for empty.
type writer struct {
	ctx   context.Context //nolint:containedctx // lives as long as one conversion
	types map[string]attr.Type
	diags diag.Diagnostics
}

// object is the value of the attribute with that name; its type is the schema's.
func (w *writer) object(attribute string, value any) types.Object {
	return w.objectOf(attributesOf(w.types[attribute]), value)
}

func (w *writer) objectOf(attributes map[string]attr.Type, value any) types.Object {
	object, diags := types.ObjectValueFrom(w.ctx, attributes, value)
	w.diags.Append(diags...)
	return object
}

func attributesOf(t attr.Type) map[string]attr.Type {
	if list, ok := t.(attr.TypeWithElementType); ok {
		t = list.ElementType()
	}
	object, ok := t.(attr.TypeWithAttributeTypes)
	if !ok {
		return nil
	}
	return object.AttributeTypes()
}

func (w *writer) list(element attr.Type, values any, length int) types.List {
	if length == 0 {
		return types.ListNull(element)
	}
	list, diags := types.ListValueFrom(w.ctx, element, values)
	w.diags.Append(diags...)
	return list
}

func (w *writer) texts(values map[string]string) types.Map {
	if len(values) == 0 {
		return types.MapNull(types.StringType)
	}
	value, diags := types.MapValueFrom(w.ctx, types.StringType, values)
	w.diags.Append(diags...)
	return value
}

func (w *writer) csv(c *trainingjob.CSV) types.Object {
	attributes := attributesOf(attributesOf(w.types["data"])["csv"])
	if c == nil {
		return types.ObjectNull(attributes)
	}
	lists := func(values map[string][]string) types.Map {
		element := types.ListType{ElemType: types.StringType}
		if len(values) == 0 {
			return types.MapNull(element)
		}
		value, diags := types.MapValueFrom(w.ctx, element, values)
		w.diags.Append(diags...)
		return value
	}
	return w.objectOf(attributes, csvModel{Columns: lists(c.Columns), Words: lists(c.Words)})
}

func (w *writer) pod(attribute string, s trainingjob.PodSettings) podModel {
	attributes := attributesOf(w.types[attribute])
	m := podModel{
		PriorityClassName:             textOrNull(s.PriorityClassName),
		Resources:                     types.ObjectNull(attributesOf(attributes["resources"])),
		NodeSelector:                  w.texts(s.NodeSelector),
		Affinity:                      w.json(s.Affinity, s.Affinity == nil),
		Env:                           w.texts(s.Env),
		Labels:                        w.texts(s.Labels),
		Annotations:                   w.texts(s.Annotations),
		TerminationGracePeriodSeconds: types.Int64PointerValue(s.TerminationGracePeriodSeconds),
		RuntimeClassName:              textOrNull(s.RuntimeClassName),
		PodOverrides:                  w.json(s.PodOverrides, len(s.PodOverrides) == 0),
	}
	if s.Resources != nil {
		m.Resources = w.objectOf(attributesOf(attributes["resources"]), resourcesModel{
			Requests: w.amounts(s.Resources.Requests), Limits: w.amounts(s.Resources.Limits),
		})
	}
	m.Tolerations = w.tolerations(attributes["tolerations"], s.Tolerations)
	return m
}

func (w *writer) tolerations(list attr.Type, tolerations []corev1.Toleration) types.List {
	var models []tolerationModel
	for _, t := range tolerations {
		models = append(models, tolerationModel{
			Key: textOrNull(t.Key), Operator: textOrNull(string(t.Operator)), Value: textOrNull(t.Value),
			Effect: textOrNull(string(t.Effect)), TolerationSeconds: types.Int64PointerValue(t.TolerationSeconds),
		})
	}
	return w.list(types.ObjectType{AttrTypes: attributesOf(list)}, models, len(models))
}

func (w *writer) amounts(list corev1.ResourceList) types.Map {
	if len(list) == 0 {
		return types.MapNull(quantity.Type{})
	}
	values := make(map[string]attr.Value, len(list))
	for name, amount := range list {
		values[string(name)] = quantity.New(amount.String())
	}
	value, diags := types.MapValue(quantity.Type{}, values)
	w.diags.Append(diags...)
	return value
}

func (w *writer) json(value any, absent bool) jsontypes.Normalized {
	if absent {
		return jsontypes.NewNormalizedNull()
	}
	text, err := canonicalJSON(value)
	if err != nil {
		w.diags.AddError("Cannot write JSON", err.Error())
	}
	return jsontypes.NewNormalizedValue(string(text))
}

func (w *writer) volumes(volumes []trainingjob.Volume) types.List {
	element := attributesOf(w.types["volumes"])
	var models []jobVolumeModel
	for _, v := range volumes {
		models = append(models, jobVolumeModel{volumeModel: w.volume(element, v), Mount: types.StringValue(v.Mount)})
	}
	return w.list(types.ObjectType{AttrTypes: element}, models, len(models))
}

func (w *writer) volume(attributes map[string]attr.Type, v trainingjob.Volume) volumeModel {
	m := volumeModel{
		Name: types.StringValue(v.Name), MountPath: types.StringValue(v.MountPath), PVC: textOrNull(v.PVC),
		HostPath: textOrNull(v.HostPath), ConfigMap: textOrNull(v.ConfigMap),
		EmptyDir: types.ObjectNull(attributesOf(attributes["empty_dir"])), ReadOnly: types.BoolPointerValue(v.ReadOnly),
	}
	if v.EmptyDir != nil {
		dir := emptyDirModel{Medium: textOrNull(string(v.EmptyDir.Medium)), SizeLimit: quantity.Null()}
		if v.EmptyDir.SizeLimit != nil {
			dir.SizeLimit = quantity.New(v.EmptyDir.SizeLimit.String())
		}
		m.EmptyDir = w.objectOf(attributesOf(attributes["empty_dir"]), dir)
	}
	return m
}

func textOrNull(text string) types.String {
	if text == "" {
		return types.StringNull()
	}
	return types.StringValue(text)
}
