package fakekueue

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/fakekueue/workload"
)

// podManager owns what is written into pods' status, as Kueue's manager does.
const podManager = "kueue"

// reconcilePod reconciles a pod in a queue without a group.
func (c *controller) reconcilePod(ctx context.Context, name types.NamespacedName) error {
	pod, ok := c.pods.get(name)
	if ok && pod.Labels[kueue.PodGroupNameLabel] != "" {
		return nil
	}
	if !ok || pod.DeletionTimestamp != nil {
		if err := c.abandon(ctx, c.owned(workload.PodKind.Kind, name.Namespace, name.Name)); err != nil || !ok {
			return err
		}
		return c.letPodsGo(ctx, []*corev1.Pod{pod})
	}
	if pod.Labels[kueue.QueueLabel] == "" {
		return nil
	}
	return c.reconcileOwner(ctx, &singlePod{controller: c, pod: pod})
}

type singlePod struct {
	*controller
	pod *corev1.Pod
}

func (o *singlePod) object() object { return o.pod }

func (o *singlePod) match(context.Context) (match *kueue.Workload, others []*kueue.Workload, err error) {
	for _, w := range o.owned(workload.PodKind.Kind, o.pod.Namespace, o.pod.Name) {
		if match == nil && workload.StandsForPod(w, o.pod, o.flavor) {
			match = w
		} else {
			others = append(others, w)
		}
	}
	return match, others, nil
}

func (o *singlePod) suspended() bool { return workload.PodSuspended(o.pod) }

// active is never true: a pod's quota is free as soon as the pod is terminating.
func (o *singlePod) active() bool { return false }

func (o *singlePod) finished() (message string, succeeded, finished bool) {
	return workload.PodFinished(o.pod)
}

func (o *singlePod) build(context.Context) (*kueue.Workload, error) {
	return workload.ForPod(o.pod), nil
}

func (o *singlePod) ready() bool { return workload.PodReady(o.pod) }

func (o *singlePod) reclaimable(*kueue.Workload) []kueue.ReclaimablePod { return nil }

func (o *singlePod) absent() int { return 0 }

func (o *singlePod) start(ctx context.Context, additions []workload.Additions, message string) error {
	if len(additions) != 1 {
		return fmt.Errorf("%w: expecting 1 pod set got %d", workload.ErrConflict, len(additions))
	}
	return o.ungate(ctx, o.pod, additions[0], message)
}

func (o *singlePod) stop(ctx context.Context, _ *kueue.Workload, reason stopReason, message string) error {
	return o.stopPods(ctx, []*corev1.Pod{o.pod}, reason, message)
}

func (o *singlePod) finalize(ctx context.Context) error {
	return o.letPodsGo(ctx, []*corev1.Pod{o.pod})
}

func (o *singlePod) event(kind, reason, format string, args ...any) {
	o.events.pod.Eventf(o.pod, nil, kind, reason, reason, format, args...)
}

// ungate lets a pod be scheduled with what its admission adds.
func (c *controller) ungate(ctx context.Context, pod *corev1.Pod, additions workload.Additions, message string) error {
	if !workload.Gated(pod) {
		return nil
	}
	changed := pod.DeepCopy()
	if err := workload.StartPod(changed, additions); err != nil {
		return err
	}
	if _, err := c.patchPod(ctx, pod, changed); err != nil {
		return fmt.Errorf("un-gating pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	c.events.pod.Eventf(pod, nil, corev1.EventTypeNormal, started, started, "%s", message)
	return nil
}

// stopPods marks those pods that run as targets of a termination, so that their owners can distinguish it from a
// failure, and deletes them with their own grace period. With their workload deleted, others go too.
func (c *controller) stopPods(ctx context.Context, pods []*corev1.Pod, reason stopReason, message string) error {
	for _, pod := range pods {
		if pod.DeletionTimestamp != nil || reason != workloadDeleted && workload.PodSuspended(pod) {
			continue
		}
		client := c.core.CoreV1().Pods(pod.Namespace)
		target := corev1apply.Pod(pod.Name, pod.Namespace).WithUID(pod.UID).WithStatus(corev1apply.PodStatus().WithConditions(
			corev1apply.PodCondition().
				WithType("TerminationTarget").
				WithStatus(corev1.ConditionTrue).
				WithLastTransitionTime(metav1.NewTime(c.now())).
				WithReason(string(reason)).
				WithMessage(message)))
		_, err := client.ApplyStatus(ctx, target, metav1.ApplyOptions{FieldManager: podManager, Force: true})
		if err == nil {
			err = client.Delete(ctx, pod.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))})
		}
		if ignoreNotFound(err) != nil {
			return fmt.Errorf("stopping pod %s/%s: %w", pod.Namespace, pod.Name, err)
		}
		c.events.pod.Eventf(pod, nil, corev1.EventTypeNormal, stopped, stopped, "%s", message)
	}
	return nil
}

// letPodsGo removes our finalizer from pods.
func (c *controller) letPodsGo(ctx context.Context, pods []*corev1.Pod) error {
	for _, pod := range pods {
		if !slices.Contains(pod.Finalizers, kueue.PodFinalizer) {
			continue
		}
		changed := pod.DeepCopy()
		changed.Finalizers = without(pod.Finalizers, kueue.PodFinalizer)
		if _, err := c.patchPod(ctx, pod, changed); ignoreNotFound(err) != nil {
			return fmt.Errorf("letting pod %s/%s go: %w", pod.Namespace, pod.Name, err)
		}
	}
	return nil
}

// byAge orders pods by creation; names decide between those of one second.
func byAge(a, b *corev1.Pod) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}
