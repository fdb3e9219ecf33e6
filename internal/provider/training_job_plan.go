package provider

import (
	"context"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-jsontypes/jsontypes"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainingjob"
)

// ModifyPlan decides what replaces the job, says what is lost, leaves what the master reports alone unless the update will
// wait for more of it, and compares the job with what it refers to.
func (r *trainingJob) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if req.Plan.Raw.IsNull() {
		return // delete
	}
	var state, plan trainingJobModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	if resp.Diagnostics.HasError() {
		return
	}
	made := req.State.Raw.IsNull()
	defer func() {
		made = made || len(resp.RequiresReplace) > 0
		resp.Diagnostics.Append(r.checkReferences(ctx, req.State.Raw, req.Plan.Raw, &plan, made)...)
		resp.Diagnostics.Append(r.forecast(ctx, req.Plan.Raw, &state, &plan, made)...)
	}()
	if made {
		return
	}
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() {
		return
	}
	phase := trainingjob.Phase(state.Phase.ValueString())
	if phase.Finished() && plan.OnFinished.ValueString() == onFinishedRecreate {
		// A path counts as a reason to replace only where the plan differs.
		resp.Diagnostics.Append(resp.Plan.SetAttribute(ctx, path.Root("phase"), types.StringUnknown())...)
		resp.RequiresReplace.Append(path.Root("phase"))
		return
	}
	reasons, diags := replacing(ctx, req.State.Raw, req.Plan.Raw, &state, &plan)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	if len(reasons) > 0 {
		for _, reason := range reasons {
			resp.RequiresReplace.Append(pathOf(reason.attribute))
		}
		resp.Diagnostics.AddWarning(fmt.Sprintf("Training job %s will be replaced", state.subject().importID), replacementDetail(&state, reasons))
		return
	}
	if plan.WaitFor.ValueString() != waitForCreated && !phase.Finished() && !req.Plan.Raw.Equal(req.State.Raw) {
		for name, unknown := range unknownObservations() {
			resp.Diagnostics.Append(resp.Plan.SetAttribute(ctx, path.Root(name), unknown)...)
		}
	}
}

// unknownObservations are what a wait will find.
func unknownObservations() map[string]any {
	return map[string]any{
		"phase": types.StringUnknown(), "steps_done": types.Int64Unknown(), "steps_total": types.Int64Unknown(),
		"loss": types.Float64Unknown(), "metrics": types.MapUnknown(types.Float64Type),
		"workers_running": types.Int64Unknown(), "workers_pending": types.Int64Unknown(), "preemptions": types.Int64Unknown(),
		"model_sha256": types.StringUnknown(), "output_files": types.ListUnknown(types.StringType),
	}
}

// replacement is an attribute whose change replaces the job, and why it must.
type replacement struct {
	attribute string
	why       string
	of        func(trainingjob.Definition) any
}

const (
	isTheJob      = "names the job's objects"
	decidesResult = "decides the model that the run ends with"
	ofTheMaster   = "belongs to the master's pod, which Kubernetes does not change while it runs"
	ofTheRun      = "is where the run writes"
	ofItsSteps    = "is where the run stops between two steps"
	ofItsState    = "is when and where the run keeps its state"
	ofTheFloor    = "belongs to the pods that the queue has admitted as one group"
)

