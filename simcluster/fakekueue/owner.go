package fakekueue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/fakekueue/workload"
)

// An owner is what a workload stands for: a Job, a pod, or a group of pods.
type owner interface {
	// object has the labels and annotations that count, and gets most events.
	object() object
	// match finds the workload that stands for the owner, and those that claim to and do not.
	match(ctx context.Context) (match *kueue.Workload, others []*kueue.Workload, err error)
	// suspended: it does not run, and may be started.
	suspended() bool
	// active: pods of it occupy their nodes.
	active() bool
	finished() (message string, succeeded, finished bool)
	// build makes its workload, without the priority.
	build(ctx context.Context) (*kueue.Workload, error)
	// ready: all pods are ready or have succeeded.
	ready() bool
	// reclaimable counts pods that need their quota no longer.
	reclaimable(w *kueue.Workload) []kueue.ReclaimablePod
	// absent counts pods that are missing.
	absent() int
	// start lets it run with what its admission adds.
	start(ctx context.Context, additions []workload.Additions, message string) error
	// stop ends what runs of it; w, which may be nil, remembers how it was before it was started.
	stop(ctx context.Context, w *kueue.Workload, reason stopReason, message string) error
	// finalize lets it go: its workload is over.
	finalize(ctx context.Context) error
	// event records an event on the owner.
	event(kind, reason, format string, args ...any)
}

// A stopReason is the reason of a pod's condition TerminationTarget.
type stopReason string

const (
	workloadDeleted    stopReason = "WorkloadDeleted"
	workloadEvicted    stopReason = "WorkloadEvicted"
	noMatchingWorkload stopReason = "NoMatchingWorkload"
	notAdmitted        stopReason = "NotAdmitted"
)

// The event that an owner gets when it may run: Kueue's reason and verb are one.
const (
	started         = "Started"
	stopped         = "Stopped"
	createdWorkload = "CreatedWorkload"
	deletedWorkload = "DeletedWorkload"
	updatedWorkload = "UpdatedWorkload"
	finishedReason  = "FinishedWorkload"
	composeError    = "ErrWorkloadCompose"
	failedToStart   = "FailedToStart"
)

// reconcileOwner brings an owner and its workload together, in the order of Kueue's own steps
// (jobframework/reconciler.go, ReconcileGenericJob).
func (c *controller) reconcileOwner(ctx context.Context, o owner) error {
	w, err := c.oneWorkload(ctx, o)
	if err != nil {
		return err
	}
	if w != nil {
		if changed, err := c.setStatus(ctx, w, func(w *kueue.Workload) bool { return workload.NoteAbsent(w, o.absent(), c.now()) }); err != nil || changed != w {
			return err // and the change has it looked at again
		}
	}
	if w != nil && workload.IsFinished(w) {
		if err := o.finalize(ctx); err != nil {
			return err
		}
		_, err := c.letGo(ctx, w)
		return ignoreNotFound(err)
	}
	if w != nil && w.DeletionTimestamp != nil {
		if err := o.stop(ctx, w, workloadDeleted, "Workload is deleted"); err != nil {
			return err
		}
		_, err := c.letGo(ctx, w)
		return ignoreNotFound(err)
	}
	if message, succeeded, finished := o.finished(); finished {
		return c.finish(ctx, o, w, message, succeeded)
	}
	if w == nil {
		return c.create(ctx, o)
	}
	if w, err = c.noteProgress(ctx, o, w); err != nil {
		return err
	}
	switch {
	case workload.IsEvicted(w):
		return c.stopEvicted(ctx, o, w)
	case o.suspended() && workload.IsAdmitted(w):
		return c.start(ctx, o, w)
	case o.suspended():
		_, err := c.update(ctx, w, func(w *kueue.Workload) bool {
			queue := kueue.LocalQueueName(o.object().GetLabels()[kueue.QueueLabel])
			changed := w.Spec.QueueName != queue && !workload.HasQuota(w)
			if changed {
				w.Spec.QueueName = queue
			}
			return changed
		})
		return err
	case !workload.IsAdmitted(w):
		return o.stop(ctx, w, notAdmitted, "Not admitted by cluster queue")
	}
	return nil
}

