package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/task"
)

// respell decides the values of omitted attributes, and keeps the prior values of attributes that are only spelled
// differently.
func (r *taskResource) respell(ctx context.Context, req *resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) diag.Diagnostics {
	var config, state, plan taskModel
	diags := req.Config.Get(ctx, &config)
	diags.Append(req.Plan.Get(ctx, &plan)...)
	isUpdate := !req.State.Raw.IsNull()
	if isUpdate {
		diags.Append(req.State.Get(ctx, &state)...)
	}
	if diags.HasError() {
		return diags
	}
	plan.settle(ctx, &config, &state, r.version)
	diags.Append(req.Plan.Set(ctx, &plan)...)
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
		if (&tfsdk.State{Schema: kind, Raw: raw}).Get(ctx, &model).HasError() {
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
	file, fileUnknown := task.Task{}, m.YAML.IsUnknown()
	if !fileUnknown {
		a, _ := m.spec(ctx) // a file that cannot be read is refused elsewhere
		file = a.file
	}
	text := func(to *types.String, configured types.String, inFile bool, byDefault string) {
		switch {
		case !configured.IsNull():
		case inFile:
			*to = types.StringNull()
		case fileUnknown:
			*to = types.StringUnknown()
		default:
			*to = types.StringValue(byDefault)
		}
	}
	text(&m.Setup, config.Setup, file.Setup != "", "")
	text(&m.Image, config.Image, file.Image != "", task.KeepDefaultImage(prior.Image.ValueString()))
	if config.TrainerImage.IsNull() {
		m.TrainerImage = types.StringValue(task.KeepDefaultTrainerImage(prior.TrainerImage.ValueString(), version))
	}
	recovery := attributesOf(taskSchema(ctx).Attributes["recovery"].GetType())
	switch {
	case !config.NumNodes.IsNull():
	case file.NumNodes > 1:
		m.NumNodes = types.Int64Null()
	case fileUnknown:
		m.NumNodes = types.Int64Unknown()
	default:
		m.NumNodes = types.Int64Value(1)
	}
	switch r := file.Recovery; {
	case !config.Recovery.IsNull():
	case r.MaxRestartsOnErrors != 0 || len(r.RecoverOnExitCodes) > 0:
		m.Recovery = types.ObjectNull(recovery)
	case fileUnknown:
		m.Recovery = types.ObjectUnknown(recovery)
	default:
		nothing := map[string]attr.Value{}
		for name, kind := range recovery {
			nothing[name], _ = kind.ValueFromTerraform(ctx, tftypes.NewValue(kind.TerraformType(ctx), nil)) // every type has null
		}
		m.Recovery = types.ObjectValueMust(recovery, nothing)
	}
	if config.ImagePullPolicy.IsNull() {
		m.ImagePullPolicy = m.pullPolicy(file, fileUnknown)
	}
}

// pullPolicy is Kubernetes' default for the images of the task; null where the image of a gang's supervisor has
// another.
func (m *taskModel) pullPolicy(file task.Task, fileUnknown bool) types.String {
	if m.Image.IsUnknown() || m.TrainerImage.IsUnknown() || m.NumNodes.IsUnknown() || fileUnknown {
		return types.StringUnknown()
	}
	t := file
	if !m.Image.IsNull() {
		t.Image = m.Image.ValueString()
	}
	if !m.NumNodes.IsNull() {
		t.NumNodes = int(m.NumNodes.ValueInt64())
	}
	t.TrainerImage = m.TrainerImage.ValueString()
	return textOrNull(string(t.Canonical().ImagePullPolicy))
}