// replacements are all of them; the other attributes change in place.
func replacements(queued bool) []replacement {
	all := []replacement{
		{"name", isTheJob, func(d trainingjob.Definition) any { return d.Job.Name }},
		{"namespace", isTheJob, func(d trainingjob.Definition) any { return d.Job.Namespace }},
		{"model", decidesResult, func(d trainingjob.Definition) any { return []string{d.ModelText, d.Job.Model.Name} }},
		{"data", decidesResult, func(d trainingjob.Definition) any { return d.Job.Data }},
		{"training", decidesResult, func(d trainingjob.Definition) any { return d.Job.Training }},
		{"workers.command", decidesResult, func(d trainingjob.Definition) any { return d.Job.Command }},
		{"output", ofTheRun, func(d trainingjob.Definition) any { return d.Job.Output }},
		{"checkpoint", ofItsState, func(d trainingjob.Definition) any { return d.Job.Checkpoint }},
		{"evaluation", ofItsSteps, func(d trainingjob.Definition) any { return d.Job.Evaluation }},
		{"image", ofTheMaster, func(d trainingjob.Definition) any { return d.Image }},
		{"image_pull_policy", ofTheMaster, func(d trainingjob.Definition) any { return d.ImagePullPolicy }},
		{"image_pull_secrets", ofTheMaster, func(d trainingjob.Definition) any { return d.ImagePullSecrets }},
		{"service_account_name", ofTheMaster, func(d trainingjob.Definition) any { return d.ServiceAccountName }},
		{"volumes", ofTheMaster, func(d trainingjob.Definition) any { return d.Volumes }},
		{"master", ofTheMaster, func(d trainingjob.Definition) any { return d.Master }},
		{"queue", "decides which Jobs make the pods, and which of them are admitted together", func(d trainingjob.Definition) any { return d.Queue }},
	}
	if !queued {
		return all
	}
	return append(all,
		replacement{"workers.min", ofTheFloor, func(d trainingjob.Definition) any { return d.Min }},
		replacement{"workers.floor_priority_class_name", ofTheFloor, func(d trainingjob.Definition) any { return d.FloorPriorityClassName }},
	)
}

// replacing finds the attributes that replace the job. Values that mean the same, however they are written, do not;
// one that is not known yet may be any, and does.
func replacing(ctx context.Context, stateRaw, planRaw tftypes.Value, state, plan *trainingJobModel) ([]replacement, diag.Diagnostics) {
	was, diags := state.definition(ctx)
	will, more := plan.definition(ctx)
	diags.Append(more...)
	var reasons []replacement
	for _, r := range replacements(was.Queue != nil && will.Queue != nil) {
		before, after := valueAt(stateRaw, r.attribute), valueAt(planRaw, r.attribute)
		if before.Equal(after) {
			continue
		}
		if !after.IsFullyKnown() || !equality.Semantic.DeepEqual(r.of(was), r.of(will)) {
			reasons = append(reasons, r)
		}
	}
	return reasons, diags
}

func replacementDetail(state *trainingJobModel, reasons []replacement) string {
	var b strings.Builder
	for _, r := range reasons {
		fmt.Fprintf(&b, "%s %s.\n", r.attribute, r.why)
	}
	b.WriteString("\n")
	done, total := state.StepsDone.ValueInt64(), state.StepsTotal.ValueInt64()
	switch trainingjob.Phase(state.Phase.ValueString()) {
	case trainingjob.PhaseSucceeded:
		fmt.Fprintf(&b, "The job has succeeded after %s steps; its objects are deleted", thousands(done))
	case trainingjob.PhaseFailed:
		fmt.Fprintf(&b, "The job has failed at step %s of %s; its objects are deleted", thousands(done), thousands(total))
	default:
		if total > 0 {
			fmt.Fprintf(&b, "The job is at step %s of %s (as of the last refresh); this work is lost. It is stopped, and its objects are deleted", thousands(done), thousands(total))
		} else {
			b.WriteString("The job has done no step yet (as of the last refresh). It is stopped, and its objects are deleted")
		}
	}
	if state.Output.ValueString() == "" {
		b.WriteString(", ConfigMap " + trainingjob.ModelName(state.Name.ValueString()) + " with its model among them. The new job begins anew.")
	} else {
		fmt.Fprintf(&b, ". What it wrote below %s stays. The new job begins anew, unless it finds there a checkpoint of the very same model, data and training.", state.Output.ValueString())
	}
	return b.String()
}

// thousands is 3,120 for 3120.
func thousands(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// keepEqualJSON plans the prior text where the configuration says the same JSON in other spelling.
type keepEqualJSON struct{}

func (keepEqualJSON) Description(context.Context) string { return "The spelling of JSON is no change." }

func (k keepEqualJSON) MarkdownDescription(ctx context.Context) string {
	return k.Description(ctx)
}

func (keepEqualJSON) PlanModifyString(ctx context.Context, req planmodifier.StringRequest, resp *planmodifier.StringResponse) {
	if req.StateValue.IsNull() || req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() || req.PlanValue.IsUnknown() {
		return
	}
	r := &reader{ctx: ctx}
	before := r.json(jsontypes.Normalized{StringValue: req.StateValue})
	after := r.json(jsontypes.Normalized{StringValue: req.PlanValue})
	if before != nil && reflect.DeepEqual(before, after) {
		resp.PlanValue = req.StateValue
	}
}