// oneWorkload returns the one workload of an owner, brought up to date, or nil; others are removed.
func (c *controller) oneWorkload(ctx context.Context, o owner) (*kueue.Workload, error) {
	match, others, err := o.match(ctx)
	if err != nil {
		return nil, err
	}
	if match == nil && len(others) > 0 && o.suspended() && !workload.HasQuota(others[0]) && !workload.IsFinished(others[0]) && others[0].DeletionTimestamp == nil {
		return c.adapt(ctx, o, others[0])
	}
	if match == nil && !o.suspended() {
		if _, _, finished := o.finished(); !finished {
			var before *kueue.Workload
			message := "Missing Workload; unable to restore pod templates"
			if len(others) == 1 {
				before, message = others[0], "No matching Workload; restoring pod templates according to existent Workload"
			}
			if err := o.stop(ctx, before, noMatchingWorkload, message); err != nil {
				return nil, err
			}
		}
	}
	for _, w := range others {
		if err := c.deleteWorkload(ctx, w); err != nil {
			return nil, fmt.Errorf("deleting Workload %s/%s, which does not match its owner: %w", w.Namespace, w.Name, err)
		}
		o.event(corev1.EventTypeNormal, deletedWorkload, "Deleted not matching Workload: %v", nameOf(w))
	}
	if len(others) > 0 {
		return nil, errWait // until they are gone; their end has the owner looked at again
	}
	if match == nil || workload.IsFinished(match) {
		return match, nil
	}
	return c.follow(ctx, o, match)
}

// adapt makes a workload that waits that of its owner's new shape.
func (c *controller) adapt(ctx context.Context, o owner, w *kueue.Workload) (*kueue.Workload, error) {
	wanted, err := o.build(ctx)
	if err != nil {
		return nil, err
	}
	if err := workload.SetPriority(wanted, o.object(), c.classes()); err != nil {
		return nil, err
	}
	w, err = c.update(ctx, w, func(w *kueue.Workload) bool {
		wanted.Spec.Active = w.Spec.Active
		w.Spec = wanted.Spec
		return true
	})
	if err != nil {
		return nil, err
	}
	o.event(corev1.EventTypeNormal, updatedWorkload, "Updated not matching Workload for suspended job: %v", nameOf(w))
	return w, nil
}

// follow takes over what an owner may change at any time: who gates its admission, and its class of priority.
func (c *controller) follow(ctx context.Context, o owner, w *kueue.Workload) (*kueue.Workload, error) {
	gates := o.object().GetAnnotations()[kueue.AdmissionGatedByAnnotation]
	if w.Annotations[kueue.AdmissionGatedByAnnotation] != gates {
		changed, err := c.update(ctx, w, func(w *kueue.Workload) bool {
			if gates == "" {
				delete(w.Annotations, kueue.AdmissionGatedByAnnotation)
			} else {
				metav1.SetMetaDataAnnotation(&w.ObjectMeta, kueue.AdmissionGatedByAnnotation, gates)
			}
			return true
		})
		if err != nil {
			return nil, err
		}
		w = changed
		o.event(corev1.EventTypeNormal, updatedWorkload, "Updated workload AdmissionGatedBy to %q", gates)
	}
	if !workload.FollowsLabel(w, o.object()) {
		return w, nil
	}
	wanted := w.DeepCopy()
	if err := workload.SetPriority(wanted, o.object(), c.classes()); err != nil {
		return nil, err
	}
	changed, err := c.update(ctx, w, func(w *kueue.Workload) bool {
		w.Spec.PriorityClassRef, w.Spec.Priority = wanted.Spec.PriorityClassRef, wanted.Spec.Priority
		return true
	})
	if err != nil {
		return nil, err
	}
	o.event(corev1.EventTypeNormal, updatedWorkload, "Updated workload priority class: %v", nameOf(w))
	return changed, nil
}

func (c *controller) finish(ctx context.Context, o owner, w *kueue.Workload, message string, succeeded bool) error {
	if w != nil {
		reason := kueue.WorkloadFinishedReasonSucceeded
		if !succeeded {
			reason = kueue.WorkloadFinishedReasonFailed
		}
		if _, err := c.setStatus(ctx, w, func(w *kueue.Workload) bool { return workload.Finish(w, reason, message, c.now()) }); ignoreNotFound(err) != nil {
			return err
		}
		o.event(corev1.EventTypeNormal, finishedReason, "Workload '%s' is declared finished", nameOf(w))
	}
	return o.finalize(ctx)
}

func (c *controller) create(ctx context.Context, o owner) error {
	if o.active() {
		return nil // its pods are being stopped
	}
	w, err := o.build(ctx)
	if err != nil {
		var group *workload.GroupError
		if errors.As(err, &group) {
			if group.Event {
				o.event(corev1.EventTypeWarning, composeError, "%s", group.Message)
			}
			return errWait
		}
		return err
	}
	if err := workload.SetPriority(w, o.object(), c.classes()); err != nil {
		return err
	}
	created, err := c.kueue.Workloads(w.Namespace).Create(ctx, w, metav1.CreateOptions{FieldManager: fieldManager})
	if err != nil {
		return fmt.Errorf("creating Workload %s/%s: %w", w.Namespace, w.Name, err)
	}
	c.workloads.wrote(created)
	c.add(workloads, created.Namespace, created.Name)
	o.event(corev1.EventTypeNormal, createdWorkload, "Created Workload: %v", nameOf(w))
	return nil
}

