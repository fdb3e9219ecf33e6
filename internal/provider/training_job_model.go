package provider

import (
	"cmp"
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"
	corev1 "k8s.io/api/core/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/dataset"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	_ "github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob/strategicmerge" // for pod_overrides
)

// trainingJobModel is the resource's value in configuration, plan and state.
type trainingJobModel struct {
	jobModel
	Image      types.String `tfsdk:"image"`
	Model      types.Object `tfsdk:"model"`
	Data       types.Object `tfsdk:"data"`
	Training   types.Object `tfsdk:"training"`
	Master     types.Object `tfsdk:"master"`
	Workers    types.Object `tfsdk:"workers"`
	Queue      types.Object `tfsdk:"queue"`
	Topology   types.Object `tfsdk:"topology"`
	Output     types.String `tfsdk:"output"`
	Checkpoint types.Object `tfsdk:"checkpoint"`
	Evaluation types.Object `tfsdk:"evaluation"`

	MasterPriorityCheck types.String `tfsdk:"master_priority_check"`
	observedModel
}

// observedModel holds the attributes that the master reports.
type observedModel struct {
	Phase          types.String  `tfsdk:"phase"`
	Message        types.String  `tfsdk:"message"`
	StepsDone      types.Int64   `tfsdk:"steps_done"`
	StepsTotal     types.Int64   `tfsdk:"steps_total"`
	Loss           types.Float64 `tfsdk:"loss"`
	Metrics        types.Map     `tfsdk:"metrics"`
	WorkersRunning types.Int64   `tfsdk:"workers_running"`
	WorkersPending types.Int64   `tfsdk:"workers_pending"`
	Preemptions    types.Int64   `tfsdk:"preemptions"`
	ModelSHA256    types.String  `tfsdk:"model_sha256"`
	OutputFiles    types.List    `tfsdk:"output_files"`
}

type trainedModel struct {
	File types.String `tfsdk:"content"`
	Name types.String `tfsdk:"name"`
}

// workersModel holds what is not of the pods alone.
type workersModel struct {
	Min                  types.Int64  `tfsdk:"min"`
	Max                  types.Int64  `tfsdk:"max"`
	MinPriorityClassName types.String `tfsdk:"min_priority_class_name"`
	Command              types.List   `tfsdk:"command"`
	Elastic              types.String `tfsdk:"elastic"`
	Processes            types.Int64  `tfsdk:"processes"`
	Step                 types.Int64  `tfsdk:"step"`
	RestartInterval      types.Int64  `tfsdk:"restart_interval_seconds"`
}

func (m *trainingJobModel) subject() subject { return m.subjectOf("training_job") }

