package fakekueue

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/fakekueue/workload"
)

// reconcileTopology passes a Topology to the engine.
func (c *controller) reconcileTopology(name types.NamespacedName) {
	defer c.keys.Add(key{kind: schedule})
	if t, ok := c.topologies.get(name); ok {
		c.setTopology(t)
	} else {
		c.engine.DeleteTopology(name.Name)
	}
	c.addQueues(c.queuesWith(func(*kueue.ClusterQueue) bool { return true }))
}

func (c *controller) setTopology(t *kueue.Topology) {
	if !c.placing.Swap(true) {
		for _, pod := range c.allPods.all() {
			c.add(places, pod.Namespace, pod.Name)
		}
	}
	levels := make([]string, len(t.Spec.Levels))
	for i, level := range t.Spec.Levels {
		levels[i] = level.NodeLabel
	}
	c.engine.SetTopology(t.Name, levels)
}

// reconcilePlace passes a pod that Kueue does not place to the engine, and gives the pods of a workload that waits for it
// their domains.
func (c *controller) reconcilePlace(ctx context.Context, name types.NamespacedName) error {
	c.setPod(name)
	c.keys.Add(key{kind: schedule})
	if pod, ok := c.allPods.get(name); ok && workload.AwaitsPlace(pod) {
		return c.place(ctx, types.NamespacedName{Namespace: pod.Namespace, Name: pod.Annotations[kueue.WorkloadAnnotation]})
	}
	return nil
}

// setPod has the engine count a pod on its node, unless Kueue has placed it or it has ended.
func (c *controller) setPod(name types.NamespacedName) {
	pod, ok := c.allPods.get(name)
	if !ok || pod.Spec.NodeName == "" || workload.Terminated(pod) || kueue.PlacedByTopology(pod.Annotations) {
		c.engine.DeletePod(name)
		return
	}
	c.engine.SetPod(name, pod.Spec.NodeName, scheduler.PodRequests(&pod.Spec))
}

// place un-gates the pods of an admitted workload for their domains.
func (c *controller) place(ctx context.Context, name types.NamespacedName) error {
	w, ok := c.workloads.get(name)
	if !ok || !workload.IsAdmitted(w) {
		return nil
	}
	all := c.allPods.by(byWorkload, join(name.Namespace, name.Name))
	slices.SortFunc(all, byAge)
	for i := range w.Status.Admission.PodSetAssignments {
		assignment := &w.Status.Admission.PodSetAssignments[i]
		if assignment.TopologyAssignment == nil {
			continue
		}
		var pods []*corev1.Pod
		for _, pod := range all {
			if pod.Labels[kueue.PodSetLabel] == string(assignment.Name) {
				pods = append(pods, pod)
			}
		}
		var request *kueue.PodSetTopologyRequest
		if at := slices.IndexFunc(w.Spec.PodSets, func(s kueue.PodSet) bool { return s.Name == assignment.Name }); at >= 0 {
			request = w.Spec.PodSets[at].TopologyRequest
		}
		for _, placed := range workload.Place(assignment, request, pods) {
			if slices.Contains(w.Status.UnhealthyNodes, kueue.UnhealthyNode{Name: placed.Labels[corev1.LabelHostname]}) {
				continue // until another node is found
			}
			changed := placed.Pod.DeepCopy()
			placed.Put(changed)
			if _, err := patch(ctx, c.allPods, c.core.CoreV1().Pods(changed.Namespace), placed.Pod, changed, false); ignoreNotFound(err) != nil {
				return fmt.Errorf("un-gating pod %s/%s for its domain: %w", changed.Namespace, changed.Name, err)
			}
		}
	}
	return nil
}
