package provider

import (
	"context"
	"crypto/rand"
	"slices"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
	"github.com/elastic-training/terraform-provider-elastic/internal/cluster/jobparts"
)

// trainingJobCluster acts on the objects of one training job.
type trainingJobCluster struct {
	jobCluster
}

func newTrainingJobCluster(client *cluster.Client, about subject) *trainingJobCluster {
	return &trainingJobCluster{jobCluster{client: client, subject: about, jobKind: jobKind{
		noun: "Training job", word: "job", label: trainingjob.LabelJobName,
		account: "The job's master gets its own ServiceAccount, with a Role that has the permissions that it needs",
		lossOf:  trainingjob.LossOf, reserved: trainingjob.ReservedLabel, fields: []string{"spec.activeDeadlineSeconds"},
	}}}
}

// classesOf are the uses of a training job.
func classesOf(d trainingjob.Definition) []classUse {
	return []classUse{
		{path.Root("master").AtName("priority_class_name"), d.Master.PriorityClassName},
		{path.Root("workers").AtName("priority_class_name"), d.Workers.PriorityClassName},
		{path.Root("workers").AtName("min_priority_class_name"), d.MinPriorityClassName},
	}
}

// check refuses, before anything is created, what the API server would accept but no controller would ever start.
func (c *trainingJobCluster) check(ctx context.Context, d trainingjob.Definition) diag.Diagnostics {
	return append(c.checkPriorityClasses(ctx, classesOf(d)...), c.checkQueue(ctx, d)...)
}

// render makes the job's objects, with credentials of their own.
func (c *trainingJobCluster) render(d trainingjob.Definition) (*trainingjob.Objects, diag.Diagnostics) {
	var diags diag.Diagnostics
	credentials, err := trainingjob.NewCredentials(rand.Reader, time.Now(), trainingjob.MasterName(d.Job.Name))
	if err != nil {
		diags.AddError("Cannot create the job's credentials", err.Error())
		return nil, diags
	}
	objects, err := trainingjob.Render(d, credentials)
	if err != nil {
		diags.AddError(invalidTrainingJob, err.Error())
	}
	return objects, diags
}

// createParts creates the objects that the Job owns, and then starts it.
func (c *trainingJobCluster) createParts(ctx context.Context, objects *trainingjob.Objects, job trainingjob.JobRef) diag.Diagnostics {
	objects.Own(job)
	diags := c.jobCluster.createParts(ctx, job, objects.Parts(), func(part trainingjob.Object) error {
		if objects.MinJob != nil && part == trainingjob.Object(objects.MinJob) {
			return c.reach(ctx, objects)
		}
		return nil
	})
	if diags.HasError() {
		return diags
	}
	return append(diags, c.start(ctx, job)...)
}

// update changes the job in the cluster, as far as it can change while it runs. check is called with the versions of
// the Job and of the ConfigMap that the update then changes.
func (c *trainingJobCluster) update(
	ctx context.Context, ref trainingjob.JobRef, before, after trainingjob.Definition, check func(*batchv1.Job, *corev1.ConfigMap) error,
) diag.Diagnostics {
	var diags diag.Diagnostics
	fail := func(err error) diag.Diagnostics {
		c.subject.explain(&diags, err)
		return diags
	}
	if equality.Semantic.DeepEqual(before, after) {
		return nil // only how an apply waits has changed, which no object holds
	}
	job, diags := c.mayChange(ctx, ref)
	if diags.HasError() {
		return diags
	}
	credentials, err := c.credentials(ctx, ref)
	if err != nil {
		return fail(err)
	}
	objects, err := trainingjob.Render(after, credentials)
	if err != nil {
		diags.AddError(invalidTrainingJob, err.Error())
		return diags
	}
	objects.Own(ref)
	// After the job's end no program reads its ConfigMap, which may be gone.
	ended := trainingjob.JobCondition(job, batchv1.JobComplete) != nil || trainingjob.JobCondition(job, batchv1.JobFailed) != nil
	unread := func(err error) bool { return ended && apierrors.IsNotFound(err) }
	desired, configMaps := objects.ConfigMap, c.client.Kubernetes().CoreV1().ConfigMaps(ref.Namespace)
	labels, annotations := mergeOf(before.Labels, after.Labels), mergeOf(before.Annotations, after.Annotations)
	changes := jobPatch{labels: labels, annotations: annotations}
	deadline := !equality.Semantic.DeepEqual(before.ActiveDeadlineSeconds, after.ActiveDeadlineSeconds)
	if deadline {
		changes.spec = map[string]any{"activeDeadlineSeconds": after.ActiveDeadlineSeconds}
	}
	var checked *batchv1.Job
	err = c.patchJob(ctx, ref, changes, func(job *batchv1.Job) error {
		checked = job
		configMap, err := cluster.Get(ctx, c.client, configMaps, desired.Name)
		if unread(err) {
			return nil
		}
		if err != nil {
			return err
		}
		return check(job, configMap)
	})
	if err == nil {
		_, err = cluster.Apply(ctx, c.client, configMaps, desired, cluster.ApplyOptions[*corev1.ConfigMap]{
			Check: func(live *corev1.ConfigMap) error { return check(checked, live) },
		})
		if unread(err) {
			err = nil
		}
	}
	if err == nil && deadline && objects.MinJob != nil {
		minimum := trainingjob.JobRef{Name: trainingjob.MinJobName(ref.Name), Namespace: ref.Namespace}
		err = jobparts.Of(c.client, jobparts.Named(minimum)).Patch(ctx, specOf("activeDeadlineSeconds", after.ActiveDeadlineSeconds))
		if apierrors.IsNotFound(err) {
			err = nil // as patchParts does with parts that are not there
		}
	}
	if err != nil {
		return fail(err)
	}
	return append(diags, c.patchParts(ctx, slices.DeleteFunc(objects.Parts(), func(part trainingjob.Object) bool {
		return part == trainingjob.Object(desired) // it is applied
	}), labels, annotations)...)
}

// credentials are those of an existing job, with which its ConfigMap is signed; none if their Secret is gone, which the
// update then creates again.
func (c *trainingJobCluster) credentials(ctx context.Context, ref trainingjob.JobRef) (trainingjob.Credentials, error) {
	secret, err := cluster.Get(ctx, c.client, c.client.Kubernetes().CoreV1().Secrets(ref.Namespace), trainingjob.CredentialsName(ref.Name))
	if apierrors.IsNotFound(err) {
		return trainingjob.Credentials{}, nil
	}
	if err != nil {
		return trainingjob.Credentials{}, err
	}
	return trainingjob.CredentialsOf(secret), nil
}

// delete also releases the pods that a queue holds; see releaseGroup.
func (c *trainingJobCluster) delete(ctx context.Context, ref trainingjob.JobRef, parts []trainingjob.Object, queued bool) diag.Diagnostics {
	if queued {
		if err := c.disband(ctx, ref); err != nil {
			var diags diag.Diagnostics
			c.subject.explain(&diags, err)
			return diags
		}
	}
	return c.jobCluster.delete(ctx, ref, parts)
}
