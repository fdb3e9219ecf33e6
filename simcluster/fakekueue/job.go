package fakekueue

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/fakekueue/admission"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/fakekueue/workload"
)

// reconcileJob reconciles a Job in a queue.
func (c *controller) reconcileJob(ctx context.Context, name types.NamespacedName) error {
	job, ok := c.jobs.get(name)
	if !ok || job.DeletionTimestamp != nil {
		return c.abandon(ctx, c.owned(workload.JobKind.Kind, name.Namespace, name.Name))
	}
	if job.Labels[kueue.QueueLabel] == "" || !c.managed(name.Namespace) {
		return nil
	}
	if queued, err := admission.Queued(ctx, job, c.readOwner); err != nil || queued {
		return err
	}
	return c.reconcileOwner(ctx, &jobOwner{controller: c, job: job})
}

type jobOwner struct {
	*controller
	job *batchv1.Job
}

func (o *jobOwner) object() object { return o.job }

func (o *jobOwner) match(context.Context) (match *kueue.Workload, others []*kueue.Workload, err error) {
	for _, w := range o.owned(workload.JobKind.Kind, o.job.Namespace, o.job.Name) {
		if match == nil && workload.StandsForJob(w, o.job, o.flavor) {
			match = w
		} else {
			others = append(others, w)
		}
	}
	return match, others, nil
}

func (o *jobOwner) suspended() bool { return workload.JobSuspended(o.job) }

func (o *jobOwner) active() bool { return o.job.Status.Active != 0 }

func (o *jobOwner) finished() (message string, succeeded, finished bool) {
	return workload.JobFinished(o.job)
}

func (o *jobOwner) build(context.Context) (*kueue.Workload, error) {
	return workload.ForJob(o.job), nil
}

func (o *jobOwner) ready() bool { return workload.JobReady(o.job) }

func (o *jobOwner) reclaimable(w *kueue.Workload) []kueue.ReclaimablePod {
	return workload.JobReclaimable(w, o.job)
}

// absent: the Job's own controller replaces pods.
func (o *jobOwner) absent() int { return 0 }

func (o *jobOwner) start(ctx context.Context, additions []workload.Additions, message string) error {
	if len(additions) != 1 {
		return fmt.Errorf("%w: expecting 1 pod set got %d", workload.ErrConflict, len(additions))
	}
	if !workload.JobChangeable(o.job) {
		return errWait // the Job's own controller says soon that it is suspended
	}
	job := o.job.DeepCopy()
	if err := workload.StartJob(job, additions[0]); err != nil {
		return err
	}
	if _, err := o.patchJob(ctx, o.job, job); err != nil {
		return fmt.Errorf("un-suspending Job %s/%s: %w", job.Namespace, job.Name, err)
	}
	o.event(corev1.EventTypeNormal, started, "%s", message)
	return nil
}

// stop suspends the Job and, once its pods have stopped, forgets when it was started and restores its pod template. A
// Job that was suspended before it ran is left as it is.
func (o *jobOwner) stop(ctx context.Context, w *kueue.Workload, _ stopReason, message string) error {
	if o.suspended() {
		return nil
	}
	if !ptr.Deref(o.job.Spec.Suspend, false) || o.job.Annotations[workload.StoppingAnnotation] != "true" {
		err := o.change(ctx, func(job *batchv1.Job) {
			job.Spec.Suspend = ptr.To(true)
			metav1.SetMetaDataAnnotation(&job.ObjectMeta, workload.StoppingAnnotation, "true")
		})
		if err != nil {
			return err
		}
		o.event(corev1.EventTypeNormal, stopped, "%s", message)
	}
	if !workload.JobChangeable(o.job) {
		return errWait
	}
	if err := o.change(ctx, func(job *batchv1.Job) { job.Status.StartTime = nil }, "status"); err != nil {
		return err
	}
	return o.change(ctx, func(job *batchv1.Job) { workload.RestoreJob(job, w) })
}

func (o *jobOwner) change(ctx context.Context, change func(*batchv1.Job), subresources ...string) error {
	changed := o.job.DeepCopy()
	change(changed)
	written, err := o.patchJob(ctx, o.job, changed, subresources...)
	if err != nil {
		return fmt.Errorf("suspending Job %s/%s: %w", changed.Namespace, changed.Name, err)
	}
	o.job = written
	return nil
}

// finalize: a Job has no finalizer of ours.
func (o *jobOwner) finalize(context.Context) error { return nil }

func (o *jobOwner) event(kind, reason, format string, args ...any) {
	o.events.job.Eventf(o.job, nil, kind, reason, reason, format, args...)
}
