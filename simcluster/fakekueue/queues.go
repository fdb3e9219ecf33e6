package fakekueue

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/fakekueue/workload"
)

// reconcileClusterQueue passes a ClusterQueue to the engine, keeps its status, and lets it go when nothing holds its
// quota.
func (c *controller) reconcileClusterQueue(ctx context.Context, name types.NamespacedName) error {
	defer c.keys.Add(key{kind: schedule})
	c.enqueueDeleted()
	queue, ok := c.clusterQueues.get(name)
	if !ok {
		c.engine.DeleteClusterQueue(name.Name)
		c.enqueueMembers(name.Name)
		return nil
	}
	spec := queue.Spec
	if queue.DeletionTimestamp != nil {
		// What runs continues, and nothing is admitted any more.
		spec.StopPolicy = ptr.To(kueue.Hold)
	}
	if err := c.engine.SetClusterQueue(name.Name, spec); err != nil {
		return err
	}
	held := c.holdersOf(name.Name)
	queue, err := keepWhileInUse(ctx, c.clusterQueues, c.kueue.ClusterQueues(), queue, len(held) > 0)
	if err != nil || queue == nil {
		return ignoreNotFound(err)
	}
	waiting := c.waitingIn(name.Name)
	status := queue.Status.DeepCopy()
	workload.CountQueue(status, queue, held, int32(len(waiting)))
	active, reason, message := c.readiness(queue)
	changed := setActive(&status.Conditions, active, reason, message, queue.Generation)
	if equality.Semantic.DeepEqual(*status, queue.Status) {
		return nil
	}
	if _, err := applyStatus(ctx, c.clusterQueues, c.kueue.ClusterQueues(), queue, "ClusterQueue", status); err != nil {
		return fmt.Errorf("status of ClusterQueue %s: %w", queue.Name, err)
	}
	if changed {
		c.enqueueMembers(name.Name)
	}
	return nil
}

// enqueueDeleted enqueues flavors and checks that were only kept because a ClusterQueue referred to them.
func (c *controller) enqueueDeleted() {
	for _, flavor := range c.flavors.all() {
		if flavor.DeletionTimestamp != nil && len(c.offering(flavor.Name)) == 0 {
			c.add(flavors, "", flavor.Name)
		}
	}
	for _, check := range c.checks.all() {
		if check.DeletionTimestamp != nil && len(c.requiring(check.Name)) == 0 {
			c.add(checks, "", check.Name)
		}
	}
}

// readiness is a ClusterQueue's condition Active.
func (c *controller) readiness(queue *kueue.ClusterQueue) (active bool, reason, message string) {
	if queue.DeletionTimestamp != nil {
		return false, kueue.ClusterQueueActiveReasonTerminating, "Can't admit new workloads; clusterQueue is terminating"
	}
	return c.engine.QueueActive(queue.Name)
}

func setActive(conditions *[]metav1.Condition, active bool, reason, message string, generation int64) bool {
	status := metav1.ConditionFalse
	if active {
		status = metav1.ConditionTrue
	}
	return meta.SetStatusCondition(conditions, metav1.Condition{Type: kueue.ConditionActive, Status: status, Reason: reason, Message: message, ObservedGeneration: generation})
}

// enqueueMembers enqueues the LocalQueues of a ClusterQueue and their workloads.
func (c *controller) enqueueMembers(clusterQueue string) {
	for _, local := range c.localQueuesOf(clusterQueue) {
		c.add(localQueues, local.Namespace, local.Name)
		c.enqueueWorkloadsOf(nameOf(local))
	}
}

func (c *controller) enqueueWorkloadsOf(localQueue types.NamespacedName) {
	for _, w := range c.workloads.by(byQueue, join(localQueue.Namespace, localQueue.Name)) {
		c.add(workloads, w.Namespace, w.Name)
	}
}

func (c *controller) localQueuesOf(clusterQueue string) []*kueue.LocalQueue {
	return slices.DeleteFunc(c.localQueues.all(), func(q *kueue.LocalQueue) bool { return string(q.Spec.ClusterQueue) != clusterQueue })
}

// holdersOf are the workloads that hold quota of a ClusterQueue.
func (c *controller) holdersOf(clusterQueue string) []*kueue.Workload {
	return slices.DeleteFunc(c.workloads.all(), func(w *kueue.Workload) bool {
		return !workload.HasQuota(w) || workload.IsFinished(w) || string(w.Status.Admission.ClusterQueue) != clusterQueue
	})
}

