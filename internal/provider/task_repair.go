package provider

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/task"
)

// repair creates what is missing of a task, a Secret with the values that the configuration gives.
func (c *taskCluster) repair(ctx context.Context, ref task.JobRef, t task.Task, parts []task.Object, secrets map[string]string) diag.Diagnostics {
	job, diags := c.mayChange(ctx, ref)
	if diags.HasError() {
		return diags
	}
	missing, diags := c.missingParts(ctx, ref, parts)
	if diags.HasError() || len(missing) == 0 {
		return diags
	}
	t = t.AsMade(job)
	values := maps.Clone(secrets)
	if values == nil {
		values = map[string]string{}
	}
	for _, name := range t.SecretValues {
		if _, given := values[name]; given {
			continue
		}
		if slices.ContainsFunc(missing, isSecret) {
			diags.AddAttributeError(path.Root("secrets_wo"), "A value of a secret is not known", fmt.Sprintf(
				"Secret %s/%s was deleted, and neither the state nor the configuration has its value %s. Give it in secrets_wo, or replace the task.",
				ref.Namespace, task.SecretName(ref.Name), name))
			return diags
		}
		values[name] = "" // of a Secret that is there
	}
	objects, err := task.Render(t, task.Given{Secrets: values})
	if err != nil {
		diags.AddError("Invalid task", sentenceOf("", err.Error()))
		return diags
	}
	objects.Own(ref)
	return c.createMissing(ctx, ref, objects.Parts(), missing, func(task.Object) error { return nil })
}
