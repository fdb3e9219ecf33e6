package fakekueue

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/fakekueue/workload"
)

// reconcileWorkload keeps what follows from a workload's spec, queues and checks, and passes it to the engine.
func (c *controller) reconcileWorkload(ctx context.Context, name types.NamespacedName) error {
	defer c.keys.Add(key{kind: schedule})
	w, ok := c.workloads.get(name)
	if !ok {
		c.drop(name)
		c.reconcileQueuesLater(name.Namespace)
		return nil
	}
	c.reconcileQueueLater(w)
	if len(w.OwnerReferences) == 0 && (w.DeletionTimestamp != nil || w.Labels[kueue.JobUIDLabel] != "") && !workload.IsFinished(w) {
		if err := c.abandonOrphan(ctx, w); err != nil || w.DeletionTimestamp != nil {
			return err
		}
	}
	if workload.IsFinished(w) {
		c.report(w)
		return nil
	}
	w, err := c.catchUp(ctx, w)
	if err != nil {
		return err
	}
	c.report(w)
	return nil
}

// abandonOrphan ends a workload whose Job is gone, or that nobody owned and somebody deleted.
func (c *controller) abandonOrphan(ctx context.Context, w *kueue.Workload) error {
	if w.DeletionTimestamp == nil {
		_, err := c.setStatus(ctx, w, func(w *kueue.Workload) bool {
			return workload.Finish(w, kueue.WorkloadFinishedReasonOwnerNotFound, "The workload's owner no longer exists", c.now())
		})
		return err
	}
	_, err := c.letGo(ctx, w)
	return ignoreNotFound(err)
}

// maxSteps is more than the steps that any workload takes at once.
const maxSteps = 10

// catchUp takes the steps that are due, one at a time as Kueue does, so that each is seen.
func (c *controller) catchUp(ctx context.Context, w *kueue.Workload) (*kueue.Workload, error) {
	for range maxSteps {
		before := w
		var err error
		if w, err = c.deactivate(ctx, w); err != nil {
			return w, err
		}
		queues := c.queuesOf(w)
		if w, err = c.setStatus(ctx, w, func(w *kueue.Workload) bool { return workload.Follow(w, queues, c.now()) }); err != nil {
			return w, err
		}
		c.recordEvents(before, w)
		if w == before {
			break
		}
	}
	if state := w.Status.RequeueState; state != nil && state.RequeueAt != nil && state.RequeueAt.After(c.now()) {
		c.addAfter(workloads, w.Namespace, w.Name, state.RequeueAt.Sub(c.now()))
	}
	return c.evictByChecks(ctx, w)
}

// recordEvents writes the events of a step.
func (c *controller) recordEvents(before, after *kueue.Workload) {
	if !workload.IsAdmitted(before) && workload.IsAdmitted(after) {
		reserved := meta.FindStatusCondition(after.Status.Conditions, kueue.WorkloadQuotaReserved).LastTransitionTime
		c.events.workload.Eventf(after, nil, corev1.EventTypeNormal, "Admitted", "Admitted", "Admitted by ClusterQueue %v, wait time since reservation was %.0fs",
			after.Status.Admission.ClusterQueue, c.now().Sub(reserved.Time).Seconds())
	}
	was, is := gated(before), gated(after)
	switch {
	case !was && is:
		c.events.workload.Eventf(after, nil, corev1.EventTypeNormal, "AdmissionGated", "AdmissionGated", "Workload admission is gated by: %s", after.Annotations[kueue.AdmissionGatedByAnnotation])
	case was && !is:
		c.events.workload.Eventf(after, nil, corev1.EventTypeNormal, "AdmissionGateCleared", "AdmissionGateCleared", "Admission gate cleared, workload is now admissible")
	}
}

func gated(w *kueue.Workload) bool {
	condition := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadQuotaReserved)
	return condition != nil && condition.Reason == kueue.WorkloadAdmissionGated
}

// deactivate makes a workload inactive that has to be: it ran for too long, or a check rejected it.
func (c *controller) deactivate(ctx context.Context, w *kueue.Workload) (*kueue.Workload, error) {
	if !workload.IsActive(w) {
		return w, nil
	}
	if left, limited := workload.ExecutionTimeLeft(w, c.now()); limited && left > 0 {
		c.addAfter(workloads, w.Namespace, w.Name, left)
	} else if limited && !meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadDeactivationTarget) {
		changed, err := c.setStatus(ctx, w, func(w *kueue.Workload) bool {
			w.Status.AccumulatedPastExecutionTimeSeconds = nil
			return workload.Deactivate(w, kueue.WorkloadMaximumExecutionTimeExceeded, "exceeding the maximum execution time", c.now())
		})
		if err != nil {
			return w, err
		}
		w = changed
		c.events.workload.Eventf(w, nil, corev1.EventTypeWarning, kueue.WorkloadMaximumExecutionTimeExceeded, "MaximumExecutionTimeExceeded",
			"The maximum execution time (%ds) exceeded", *w.Spec.MaximumExecutionTimeSeconds)
	}
	if !meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadDeactivationTarget) {
		return w, nil
	}
	return c.update(ctx, w, func(w *kueue.Workload) bool { w.Spec.Active = ptr.To(false); return true })
}

