package provider

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/task"
)

// ValidateConfig validates the task itself. It skips what depends on unknown values: Terraform validates again when it
// plans, and Create once more.
func (r *taskResource) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	if resp.Diagnostics.Append(nullItems(req.Config.Raw)...); resp.Diagnostics.HasError() {
		return
	}
	defer func() {
		resp.Diagnostics = withoutRepetition(ctx, taskSchema(ctx), req.Config.Raw, resp.Diagnostics)
	}()
	var model taskModel
	diags := model.load(ctx, req.Config.Raw)
	isExample := model.exampleName()
	a, more := model.spec(ctx)
	diags.Append(more...)
	if diags.HasError() {
		if req.Config.Raw.IsFullyKnown() || onlyAbout(diags, path.Root("yaml")) {
			resp.Diagnostics.Append(diags...)
		}
		return
	}
	if given := model.defined["secrets_wo"]; !absent(given) && len(keysOf(given)) == 0 {
		resp.Diagnostics.AddAttributeError(path.Root("secrets_wo"), "No secrets", "secrets_wo is empty. Add an environment variable to it, or remove it and secrets_wo_version.")
	}
	for _, at := range a.contradicted {
		resp.Diagnostics.AddAttributeError(at, "Conflicting configuration", fmt.Sprintf("%s is also set by the task file. Remove one of the two.", at))
	}
	known := func(p task.Problem) bool {
		return !model.text("yaml").IsUnknown() && isDecided(req.Config.Raw, p.Field, isExample)
	}
	t, at := a.complete(r.version), attributeOrFile(req.Config.Raw)
	appendProblems(&resp.Diagnostics, invalidTask, t.Problems(), at, known)
	for _, warning := range a.warnings {
		resp.Diagnostics.AddAttributeWarning(path.Root("yaml"), "Setting without effect in the task file", fmt.Sprintf("Line %d: %s.", warning.Line, warning.Message))
	}
	appendSuspicions(&resp.Diagnostics, t.Warnings(), at, known)
}

const invalidTask = "Invalid task"

// attributeOrFile finds the attribute of a problem's field, or the file if only that sets it.
func attributeOrFile(config tftypes.Value) func(field string) path.Path {
	return func(field string) path.Path {
		name, _, _ := strings.Cut(field, ".")
		name, _, _ = strings.Cut(name, "[")
		var attributes map[string]tftypes.Value
		if config.As(&attributes) == nil && !attributes["yaml"].IsNull() && (attributes[name].IsNull() || valueAt(config, field).IsNull()) {
			return path.Root("yaml")
		}
		return pathOf(field)
	}
}

// onlyAbout reports whether all errors are about one attribute, which is known then.
func onlyAbout(diags diag.Diagnostics, at path.Path) bool {
	return !slices.ContainsFunc(diags.Errors(), func(d diag.Diagnostic) bool {
		with, ok := d.(diag.DiagnosticWithPath)
		return !ok || !with.Path().Equal(at)
	})
}
