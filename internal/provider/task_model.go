package provider

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/task"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/task/accelerator"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/migrate/skypilot"
	"github.com/elastic-training/terraform-provider-elastic/internal/provider/numeric"
)

// taskModel is the resource's value in configuration, plan and state.
type taskModel struct {
	jobModel
	taskObservedModel
	defined `tfsdk:"-"`
}

// load reads a value of the resource.
func (m *taskModel) load(ctx context.Context, raw tftypes.Value) (diags diag.Diagnostics) {
	m.defined, diags = load(ctx, taskSchema(ctx), raw, m)
	return diags
}

// store writes a value of the resource.
func (m *taskModel) store(ctx context.Context, raw *tftypes.Value) (diags diag.Diagnostics) {
	*raw, diags = store(ctx, taskSchema(ctx), m, m.defined)
	return diags
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
	queue := into[taskQueueModel](&expander{ctx: ctx}, m.queue())
	return m.queue().IsUnknown() || queue.Name.IsUnknown() || queue.WorkloadPriorityClass.IsUnknown()
}

func (m *taskModel) queue() types.Object { return valueIn[types.Object](m.defined, "queue") }

type recoveryModel struct {
	MaxRestartsOnErrors types.Int64 `tfsdk:"max_restarts_on_errors"`
	RecoverOnExitCodes  types.List  `tfsdk:"recover_on_exit_codes"`
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
	a := taskSpec{file: task.Task{NumNodes: 1}}
	if text := m.text("yaml").ValueString(); text != "" {
		workdir, version, secrets := m.defined["workdir"], m.defined["secrets_wo_version"], m.defined["secrets_wo"]
		given := skypilot.Given{
			Workdir: len(keysOf(workdir)) > 0 || workdir.IsUnknown(), Envs: keysOf(m.defined["env"]), Secrets: keysOf(m.defined["secrets"]),
			// Plan and state do not have the names of secrets_wo; the configuration was validated with them.
			AnySecret: !version.IsNull() && secrets.IsNull() || secrets.IsUnknown(),
		}
		maps.Copy(given.Secrets, keysOf(secrets))
		var err error
		if a.file, a.warnings, err = skypilot.Parse("yaml", []byte(text), given); err != nil {
			r.diags.AddAttributeError(path.Root("yaml"), "Invalid task file", err.Error())
			return a, r.diags
		}
	}
	a.Task = a.file
	t := &a.Task
	t.Envs, t.Labels, t.Workdir = maps.Clone(t.Envs), maps.Clone(t.Labels), maps.Clone(t.Workdir)
	t.Name, t.Namespace = m.Name.ValueString(), namespaceOf(m.Namespace)
	attributes := maps.Clone(m.defined)
	attributes["labels"], attributes["annotations"] = m.Labels, m.Annotations
	fields := fieldsIn(t)
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		if to, value := fields[name], attributes[name]; to != nil && !absent(value) && !leavesTheFiles(value, to) {
			a.contradicted = append(a.contradicted, alsoIn(&a.file, name, to, value)...)
			r.taskField(t, name, value, to)
		}
	}
	t.NumNodes = min(t.NumNodes, math.MaxInt32)
	t.SecretValues = slices.Sorted(maps.Keys(keysOf(m.defined["secrets_wo"])))
	t.SecretsVersion = integerOrNil(valueIn[types.Int64](m.defined, "secrets_wo_version"))
	return a, r.diags
}

// leavesTheFiles reports whether an attribute has the default of an omitted list or of pod_overrides.
func leavesTheFiles(value attr.Value, field any) bool {
	list, isList := value.(types.List)
	text, _ := value.(types.String)
	_, isPatch := field.(*json.RawMessage)
	return isList && len(list.Elements()) == 0 || isPatch && trainingjob.CanonicalOverrides(json.RawMessage(text.ValueString())) == nil
}

// alsoIn are the attributes that the file sets too; of a map or the queue, those in it.
func alsoIn(file *task.Task, attribute string, field any, value attr.Value) []path.Path {
	var both []path.Path
	add := func(at path.Path, inFile bool) {
		if inFile {
			both = append(both, at)
		}
	}
	at := path.Root(attribute)
	switch texts, isTexts := field.(*map[string]string); {
	case isTexts:
		for _, key := range slices.Sorted(maps.Keys(keysOf(value))) {
			_, inFile := (*texts)[key]
			add(at.AtMapKey(key), inFile)
		}
	case attribute == "num_nodes":
		add(at, file.NumNodes != 1)
	case attribute == "queue":
		object, _ := value.(types.Object)
		add(at.AtName("name"), file.Queue != "" && !absent(object.Attributes()["name"]))
		add(at.AtName("workload_priority_class"), file.PriorityClass != "" && !absent(object.Attributes()["workload_priority_class"]))
	default:
		add(at, !reflect.ValueOf(field).Elem().IsZero())
	}
	return both
}

// taskField sets the field that an attribute stands for.
func (r *expander) taskField(t *task.Task, attribute string, value attr.Value, to any) {
	object, _ := value.(types.Object)
	switch attribute {
	case "queue":
		queue := into[taskQueueModel](r, object)
		t.Queue, t.PriorityClass = cmp.Or(queue.Name.ValueString(), t.Queue), cmp.Or(queue.WorkloadPriorityClass.ValueString(), t.PriorityClass)
	case "accelerators":
		accelerators, _ := value.(types.Dynamic)
		t.Accelerators, t.Ordered = r.accelerators(accelerators)
	case "recovery":
		t.Recovery = r.recovery(object)
	default:
		if attribute != "accelerator_labels" || r.areChips(value) {
			r.field(path.Root(attribute), value, to)
		}
	}
}

// complete is the task with the default images for those that the user omits.
func (a taskSpec) complete(version string) task.Task {
	t := a.Task
	t.Image = cmp.Or(t.Image, task.DefaultImage)
	t.TrainerImage = cmp.Or(t.TrainerImage, task.DefaultTrainerImage(version))
	return t
}

// keysOf are the keys of a map, also of one whose values are not known.
func keysOf(value attr.Value) map[string]bool {
	entries, _ := value.(types.Map)
	keys := map[string]bool{}
	for key := range entries.Elements() {
		keys[key] = true
	}
	return keys
}

func absent(value attr.Value) bool {
	dynamic, is := value.(types.Dynamic)
	return value.IsNull() || value.IsUnknown() || is && (dynamic.IsUnderlyingValueNull() || dynamic.IsUnderlyingValueUnknown())
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

// areChips reports whether the keys of topologies in accelerator_labels are numbers of chips.
func (r *expander) areChips(table attr.Value) bool {
	ok := true
	names, _ := table.(types.Map)
	for name, definition := range names.Elements() {
		object, _ := definition.(types.Object)
		at := path.Root("accelerator_labels").AtMapKey(name).AtName("topologies")
		for count := range keysOf(object.Attributes()["topologies"]) {
			if _, err := strconv.Atoi(count); err != nil {
				ok = false
				r.diags.AddAttributeError(at.AtMapKey(count), "Invalid number of TPU chips",
					fmt.Sprintf("%s has the key %q; use the number of chips, as in { \"8\" = \"2x4\" }.", at, count))
			}
		}
	}
	return ok
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
