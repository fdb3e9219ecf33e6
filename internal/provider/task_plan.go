package provider

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/task"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
)

// ModifyPlan checks the queue and the class that the task names, decides which changes replace the task, and reports
// what is lost. It keeps the attributes that the cluster reports, unless the update waits for new values of them.
func (r *taskResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if req.Plan.Raw.IsNull() {
		return // delete
	}
	var state, plan taskModel
	named, replaces := settledNames(req.Config.Raw, req.State.Raw, req.Plan.Raw)
	req.Plan.Raw, resp.Plan.Raw = named, named
	resp.Diagnostics.Append(r.respell(ctx, &req, resp)...)
	resp.Diagnostics.Append(plan.load(ctx, req.Plan.Raw)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if req.State.Raw.IsNull() || !valueAt(req.State.Raw, "namespace").Equal(valueAt(req.Plan.Raw, "namespace")) {
		resp.Diagnostics.Append(r.connection.checkNamespace(ctx, plan.Namespace.ValueString(), "task")...)
	}
	planned := plan.withPlannedName(req.Plan.Raw, &r.connection.names)
	resp.Diagnostics.Append(r.checkReferences(ctx, req.Config.Raw, &plan, req.State.Raw.IsNull())...)
	defer func() {
		made := req.State.Raw.IsNull() || len(resp.RequiresReplace) > 0
		if made && !isNamedLater(req.Config.Raw, req.State.Raw, made) {
			resp.Diagnostics.Append(r.forecast(ctx, planned, &plan)...)
		}
	}()
	if req.State.Raw.IsNull() {
		return // create
	}
	resp.Diagnostics.Append(state.load(ctx, req.State.Raw)...)
	if resp.Diagnostics.HasError() {
		return
	}
	what := "Task " + state.subject().importID
	taskDrift(ctx).warn(ctx, what, req, &resp.Diagnostics)
	jobChange{
		what: what, state: state.jobModel, plan: plan.jobModel,
		finished: taskFinished(state.Phase.ValueString()), observed: taskObservedAttributes(),
		reasons: func() ([]reasonToReplace, diag.Diagnostics) {
			reasons, diags := taskReplacing(ctx, r.version, req.State.Raw, req.Plan.Raw, &state, &plan)
			return append(renamed(replaces), reasons...), diags
		},
		lost:  func() string { return lostByReplacingTask(state.Phase.ValueString()) },
		parts: func() []task.Object { return state.liveParts(ctx) }, lossOf: task.LossOf,
	}.decide(ctx, req, resp)
}

// checkReferences warns about a queue or a class that is not there, about a queue that never preempts, and about one
// that a new task does not name and gets nevertheless.
func (r *taskResource) checkReferences(ctx context.Context, config tftypes.Value, plan *taskModel, isNew bool) diag.Diagnostics {
	if plan.text("yaml").IsUnknown() || plan.queueIsUnknown(ctx) || plan.Namespace.IsUnknown() || plan.Name.IsUnknown() {
		return nil
	}
	a, diags := plan.spec(ctx)
	if diags.HasError() {
		return nil // validation has reported the problem
	}
	diags = nil
	if a.Queue == "" && !isNew {
		return nil
	}
	if a.Queue == "" {
		if _, found, _ := r.connection.findReference(ctx, reference{kind: aLocalQueue, namespace: a.Namespace, name: trainingjob.DefaultQueue}); found {
			diags.AddAttributeWarning(path.Root("queue"), "Task will be queued by default", fmt.Sprintf(
				"Namespace %s has a LocalQueue named %q, to which Kueue assigns every Job without a queue. To show this in the configuration, set queue = { name = %q }.",
				a.Namespace, trainingjob.DefaultQueue, trainingjob.DefaultQueue))
		}
		return diags
	}
	at := attributeOrFile(config)
	diags.Append(r.connection.checkReference(ctx, at("queue.name"), reference{kind: aLocalQueue, namespace: a.Namespace, name: a.Queue},
		"Until it exists, the task is suspended.")...)
	diags.Append(r.connection.checkReference(ctx, at("queue.workload_priority_class"), reference{kind: aWorkloadPriorityClass, name: a.PriorityClass},
		"Without it, the task cannot be created.")...)
	diags.Append(r.connection.plansQueued(ctx, at("queue.name"), TypeName+"_task "+a.Name, a.Namespace, a.Queue, a.PriorityClass)...)
	return diags
}

const (
	isTheTask  = "names the task's objects"
	isTheRun   = "is what the task runs"
	ofThePod   = "belongs to the task's pods, which Kubernetes does not change"
	ofTheQueue = "decides what Kueue queues"
)

// whyTaskIsReplaced are the reasons for which a change of an attribute replaces the task, besides ofThePod; "" for those
// that change in place, and for the queue.
var whyTaskIsReplaced = map[string]string{
	"name": isTheTask, "namespace": isTheTask, "run": isTheRun, "setup": isTheRun, "workdir": isTheRun,
	"num_nodes": ofTheQueue, "topology": ofTheQueue, "cpus": ofTheQueue, "memory": ofTheQueue,
	"accelerators": ofTheQueue, "accelerator_labels": ofTheQueue,
	"recovery": "belongs to the Job, which Kubernetes does not change",
	"queue":    "", "labels": "", "annotations": "", "active_deadline_seconds": "", "ttl_seconds_after_finished": "",
}

// taskReplacements are the attributes that are fields of a task, but the queue and those that change in place.
func taskReplacements() []replacement[task.Task] {
	var all []replacement[task.Task]
	for _, field := range reflect.VisibleFields(reflect.TypeFor[task.Task]()) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		why, known := whyTaskIsReplaced[name]
		if _, isAttribute := theTaskSchema().Attributes[name]; !isAttribute || known && why == "" {
			continue
		}
		all = append(all, replacement[task.Task]{name, cmp.Or(why, ofThePod), func(t task.Task) any { return taskValue(t, name) }})
	}
	return all
}

