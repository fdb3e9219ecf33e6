package provider

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	corev1 "k8s.io/api/core/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/task"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/task/accelerator"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/migrate/skypilot"
	"github.com/elastic-training/terraform-provider-elastic/internal/provider/numeric"
)

// taskModel is the resource's value in configuration, plan and state.
type taskModel struct {
	jobModel
	YAML types.String `tfsdk:"yaml"`

	Run               types.String  `tfsdk:"run"`
	Setup             types.String  `tfsdk:"setup"`
	NumNodes          types.Int64   `tfsdk:"num_nodes"`
	Rejoin            types.Bool    `tfsdk:"rejoin"`
	Envs              types.Map     `tfsdk:"env"`
	Workdir           types.Map     `tfsdk:"workdir"`
	Image             types.String  `tfsdk:"image"`
	Accelerators      types.Dynamic `tfsdk:"accelerators"`
	AcceleratorLabels types.Map     `tfsdk:"accelerator_labels"`
	CPUs              types.String  `tfsdk:"cpus"`
	Memory            types.String  `tfsdk:"memory"`
	Recovery          types.Object  `tfsdk:"recovery"`
	Queue             types.Object  `tfsdk:"queue"`
	Topology          types.Object  `tfsdk:"topology"`
	Secrets           types.Map     `tfsdk:"secrets"`
	SecretsWO         types.Map     `tfsdk:"secrets_wo"`
	SecretsWOVersion  types.Int64   `tfsdk:"secrets_wo_version"`

	TrainerImage                  types.String `tfsdk:"supervisor_image"`
	PriorityClassName             types.String `tfsdk:"priority_class_name"`
	NodeSelector                  types.Map    `tfsdk:"node_selector"`
	Tolerations                   types.List   `tfsdk:"tolerations"`
	RuntimeClassName              types.String `tfsdk:"runtime_class_name"`
	SecurityContext               types.Object `tfsdk:"security_context"`
	InitContainers                types.List   `tfsdk:"init_containers"`
	TerminationGracePeriodSeconds types.Int64  `tfsdk:"termination_grace_period_seconds"`
	PodOverrides                  types.String `tfsdk:"pod_overrides"`
	TTLSecondsAfterFinished       types.Int64  `tfsdk:"ttl_seconds_after_finished"`

	taskObservedModel
}

// taskObservedModel holds the attributes that the cluster reports for a task.
type taskObservedModel struct {
	Phase       types.String `tfsdk:"phase"`
	Reason      types.String `tfsdk:"reason"`
	Restarts    types.Int64  `tfsdk:"restarts"`
	Preemptions types.Int64  `tfsdk:"preemptions"`
	Workload    types.String `tfsdk:"workload"`
	Logs        types.String `tfsdk:"logs"`
}

// taskQueueModel is the queue in which a task or a described job waits for quota.
type taskQueueModel struct {
	Name                  types.String `tfsdk:"name"`
	WorkloadPriorityClass types.String `tfsdk:"workload_priority_class"`
}

// queueIsUnknown reports whether the task's queue, or its class in it, is not known yet.
func (m *taskModel) queueIsUnknown(ctx context.Context) bool {
	queue := into[taskQueueModel](&expander{ctx: ctx}, m.Queue)
	return m.Queue.IsUnknown() || queue.Name.IsUnknown() || queue.WorkloadPriorityClass.IsUnknown()
}

type recoveryModel struct {
	MaxRestartsOnErrors types.Int64 `tfsdk:"max_restarts_on_errors"`
	RecoverOnExitCodes  types.List  `tfsdk:"recover_on_exit_codes"`
}

type acceleratorModel struct {
	Resource   types.String `tfsdk:"resource"`
	Labels     types.Map    `tfsdk:"labels"`
	Topologies types.Map    `tfsdk:"topologies"`
}

func (m *taskModel) subject() subject { return m.subjectOf("task") }

// taskSpec is a task as the file and the attributes describe it together.
type taskSpec struct {
	task.Task              // without what has a default that a release of the provider may change: images
	file         task.Task // the content of the file alone
	warnings     []skypilot.Problem
	contradicted []path.Path // attributes that the file sets too
}

