package provider

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/action"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
	"github.com/elastic-training/terraform-provider-elastic/internal/kueue"
	"github.com/elastic-training/terraform-provider-elastic/internal/task"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainingjob"
)

const whereJob = "Namespace of the job; `default` by default."

func newJobSuspend() action.Action {
	return &onNamed{
		name: "job_suspend", object: "training job or task", namespace: whereJob, invoke: suspending(true),
		description: "Suspends a training job or a task: its pods end, in good order, and its place is free for others until it is resumed. " +
			"A training job goes on from its newest checkpoint then, which its master writes before it ends; a task begins anew. " +
			"Of a job in a queue the Workload is made inactive, so that the queue does not admit it again by itself.",
	}
}

func newJobResume() action.Action {
	return &onNamed{
		name: "job_resume", object: "training job or task", namespace: whereJob, invoke: suspending(false),
		description: "Resumes a job that was suspended by `elastic_job_suspend`: it runs as soon as there is room, or its queue admits it.",
	}
}

func newJobCheckpoint() action.Action {
	return &onNamed{
		name: "job_checkpoint", object: "training job", namespace: whereJob, invoke: checkpoint,
		description: "Has a training job write a checkpoint of its newest state now, besides those that it writes by itself, and waits until it is there: " +
			"before a node pool is upgraded, for instance.",
	}
}

// jobOf is the Job of a training job or task, by the label with its own name.
func jobOf(ctx context.Context, client *cluster.Client, on named, labels ...string) (*batchv1.Job, error) {
	job, err := cluster.Get(ctx, client, client.Kubernetes().BatchV1().Jobs(on.namespace), on.name)
	if err != nil {
		return nil, err
	}
	for _, label := range labels {
		if job.Labels[label] == on.name {
			if jobCondition(job, batchv1.JobComplete) != nil || jobCondition(job, batchv1.JobFailed) != nil {
				return nil, refuse("The job has ended", "Job %s/%s is complete or has failed: nothing of it runs any more.", on.namespace, on.name)
			}
			return job, nil
		}
	}
	return nil, refuse("Not a job of this provider's", "Job %s/%s has none of the labels %v with its name: it was not made by elastic_training_job or elastic_task.", on.namespace, on.name, labels)
}

// suspending suspends a job, or resumes it: in a queue by its Workload, and by itself elsewhere.
func suspending(suspend bool) func(context.Context, *cluster.Client, named, func(string)) error {
	return func(ctx context.Context, client *cluster.Client, on named, tell func(string)) error {
		if on.namespace == "" {
			on.namespace = metav1.NamespaceDefault
		}
		job, err := jobOf(ctx, client, on, trainingjob.LabelJobName, task.LabelTask)
		if err != nil {
			return err
		}
		options := metav1.PatchOptions{FieldManager: client.FieldManager()}
		if queued := job.Labels[kueue.QueueLabel] != "" || trainingjob.GroupOf(job.Spec.Template.Labels) != ""; queued {
			workload := workloadOf(ctx, client, job)
			if workload == nil {
				workload = groupOf(ctx, client, job)
			}
			if workload == nil {
				return refuse("The job has no Workload", "Kueue has made none of Job %s/%s yet, or it may not be read. Try again in a moment.", on.namespace, on.name)
			}
			_, err = client.Kueue().Workloads(on.namespace).Patch(ctx, workload.Name, types.MergePatchType, fmt.Appendf(nil, `{"spec":{"active":%t}}`, !suspend), options)
			err = client.Wrap("patch", cluster.Ref{Kind: "Workload", Namespace: on.namespace, Name: workload.Name}, err)
		} else {
			_, err = client.Kubernetes().BatchV1().Jobs(on.namespace).Patch(ctx, on.name, types.MergePatchType, fmt.Appendf(nil, `{"spec":{"suspend":%t}}`, suspend), options)
			err = client.Wrap("patch", cluster.Ref{Kind: "Job", Namespace: on.namespace, Name: on.name}, err)
		}
		if err != nil {
			return err
		}
		if !suspend {
			tell(fmt.Sprintf("job %s/%s is resumed: it runs as soon as there is room", on.namespace, on.name))
			return nil
		}
		tell(fmt.Sprintf("job %s/%s is suspended; its pods are ending", on.namespace, on.name))
		return cluster.WaitFor(ctx, client, client.Kubernetes().BatchV1().Jobs(on.namespace), cluster.Named(on.name), func(found []*batchv1.Job) (bool, error) {
			return len(found) == 0 || found[0].Status.Active == 0, nil
		})
	}
}

// checkpoint asks a job's master for one by an annotation that it watches, and waits for its word in the job's status.
func checkpoint(ctx context.Context, client *cluster.Client, on named, tell func(string)) error {
	if on.namespace == "" {
		on.namespace = metav1.NamespaceDefault
	}
	job, err := jobOf(ctx, client, on, trainingjob.LabelJobName)
	if err != nil {
		return err
	}
	maps, name := client.Kubernetes().CoreV1().ConfigMaps(on.namespace), trainingjob.ConfigMapName(on.name)
	status, diags := statusOf(ctx, client, job)
	if diags.HasError() {
		return refuse(diags[0].Summary(), "%s", diags[0].Detail())
	}
	if status.StepsDone == 0 {
		return refuse("The job has not begun", "Training job %s/%s has done no step yet: there is nothing to keep.", on.namespace, on.name)
	}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, trainingjob.AnnotationCheckpoint, time.Now().UTC().Format(time.RFC3339Nano))
	if _, err := maps.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: client.FieldManager()}); err != nil {
		return client.Wrap("patch", cluster.Ref{Kind: "ConfigMap", Namespace: on.namespace, Name: name}, err)
	}
	tell(fmt.Sprintf("asked the master for a checkpoint at step %d or later", status.StepsDone))
	err = cluster.WaitFor(ctx, client, maps, cluster.Named(trainingjob.StatusName(on.name)), func(found []*corev1.ConfigMap) (bool, error) {
		if len(found) == 0 {
			return false, nil
		}
		now, err := trainingjob.DecodeStatus(found[0])
		if err != nil {
			return false, err
		}
		switch {
		case now.CheckpointStep >= status.StepsDone:
			tell(fmt.Sprintf("the checkpoint of step %d is written", now.CheckpointStep))
			return true, nil
		case now.Phase.Finished():
			return false, refuse("The job has ended", "Training job %s/%s is %s; it wrote no checkpoint after it was asked for one.", on.namespace, on.name, now.Phase)
		}
		return false, nil
	})
	if errors.Is(err, errTimeIsUp) {
		return refuse("The checkpoint did not come", "Training job %s/%s has written none within %s. Its events say why (kubectl get events): "+
			"a disk may be full, and a state too large for ConfigMap %s needs output.", on.namespace, on.name, actionTimeout, trainingjob.ModelName(on.name))
	}
	return err
}
