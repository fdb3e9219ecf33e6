package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainingjob"
)

// update makes the cluster hold what is asked for, where it can change while the job runs.
func (c *jobCluster) update(ctx context.Context, ref trainingjob.JobRef, before, after trainingjob.Definition) diag.Diagnostics {
	var diags diag.Diagnostics
	fail := func(err error) diag.Diagnostics {
		c.subject.explain(&diags, err)
		return diags
	}
	if equality.Semantic.DeepEqual(before, after) {
		return nil // only how an apply waits has changed, which no object holds
	}
	if err := c.isThere(ctx, ref); err != nil {
		return fail(err)
	}
	objects, err := trainingjob.Render(after, trainingjob.Credentials{})
	if err != nil {
		diags.AddError("Not a training job that can run", err.Error())
		return diags
	}
	objects.Own(ref)
	desired := objects.ConfigMap
	if _, err := cluster.Apply(ctx, c.client, c.client.Kubernetes().CoreV1().ConfigMaps(ref.Namespace), desired, cluster.ApplyOptions{}); err != nil {
		return fail(err)
	}
	labels, annotations := mergeOf(before.Labels, after.Labels), mergeOf(before.Annotations, after.Annotations)
	if len(labels)+len(annotations) == 0 {
		return diags
	}
	merge := map[string]any{"metadata": map[string]any{"labels": labels, "annotations": annotations}}
	for _, part := range append([]trainingjob.Object{objects.Job}, objects.Parts()...) {
		if part == trainingjob.Object(desired) {
			continue // applied above, with the rest of it
		}
		if err := c.part(part).patch(ctx, merge); err != nil && !apierrors.IsNotFound(err) {
			return fail(err)
		}
	}
	return diags
}

// mergeOf is the JSON merge patch of a string map: null takes an entry away.
func mergeOf(before, after map[string]string) map[string]any {
	merge := map[string]any{}
	for key := range before {
		if _, stays := after[key]; !stays {
			merge[key] = nil
		}
	}
	for key, value := range after {
		if old, had := before[key]; !had || old != value {
			merge[key] = value
		}
	}
	return merge
}