// noteProgress keeps the part of a workload's status that follows from its pods.
func (c *controller) noteProgress(ctx context.Context, o owner, w *kueue.Workload) (*kueue.Workload, error) {
	return c.setStatus(ctx, w, func(w *kueue.Workload) bool {
		changed := false
		if free := o.reclaimable(w); !sameReclaimable(free, w.Status.ReclaimablePods) {
			w.Status.ReclaimablePods, changed = free, true
		}
		return workload.NotePodsReady(w, o.ready(), c.now()) || changed
	})
}

func sameReclaimable(a, b []kueue.ReclaimablePod) bool {
	order := func(a, b kueue.ReclaimablePod) int { return cmp.Compare(a.Name, b.Name) }
	return slices.Equal(slices.SortedFunc(slices.Values(a), order), slices.SortedFunc(slices.Values(b), order))
}

// stopEvicted stops the owner of an evicted workload and, once nothing of it runs, gives the quota back.
func (c *controller) stopEvicted(ctx context.Context, o owner, w *kueue.Workload) error {
	condition := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadEvicted)
	if err := o.stop(ctx, w, workloadEvicted+stopReason("DueTo"+condition.Reason), condition.Message); err != nil {
		return err
	}
	if !workload.HasQuota(w) {
		return nil
	}
	if o.active() {
		c.lookAgain(o, w)
		return nil
	}
	_, err := c.setStatus(ctx, w, func(w *kueue.Workload) bool { workload.Release(w, c.now()); return true })
	if err != nil {
		return err
	}
	c.add(workloads, w.Namespace, w.Name)
	return nil
}

// graceSlack is the time after which a pod counts as stuck once its grace period has passed.
const graceSlack = time.Second

// lookAgain has a group looked at when the grace period of a pod that may be stuck has passed; nothing else would say
// so.
func (c *controller) lookAgain(o owner, w *kueue.Workload) {
	group, ok := o.(*podGroup)
	if !ok {
		return
	}
	for _, pod := range group.Pods {
		if pod.DeletionTimestamp != nil && pod.DeletionGracePeriodSeconds != nil {
			over := pod.DeletionTimestamp.Add(time.Duration(*pod.DeletionGracePeriodSeconds)*time.Second + graceSlack)
			c.addAfter(groups, w.Namespace, w.Name, over.Sub(c.now()))
		}
	}
}

func (c *controller) start(ctx context.Context, o owner, w *kueue.Workload) error {
	additions, err := workload.AdditionsOf(w, c.flavor)
	if err == nil {
		err = o.start(ctx, additions, fmt.Sprintf("Admitted by clusterQueue %v", w.Status.Admission.ClusterQueue))
	}
	if !errors.Is(err, workload.ErrConflict) {
		return err
	}
	// It would fail for ever.
	_, finishErr := c.setStatus(ctx, w, func(w *kueue.Workload) bool { return workload.Finish(w, failedToStart, err.Error(), c.now()) })
	return finishErr
}

// abandon ends the workloads of an owner that is gone or going: they finish, and are let go.
func (c *controller) abandon(ctx context.Context, owned []*kueue.Workload) error {
	for _, w := range owned {
		controlled := metav1.GetControllerOfNoCopy(w) != nil
		if w.DeletionTimestamp == nil && controlled {
			finished, err := c.setStatus(ctx, w, func(w *kueue.Workload) bool {
				return workload.Finish(w, kueue.WorkloadFinishedReasonOwnerNotFound, "The workload's owner no longer exists", c.now())
			})
			if ignoreNotFound(err) != nil {
				return err
			}
			w = finished
			c.add(workloads, w.Namespace, w.Name)
		}
		if _, err := c.letGo(ctx, w); ignoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// owned are the workloads whose controller has this kind and name.
func (c *controller) owned(kind, namespace, name string) []*kueue.Workload {
	found := c.workloads.by(byOwner, join(kind, namespace, name))
	slices.SortFunc(found, func(a, b *kueue.Workload) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	return found
}

func (c *controller) flavor(name kueue.ResourceFlavorReference) *kueue.ResourceFlavor {
	// The zero value of a store is nil.
	flavor, _ := c.flavors.get(types.NamespacedName{Name: string(name)})
	return flavor
}

func (c *controller) classes() workload.Classes {
	classes := workload.Classes{
		Workload: func(name string) *kueue.WorkloadPriorityClass {
			class, _ := c.workloadClasses.get(types.NamespacedName{Name: name})
			return class
		},
		Pod: func(name string) *schedulingv1.PriorityClass {
			class, _ := c.podClasses.get(types.NamespacedName{Name: name})
			return class
		},
	}
	for _, class := range c.podClasses.all() {
		if class.GlobalDefault {
			classes.PodDefaults = append(classes.PodDefaults, class)
		}
	}
	return classes
}
