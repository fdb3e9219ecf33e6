package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/task"
)

// respell decides the values of omitted attributes, and keeps the prior values of attributes that are only spelled
// differently.
func (r *taskResource) respell(ctx context.Context, req *resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) diag.Diagnostics {
	var config, state, plan taskModel
	diags := config.load(ctx, req.Config.Raw)
	diags.Append(plan.load(ctx, req.Plan.Raw)...)
	isUpdate := !req.State.Raw.IsNull()
	if isUpdate {
		diags.Append(state.load(ctx, req.State.Raw)...)
	}
	if diags.HasError() {
		return diags
	}
	plan.settle(ctx, &config, &state, r.version)
	diags.Append(plan.store(ctx, &req.Plan.Raw)...)
	if diags.HasError() {
		return diags
	}
	if isUpdate {
		attributes := taskSchema(ctx).Attributes
		settled := observedAsBefore(attributes, req.State.Raw, req.Plan.Raw)
		req.Plan.Raw = respelled(attributes, req.Config.Raw, req.State.Raw, settled, r.same(ctx))
	}
	resp.Plan.Raw = req.Plan.Raw
	return diags
}

// same reports whether two values of the resource make the same task, and whether an apply does the same about it.
func (r *taskResource) same(ctx context.Context) func(a, b tftypes.Value) bool {
	kind := taskSchema(ctx)
	of := func(raw tftypes.Value) (task.Task, bool) {
		var model taskModel
		if model.load(ctx, raw).HasError() {
			return task.Task{}, false
		}
		a, diags := model.spec(ctx)
		return a.complete(r.version), !diags.HasError()
	}
	isTask := map[string]bool{
		"name": true, "namespace": true, "labels": true, "annotations": true, "yaml": true, "queue": true,
		"ttl_seconds_after_finished": true,
	}
	for _, replacement := range taskReplacements() {
		isTask[replacement.attribute] = true
	}
	return func(a, b tftypes.Value) bool {
		if !sameOtherwise(kind.Attributes, a, b, isTask, jobTimeout) {
			return false
		}
		was, okWas := of(a)
		is, okIs := of(b)
		return okWas && okIs && task.Same(was, is)
	}
}

// settle sets attributes that are not configured: to null if the file sets them, or to their defaults. A state that is
// read from a cluster has no configuration, so that only its null attributes are set.
func (m *taskModel) settle(ctx context.Context, config, prior *taskModel, version string) {
	file, fileUnknown := task.Task{}, m.text("yaml").IsUnknown()
	if !fileUnknown {
		a, _ := m.spec(ctx) // a file that cannot be read is refused elsewhere
		file = a.file
	}
	settle := func(attribute string, inFile bool, byDefault any) {
		kind := taskSchema(ctx).Attributes[attribute].GetType()
		switch {
		case !config.defined[attribute].IsNull():
			return
		case inFile:
			byDefault = nil
		case fileUnknown:
			byDefault = tftypes.UnknownValue
		}
		m.defined[attribute], _ = kind.ValueFromTerraform(ctx, tftypes.NewValue(kind.TerraformType(ctx), byDefault)) // of its type
	}
	settle("setup", file.Setup != "", "")
	settle("image", file.Image != "", task.KeepDefaultImage(prior.text("image").ValueString()))
	if config.text("supervisor_image").IsNull() {
		m.defined["supervisor_image"] = types.StringValue(task.KeepDefaultTrainerImage(prior.text("supervisor_image").ValueString(), version))
	}
	nothing := map[string]tftypes.Value{}
	recovery, _ := taskSchema(ctx).Attributes["recovery"].GetType().TerraformType(ctx).(tftypes.Object)
	for name, kind := range recovery.AttributeTypes {
		nothing[name] = tftypes.NewValue(kind, nil)
	}
	settle("num_nodes", file.NumNodes > 1, 1)
	settle("recovery", file.Recovery.MaxRestartsOnErrors != 0 || len(file.Recovery.RecoverOnExitCodes) > 0, nothing)
	if config.text("image_pull_policy").IsNull() {
		m.defined["image_pull_policy"] = m.pullPolicy(file, fileUnknown)
	}
}

// pullPolicy is Kubernetes' default for the images of the task; null where the image of a gang's supervisor has
// another.
func (m *taskModel) pullPolicy(file task.Task, fileUnknown bool) types.String {
	image, trainer, nodes := m.text("image"), m.text("supervisor_image"), valueIn[types.Int64](m.defined, "num_nodes")
	if image.IsUnknown() || trainer.IsUnknown() || nodes.IsUnknown() || fileUnknown {
		return types.StringUnknown()
	}
	t := file
	if !image.IsNull() {
		t.Image = image.ValueString()
	}
	if !nodes.IsNull() {
		t.NumNodes = int(nodes.ValueInt64())
	}
	t.TrainerImage = trainer.ValueString()
	return textOrNull(string(t.Canonical().ImagePullPolicy))
}
