package provider

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	batchv1 "k8s.io/api/batch/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/task"
	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
)

// repair creates what is missing of a task, and sets back what others have changed in its objects and the plan has
// shown: a Secret has the values that the configuration gives. prior is the task as the plan saw it.
func (c *taskCluster) repair(ctx context.Context, prior *jobModel, t task.Task, parts []task.Object, secrets map[string]string) diag.Diagnostics {
	ref := prior.ref()
	job, diags := c.mayChange(ctx, ref)
	if diags.HasError() {
		return diags
	}
	missing, _, diags := c.missingParts(ctx, ref, parts)
	if diags.HasError() || len(missing) == 0 && !prior.isChanged() {
		return diags
	}
	t = t.AsMade(job)
	values := maps.Clone(secrets)
	if values == nil {
		values = map[string]string{}
	}
	secret := cluster.Ref{Kind: "Secret", Namespace: ref.Namespace, Name: task.SecretName(ref.Name)}
	for _, name := range t.SecretValues {
		if _, given := values[name]; given {
			continue
		}
		lost := ""
		switch {
		case slices.ContainsFunc(missing, isSecret):
			lost = "deleted"
		case prior.wasChanged(fmt.Sprintf("%s: data.%s", secret, name)):
			lost = "changed"
		}
		if lost != "" {
			diags.AddAttributeError(path.Root("secrets_wo"), "Unknown secret value", fmt.Sprintf(
				"%s was %s, and neither the state nor the configuration contains its value %s. Set it in secrets_wo, or replace the task.", secret, lost, name))
			return diags
		}
		values[name] = "" // of a Secret that exists
	}
	objects, err := task.Render(t, task.Given{Secrets: values})
	if err != nil {
		diags.AddError(invalidTask, sentenceOf("", err.Error()))
		return diags
	}
	objects.Own(ref)
	diags = c.createMissing(ctx, ref, objects.Parts(), missing, func(task.Object) error { return nil })
	if diags.HasError() {
		return diags
	}
	return append(diags, c.restore(ctx, prior, job, append([]task.Object{objects.Job}, objects.Parts()...))...)
}

// madeOf are the objects with which an existing task was created, without the values of its Secret.
func (m *taskModel) madeOf(ctx context.Context, job *batchv1.Job, version string) ([]task.Object, error) {
	a, diags := m.spec(ctx)
	if diags.HasError() {
		return nil, &unreadableJobError{diags: diags}
	}
	t := a.complete(version).AsMade(job)
	given := task.Given{Secrets: map[string]string{}}
	for _, name := range t.SecretValues {
		given.Secrets[name] = ""
	}
	objects, err := task.Render(t, given)
	if err != nil {
		return nil, err
	}
	if objects.Secret != nil {
		for name := range objects.Secret.Data {
			objects.Secret.Data[name] = nil // not known
		}
	}
	objects.Own(m.ref())
	return append([]task.Object{objects.Job}, objects.Parts()...), nil
}
