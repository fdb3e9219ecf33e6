package provider

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-log/tflog"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
	"github.com/elastic-training/terraform-provider-elastic/internal/kueue"
	"github.com/elastic-training/terraform-provider-elastic/internal/task"
)

// taskCluster acts on the objects of one task.
type taskCluster struct {
	jobCluster
}

func newTaskCluster(client *cluster.Client, about subject) *taskCluster {
	return &taskCluster{jobCluster{client: client, subject: about, jobKind: jobKind{
		noun: "Task", label: task.LabelTask,
		account: "The pods of several nodes get a ServiceAccount of their own, with a Role of what they do to start together",
	}}}
}

// check refuses, before anything is made, what the API server would take and nobody would ever start. Who may not read
// what it looks for is not checked. at is the attribute that says something, or the file.
func (c *taskCluster) check(ctx context.Context, t task.Task, at func(attribute string) path.Path) diag.Diagnostics {
	diags := c.checkPriorityClasses(ctx, classUse{at("priority_class_name"), t.PriorityClassName})
	if t.Queue == "" {
		return diags
	}
	_, err := cluster.Get(ctx, c.client, c.client.Kueue().LocalQueues(t.Namespace), t.Queue)
	switch {
	case cluster.IsNotServed(err):
		diags.AddAttributeError(at("queue"), "The cluster has no Kueue", fmt.Sprintf(
			"Its API server does not know LocalQueues: nobody would admit the task, and its Job would stay suspended for ever. Nothing was made. "+
				"Install Kueue (API version %s), or leave queue out, and the task starts at once.", kueue.SchemeGroupVersion))
		return diags
	case apierrors.IsNotFound(err):
		diags.AddAttributeWarning(at("queue"), "There is no such queue", fmt.Sprintf(
			"LocalQueue %s/%s does not exist; the task waits until it does. Where this configuration makes the queue, refer to it, so that it is made first: elastic_local_queue.NAME.name instead of %q.", t.Namespace, t.Queue, t.Queue))
	case err != nil && !apierrors.IsForbidden(err):
		c.subject.explain(&diags, err)
		return diags
	}
	if t.PriorityClass != "" {
		diags.Append(c.checkWorkloadPriorityClass(ctx, at("priority_class"), t.PriorityClass)...)
	}
	return diags
}

// createJob makes the suspended Job that will own all the rest.
func (c *taskCluster) createJob(ctx context.Context, t task.Task, secrets map[string]string) (*task.Objects, *batchv1.Job, diag.Diagnostics) {
	var diags diag.Diagnostics
	given := task.Given{Secrets: secrets}
	if t.Queue != "" && len(t.Accelerators) > 0 {
		given.Flavors = c.flavors(ctx, t.Namespace, t.Queue)
	}
	objects, err := task.Render(t, given)
	if err != nil {
		diags.AddError("Not a task that can run", sentenceOf("", err.Error()))
		return nil, nil, diags
	}
	job, err := cluster.Create(ctx, c.client, c.client.Kubernetes().BatchV1().Jobs(t.Namespace), objects.Job)
	if err != nil {
		c.subject.explain(&diags, err)
	}
	return objects, job, diags
}

// flavors are the node labels of the flavors that a queue chooses from; nil where they cannot be told.
func (c *taskCluster) flavors(ctx context.Context, namespace, queue string) []map[string]string {
	unknown := func(err error) []map[string]string {
		tflog.Debug(ctx, "the queue's flavors cannot be read", map[string]any{"queue": namespace + "/" + queue, "error": err.Error()})
		return nil
	}
	local, err := cluster.Get(ctx, c.client, c.client.Kueue().LocalQueues(namespace), queue)
	if err != nil {
		return unknown(err)
	}
	clusterQueue, err := cluster.Get(ctx, c.client, c.client.Kueue().ClusterQueues(), string(local.Spec.ClusterQueue))
	if err != nil {
		return unknown(err)
	}
	labels := []map[string]string{}
	for _, group := range clusterQueue.Spec.ResourceGroups {
		for _, quotas := range group.Flavors {
			flavor, err := cluster.Get(ctx, c.client, c.client.Kueue().ResourceFlavors(), string(quotas.Name))
			if err != nil {
				return unknown(err)
			}
			labels = append(labels, flavor.Spec.NodeLabels)
		}
	}
	return labels
}