// definition is the training job that the model describes. Unknown values, of which there are some while Terraform
// validates, count as absent; absent values with a default have it.
func (m *trainingJobModel) definition(ctx context.Context) (trainingjob.Definition, diag.Diagnostics) {
	r := &expander{ctx: ctx}
	trained, workers := into[trainedModel](r, m.Model), r.workers(m.Workers)
	d := trainingjob.Definition{
		Job: trainingjob.Job{
			Name: m.Name.ValueString(), Namespace: namespaceOf(m.Namespace),
			Model:  trainingjob.Model{Name: trained.Name.ValueString()},
			Output: m.Output.ValueString(), Checkpoint: r.checkpoint(m.Checkpoint), Evaluation: r.evaluation(m.Evaluation),
			Command: r.words(workers.Command), Elastic: elasticOf(workers.Elastic), Restart: workers.restart(),
			ProcessesPerWorker: countOrZero(workers.Processes), Step: countOrZero(workers.Step),
		},
		ModelText: trained.File.ValueString(),
		Labels:    r.texts(m.Labels), Annotations: r.texts(m.Annotations),
		Min: orOne(workers.Min), Max: int(workers.Max.ValueInt64()),
		MinPriorityClassName:  workers.MinPriorityClassName.ValueString(),
		Queue:                 r.queue(m.Queue, m.Topology),
		ActiveDeadlineSeconds: integerOrNil(m.ActiveDeadlineSeconds),
		Settings: trainingjob.Settings{
			Image: m.Image.ValueString(), ImagePullPolicy: corev1.PullPolicy(m.ImagePullPolicy.ValueString()),
			ImagePullSecrets: r.words(m.ImagePullSecrets), ServiceAccountName: m.ServiceAccountName.ValueString(),
			Master: r.pod(path.Root("master"), m.Master), Workers: r.pod(path.Root("workers"), m.Workers),
		},
	}
	r.decode(path.Root("volumes"), m.Volumes, &d.Volumes)
	for i := range d.Volumes {
		d.Volumes[i].Mount = cmp.Or(d.Volumes[i].Mount, trainingjob.MountAll)
	}
	if !m.Data.IsNull() { // unless the command has its own
		d.Job.Data.Format, d.Job.Data.Codec = dataset.DefaultFormat, dataset.BytesCodec
		r.decode(path.Root("data"), m.Data, &d.Job.Data)
		if c := d.Job.Data.CSV; c != nil && len(c.Columns)+len(c.Words) == 0 {
			d.Job.Data.CSV = nil
		}
	}
	if !m.Training.IsNull() {
		d.Job.Training = trainingjob.Training{Epochs: 1, GradsToWait: trainingjob.DefaultGradsToWait, Seed: 1}
		r.decode(path.Root("training"), m.Training, &d.Job.Training)
	}
	if n := trainingjob.Accelerators(d.Workers.Resources); n > 1 && d.Job.OwnGroup() && workers.Processes.IsNull() {
		d.Job.ProcessesPerWorker = n
	}
	return d, r.diags
}

// workers are the attributes that are not of the pods alone; those of a null or unknown object are null.
func (r *expander) workers(object types.Object) workersModel {
	if object.IsNull() || object.IsUnknown() {
		return workersModel{}
	}
	own, diags := types.ObjectValue(withoutPod(object.AttributeTypes(r.ctx)), withoutPod(object.Attributes()))
	r.diags.Append(diags...)
	return into[workersModel](r, own)
}

// restart is what only a command that is restarted has; nil if all of it is as it is by default.
func (m workersModel) restart() *trainingjob.Restart {
	return trainingjob.Restart{IntervalSeconds: m.RestartInterval.ValueInt64()}.Canonical()
}

// countOrZero is as in job.json, where 1 is left out.
func countOrZero(value types.Int64) int {
	if n := int(value.ValueInt64()); n != 1 {
		return n
	}
	return 0
}

// elasticOf is the mode as in job.json, where the usual one is left out.
func elasticOf(value types.String) string {
	if value.ValueString() == trainingjob.ElasticGradients {
		return ""
	}
	return value.ValueString()
}

// queue is nil if the attribute is not set; ValidateConfig refuses a topology without one.
func (r *expander) queue(object, topology types.Object) *trainingjob.Queue {
	if object.IsNull() || object.IsUnknown() {
		return nil
	}
	q := &trainingjob.Queue{Topology: r.topology(topology)}
	r.decode(path.Root("queue"), object, q)
	return q
}

// checkpoint is nil if the attribute is not set: job.json then has no such field either.
func (r *expander) checkpoint(object types.Object) *trainingjob.Checkpoint {
	var c trainingjob.Checkpoint
	if r.decode(path.Root("checkpoint"), object, &c); c == (trainingjob.Checkpoint{}) {
		return nil
	}
	return &c
}

// evaluation is nil if the attribute is not set, as checkpoint is.
func (r *expander) evaluation(object types.Object) *trainingjob.Evaluation {
	var e trainingjob.Evaluation
	if r.decode(path.Root("evaluation"), object, &e); e == (trainingjob.Evaluation{}) {
		return nil
	}
	return &e
}
