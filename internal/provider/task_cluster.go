package provider

import (
	"context"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-log/tflog"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	controllerconstants "sigs.k8s.io/kueue/pkg/controller/constants"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/task"
	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
)

// taskCluster acts on the objects of one task.
type taskCluster struct {
	jobCluster
}

func newTaskCluster(client *cluster.Client, about subject) *taskCluster {
	return &taskCluster{jobCluster{client: client, subject: about, jobKind: jobKind{
		noun: "Task", word: "task", label: task.LabelTask,
		account: "A task with several nodes gets its own ServiceAccount, with a Role that lets its pods start together",
		lossOf:  task.LossOf, reserved: task.ReservedLabel,
		fields: []string{"spec.backoffLimit", "spec.ttlSecondsAfterFinished", "spec.activeDeadlineSeconds"},
	}}}
}

// check refuses, before anything is created, what the API server would accept but no controller would ever start. It
// skips what the account may not read. at is the attribute of a value, or the file.
func (c *taskCluster) check(ctx context.Context, t task.Task, at func(attribute string) path.Path) diag.Diagnostics {
	diags := c.checkPriorityClasses(ctx, classUse{at("priority_class_name"), t.PriorityClassName})
	if t.Queue == "" {
		return diags
	}
	diags.Append(c.checkLocalQueue(ctx, at("queue.name"), t.Namespace, t.Queue,
		": the task would never be admitted, and its Job would stay suspended. Nothing was created.")...)
	if diags.HasError() {
		return diags
	}
	return append(diags, c.checkWorkloadPriorityClass(ctx, at("queue.workload_priority_class"), t.PriorityClass)...)
}

// render makes the task's objects, for the flavors that its queue has.
func (c *taskCluster) render(ctx context.Context, t task.Task, secrets map[string]string) (*task.Objects, diag.Diagnostics) {
	var diags diag.Diagnostics
	given := task.Given{Secrets: secrets}
	if t.Queue != "" && len(t.Accelerators) > 0 {
		given.Flavors = c.flavors(ctx, t.Namespace, t.Queue)
	}
	objects, err := task.Render(t, given)
	if err != nil {
		diags.AddError(invalidTask, sentenceOf("", err.Error()))
	}
	return objects, diags
}

// flavors are the node labels of the flavors that a queue chooses from; nil if they are not known.
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

// createParts creates the objects that the Job owns, and starts the Job unless Kueue does. It returns the Job
// afterwards.
func (c *taskCluster) createParts(ctx context.Context, objects *task.Objects, job *batchv1.Job) (*batchv1.Job, diag.Diagnostics) {
	ref := task.JobRef{Name: job.Name, Namespace: job.Namespace, UID: job.UID}
	objects.Own(ref)
	diags := c.jobCluster.createParts(ctx, ref, objects.Parts(), func(task.Object) error { return nil })
	// Kueue puts a Job that names no queue into the namespace's default one, where there is one.
	if diags.HasError() || job.Labels[controllerconstants.QueueLabel] != "" {
		return job, diags
	}
	diags.Append(c.start(ctx, ref)...)
	job = job.DeepCopy()
	job.Spec.Suspend = new(false)
	return job, diags
}

// update changes the task in the cluster, as far as it can change while the Job exists. The plan has decided whether it
// can. Changes since then are refused by the API server, Kueue or check, which is called with the current version of
// the Job.
func (c *taskCluster) update(
	ctx context.Context, ref task.JobRef, parts []task.Object, before, after task.Task, at func(attribute string) path.Path, check func(*batchv1.Job) error,
) diag.Diagnostics {
	var diags diag.Diagnostics
	if equality.Semantic.DeepEqual(before, after) {
		return nil // only how an apply waits has changed, or how the task is written, which no object holds
	}
	if after.PriorityClass != "" && after.PriorityClass != before.PriorityClass && after.Queue != "" {
		if diags = c.checkWorkloadPriorityClass(ctx, at("queue.workload_priority_class"), after.PriorityClass); diags.HasError() {
			return diags
		}
	}
	if _, diags = c.mayChange(ctx, ref); diags.HasError() {
		return diags
	}
	annotations := mergeOf(before.Annotations, after.Annotations)
	labels := mergeOf(withQueue(before), withQueue(after))
	spec := map[string]any{}
	if before.Recovery.MaxRestartsOnErrors != after.Recovery.MaxRestartsOnErrors {
		spec["backoffLimit"] = after.Recovery.MaxRestartsOnErrors
	}
	if !equality.Semantic.DeepEqual(before.TTLSecondsAfterFinished, after.TTLSecondsAfterFinished) {
		spec["ttlSecondsAfterFinished"] = after.TTLSecondsAfterFinished // nil takes it away
	}
	if !equality.Semantic.DeepEqual(before.ActiveDeadlineSeconds, after.ActiveDeadlineSeconds) {
		spec["activeDeadlineSeconds"] = after.ActiveDeadlineSeconds
	}
	if err := c.patchJob(ctx, ref, jobPatch{labels, annotations, spec}, check); err != nil {
		c.subject.explain(&diags, err)
		return diags
	}
	return append(diags, c.patchParts(ctx, parts, mergeOf(before.Labels, after.Labels), annotations)...)
}

// withQueue are the labels that a Job has by its user's wish: Kueue's among them.
func withQueue(t task.Task) map[string]string {
	all := map[string]string{}
	maps.Copy(all, t.Labels)
	for key, value := range map[string]string{task.LabelQueue: t.Queue, task.LabelPriorityClass: t.PriorityClass} {
		if value != "" {
			all[key] = value
		}
	}
	return all
}

// workloadOf is Kueue's Workload of a Job: nil without a queue, and when there is none, or it cannot be read.
func workloadOf(ctx context.Context, client *cluster.Client, job *batchv1.Job) *kueue.Workload {
	if job.Labels[controllerconstants.QueueLabel] == "" {
		return nil
	}
	found, err := client.Kueue().Workloads(job.Namespace).List(ctx, metav1.ListOptions{LabelSelector: controllerconstants.JobUIDLabel + "=" + string(job.UID)})
	if err != nil {
		tflog.Warn(ctx, "the task's Workload cannot be read", map[string]any{"job": job.Namespace + "/" + job.Name, "error": err.Error()})
		return nil
	}
	if len(found.Items) == 0 {
		return nil
	}
	return &found.Items[0]
}