// spec reads the file and puts the attributes on top of it. Unknown values, of which there are some while Terraform
// validates, are as absent ones.
func (m *taskModel) spec(ctx context.Context) (taskSpec, diag.Diagnostics) {
	r := &expander{ctx: ctx}
	envs := r.texts(m.Envs)
	a := taskSpec{file: task.Task{NumNodes: 1}}
	if text := m.YAML.ValueString(); text != "" {
		given := skypilot.Given{
			Workdir: len(m.Workdir.Elements()) > 0 || m.Workdir.IsUnknown(), Envs: keysOf(m.Envs), Secrets: keysOf(m.Secrets),
			// Plan and state do not have the names of secrets_wo; the configuration was validated with them.
			AnySecret: !m.SecretsWOVersion.IsNull() && m.SecretsWO.IsNull() || m.SecretsWO.IsUnknown(),
		}
		maps.Copy(given.Secrets, keysOf(m.SecretsWO))
		var err error
		if a.file, a.warnings, err = skypilot.Parse("yaml", []byte(text), given); err != nil {
			r.diags.AddAttributeError(path.Root("yaml"), "Invalid task file", err.Error())
			return a, r.diags
		}
	}
	a.Task = a.file
	t, o := &a.Task, &overlay{}
	t.Name, t.Namespace = m.Name.ValueString(), namespaceOf(m.Namespace)
	o.text("run", &t.Run, m.Run)
	o.text("setup", &t.Setup, m.Setup)
	o.text("image", &t.Image, m.Image)
	o.text("cpus", &t.CPUs, m.CPUs)
	o.text("memory", &t.Memory, m.Memory)
	queue := into[taskQueueModel](r, m.Queue)
	o.text("queue.name", &t.Queue, queue.Name)
	o.text("queue.workload_priority_class", &t.PriorityClass, queue.WorkloadPriorityClass)
	o.texts("env", &t.Envs, envs)
	o.texts("labels", &t.Labels, r.texts(m.Labels))
	o.texts("workdir", &t.Workdir, r.texts(m.Workdir))
	if n := m.NumNodes; !n.IsNull() && !n.IsUnknown() {
		o.override("num_nodes", t.NumNodes != 1)
		t.NumNodes = int(min(n.ValueInt64(), math.MaxInt32))
	}
	if !absent(m.Accelerators) {
		o.override("accelerators", len(t.Accelerators) > 0)
		t.Accelerators, t.Ordered = r.accelerators(m.Accelerators)
	}
	if !m.Recovery.IsNull() && !m.Recovery.IsUnknown() {
		o.override("recovery", t.Recovery.MaxRestartsOnErrors != 0 || len(t.Recovery.RecoverOnExitCodes) > 0)
		t.Recovery = r.recovery(m.Recovery)
	}
	a.contradicted = o.contradicted

	t.Topology = r.topology(m.Topology)
	r.decode(path.Root("secrets"), m.Secrets, &t.Secrets)
	t.SecretValues = slices.Sorted(maps.Keys(keysOf(m.SecretsWO)))
	if !m.SecretsWOVersion.IsUnknown() {
		t.SecretsVersion = m.SecretsWOVersion.ValueInt64Pointer()
	}
	t.TrainerImage, t.ImagePullPolicy = m.TrainerImage.ValueString(), corev1.PullPolicy(m.ImagePullPolicy.ValueString())
	t.ImagePullSecrets = r.words(m.ImagePullSecrets)
	t.AcceleratorLabels = r.acceleratorLabels(m.AcceleratorLabels)
	t.PriorityClassName, t.NodeSelector = m.PriorityClassName.ValueString(), r.texts(m.NodeSelector)
	t.Rejoin = m.Rejoin.ValueBool()
	t.ServiceAccountName, t.RuntimeClassName = m.ServiceAccountName.ValueString(), m.RuntimeClassName.ValueString()
	r.decode(path.Root("volumes"), m.Volumes, &t.Volumes)
	r.decode(path.Root("tolerations"), m.Tolerations, &t.Tolerations)
	r.decode(path.Root("init_containers"), m.InitContainers, &t.InitContainers)
	r.decode(path.Root("security_context"), m.SecurityContext, &t.SecurityContext)
	t.SecurityContext = canonicalSecurityContext(t.SecurityContext)
	t.ActiveDeadlineSeconds = integerOrNil(m.ActiveDeadlineSeconds)
	t.Annotations = r.texts(m.Annotations)
	t.PodOverrides = trainingjob.CanonicalOverrides(r.json(m.PodOverrides))
	if !m.TerminationGracePeriodSeconds.IsUnknown() {
		t.TerminationGracePeriodSeconds = m.TerminationGracePeriodSeconds.ValueInt64Pointer()
	}
	if ttl := m.TTLSecondsAfterFinished; !ttl.IsNull() && !ttl.IsUnknown() {
		t.TTLSecondsAfterFinished = new(int32(ttl.ValueInt64())) //nolint:gosec // the schema bounds it
	}
	return a, r.diags
}

