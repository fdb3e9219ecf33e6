package provider

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"
	corev1 "k8s.io/api/core/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/dataset"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	_ "github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob/strategicmerge" // for pod_overrides
	"github.com/elastic-training/terraform-provider-elastic/internal/provider/quantity"
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

type dataModel struct {
	Training       types.String `tfsdk:"training"`
	Validation     types.String `tfsdk:"validation"`
	Format         types.String `tfsdk:"format"`
	Codec          types.String `tfsdk:"codec"`
	CSV            types.Object `tfsdk:"csv"`
	RecordsPerTask types.Int64  `tfsdk:"records_per_task"`
}

type csvModel struct {
	Columns types.Map `tfsdk:"columns"`
	Words   types.Map `tfsdk:"vocabularies"`
}

type runModel struct {
	Epochs        types.Int64   `tfsdk:"epochs"`
	MinibatchSize types.Int64   `tfsdk:"minibatch_size"`
	GradsToWait   types.Int64   `tfsdk:"grads_to_wait"`
	Seed          types.Int64   `tfsdk:"seed"`
	LearningRate  types.Float64 `tfsdk:"learning_rate"`
	Aggregation   types.String  `tfsdk:"aggregation"`
}

type podModel struct {
	PriorityClassName             types.String `tfsdk:"priority_class_name"`
	Resources                     types.Object `tfsdk:"resources"`
	NodeSelector                  types.Map    `tfsdk:"node_selector"`
	Tolerations                   types.List   `tfsdk:"tolerations"`
	Affinity                      types.String `tfsdk:"affinity"`
	Env                           types.Map    `tfsdk:"env"`
	Labels                        types.Map    `tfsdk:"labels"`
	Annotations                   types.Map    `tfsdk:"annotations"`
	TerminationGracePeriodSeconds types.Int64  `tfsdk:"termination_grace_period_seconds"`
	RuntimeClassName              types.String `tfsdk:"runtime_class_name"`
	SecurityContext               types.Object `tfsdk:"security_context"`
	InitContainers                types.List   `tfsdk:"init_containers"`
	PodOverrides                  types.String `tfsdk:"pod_overrides"`
}

type workersModel struct {
	Min                  types.Int64  `tfsdk:"min"`
	Max                  types.Int64  `tfsdk:"max"`
	MinPriorityClassName types.String `tfsdk:"min_priority_class_name"`
	Command              types.List   `tfsdk:"command"`
	Elastic              types.String `tfsdk:"elastic"`
	Processes            types.Int64  `tfsdk:"processes"`
	Step                 types.Int64  `tfsdk:"step"`
	RestartInterval      types.Int64  `tfsdk:"restart_interval_seconds"`
	podModel
}

type checkpointModel struct {
	Steps     types.Int64  `tfsdk:"interval_steps"`
	KeepMax   types.Int64  `tfsdk:"max_to_keep"`
	Directory types.String `tfsdk:"directory"`
}

type evaluationModel struct {
	Steps  types.Int64 `tfsdk:"interval_steps"`
	Epochs types.Int64 `tfsdk:"interval_epochs"`
}

type jobQueueModel struct {
	Name             types.String `tfsdk:"name"`
	PriorityClass    types.String `tfsdk:"workload_priority_class"`
	MinPriorityClass types.String `tfsdk:"min_workload_priority_class"`
}

type resourcesModel struct {
	Requests types.Map `tfsdk:"requests"`
	Limits   types.Map `tfsdk:"limits"`
}

type tolerationModel struct {
	Key               types.String `tfsdk:"key"`
	Operator          types.String `tfsdk:"operator"`
	Value             types.String `tfsdk:"value"`
	Effect            types.String `tfsdk:"effect"`
	TolerationSeconds types.Int64  `tfsdk:"toleration_seconds"`
}

type jobVolumeModel struct {
	volumeModel
	Mount types.String `tfsdk:"mount_on"`
}

type volumeModel struct {
	Name      types.String `tfsdk:"name"`
	MountPath types.String `tfsdk:"mount_path"`
	PVC       types.String `tfsdk:"claim_name"`
	HostPath  types.String `tfsdk:"host_path"`
	ConfigMap types.String `tfsdk:"config_map"`
	EmptyDir  types.Object `tfsdk:"empty_dir"`
	ReadOnly  types.Bool   `tfsdk:"read_only"`
}

type emptyDirModel struct {
	Medium    types.String   `tfsdk:"medium"`
	SizeLimit quantity.Value `tfsdk:"size_limit"`
}

func (m *trainingJobModel) subject() subject { return m.subjectOf("training_job") }

