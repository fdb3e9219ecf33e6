package provider

import (
	"context"
	"crypto/rand"
	"slices"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainingjob"
)

// trainingJobCluster acts on the objects of one training job.
type trainingJobCluster struct {
	jobCluster
}

func newTrainingJobCluster(client *cluster.Client, about subject) *trainingJobCluster {
	return &trainingJobCluster{jobCluster{client: client, subject: about, jobKind: jobKind{
		noun: "Training job", word: "job", label: trainingjob.LabelJobName,
		account: "The job's master gets a ServiceAccount of its own, with a Role of what it does",
	}}}
}

// classesOf are the uses of a training job.
func classesOf(d trainingjob.Definition) []classUse {
	return []classUse{
		{path.Root("master").AtName("priority_class_name"), d.Master.PriorityClassName},
		{path.Root("workers").AtName("priority_class_name"), d.Workers.PriorityClassName},
		{path.Root("workers").AtName("floor_priority_class_name"), d.FloorPriorityClassName},
	}
}

// check refuses, before anything is made, what the API server would take and nobody would ever start.
func (c *trainingJobCluster) check(ctx context.Context, d trainingjob.Definition) diag.Diagnostics {
	return append(c.checkPriorityClasses(ctx, classesOf(d)...), c.checkQueue(ctx, d)...)
}

// createJob makes the suspended Job that will own all the rest.
func (c *trainingJobCluster) createJob(ctx context.Context, d trainingjob.Definition) (*trainingjob.Objects, *batchv1.Job, diag.Diagnostics) {
	var diags diag.Diagnostics
	credentials, err := trainingjob.NewCredentials(rand.Reader, time.Now(), trainingjob.MasterName(d.Job.Name))
	if err != nil {
		diags.AddError("Cannot make the job's credentials", err.Error())
		return nil, nil, diags
	}
	objects, err := trainingjob.Render(d, credentials)
	if err != nil {
		diags.AddError("Not a training job that can run", err.Error())
		return nil, nil, diags
	}
	job, err := cluster.Create(ctx, c.client, c.client.Kubernetes().BatchV1().Jobs(d.Job.Namespace), objects.Job)
	if err != nil {
		c.subject.explain(&diags, err)
	}
	return objects, job, diags
}

// createParts makes what the Job owns, and then lets it start.
func (c *trainingJobCluster) createParts(ctx context.Context, objects *trainingjob.Objects, job trainingjob.JobRef) diag.Diagnostics {
	objects.Own(job)
	diags := c.jobCluster.createParts(ctx, job, objects.Parts(), func(part trainingjob.Object) error {
		if objects.Floor != nil && part == trainingjob.Object(objects.Floor) {
			return c.reach(ctx, objects)
		}
		return nil
	})
	if diags.HasError() {
		return diags
	}
	return append(diags, c.start(ctx, job)...)
}

// update makes the cluster hold what is asked for, where it can change while the job runs.
func (c *trainingJobCluster) update(ctx context.Context, ref trainingjob.JobRef, before, after trainingjob.Definition) diag.Diagnostics {
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
	parts := append([]trainingjob.Object{objects.Job}, objects.Parts()...)
	parts = slices.DeleteFunc(parts, func(part trainingjob.Object) bool { return part == trainingjob.Object(desired) }) // it is applied
	return append(diags, c.patchParts(ctx, parts, mergeOf(before.Labels, after.Labels), mergeOf(before.Annotations, after.Annotations))...)
}

// delete also lets go of the pods that a queue holds.
func (c *trainingJobCluster) delete(ctx context.Context, ref trainingjob.JobRef, ownAccount, queued bool) diag.Diagnostics {
	if queued {
		if err := c.disband(ctx, ref); err != nil {
			var diags diag.Diagnostics
			c.subject.explain(&diags, err)
			return diags
		}
	}
	return c.jobCluster.delete(ctx, ref, trainingjob.NamedParts(ref, ownAccount, queued))
}
