package provider

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/modelfile"
)

// ValidateConfig validates the job itself. It skips what depends on unknown values: Terraform validates again when it
// plans, and Create once more.
func (r *trainingJob) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	if resp.Diagnostics.Append(nullItems(req.Config.Raw)...); resp.Diagnostics.HasError() {
		return
	}
	defer func() {
		resp.Diagnostics = withoutRepetition(ctx, trainingJobSchema(ctx), req.Config.Raw, resp.Diagnostics)
	}()
	var model trainingJobModel
	diags := model.load(ctx, req.Config.Raw)
	isExample := model.exampleName()
	definition, more := model.definition(ctx)
	diags.Append(more...)
	if diags.HasError() {
		if req.Config.Raw.IsFullyKnown() {
			resp.Diagnostics.Append(diags...)
		}
		return
	}
	resp.Diagnostics.Append(checkTopologyQueue(model.at("topology"), model.at("queue"))...)
	known := func(p trainingjob.Problem) bool {
		if p.Field == "model" || p.Field == "data" || p.Field == "training" { // whether they are required depends on the mode
			if !isKnown(req.Config.Raw, "workers.elastic") || !isKnown(req.Config.Raw, "workers.command") {
				return false
			}
		}
		return isDecided(req.Config.Raw, p.Field, isExample)
	}
	appendProblems(&resp.Diagnostics, invalidTrainingJob, definition.Problems(), pathOf, known)
	if isKnown(req.Config.Raw, "model.content") && isKnown(req.Config.Raw, "workers.command") {
		resp.Diagnostics.Append(checkModelFile(definition)...)
	}
	appendSuspicions(&resp.Diagnostics, definition.Warnings(), pathOf, known)
}

const invalidTrainingJob = "Invalid training job"

// pathOf is the attribute that a problem's field names: "volumes[1].mount_path".
func pathOf(field string) path.Path {
	at := path.Empty()
	for step := range strings.SplitSeq(field, ".") {
		name, index, isIndexed := strings.Cut(strings.TrimSuffix(step, "]"), "[")
		at = at.AtName(name)
		if i, err := strconv.Atoi(index); isIndexed && err == nil {
			at = at.AtListIndex(i)
		}
	}
	return at
}

// isKnown reports whether all of the configuration at a field is known, and everything it is in.
func isKnown(config tftypes.Value, field string) bool { return valueAt(config, field).IsFullyKnown() }

// valueAt is the value at a field in the format of pathOf, or of the innermost value around it if the field is unknown
// or absent.
func valueAt(value tftypes.Value, field string) tftypes.Value {
	for step := range strings.SplitSeq(field, ".") {
		name, index, isIndexed := strings.Cut(strings.TrimSuffix(step, "]"), "[")
		var attributes map[string]tftypes.Value
		if !value.IsKnown() || value.IsNull() || value.As(&attributes) != nil {
			return value
		}
		value = attributes[name]
		if i, err := strconv.Atoi(index); isIndexed && err == nil {
			var items []tftypes.Value
			if !value.IsKnown() || value.IsNull() || value.As(&items) != nil {
				return value
			}
			if i >= len(items) {
				return tftypes.NewValue(tftypes.DynamicPseudoType, nil)
			}
			value = items[i]
		}
	}
	return value
}

// trainingJobName is the rule for names of jobs.
var trainingJobName = ownName("Invalid name for a training job",
	fmt.Sprintf("a DNS label of at most %d characters that begins with a letter", trainingjob.MaxNameLength), trainingjob.NameProblem)

// checkModelFile reads a job's model file as its master will: a mistake that the master would refuse is an error with
// its line, and a probable mistake a warning. It does not read a script of another framework.
func checkModelFile(d trainingjob.Definition) diag.Diagnostics {
	var diags diag.Diagnostics
	if d.ModelText == "" || len(d.Job.Command) > 0 {
		return diags
	}
	at := path.Root("model").AtName("content")
	_, report, err := modelfile.Load(at.String(), []byte(d.ModelText), modelfile.Options{LearningRate: d.Job.Training.LearningRate})
	if err != nil {
		diags.AddAttributeError(at, "Invalid model file", fmt.Sprintf("%s.\n\n"+
			"To check a model file and show its layers, run elastic-trainer model FILE. A script of another framework, such as PyTorch, needs workers.command.", err))
		return diags
	}
	for _, warning := range report.Warnings {
		diags.AddAttributeWarning(at, "Possible mistake in the model file", fmt.Sprintf("%s, %s.", at, warning))
	}
	return diags
}