// complete is the task with the default images for those that the user omits.
func (a taskSpec) complete(version string) task.Task {
	t := a.Task
	if t.Image == "" {
		t.Image = task.DefaultImage
	}
	if t.TrainerImage == "" {
		t.TrainerImage = task.DefaultTrainerImage(version)
	}
	return t
}

// overlay applies attributes on top of the file's content, and notes those that the file sets too.
type overlay struct {
	contradicted []path.Path
}

func (o *overlay) override(attribute string, alsoInFile bool) {
	if alsoInFile {
		o.contradicted = append(o.contradicted, pathOf(attribute))
	}
}

func (o *overlay) text(attribute string, to *string, value types.String) {
	if value.IsNull() || value.IsUnknown() {
		return
	}
	o.override(attribute, *to != "")
	*to = value.ValueString()
}

func (o *overlay) texts(attribute string, to *map[string]string, values map[string]string) {
	if values == nil {
		return
	}
	both := maps.Clone(*to)
	if both == nil {
		both = map[string]string{}
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if _, there := both[key]; there {
			o.contradicted = append(o.contradicted, path.Root(attribute).AtMapKey(key))
		}
		both[key] = values[key]
	}
	*to = both
}

// keysOf are the keys of a map, also of one whose values are not known.
func keysOf(value types.Map) map[string]bool {
	keys := map[string]bool{}
	for key := range value.Elements() {
		keys[key] = true
	}
	return keys
}

func absent(value types.Dynamic) bool {
	return value.IsNull() || value.IsUnknown() || value.IsUnderlyingValueNull() || value.IsUnderlyingValueUnknown()
}

func (r *expander) recovery(value types.Object) task.Recovery {
	m := into[recoveryModel](r, value)
	recovery := task.Recovery{MaxRestartsOnErrors: int(m.MaxRestartsOnErrors.ValueInt64())}
	// Numbers of any kind: the framework would blame the provider for an item that is no whole number.
	for i, code := range elements[types.Number](r, m.RecoverOnExitCodes) {
		value := code.ValueBigFloat()
		if value == nil {
			value = new(big.Float) // not known yet
		}
		at := path.Root("recovery").AtName("recover_on_exit_codes").AtListIndex(i)
		r.diags.Append(numeric.Int64{}.Validate(r.ctx, tftypes.NewValue(tftypes.Number, value), at)...)
		whole, _ := value.Int64()
		recovery.RecoverOnExitCodes = append(recovery.RecoverOnExitCodes, int(max(math.MinInt32, min(whole, math.MaxInt32))))
	}
	return recovery
}

func (r *expander) acceleratorLabels(value types.Map) map[string]accelerator.Definition {
	if value.IsNull() || value.IsUnknown() {
		return nil
	}
	var models map[string]acceleratorModel
	r.diags.Append(value.ElementsAs(r.ctx, &models, false)...)
	table := make(map[string]accelerator.Definition, len(models))
	for name, m := range models {
		d := accelerator.Definition{Resource: m.Resource.ValueString()}
		if !m.Labels.IsNull() && !m.Labels.IsUnknown() {
			r.diags.Append(m.Labels.ElementsAs(r.ctx, &d.Labels, false)...)
		}
		for count, topology := range r.texts(m.Topologies) {
			n, err := strconv.Atoi(count)
			if err != nil {
				at := path.Root("accelerator_labels").AtMapKey(name).AtName("topologies")
				r.diags.AddAttributeError(at.AtMapKey(count), "Invalid number of TPU chips",
					fmt.Sprintf("%s has the key %q; use the number of chips, as in { \"8\" = \"2x4\" }.", at, count))
				continue
			}
			if d.Topologies == nil {
				d.Topologies = map[int]string{}
			}
			d.Topologies[n] = topology
		}
		table[name] = d
	}
	return table
}

// accelerators reads what may be one text, a list (in order of preference) or a set (of equal rank) of them.
func (r *expander) accelerators(value types.Dynamic) (requests []accelerator.Request, ordered bool) {
	texts, ordered, problem := acceleratorTexts(value)
	if problem != "" {
		r.diags.AddAttributeError(path.Root("accelerators"), "Invalid accelerators", problem)
		return nil, false
	}
	for _, text := range texts {
		request, err := accelerator.ParseRequest(text)
		if err != nil {
			r.diags.AddAttributeError(path.Root("accelerators"), "Invalid accelerators", strings.TrimPrefix(err.Error(), "accelerators ")+".")
			continue
		}
		requests = append(requests, request)
	}
	return requests, ordered && len(requests) > 1
}