// waitingIn are the workloads that wait for quota of a ClusterQueue.
func (c *controller) waitingIn(clusterQueue string) []*kueue.Workload {
	var waiting []*kueue.Workload
	for _, local := range c.localQueuesOf(clusterQueue) {
		waiting = append(waiting, c.waitingAt(local)...)
	}
	return waiting
}

// waitingAt are the workloads that wait in a LocalQueue: none where it is stopped.
func (c *controller) waitingAt(local *kueue.LocalQueue) []*kueue.Workload {
	if ptr.Deref(local.Spec.StopPolicy, kueue.None) != kueue.None {
		return nil
	}
	all := c.workloads.by(byQueue, join(local.Namespace, local.Name))
	return slices.DeleteFunc(all, func(w *kueue.Workload) bool { return !workload.Queued(w, c.now()) })
}

// reconcileLocalQueue passes a LocalQueue to the engine and keeps its status.
func (c *controller) reconcileLocalQueue(ctx context.Context, name types.NamespacedName) error {
	defer c.keys.Add(key{kind: schedule})
	local, ok := c.localQueues.get(name)
	if !ok {
		if c.locals[name] != nil {
			delete(c.locals, name)
			c.engine.DeleteLocalQueue(name)
			c.enqueueWorkloadsOf(name)
		}
		return nil
	}
	if before := c.locals[name]; before == nil || !equality.Semantic.DeepEqual(before.Spec, local.Spec) || (before.DeletionTimestamp == nil) != (local.DeletionTimestamp == nil) {
		c.locals[name] = local
		c.engine.SetLocalQueue(name, local.Spec)
		c.enqueueWorkloadsOf(name)
		c.add(clusterQueues, "", string(local.Spec.ClusterQueue))
	}
	cluster, _ := c.clusterQueues.get(types.NamespacedName{Name: string(local.Spec.ClusterQueue)})
	status := local.Status.DeepCopy()
	workload.CountLocalQueue(status, cluster, c.workloads.by(byQueue, join(name.Namespace, name.Name)), int32(len(c.waitingAt(local))))
	active, reason, message := c.localReadiness(local, cluster)
	setActive(&status.Conditions, active, reason, message, local.Generation)
	if equality.Semantic.DeepEqual(*status, local.Status) {
		return nil
	}
	if _, err := applyStatus(ctx, c.localQueues, c.kueue.LocalQueues(name.Namespace), local, "LocalQueue", status); err != nil {
		return fmt.Errorf("status of LocalQueue %s: %w", name, err)
	}
	return nil
}

func (c *controller) localReadiness(local *kueue.LocalQueue, cluster *kueue.ClusterQueue) (active bool, reason, message string) {
	const inactive = "Can't submit new workloads to clusterQueue"
	if ptr.Deref(local.Spec.StopPolicy, kueue.None) != kueue.None {
		return false, kueue.LocalQueueActiveReasonStopped, "LocalQueue is stopped"
	}
	if cluster == nil {
		return false, kueue.LocalQueueActiveReasonClusterQueueDoesNotExist, inactive
	}
	if ready, _, _ := c.readiness(cluster); !ready {
		return false, kueue.LocalQueueActiveReasonClusterQueueIsInactive, inactive
	}
	return true, kueue.LocalQueueActiveReasonReady, "Can submit new workloads to localQueue"
}

// defaultNamespaces are the managed namespaces that have a LocalQueue "default".
func (c *controller) defaultNamespaces() []string {
	var names []string
	for _, local := range c.localQueues.all() {
		if local.Name == string(kueue.DefaultLocalQueueName) && c.managed(local.Namespace) {
			names = append(names, local.Namespace)
		}
	}
	return names
}

// managed reports whether Jobs and pods of a namespace may be queued.
func (c *controller) managed(namespace string) bool { return !slices.Contains(unmanaged(), namespace) }

// reconcileFlavor passes a flavor to the engine, and lets it go when no ClusterQueue refers to it.
func (c *controller) reconcileFlavor(ctx context.Context, name types.NamespacedName) error {
	defer c.keys.Add(key{kind: schedule})
	users := c.offering(name.Name)
	defer c.addQueues(users)
	flavor, ok := c.flavors.get(name)
	if !ok {
		c.engine.DeleteFlavor(name.Name)
		return nil
	}
	c.engine.SetFlavor(name.Name, flavor.Spec)
	_, err := keepWhileInUse(ctx, c.flavors, c.kueue.ResourceFlavors(), flavor, len(users) > 0)
	return ignoreNotFound(err)
}