// createParts makes what the Job owns, and lets it start where Kueue does not. It returns the Job as it is then.
func (c *taskCluster) createParts(ctx context.Context, objects *task.Objects, job *batchv1.Job) (*batchv1.Job, diag.Diagnostics) {
	var diags diag.Diagnostics
	ref := task.JobRef{Name: job.Name, Namespace: job.Namespace, UID: job.UID}
	objects.Own(ref)
	for i, part := range objects.Parts() {
		if err := c.createPart(ctx, part, ref); err != nil {
			c.explainPart(&diags, part, err)
			diags.AddWarning("The task is incomplete, and cannot start", fmt.Sprintf(
				"Job %s/%s and %d of its %d other objects exist. All are in the state: "+
					"the next terraform apply removes them and begins anew, and terraform destroy removes them.", job.Namespace, job.Name, i, len(objects.Parts())))
			return job, diags
		}
	}
	// Kueue puts a Job that names no queue into the namespace's default one, where there is one.
	if job.Labels[kueue.QueueLabel] != "" {
		return job, diags
	}
	resume := map[string]any{"metadata": map[string]any{"uid": job.UID}, "spec": map[string]any{"suspend": false}}
	if err := c.part(objects.Job).patch(ctx, resume); err != nil {
		c.subject.explain(&diags, err)
		return job, diags
	}
	job = job.DeepCopy()
	job.Spec.Suspend = new(false)
	return job, diags
}

// update makes the cluster hold what is asked for, where it can change while the Job lives. Whether it can was decided
// by the plan; what has happened since then, the API server or Kueue refuses.
func (c *taskCluster) update(ctx context.Context, ref task.JobRef, parts []task.Object, before, after task.Task, at func(attribute string) path.Path) diag.Diagnostics {
	var diags diag.Diagnostics
	if equality.Semantic.DeepEqual(before, after) {
		return nil // only how an apply waits has changed, or how the task is written, which no object holds
	}
	if after.PriorityClass != "" && after.PriorityClass != before.PriorityClass && after.Queue != "" {
		if diags = c.checkWorkloadPriorityClass(ctx, at("priority_class"), after.PriorityClass); diags.HasError() {
			return diags
		}
	}
	if err := c.isThere(ctx, ref); err != nil {
		c.subject.explain(&diags, err)
		return diags
	}
	metadata := map[string]any{"labels": mergeOf(before.Labels, after.Labels), "annotations": mergeOf(before.Annotations, after.Annotations)}
	ofJob := map[string]any{
		"uid":         ref.UID,
		"labels":      mergeOf(withQueue(before), withQueue(after)),
		"annotations": metadata["annotations"],
	}
	spec := map[string]any{}
	if before.Recovery.MaxRestartsOnErrors != after.Recovery.MaxRestartsOnErrors {
		spec["backoffLimit"] = after.Recovery.MaxRestartsOnErrors
	}
	if !equality.Semantic.DeepEqual(before.TTLSecondsAfterFinished, after.TTLSecondsAfterFinished) {
		spec["ttlSecondsAfterFinished"] = after.TTLSecondsAfterFinished // nil takes it away
	}
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: ref.Name, Namespace: ref.Namespace}}
	if err := c.part(job).patch(ctx, map[string]any{"metadata": ofJob, "spec": spec}); err != nil {
		c.subject.explain(&diags, err)
		return diags
	}
	if equality.Semantic.DeepEqual(before.Labels, after.Labels) && equality.Semantic.DeepEqual(before.Annotations, after.Annotations) {
		return diags
	}
	for _, part := range parts {
		if err := c.part(part).patch(ctx, map[string]any{"metadata": metadata}); err != nil && !apierrors.IsNotFound(err) {
			c.subject.explain(&diags, err)
			return diags
		}
	}
	return diags
}

// withQueue are the labels that a Job has by its user's wish: Kueue's among them.
func withQueue(t task.Task) map[string]string {
	all := map[string]string{}
	for key, value := range t.Labels {
		all[key] = value
	}
	for key, value := range map[string]string{task.LabelQueue: t.Queue, task.LabelPriorityClass: t.PriorityClass} {
		if value != "" {
			all[key] = value
		}
	}
	return all
}

// delete removes a task: its Job, in the foreground, and its pods; then what else it owns, which Kubernetes' garbage
// collector has usually removed by then.
func (c *taskCluster) delete(ctx context.Context, ref task.JobRef, parts []task.Object) diag.Diagnostics {
	var diags diag.Diagnostics
	if err := c.deleteJob(ctx, ref); err != nil {
		c.explainStuck(ctx, &diags, ref, err)
		return diags
	}
	for _, part := range parts {
		if err := c.deletePart(ctx, part, ref); err != nil {
			c.subject.explain(&diags, err)
		}
	}
	return diags
}

// workloadOf is Kueue's Workload of a Job: nil without a queue, and when there is none, or it cannot be read.
func workloadOf(ctx context.Context, client *cluster.Client, job *batchv1.Job) *kueue.Workload {
	if job.Labels[kueue.QueueLabel] == "" {
		return nil
	}
	found, err := client.Kueue().Workloads(job.Namespace).List(ctx, metav1.ListOptions{LabelSelector: kueue.JobUIDLabel + "=" + string(job.UID)})
	if err != nil {
		tflog.Warn(ctx, "the task's Workload cannot be read", map[string]any{"job": job.Namespace + "/" + job.Name, "error": err.Error()})
		return nil
	}
	if len(found.Items) == 0 {
		return nil
	}
	return &found.Items[0]
}