// evictByChecks evicts a workload that holds quota and of which a check says that it must be tried again, or never.
func (c *controller) evictByChecks(ctx context.Context, w *kueue.Workload) (*kueue.Workload, error) {
	retry, rejected := workload.Failed(w)
	if !workload.HasQuota(w) || workload.IsEvicted(w) || !workload.IsActive(w) || retry == "" && rejected == "" {
		return w, nil
	}
	if rejected != "" {
		changed, err := c.setStatus(ctx, w, func(w *kueue.Workload) bool {
			return workload.Deactivate(w, kueue.WorkloadEvictedByAdmissionCheck, rejected, c.now())
		})
		if err != nil {
			return w, err
		}
		c.events.workload.Eventf(w, nil, corev1.EventTypeWarning, "AdmissionCheckRejected", "AdmissionCheckRejected", "Deactivated due to %s", rejected)
		c.add(workloads, w.Namespace, w.Name)
		return changed, nil
	}
	c.engine.Evict(nameOf(w), kueue.WorkloadEvictedByAdmissionCheck, c.now())
	return c.evict(ctx, w, kueue.WorkloadEvictedByAdmissionCheck, retry)
}

// evict begins an eviction that is no preemption.
func (c *controller) evict(ctx context.Context, w *kueue.Workload, reason, message string) (*kueue.Workload, error) {
	var cause kueue.EvictionUnderlyingCause
	if reason == kueue.WorkloadDeactivated {
		cause, message = workload.Deactivation(w)
	}
	changed, err := c.setStatus(ctx, w, func(w *kueue.Workload) bool {
		if workload.IsEvicted(w) {
			return false
		}
		if reason == kueue.WorkloadDeactivated {
			meta.RemoveStatusCondition(&w.Status.Conditions, kueue.WorkloadDeactivationTarget)
			w.Status.RequeueState = nil
		}
		workload.Evict(w, reason, message, cause, c.now())
		return true
	})
	if err != nil || changed == w {
		return w, err
	}
	event := "EvictedDueTo" + reason
	if cause != "" {
		event += "DueTo" + string(cause)
	}
	c.events.workload.Eventf(changed, nil, corev1.EventTypeNormal, event, event, "%s", message)
	c.addOwner(changed)
	return changed, nil
}

// queuesOf are the queues of a workload. One that holds quota has the ClusterQueue that gave it.
func (c *controller) queuesOf(w *kueue.Workload) workload.Queues {
	var q workload.Queues
	q.Local, _ = c.localQueues.get(types.NamespacedName{Namespace: w.Namespace, Name: string(w.Spec.QueueName)})
	var cluster kueue.ClusterQueueReference
	if w.Status.Admission != nil {
		cluster = w.Status.Admission.ClusterQueue
	} else if q.Local != nil {
		cluster = q.Local.Spec.ClusterQueue
	}
	if q.Cluster, _ = c.clusterQueues.get(types.NamespacedName{Name: string(cluster)}); q.Cluster != nil {
		q.ClusterActive, _, _ = c.readiness(q.Cluster)
	}
	return q
}

// report passes a workload's current state to the engine.
func (c *controller) report(w *kueue.Workload) {
	name := nameOf(w)
	quota, waits := workload.HasQuota(w), workload.Queued(w, c.now())
	holds, known := c.holding[name]
	switch {
	case workload.IsFinished(w) || !quota && !waits:
		c.drop(name)
		return
	case known && holds != quota:
		// Its quota was given back, or the engine's decision could not be carried out.
		if holds {
			c.engine.Release(name)
		} else {
			c.drop(name)
		}
	}
	c.engine.SetWorkload(c.described(w))
	c.holding[name] = quota
	if waits {
		// What it was evicted for may have passed before it gave its quota back.
		c.engine.Resume(name)
	}
	if workload.IsAdmitted(w) {
		c.engine.ChecksReady(name)
	}
}

// drop has the engine forget a workload.
func (c *controller) drop(name types.NamespacedName) {
	if _, known := c.holding[name]; known {
		c.engine.DeleteWorkload(name)
		delete(c.holding, name)
	}
}

// reconcileQueueLater has the counts of a workload's queues brought up to date with the next batch.
func (c *controller) reconcileQueueLater(w *kueue.Workload) {
	c.addAfter(localQueues, w.Namespace, string(w.Spec.QueueName), statusBatch)
	if q := c.queuesOf(w); q.Cluster != nil {
		c.addAfter(clusterQueues, "", q.Cluster.Name, statusBatch)
	}
}

// reconcileQueuesLater does so for all queues that a workload of a namespace may have had.
func (c *controller) reconcileQueuesLater(namespace string) {
	for _, queue := range c.localQueues.all() {
		if queue.Namespace == namespace {
			c.addAfter(localQueues, queue.Namespace, queue.Name, statusBatch)
			c.addAfter(clusterQueues, "", string(queue.Spec.ClusterQueue), statusBatch)
		}
	}
}

// waitedFor is how long a workload has waited for quota.
func waitedFor(w *kueue.Workload, now time.Time) time.Duration {
	since := w.CreationTimestamp.Time
	if requeued := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadRequeued); requeued != nil {
		since = requeued.LastTransitionTime.Time
	}
	return now.Sub(since)
}
