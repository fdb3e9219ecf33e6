package fakekueue

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/fakekueue/workload"
)

// reconcileGroup reconciles a group of pods.
func (c *controller) reconcileGroup(ctx context.Context, name types.NamespacedName) error {
	members := c.pods.by(byGroup, join(name.Namespace, name.Name))
	if len(members) > 0 {
		slices.SortFunc(members, byAge)
		group := workload.Group{Namespace: name.Namespace, Name: name.Name, Pods: members}
		return c.reconcileOwner(ctx, &podGroup{controller: c, Group: group})
	}
	if w, ok := c.workloads.get(name); ok && (workload.OfGroup(w) || metav1.GetControllerOfNoCopy(w) == nil && len(w.OwnerReferences) > 0) {
		return c.abandon(ctx, []*kueue.Workload{w})
	}
	return nil
}

type podGroup struct {
	*controller
	workload.Group
	missing int
}

func (o *podGroup) object() object { return o.Pods[0] }

// match also removes pods that are too many, and lets pods go that were replaced.
func (o *podGroup) match(ctx context.Context) (match *kueue.Workload, others []*kueue.Workload, err error) {
	w, ok := o.workloads.get(types.NamespacedName{Namespace: o.Namespace, Name: o.Name})
	if !ok {
		return nil, nil, nil
	}
	if !workload.OfGroup(w) {
		o.event(corev1.EventTypeWarning, "WorkloadNameConflict", "A Workload named %q already exists but is not a pod group workload; this pod group cannot be admitted", o.Name)
		return nil, nil, errWait
	}
	found, err := o.Match(w, o.now())
	if err != nil {
		return nil, nil, err
	}
	if !found.Fits {
		return nil, []*kueue.Workload{w}, nil
	}
	o.missing = found.Absent
	o.Pods = found.Kept
	slices.SortFunc(o.Pods, byAge)
	w, err = o.update(ctx, w, func(w *kueue.Workload) bool {
		added := workload.AddOwners(w, o.Pods)
		if added > 0 {
			o.events.pod.Eventf(w, nil, corev1.EventTypeNormal, "OwnerReferencesAdded", "OwnerReferencesAdded", "Added %d owner reference(s)", added)
		}
		return added > 0
	})
	if err != nil {
		return nil, nil, err
	}
	if err := o.removeExcess(ctx, found.Excess); err != nil {
		return nil, nil, err
	}
	return w, nil, o.letPodsGo(ctx, found.Replaced)
}

func (o *podGroup) removeExcess(ctx context.Context, pods []*corev1.Pod) error {
	if err := o.letPodsGo(ctx, pods); err != nil {
		return err
	}
	for _, pod := range pods {
		if pod.DeletionTimestamp != nil {
			continue
		}
		err := o.core.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))})
		if ignoreNotFound(err) != nil {
			return fmt.Errorf("deleting pod %s/%s, which its group has no place for: %w", pod.Namespace, pod.Name, err)
		}
		o.events.pod.Eventf(pod, nil, corev1.EventTypeNormal, "ExcessPodDeleted", "ExcessPodDeleted", "Excess pod deleted")
	}
	return nil
}

func (o *podGroup) suspended() bool { return o.Suspended() }

func (o *podGroup) active() bool { return o.Running(o.now()) }

func (o *podGroup) finished() (message string, succeeded, finished bool) {
	message, finished = o.Finished()
	return message, finished, finished
}

func (o *podGroup) build(ctx context.Context) (*kueue.Workload, error) {
	composition := o.Compose()
	if err := o.letPodsGo(ctx, composition.Finalized); err != nil {
		return nil, err
	}
	if composition.Err != nil {
		return nil, composition.Err
	}
	return composition.Workload, o.removeExcess(ctx, composition.Excess)
}

func (o *podGroup) ready() bool { return o.Ready() }

func (o *podGroup) reclaimable(*kueue.Workload) []kueue.ReclaimablePod { return o.Reclaimable() }

func (o *podGroup) absent() int { return o.missing }

func (o *podGroup) start(ctx context.Context, additions []workload.Additions, message string) error {
	for _, pod := range o.Pods {
		role, err := workload.Role(pod)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(additions, func(a workload.Additions) bool { return string(a.Name) == role })
		if i < 0 {
			return fmt.Errorf("%w: podSetInfo with the name '%s' is not found", workload.ErrConflict, role)
		}
		if err := o.ungate(ctx, pod, additions[i], message); err != nil {
			return err
		}
	}
	return nil
}

func (o *podGroup) stop(ctx context.Context, _ *kueue.Workload, reason stopReason, message string) error {
	if err := o.stopPods(ctx, o.Pods, reason, message); err != nil || reason != workloadDeleted {
		return err
	}
	return o.finalize(ctx)
}

func (o *podGroup) finalize(ctx context.Context) error {
	return o.letPodsGo(ctx, o.pods.by(byGroup, join(o.Namespace, o.Name)))
}

func (o *podGroup) event(kind, reason, format string, args ...any) {
	o.events.pod.Eventf(o.Pods[0], nil, kind, reason, reason, format, args...)
}
