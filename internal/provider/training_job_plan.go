package provider

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/wording"
)

// ModifyPlan decides which changes replace the job, reports what is lost, and checks the objects that the job refers
// to. It keeps the attributes that the master reports, unless the update waits for new values of them.
func (r *trainingJob) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if req.Plan.Raw.IsNull() {
		return // delete
	}
	var state, plan trainingJobModel
	resp.Diagnostics.Append(settlePullPolicy(ctx, req.Config, &req.Plan)...)
	if resp.Diagnostics.HasError() {
		return
	}
	named, replaces := settledNames(req.Config.Raw, req.State.Raw, req.Plan.Raw)
	req.Plan.Raw, resp.Plan.Raw = named, named
	if !req.State.Raw.IsNull() {
		attributes := trainingJobSchema(ctx).Attributes
		planned := observedAsBefore(attributes, req.State.Raw, req.Plan.Raw)
		req.Plan.Raw = respelled(attributes, req.Config.Raw, req.State.Raw, planned, sameTrainingJob(ctx))
		resp.Plan.Raw = req.Plan.Raw
	}
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	if resp.Diagnostics.HasError() {
		return
	}
	made := req.State.Raw.IsNull()
	defer func() {
		made = made || len(resp.RequiresReplace) > 0
		if isNamedLater(req.Config.Raw, req.State.Raw, made) {
			return
		}
		planned := plan.withPlannedName(req.Plan.Raw, &r.connection.names)
		resp.Diagnostics.Append(r.checkReferences(ctx, req.State.Raw, planned, &plan, made)...)
		resp.Diagnostics.Append(r.forecast(ctx, planned, &state, &plan, made)...)
	}()
	if made {
		return
	}
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() {
		return
	}
	what := "Training job " + state.subject().importID
	trainingJobDrift(ctx).warn(ctx, what, req, &resp.Diagnostics)
	jobChange{
		what: what, state: state.jobModel, plan: plan.jobModel,
		finished: trainingjob.Phase(state.Phase.ValueString()).Finished(), observed: observedAttributes(),
		reasons: func() ([]reasonToReplace, diag.Diagnostics) {
			reasons, diags := replacing(ctx, req.State.Raw, req.Plan.Raw, &state, &plan)
			return append(renamed(replaces), reasons...), diags
		},
		lost:  func() string { return lostByReplacing(&state) },
		parts: state.parts, lossOf: trainingjob.LossOf,
	}.decide(ctx, req, resp)
}

const (
	isTheJob      = "names the job's objects"
	decidesResult = "decides the model that the run ends with"
	ofTheMaster   = "belongs to the master's pod, which Kubernetes does not change while it runs"
	ofTheCommand  = "says how the command is started, which master and workers read when they start"
	ofTheRun      = "is where the run writes"
	ofItsSteps    = "is where the run stops between two steps"
	ofItsState    = "is when and where the run keeps its state"
	ofTheMinimum  = "belongs to the pods that the queue has admitted as one group"
)

// replacements are all of them; the other attributes change in place.
func replacements(queued bool) []replacement[trainingjob.Definition] {
	all := []replacement[trainingjob.Definition]{
		{"name", isTheJob, func(d trainingjob.Definition) any { return d.Job.Name }},
		{"namespace", isTheJob, func(d trainingjob.Definition) any { return d.Job.Namespace }},
		{"model", decidesResult, func(d trainingjob.Definition) any { return []string{d.ModelText, d.Job.Model.Name} }},
		{"data", decidesResult, func(d trainingjob.Definition) any { return d.Job.Data }},
		{"training", decidesResult, func(d trainingjob.Definition) any { return d.Job.Training }},
		{"workers.command", decidesResult, func(d trainingjob.Definition) any { return d.Job.Command }},
		{"workers.elastic", decidesResult, func(d trainingjob.Definition) any { return d.Job.Elastic }},
		{"workers.processes", ofTheCommand, func(d trainingjob.Definition) any { return d.Job.Processes() }},
		{"workers.step", ofTheCommand, func(d trainingjob.Definition) any { return d.Job.Multiple() }},
		{"workers.restart_interval_seconds", ofTheCommand, func(d trainingjob.Definition) any { return d.Job.RestartInterval() }},
		{"output", ofTheRun, func(d trainingjob.Definition) any { return d.Job.Output }},
		{"checkpoint", ofItsState, func(d trainingjob.Definition) any { return d.Job.Checkpoint }},
		{"evaluation", ofItsSteps, func(d trainingjob.Definition) any { return d.Job.Evaluation }},
		{"image", ofTheMaster, func(d trainingjob.Definition) any { return d.Image }},
		{"image_pull_policy", ofTheMaster, func(d trainingjob.Definition) any { return d.ImagePullPolicy }},
		{"image_pull_secrets", ofTheMaster, func(d trainingjob.Definition) any { return d.ImagePullSecrets }},
		{"service_account_name", ofTheMaster, func(d trainingjob.Definition) any { return d.ServiceAccountName }},
		{"volumes", ofTheMaster, func(d trainingjob.Definition) any { return d.Volumes }},
		{"master", ofTheMaster, func(d trainingjob.Definition) any { return d.Master }},
		{"queue", "decides which Jobs make the pods, and which of them are admitted together", func(d trainingjob.Definition) any { return d.Queue.Classes() }},
		{"topology", ofTheMinimum, func(d trainingjob.Definition) any { return d.Queue.Place() }},
	}
	if !queued {
		return all
	}
	return append(all, []replacement[trainingjob.Definition]{
		{"workers.min", ofTheMinimum, func(d trainingjob.Definition) any { return d.Min }},
		{"workers.min_priority_class_name", ofTheMinimum, func(d trainingjob.Definition) any { return d.MinPriorityClassName }},
	}...)
}