// offering are the ClusterQueues that have quota in a flavor.
func (c *controller) offering(flavor string) []*kueue.ClusterQueue {
	return c.queuesWith(func(queue *kueue.ClusterQueue) bool {
		return slices.ContainsFunc(queue.Spec.ResourceGroups, func(group kueue.ResourceGroup) bool {
			return slices.ContainsFunc(group.Flavors, func(f kueue.FlavorQuotas) bool { return string(f.Name) == flavor })
		})
	})
}

// reconcileCheck passes an admission check to the engine, and lets it go when no ClusterQueue refers to it.
func (c *controller) reconcileCheck(ctx context.Context, name types.NamespacedName) error {
	defer c.keys.Add(key{kind: schedule})
	users := c.requiring(name.Name)
	defer c.addQueues(users)
	check, ok := c.checks.get(name)
	if !ok {
		c.engine.DeleteAdmissionCheck(name.Name)
		return nil
	}
	c.engine.SetAdmissionCheck(name.Name, meta.IsStatusConditionTrue(check.Status.Conditions, kueue.ConditionActive))
	_, err := keepWhileInUse(ctx, c.checks, c.kueue.AdmissionChecks(), check, len(users) > 0)
	return ignoreNotFound(err)
}

// requiring are the ClusterQueues whose workloads have to pass a check.
func (c *controller) requiring(check string) []*kueue.ClusterQueue {
	return c.queuesWith(func(queue *kueue.ClusterQueue) bool {
		return queue.Spec.AdmissionChecksStrategy != nil &&
			slices.ContainsFunc(queue.Spec.AdmissionChecksStrategy.AdmissionChecks, func(r kueue.AdmissionCheckStrategyRule) bool { return string(r.Name) == check })
	})
}

func (c *controller) queuesWith(has func(*kueue.ClusterQueue) bool) []*kueue.ClusterQueue {
	return slices.DeleteFunc(c.clusterQueues.all(), func(q *kueue.ClusterQueue) bool { return !has(q) })
}

func (c *controller) addQueues(queues []*kueue.ClusterQueue) {
	for _, queue := range queues {
		c.add(clusterQueues, "", queue.Name)
	}
}

// keepWhileInUse gives an object its finalizer, which the webhook gave it already unless it is older, or lets it go. It
// returns the object as it is then; the zero T for one that is gone.
func keepWhileInUse[T object](ctx context.Context, s *store[T], client patcher[T], o T, inUse bool) (T, error) {
	has := slices.Contains(o.GetFinalizers(), kueue.ResourceInUseFinalizer)
	switch {
	case o.GetDeletionTimestamp() == nil && !has:
		return setFinalizers(ctx, s, client, o, append(slices.Clip(o.GetFinalizers()), kueue.ResourceInUseFinalizer))
	case o.GetDeletionTimestamp() != nil && has && !inUse:
		var gone T
		_, err := setFinalizers(ctx, s, client, o, without(o.GetFinalizers(), kueue.ResourceInUseFinalizer))
		return gone, err
	}
	return o, nil
}

// reconcileCohort passes a Cohort to the engine.
func (c *controller) reconcileCohort(name types.NamespacedName) {
	if cohort, ok := c.cohorts.get(name); ok {
		c.engine.SetCohort(name.Name, cohort.Spec)
	} else {
		c.engine.DeleteCohort(name.Name)
	}
	// Which queues are below it, and whether they are in a cycle now, is the engine's to know.
	c.addQueues(c.queuesWith(func(q *kueue.ClusterQueue) bool { return q.Spec.CohortName != "" }))
	c.keys.Add(key{kind: schedule})
}

func (c *controller) reconcileNamespace(name types.NamespacedName) {
	if namespace, ok := c.namespaces.get(name); ok {
		c.engine.SetNamespace(name.Name, namespace.Labels)
		c.keys.Add(key{kind: schedule})
	}
}

// reconcileWorkloadClass gives the workloads of a class its value: Kueue v0.19 has them follow it.
func (c *controller) reconcileWorkloadClass(ctx context.Context, name types.NamespacedName) error {
	class, ok := c.workloadClasses.get(name)
	if !ok {
		return nil
	}
	for _, w := range c.workloads.all() {
		ref := w.Spec.PriorityClassRef
		if ref == nil || ref.Kind != kueue.WorkloadPriorityClassKind || ref.Name != name.Name || ptr.Deref(w.Spec.Priority, class.Value-1) == class.Value {
			continue
		}
		if _, err := c.update(ctx, w, func(w *kueue.Workload) bool { w.Spec.Priority = ptr.To(class.Value); return true }); ignoreNotFound(err) != nil {
			return err
		}
		c.add(workloads, w.Namespace, w.Name)
	}
	return nil
}
