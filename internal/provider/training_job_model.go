package provider

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/dataset"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	_ "github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob/strategicmerge" // for pod_overrides
)

// trainingJobModel is the resource's value in configuration, plan and state.
type trainingJobModel struct {
	jobModel
	MasterPriorityCheck types.String `tfsdk:"master_priority_check"`
	observedModel
	defined `tfsdk:"-"`
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

// load reads a value of the resource.
func (m *trainingJobModel) load(ctx context.Context, raw tftypes.Value) (diags diag.Diagnostics) {
	m.defined, diags = load(ctx, trainingJobSchema(ctx), raw, m)
	return diags
}

// store writes a value of the resource.
func (m *trainingJobModel) store(ctx context.Context, raw *tftypes.Value) (diags diag.Diagnostics) {
	*raw, diags = store(ctx, trainingJobSchema(ctx), m, m.defined)
	return diags
}

func (m *trainingJobModel) subject() subject { return m.subjectOf("training_job") }

// jobFields are pointers to the fields of a definition, by the attributes that stand for them, but queue and topology,
// which are one field. The definition has a Restart then.
func jobFields(d *trainingjob.Definition) map[string]any {
	restart := &trainingjob.Restart{}
	if d.Job.Restart != nil {
		*restart = *d.Job.Restart
	}
	d.Job.Restart = restart
	fields := fieldsIn(&d.Settings)
	for _, name := range []string{"data", "training", "output", "checkpoint", "evaluation"} {
		fields[name] = fieldsIn(&d.Job)[name]
	}
	maps.Copy(fields, map[string]any{
		"active_deadline_seconds": &d.ActiveDeadlineSeconds,
		"model.content":           &d.ModelText, "model.name": &d.Job.Model.Name,
		"workers.min": &d.Min, "workers.max": &d.Max, "workers.min_priority_class_name": &d.MinPriorityClassName,
		"workers.command": &d.Job.Command, "workers.elastic": &d.Job.Elastic, "workers.processes": &d.Job.ProcessesPerWorker,
		"workers.step": &d.Job.Step, "workers.restart_interval_seconds": &restart.IntervalSeconds,
	})
	return fields
}

// definition is the training job that the model describes. Unknown values, of which there are some while Terraform
// validates, count as absent; absent values with a default have it.
func (m *trainingJobModel) definition(ctx context.Context) (trainingjob.Definition, diag.Diagnostics) {
	r := &expander{ctx: ctx}
	d := trainingjob.Definition{Labels: r.texts(m.Labels), Annotations: r.texts(m.Annotations), Min: 1}
	d.Job.Name, d.Job.Namespace = m.Name.ValueString(), namespaceOf(m.Namespace)
	if !m.at("data").IsNull() { // unless the command has its own
		d.Job.Data.Format, d.Job.Data.Codec = dataset.DefaultFormat, dataset.BytesCodec
	}
	if !m.at("training").IsNull() {
		d.Job.Training = trainingjob.Training{Epochs: 1, GradsToWait: trainingjob.DefaultGradsToWait, Seed: 1}
	}
	fields := jobFields(&d)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		r.field(pathOf(name), m.at(name), fields[name])
	}
	r.field(path.Root("queue"), m.at("queue"), &d.Queue)
	if d.Queue != nil { // ValidateConfig refuses a topology without one
		r.field(path.Root("topology"), m.at("topology"), &d.Queue.Topology)
	}
	if n := trainingjob.Accelerators(d.Workers.Resources); n > 1 && d.Job.OwnGroup() && m.at("workers.processes").IsNull() {
		d.Job.ProcessesPerWorker = n
	}
	leaveOutDefaults(&d)
	return d, r.diags
}

// leaveOutDefaults writes a definition as job.json has it: without what is as it is by default.
func leaveOutDefaults(d *trainingjob.Definition) {
	for i := range d.Volumes {
		d.Volumes[i].Mount = cmp.Or(d.Volumes[i].Mount, trainingjob.MountAll)
	}
	if c := d.Job.Data.CSV; c != nil && len(c.Columns)+len(c.Words) == 0 {
		d.Job.Data.CSV = nil
	}
	if c := d.Job.Checkpoint; c != nil && *c == (trainingjob.Checkpoint{}) {
		d.Job.Checkpoint = nil
	}
	if e := d.Job.Evaluation; e != nil && *e == (trainingjob.Evaluation{}) {
		d.Job.Evaluation = nil
	}
	if d.Job.Elastic == trainingjob.ElasticGradients {
		d.Job.Elastic = ""
	}
	for _, count := range []*int{&d.Job.ProcessesPerWorker, &d.Job.Step} {
		if *count == 1 {
			*count = 0
		}
	}
	d.Job.Restart = d.Job.Restart.Canonical()
}
