package provider

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/action"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	controllerconstants "sigs.k8s.io/kueue/pkg/controller/constants"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/task"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
)

const whereJob = "Namespace of the job; `default` by default."

func newJobSuspend() action.Action {
	return &onNamed{
		name: "job_suspend", object: "training job or task", namespace: whereJob, invoke: onJob(suspend, trainingJobs, tasks),
		description: "Suspends a training job or a task: its pods stop cleanly, and other workloads can use its capacity until it is resumed. " +
			"When it is resumed, a training job continues from a checkpoint that its master writes before it stops; a task starts from the beginning. " +
			"For a job in a queue, the Workload is deactivated, so that the queue does not admit it again.",
	}
}

func newJobResume() action.Action {
	return &onNamed{
		name: "job_resume", object: "training job or task", namespace: whereJob, invoke: onJob(resume, trainingJobs, tasks),
		description: "Resumes a job that was suspended by `elastic_job_suspend`: it runs as soon as there is capacity, or when its queue admits it.",
	}
}

func newJobCheckpoint() action.Action {
	return &onNamed{
		name: "job_checkpoint", object: "training job", namespace: whereJob, invoke: onJob(checkpoint, trainingJobs),
		description: "Makes a training job write a checkpoint of its newest state immediately, in addition to its regular checkpoints, and waits until the checkpoint is written: " +
			"for example before a node pool is upgraded.",
	}
}

// The resources whose Jobs have actions.
const (
	trainingJobs = TypeName + "_training_job"
	tasks        = TypeName + "_task"
)

// onJob does something to a Job that has not ended and that one of the resources has made: it has a label with its own
// name.
func onJob(
	do func(context.Context, *cluster.Client, *batchv1.Job, func(string)) error, resources ...string,
) func(context.Context, *cluster.Client, named, func(string)) error {
	labels := map[string]string{trainingJobs: trainingjob.LabelJobName, tasks: task.LabelTask}
	return func(ctx context.Context, client *cluster.Client, on named, tell func(string)) error {
		namespace := cmp.Or(on.namespace, metav1.NamespaceDefault)
		job, err := cluster.Get(ctx, client, client.Kubernetes().BatchV1().Jobs(namespace), on.name)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(resources, func(resource string) bool { return job.Labels[labels[resource]] == on.name }) {
			return refuse("Not a job for this action", "Job %s/%s was not created by %s: its labels are missing.", namespace, on.name, strings.Join(resources, " or "))
		}
		if trainingjob.JobCondition(job, batchv1.JobComplete) != nil || trainingjob.JobCondition(job, batchv1.JobFailed) != nil {
			return refuse("The job has ended", "Job %s/%s is complete or has failed. To run it again, replace it: terraform apply -replace=ADDRESS.", namespace, on.name)
		}
		if terminating := terminatingJob(job); terminating != nil {
			return refuse("The job is being deleted", "Job %s/%s will not run again. %s %s", namespace, on.name, terminating, terminating.Remedy())
		}
		return do(ctx, client, job, tell)
	}
}

// suspend has a job's pods end, and waits until they have.
func suspend(ctx context.Context, client *cluster.Client, job *batchv1.Job, tell func(string)) error {
	if err := letRun(ctx, client, job, false); err != nil {
		return err
	}
	tell(fmt.Sprintf("job %s/%s is suspended; its pods are ending", job.Namespace, job.Name))
	return cluster.WaitFor(ctx, client, client.Kubernetes().BatchV1().Jobs(job.Namespace), cluster.Named(job.Name), func(found []*batchv1.Job) (bool, error) {
		return len(found) == 0 || found[0].Status.Active == 0, nil
	})
}

func resume(ctx context.Context, client *cluster.Client, job *batchv1.Job, tell func(string)) error {
	if err := letRun(ctx, client, job, true); err != nil {
		return err
	}
	tell(fmt.Sprintf("job %s/%s is resumed: it runs as soon as there is capacity", job.Namespace, job.Name))
	return nil
}

// letRun reports whether a job may run: in a queue to its Workload, and to the Job itself elsewhere.
func letRun(ctx context.Context, client *cluster.Client, job *batchv1.Job, may bool) error {
	if queued := job.Labels[controllerconstants.QueueLabel] != "" || trainingjob.GroupOf(job.Spec.Template.Labels) != ""; !queued {
		return cluster.Merge(ctx, client, client.Kubernetes().BatchV1().Jobs(job.Namespace), job.Name, specOf("suspend", !may))
	}
	workload := cmp.Or(workloadOf(ctx, client, job), groupOf(ctx, client, job))
	if workload == nil {
		return refuse("The job has no Workload", "Kueue has not created a Workload for Job %s/%s yet, or the account may not read it. Try again in a moment.", job.Namespace, job.Name)
	}
	return cluster.Merge(ctx, client, client.Kueue().Workloads(job.Namespace), workload.Name, specOf("active", may))
}

// checkpoint requests a checkpoint by an annotation that a job's master watches, and waits for it in the job's status.
func checkpoint(ctx context.Context, client *cluster.Client, job *batchv1.Job, tell func(string)) error {
	maps := client.Kubernetes().CoreV1().ConfigMaps(job.Namespace)
	status, diags := statusOf(ctx, client, job)
	if diags.HasError() {
		return refuse(diags[0].Summary(), "%s", diags[0].Detail())
	}
	if status.StepsDone == 0 {
		return refuse("The job has not started", "Training job %s/%s has not completed a step yet: there is no state to save.", job.Namespace, job.Name)
	}
	annotations := map[string]any{trainingjob.AnnotationCheckpoint: time.Now().UTC().Format(time.RFC3339Nano)}
	if err := cluster.Merge(ctx, client, maps, trainingjob.ConfigMapName(job.Name), map[string]any{"metadata": map[string]any{"annotations": annotations}}); err != nil {
		return err
	}
	tell(fmt.Sprintf("requested a checkpoint from the master at step %d or later", status.StepsDone))
	err := cluster.WaitFor(ctx, client, maps, cluster.Named(trainingjob.StatusName(job.Name)), func(found []*corev1.ConfigMap) (bool, error) {
		if len(found) == 0 {
			return false, refuse("Job status not found", "ConfigMap %s/%s was deleted, alone or with the job, before the checkpoint was reported: "+
				"terraform plan shows which. The checkpoint may or may not exist.", job.Namespace, trainingjob.StatusName(job.Name))
		}
		now, err := trainingjob.DecodeStatus(found[0])
		if err != nil {
			return false, err
		}
		switch {
		case now.CheckpointStep >= status.StepsDone:
			tell(fmt.Sprintf("checkpoint of step %d written", now.CheckpointStep))
			return true, nil
		case now.Phase.Finished():
			return false, refuse("The job has ended", "Training job %s/%s is %s; it wrote no checkpoint after the request.", job.Namespace, job.Name, now.Phase)
		}
		return false, nil
	})
	if errors.Is(err, errTimeIsUp) {
		return refuse("Checkpoint timed out", "Training job %s/%s has written no checkpoint within %s. Its events contain the reason (kubectl get events): "+
			"the disk may be full; if the state is too large for ConfigMap %s, set output.", job.Namespace, job.Name, actionTimeout, trainingjob.ModelName(job.Name))
	}
	return err
}
