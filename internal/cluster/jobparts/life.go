package jobparts

import (
	"context"
	"errors"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
)

// How long and how often to wait for what an earlier job of the same name has left to Kubernetes' garbage collector.
const (
	leftoversTimeout = 30 * time.Second
	leftoversPause   = 500 * time.Millisecond
)

// Create creates one object. If the object of an earlier Job of this name exists, because a user deleted that Job, it
// waits for the garbage collector.
func Create(ctx context.Context, client *cluster.Client, part trainingjob.Object, job trainingjob.JobRef) error {
	until := time.Now().Add(leftoversTimeout)
	for {
		err := Of(client, part).Create(ctx)
		var exists *cluster.AlreadyExistsError
		if !errors.As(err, &exists) || time.Now().After(until) {
			return err
		}
		there, getErr := Of(client, part).Get(ctx)
		if getErr == nil && !IsLeftover(there, job) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(leftoversPause):
		}
	}
}

// IsLeftover reports whether an object belongs to another Job of the same name, which is gone: the new Job has its
// name.
func IsLeftover(object metav1.Object, job trainingjob.JobRef) bool {
	for _, owner := range object.GetOwnerReferences() {
		if owner.Kind == "Job" && owner.Name == job.Name && owner.UID != job.UID {
			return true
		}
	}
	return false
}

// Named is a Job with nothing but its name: enough to patch it.
func Named(ref trainingjob.JobRef) *batchv1.Job {
	return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: ref.Name, Namespace: ref.Namespace}}
}

// Resume lets a suspended Job run; another Job of its name stays as it is.
func Resume(ctx context.Context, client *cluster.Client, job trainingjob.JobRef) error {
	return Of(client, Named(job)).Patch(ctx, map[string]any{"metadata": map[string]any{"uid": job.UID}, "spec": map[string]any{"suspend": false}})
}

// PodsOf selects the pods of all jobs of that name, whose pods have the label with it. IsPodOf identifies those of one job.
func PodsOf(label string, ref trainingjob.JobRef) metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: label + "=" + ref.Name}
}

// Pods are the pods of this job only: the master's, by the label of the Job controller, and the workers', by the
// trainer's label. All of them have the label with the job's name.
func Pods(ctx context.Context, client *cluster.Client, label string, ref trainingjob.JobRef) ([]corev1.Pod, error) {
	list, err := client.Kubernetes().CoreV1().Pods(ref.Namespace).List(ctx, PodsOf(label, ref))
	if err != nil {
		return nil, client.Wrap("list", cluster.Ref{Kind: "Pod", Namespace: ref.Namespace}, err)
	}
	var pods []corev1.Pod
	for i := range list.Items {
		if IsPodOf(&list.Items[i], ref) {
			pods = append(pods, list.Items[i])
		}
	}
	return pods, nil
}

// IsPodOf reports whether a pod belongs to the Job with that UID.
func IsPodOf(pod *corev1.Pod, ref trainingjob.JobRef) bool {
	uid := string(ref.UID)
	return pod.Labels[trainingjob.LabelJobUID] == uid || pod.Labels[batchv1.ControllerUidLabel] == uid
}

// DeleteJob deletes the Job in the foreground and waits until none of its pods is left.
func DeleteJob(ctx context.Context, client *cluster.Client, label string, ref trainingjob.JobRef) error {
	kube := client.Kubernetes()
	err := cluster.Delete(ctx, client, kube.BatchV1().Jobs(ref.Namespace), ref.Name, ref.UID, metav1.DeletePropagationForeground)
	if err != nil {
		return err
	}
	return cluster.WaitFor(ctx, client, kube.CoreV1().Pods(ref.Namespace), PodsOf(label, ref), func(pods []*corev1.Pod) (bool, error) {
		for _, pod := range pods {
			if IsPodOf(pod, ref) {
				return false, nil
			}
		}
		return true, nil
	})
}

// Delete removes an object of this very job; one of the same name that is another's stays.
func Delete(ctx context.Context, client *cluster.Client, part trainingjob.Object, ref trainingjob.JobRef) error {
	live, err := Of(client, part).Get(ctx)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil || !trainingjob.OwnedBy(live, ref) {
		return err
	}
	return Of(client, part).Delete(ctx, live.GetUID())
}
