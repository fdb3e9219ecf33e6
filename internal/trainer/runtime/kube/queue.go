package kube

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	podconstants "sigs.k8s.io/kueue/pkg/controller/jobs/pod/constants"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/coordinator"
)

// minPods are the newest pod of each minimum worker, by its number: the Job that recreates them reuses the numbers,
// while the watch may still report the previous pod.
type minPods map[int]*corev1.Pod

// changes are the events of an observed pod, at most e. A pod that replaces another also reports the end of that one.
func (f minPods) changes(pod *corev1.Pod, e coordinator.PodChanged) []coordinator.PodChanged {
	before := f[e.Worker]
	if before == nil || before.UID == pod.UID {
		f[e.Worker] = pod
		return []coordinator.PodChanged{e}
	}
	// Of two pods created in the same second the terminating one is older: the Job creates none while another lives.
	if pod.CreationTimestamp.Before(&before.CreationTimestamp) || e.Terminating || e.State == coordinator.PodEnded {
		return nil
	}
	f[e.Worker] = pod
	last, _ := podEvent(before)
	return []coordinator.PodChanged{gone(last), e}
}

// UnmanagedError is a job under a queue in a namespace whose pods Kueue does not manage. Restarting the master does not
// help.
type UnmanagedError struct{ Namespace string }

func (e *UnmanagedError) Error() string {
	return fmt.Sprintf("Kueue does not manage pods in namespace %s, so the pods of this job would run outside of its queue; "+
		"enable Kueue's integration \"pod\" for the namespace (integrations.frameworks and managedJobsNamespaceSelector of Kueue's configuration), or remove the attribute queue", e.Namespace)
}

// mustBeManaged returns an error if Kueue has not marked the master's own pod.
func (c *Cluster) mustBeManaged(ctx context.Context) error {
	pod, err := c.ownPod(ctx)
	if err != nil {
		return err
	}
	if !trainingjob.Managed(pod) {
		return &UnmanagedError{c.Namespace}
	}
	return nil
}

func (c *Cluster) ownPod(ctx context.Context) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	if err := c.get(ctx, c.core, "pods", c.Pod, pod); err != nil {
		return nil, fmt.Errorf("read the master's own pod %s/%s: %w", c.Namespace, c.Pod, err)
	}
	return pod, nil
}

// Stop is why the master is signalled to stop, as far as the API server can be reached.
func (c *Cluster) Stop(ctx context.Context) (coordinator.Stop, error) {
	stop := coordinator.Stop{Cause: coordinator.Replaced, ItsCause: trainingjob.DisruptionCause{Pod: c.Pod}}
	pod, err := c.ownPod(ctx)
	if err != nil {
		return stop, err
	}
	stop.ItsCause = trainingjob.CauseOf(pod)
	if _, evicted := trainingjob.EvictionMessage(pod); evicted {
		stop.Cause = coordinator.Evicted
		return stop, nil
	}
	job := &job{}
	if err := c.get(ctx, c.batch, "jobs", c.Job.Name, job); err != nil {
		return stop, fmt.Errorf("read Job %s/%s: %w", c.Namespace, c.Job.Name, err)
	}
	if job.UID == c.Job.UID && job.suspended() {
		stop.Cause = coordinator.Suspended
	}
	return stop, nil
}

// Finish ends the group of a job that has succeeded or failed. Kueue considers a group finished when all of its pods
// have succeeded; until then it holds its quota, and the Job of the minimum workers recreates the others. So Finish
// marks the master's pod as one that is not replaced, and stops that Job if a worker of it has not succeeded. Without a
// queue there is nothing to do.
func (c *Cluster) Finish(ctx context.Context) error {
	master, err := c.ownPod(ctx)
	if err != nil {
		return err
	}
	if trainingjob.GroupOf(master.Labels) == "" {
		return nil
	}
	final := map[string]any{"metadata": map[string]any{"annotations": map[string]string{podconstants.RetriableInGroupAnnotationKey: "false"}}}
	if err := c.patch(ctx, c.core, "pods", c.Pod, final); err != nil {
		return fmt.Errorf("mark the master's pod %s/%s as the last of its group: %w", c.Namespace, c.Pod, err)
	}
	pods, err := c.pods(ctx, c.ofWorkers)
	if err != nil {
		return fmt.Errorf("list the minimum workers: %w", err)
	}
	rest := false
	for i := range pods.Items {
		p := &pods.Items[i]
		rest = rest || (trainingjob.GroupOf(p.Labels) != "" && p.Status.Phase != corev1.PodSucceeded)
	}
	if !rest {
		return nil
	}
	name := trainingjob.MinJobName(c.Job.Name)
	suspend := map[string]any{"spec": map[string]any{"suspend": true}}
	if err := c.patch(ctx, c.batch, "jobs", name, suspend); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("stop the Job of the minimum workers %s/%s: %w", c.Namespace, name, err)
	}
	return nil
}
