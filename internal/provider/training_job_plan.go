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
	resp.Diagnostics.Append(plan.load(ctx, req.Plan.Raw)...)
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
		if d, problems := plan.definition(ctx); !problems.HasError() { // validation has reported the problem
			resp.Diagnostics.Append(r.checkReferences(ctx, req.State.Raw, planned, &plan, d, made)...)
			resp.Diagnostics.Append(r.forecast(ctx, planned, &state, d, made)...)
		}
	}()
	if made {
		return
	}
	resp.Diagnostics.Append(state.load(ctx, req.State.Raw)...)
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
	type group struct {
		why        string
		attributes []string
	}
	groups := []group{
		{isTheJob, []string{"name", "namespace"}},
		{decidesResult, []string{"model", "data", "training", "workers.command", "workers.elastic"}},
		{ofTheCommand, []string{"workers.processes", "workers.step", "workers.restart_interval_seconds"}},
		{ofTheRun, []string{"output"}},
		{ofItsState, []string{"checkpoint"}},
		{ofItsSteps, []string{"evaluation"}},
		{ofTheMaster, []string{"image", "image_pull_policy", "image_pull_secrets", "service_account_name", "volumes", "master"}},
		{"decides which Jobs make the pods, and which of them are admitted together", []string{"queue"}},
		{ofTheMinimum, []string{"topology"}},
	}
	if queued {
		groups = append(groups, group{ofTheMinimum, []string{"workers.min", "workers.min_priority_class_name"}})
	}
	var all []replacement[trainingjob.Definition]
	for _, g := range groups {
		for _, name := range g.attributes {
			all = append(all, replacement[trainingjob.Definition]{name, g.why, func(d trainingjob.Definition) any { return jobValue(d, name) }})
		}
	}
	return all
}

// jobValue is what a definition has for an attribute.
func jobValue(d trainingjob.Definition, attribute string) any {
	switch attribute {
	case "name":
		return d.Job.Name
	case "namespace":
		return d.Job.Namespace
	case "model":
		return []string{d.ModelText, d.Job.Model.Name}
	case "queue":
		return d.Queue.Classes()
	case "topology":
		return d.Queue.Place()
	default:
		return jobFields(&d)[attribute]
	}
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
		if model.load(ctx, raw).HasError() {
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
	if state.text("output").ValueString() == "" {
		b.WriteString(", ConfigMap " + trainingjob.ModelName(state.Name.ValueString()) + " with its model among them. The new job starts from the beginning.")
	} else {
		fmt.Fprintf(&b, ". Files below %s are kept. The new job starts from the beginning, unless it finds a checkpoint of the same model, data and training there.", state.text("output").ValueString())
	}
	return b.String()
}
