package fakekueue

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/quota"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/fakekueue/workload"
)

// fillEngine adds all objects to a new engine, before its first cycle: it would give quota
// away that is held already.
func (c *controller) fillEngine() {
	for _, t := range c.topologies.all() {
		c.setTopology(t)
	}
	for _, n := range c.nodes.all() {
		c.setNode(n)
	}
	for _, pod := range c.allPods.all() {
		c.setPod(nameOf(pod))
	}
	for _, flavor := range c.flavors.all() {
		c.engine.SetFlavor(flavor.Name, flavor.Spec)
	}
	for _, check := range c.checks.all() {
		c.engine.SetAdmissionCheck(check.Name, meta.IsStatusConditionTrue(check.Status.Conditions, kueue.ConditionActive))
	}
	for _, cohort := range c.cohorts.all() {
		c.engine.SetCohort(cohort.Name, cohort.Spec)
	}
	for _, namespace := range c.namespaces.all() {
		c.engine.SetNamespace(namespace.Name, namespace.Labels)
	}
	for _, queue := range c.clusterQueues.all() {
		// A selector that cannot be read is reported when the queue is looked at; until then its workloads wait.
		if err := c.engine.SetClusterQueue(queue.Name, queue.Spec); err != nil {
			c.log.Warn("a ClusterQueue is left out", "name", queue.Name, "error", err)
		}
	}
	for _, local := range c.localQueues.all() {
		c.engine.SetLocalQueue(nameOf(local), local.Spec)
	}
	all := c.workloads.all()
	slices.SortFunc(all, func(a, b *kueue.Workload) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	for _, w := range all {
		c.report(w)
	}
}

// described is a workload in the engine's words.
func (c *controller) described(w *kueue.Workload) quota.Workload {
	return quota.FromObject(workload.WithDefaults(w, c.defaults(w.Namespace)))
}

func (c *controller) requests(w *kueue.Workload) []kueue.PodSetRequest {
	return workload.Requests(workload.WithDefaults(w, c.defaults(w.Namespace)), scheduler.PodRequests)
}

func (c *controller) defaults(namespace string) workload.Defaults {
	return workload.Defaults{
		LimitRanges: slices.DeleteFunc(c.limitRanges.all(), func(r *corev1.LimitRange) bool { return r.Namespace != namespace }),
		RuntimeClass: func(name string) *nodev1.RuntimeClass {
			class, _ := c.runtimeClasses.get(types.NamespacedName{Name: name})
			return class
		},
	}
}
