package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
	"github.com/elastic-training/terraform-provider-elastic/internal/cluster/jobparts"
)

// jobCluster acts on the objects of one job: a batch/v1 Job that owns all others, and its pods. Jobs and tasks share it;
// job_create.go, job_delete.go and others have its operations.
type jobCluster struct {
	jobKind
	client  *cluster.Client
	subject subject
}

// jobKind holds what differs between training jobs and tasks when they are created, compared, deleted or explained.
type jobKind struct {
	noun    string // "Training job", to begin a sentence
	word    string // "job", to go on with
	label   string // key of the label with the job's name that every pod has
	account string // why the job gets a ServiceAccount of its own, in a sentence
	lossOf  func(job string, part trainingjob.Object) trainingjob.Loss
	// reserved reports whether a label is not the user's, and fields are the fields of the Job that attributes set.
	reserved func(label string) bool
	fields   []string
}

// pods are the pods of this job only.
func (c *jobCluster) pods(ctx context.Context, ref trainingjob.JobRef) ([]corev1.Pod, error) {
	return jobparts.Pods(ctx, c.client, c.label, ref)
}

// patchParts changes the metadata of a job's objects as far as they are there.
func (c *jobCluster) patchParts(ctx context.Context, parts []trainingjob.Object, labels, annotations map[string]any) diag.Diagnostics {
	var diags diag.Diagnostics
	if len(labels)+len(annotations) == 0 {
		return diags
	}
	merge := map[string]any{"metadata": map[string]any{"labels": labels, "annotations": annotations}}
	for _, part := range parts {
		if err := jobparts.Of(c.client, part).Patch(ctx, merge); err != nil && !apierrors.IsNotFound(err) {
			c.subject.explain(&diags, err)
			return diags
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