// definition is the training job that the model describes. Unknown values, of which there are some while Terraform
// validates, count as absent; absent values with a default have it.
func (m *trainingJobModel) definition(ctx context.Context) (trainingjob.Definition, diag.Diagnostics) {
	r := &expander{ctx: ctx}
	trained, data, run, workers := into[trainedModel](r, m.Model), into[dataModel](r, m.Data), into[runModel](r, m.Training), into[workersModel](r, m.Workers)
	d := trainingjob.Definition{
		Job: trainingjob.Job{
			Name: m.Name.ValueString(), Namespace: orDefault(m.Namespace, corev1.NamespaceDefault),
			Model:  trainingjob.Model{Name: trained.Name.ValueString()},
			Output: m.Output.ValueString(), Checkpoint: r.checkpoint(m.Checkpoint), Evaluation: r.evaluation(m.Evaluation),
			Command: r.words(workers.Command), Elastic: elasticOf(workers.Elastic), Restart: workers.restart(), Step: workers.step(),
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
			Volumes: r.volumes(m.Volumes),
			Master:  r.pod(path.Root("master"), into[podModel](r, m.Master)),
			Workers: r.pod(path.Root("workers"), workers.podModel),
		},
	}
	if !m.Data.IsNull() { // unless the command has its own
		d.Job.Data = trainingjob.Data{
			Training: data.Training.ValueString(), Validation: data.Validation.ValueString(),
			Format: orDefault(data.Format, dataset.DefaultFormat), Codec: orDefault(data.Codec, dataset.BytesCodec),
			RecordsPerTask: int(data.RecordsPerTask.ValueInt64()), CSV: r.csv(data.CSV),
		}
	}
	if !m.Training.IsNull() {
		d.Job.Training = trainingjob.Training{
			Epochs: orOne(run.Epochs), MinibatchSize: int(run.MinibatchSize.ValueInt64()), GradsToWait: orOne(run.GradsToWait),
			Seed: uint64(orOne(run.Seed)), LearningRate: run.LearningRate.ValueFloat64Pointer(), //nolint:gosec // the schema bounds it
			Aggregation: run.Aggregation.ValueString(),
		}
		if run.LearningRate.IsUnknown() {
			d.Job.Training.LearningRate = nil
		}
	}
	if n := trainingjob.Accelerators(d.Workers.Resources); n > 1 && d.Job.Restarts() && workers.Processes.IsNull() {
		if d.Job.Restart == nil {
			d.Job.Restart = &trainingjob.Restart{}
		}
		d.Job.Restart.Processes = n
	}
	return d, r.diags
}

// restart is what only a command that is restarted has; nil if all of it is as it is by default.
func (m workersModel) restart() *trainingjob.Restart {
	return trainingjob.Restart{Processes: int(m.Processes.ValueInt64()), IntervalSeconds: m.RestartInterval.ValueInt64()}.Canonical()
}

// step is as in job.json, where 1 is left out.
func (m workersModel) step() int {
	if n := int(m.Step.ValueInt64()); n != 1 {
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
	m := into[jobQueueModel](r, object)
	return &trainingjob.Queue{
		Name: m.Name.ValueString(), PriorityClass: m.PriorityClass.ValueString(), MinPriorityClass: m.MinPriorityClass.ValueString(),
		Topology: r.topology(topology),
	}
}

// csv is nil if the attribute is not set.
func (r *expander) csv(object types.Object) *trainingjob.CSV {
	m := into[csvModel](r, object)
	c := trainingjob.CSV{Columns: r.lists(m.Columns), Words: r.lists(m.Words)}
	if len(c.Columns)+len(c.Words) == 0 {
		return nil
	}
	return &c
}

// checkpoint is nil if the attribute is not set: job.json then has no such field either.
func (r *expander) checkpoint(object types.Object) *trainingjob.Checkpoint {
	m := into[checkpointModel](r, object)
	c := trainingjob.Checkpoint{Steps: m.Steps.ValueInt64(), Directory: m.Directory.ValueString()}
	if !m.KeepMax.IsNull() && !m.KeepMax.IsUnknown() {
		c.KeepMax = new(int(m.KeepMax.ValueInt64()))
	}
	if c == (trainingjob.Checkpoint{}) {
		return nil
	}
	return &c
}

// evaluation is nil if the attribute is not set, as checkpoint is.
func (r *expander) evaluation(object types.Object) *trainingjob.Evaluation {
	m := into[evaluationModel](r, object)
	e := trainingjob.Evaluation{Steps: m.Steps.ValueInt64(), Epochs: m.Epochs.ValueInt64()}
	if e == (trainingjob.Evaluation{}) {
		return nil
	}
	return &e
}

func (r *expander) pod(at path.Path, m podModel) trainingjob.PodSettings {
	s := trainingjob.PodSettings{
		PriorityClassName: m.PriorityClassName.ValueString(),
		Resources:         r.resources(at, m.Resources),
		NodeSelector:      r.texts(m.NodeSelector),
		Tolerations:       r.tolerations(m.Tolerations),
		Env:               r.texts(m.Env),
		Labels:            r.texts(m.Labels),
		Annotations:       r.texts(m.Annotations),
		RuntimeClassName:  m.RuntimeClassName.ValueString(),
		SecurityContext:   r.securityContext(m.SecurityContext),
		InitContainers:    r.initContainers(at.AtName("init_containers"), m.InitContainers),
		PodOverrides:      trainingjob.CanonicalOverrides(r.json(m.PodOverrides)),
	}
	if !m.TerminationGracePeriodSeconds.IsUnknown() {
		s.TerminationGracePeriodSeconds = m.TerminationGracePeriodSeconds.ValueInt64Pointer()
	}
	if text := r.json(m.Affinity); text != nil {
		s.Affinity = &corev1.Affinity{}
		if err := trainingjob.StrictDecode(text, s.Affinity); err != nil {
			r.diags.AddAttributeError(at.AtName("affinity"), "Not an affinity",
				fmt.Sprintf("%s is not an affinity as the API has it: %s. It has nodeAffinity, podAffinity and podAntiAffinity.", at.AtName("affinity"), err))
		}
	}
	return s
}

func (r *expander) volumes(list types.List) []trainingjob.Volume {
	var volumes []trainingjob.Volume
	for i, m := range elements[jobVolumeModel](r, list) {
		v := r.volume(path.Root("volumes").AtListIndex(i), m.volumeModel)
		v.Mount = orDefault(m.Mount, trainingjob.MountAll)
		volumes = append(volumes, v)
	}
	return volumes
}