// taskValue is what a canonical task has for an attribute.
func taskValue(t task.Task, attribute string) any {
	cpus, memory := t.Amounts()
	switch attribute {
	case "accelerators":
		return []any{t.Accelerators, t.Ordered}
	case "cpus":
		return cpus
	case "memory":
		return memory
	case "recovery":
		return t.Recovery.RecoverOnExitCodes
	default:
		return fieldsIn(&t)[attribute]
	}
}

// taskReplacing finds what replaces the task. What means the same, by an attribute or by the file and however it is
// written, does not; a value that is not known yet may be any, and does.
func taskReplacing(ctx context.Context, version string, stateRaw, planRaw tftypes.Value, state, plan *taskModel) ([]reasonToReplace, diag.Diagnostics) {
	was, unreadable := state.spec(ctx)
	will, diags := plan.spec(ctx)
	if diags.HasError() {
		return nil, diags
	}
	changed := func(attribute string) bool { return !valueAt(stateRaw, attribute).Equal(valueAt(planRaw, attribute)) }
	var reasons []reasonToReplace
	add := func(attribute, why string) {
		at := pathOf(attribute)
		if !changed(attribute) {
			at = path.Root("yaml") // the file has changed
		}
		reasons = append(reasons, reasonToReplace{at: at, why: attribute + " " + why})
	}
	if unreadable.HasError() {
		if changed("yaml") {
			add("yaml", "was one that this release of the provider cannot read")
		}
		return reasons, diags
	}
	if changed("yaml") && !isKnown(planRaw, "yaml") {
		add("yaml", "is not known yet, and may say anything")
		return reasons, diags
	}
	before, after := was.complete(version).Canonical(), will.complete(version).Canonical()
	for _, r := range taskReplacements() {
		unknown := changed(r.attribute) && !isKnown(planRaw, r.attribute)
		if unknown || !equality.Semantic.DeepEqual(r.of(before), r.of(after)) {
			add(r.attribute, r.why)
		}
	}
	if changed("secrets_wo_version") {
		add("secrets_wo_version", "says that there are other values, which pods get only when they start")
	}
	waits := slices.Contains([]string{taskQueued, taskSuspended}, state.Phase.ValueString())
	switch {
	case was.Queue == will.Queue:
	case was.Queue == "" || will.Queue == "":
		add("queue.name", "is what makes Kueue manage the task, from its beginning")
	case !waits:
		add("queue.name", "can change only while the task waits in it")
	}
	switch {
	case was.PriorityClass == will.PriorityClass:
	case was.Queue == "" && will.Queue == "":
	case will.PriorityClass == "":
		add("queue.workload_priority_class", "cannot be taken away from what Kueue manages")
	case was.PriorityClass == "" && !waits:
		add("queue.workload_priority_class", "can be added only while the task waits")
	}
	return reasons, diags
}

func lostByReplacingTask(phase string) string {
	switch phase {
	case taskSucceeded:
		return "The task has succeeded; its pods and their logs are deleted."
	case taskFailed:
		return "The task has failed; its pods and their logs are deleted."
	case taskQueued:
		return "The task waits (as of the last refresh); the new one is queued behind the others."
	case taskSuspended:
		return "The task is suspended (as of the last refresh); the new one is not."
	default:
		return "The task has started (as of the last refresh); it is stopped, and everything that it has not written to a volume is lost."
	}
}