// replacing finds the attributes that replace the job. Values that mean the same, however they are written, do not;
// one that is not known yet may be any, and does.
func replacing(ctx context.Context, stateRaw, planRaw tftypes.Value, state, plan *trainingJobModel) ([]reasonToReplace, diag.Diagnostics) {
	was, diags := state.definition(ctx)
	will, more := plan.definition(ctx)
	diags.Append(more...)
	was, will = was.Canonical(), will.Canonical()
	var reasons []reasonToReplace
	for _, r := range replacements(was.Queue != nil && will.Queue != nil) {
		before, after := valueAt(stateRaw, r.attribute), valueAt(planRaw, r.attribute)
		if before.Equal(after) {
			continue
		}
		if !after.IsFullyKnown() || !equality.Semantic.DeepEqual(r.of(was), r.of(will)) {
			reasons = append(reasons, reasonToReplace{at: pathOf(r.attribute), why: r.attribute + " " + r.why})
		}
	}
	return reasons, diags
}

// settlePullPolicy plans Kubernetes' default for the image where no policy is configured.
func settlePullPolicy(ctx context.Context, config tfsdk.Config, plan *tfsdk.Plan) diag.Diagnostics {
	var configured, image types.String
	diags := config.GetAttribute(ctx, path.Root("image_pull_policy"), &configured)
	diags.Append(plan.GetAttribute(ctx, path.Root("image"), &image)...)
	if diags.HasError() || !configured.IsNull() {
		return diags
	}
	policy := types.StringUnknown()
	if !image.IsUnknown() {
		policy = types.StringValue(string(trainingjob.PullPolicy(image.ValueString())))
	}
	return append(diags, plan.SetAttribute(ctx, path.Root("image_pull_policy"), policy)...)
}

// sameTrainingJob reports whether two values of the resource make the same job, and whether an apply does the same about
// it.
func sameTrainingJob(ctx context.Context) func(a, b tftypes.Value) bool {
	kind := trainingJobSchema(ctx)
	of := func(raw tftypes.Value) (trainingjob.Definition, bool) {
		var model trainingJobModel
		if (&tfsdk.State{Schema: kind, Raw: raw}).Get(ctx, &model).HasError() {
			return trainingjob.Definition{}, false
		}
		definition, diags := model.definition(ctx)
		return definition, !diags.HasError()
	}
	isJob := map[string]bool{"labels": true, "annotations": true, "workers": true}
	for _, replacement := range replacements(false) {
		isJob[replacement.attribute] = true
	}
	return func(a, b tftypes.Value) bool {
		if !sameOtherwise(kind.Attributes, a, b, isJob, jobTimeout) {
			return false
		}
		was, okWas := of(a)
		is, okIs := of(b)
		return okWas && okIs && trainingjob.Same(was, is)
	}
}

func lostByReplacing(state *trainingJobModel) string {
	var b strings.Builder
	done, total := state.StepsDone.ValueInt64(), state.StepsTotal.ValueInt64()
	switch trainingjob.Phase(state.Phase.ValueString()) {
	case trainingjob.PhaseSucceeded:
		fmt.Fprintf(&b, "The job has succeeded after %s steps; its objects are deleted", wording.Count(done))
	case trainingjob.PhaseFailed:
		fmt.Fprintf(&b, "The job has failed at step %s of %s; its objects are deleted", wording.Count(done), wording.Count(total))
	default:
		if total > 0 {
			fmt.Fprintf(&b, "The job is at step %s of %s (as of the last refresh); this work is lost. It is stopped, and its objects are deleted", wording.Count(done), wording.Count(total))
		} else {
			b.WriteString("The job has done no step yet (as of the last refresh). It is stopped, and its objects are deleted")
		}
	}
	if state.Output.ValueString() == "" {
		b.WriteString(", ConfigMap " + trainingjob.ModelName(state.Name.ValueString()) + " with its model among them. The new job starts from the beginning.")
	} else {
		fmt.Fprintf(&b, ". Files below %s are kept. The new job starts from the beginning, unless it finds a checkpoint of the same model, data and training there.", state.Output.ValueString())
	}
	return b.String()
}
