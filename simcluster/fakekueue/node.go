package fakekueue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/quota"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/fakekueue/workload"
)

// Failed nodes of workloads that are placed by topology, as Kueue v0.19.2 handles them by default
// (pkg/controller/tas/node_controller.go): a node that is deleted has failed at once, and one that is not ready or has a
// taint that the workload does not tolerate has failed for the workload when none of its pods is left there. One failed
// node is replaced; a second one before that evicts the workload.

// nodeCheckBatch is the time for which checks of a node are collected after a change of its pods.
const nodeCheckBatch = 100 * time.Millisecond

// nodeToCheck is the node whose workloads are checked because of a pod that Kueue has placed: it has ended, or it is to go
// to the node and is not there yet. It is "" for other pods.
func nodeToCheck(pod *corev1.Pod) string {
	switch {
	case !kueue.PlacedByTopology(pod.Annotations):
		return ""
	case pod.Spec.NodeName == "":
		return pod.Spec.NodeSelector[corev1.LabelHostname]
	case pod.DeletionTimestamp != nil || workload.Terminated(pod):
		return pod.Spec.NodeName
	}
	return ""
}

// reconcileNode passes a node to the engine, and has it replaced in the workloads for which it has failed.
func (c *controller) reconcileNode(ctx context.Context, name types.NamespacedName) error {
	defer c.keys.Add(key{kind: schedule})
	node, there := c.nodes.get(name)
	if there {
		c.setNode(node)
	} else {
		c.engine.DeleteNode(name.Name)
		node = nil
	}
	if !c.placing.Load() {
		return nil
	}
	var problems error
	for _, w := range c.workloads.all() {
		if !workload.IsOn(w, name.Name) || workload.IsFinished(w) || workload.IsEvicted(w) {
			continue
		}
		failed, err := c.hasFailedFor(w, name.Name, node)
		if err == nil {
			err = c.setUnhealthy(ctx, w, name.Name, failed)
		}
		problems = errors.Join(problems, err)
	}
	if node != nil {
		problems = errors.Join(problems, c.endStrays(ctx, node))
	}
	return problems
}

func (c *controller) setNode(n *corev1.Node) {
	c.engine.SetNode(quota.Node{
		Name: n.Name, Labels: n.Labels, Taints: n.Spec.Taints, Allocatable: n.Status.Allocatable,
		Unavailable: n.Spec.Unschedulable || !scheduler.NodeReady(n),
	})
}

// hasFailedFor reports whether a node must be replaced in a workload that has pods assigned to it. node is nil after its
// deletion.
func (c *controller) hasFailedFor(w *kueue.Workload, name string, node *corev1.Node) (bool, error) {
	if node == nil || !slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady
	}) {
		return true, nil
	}
	if scheduler.NodeReady(node) {
		additions, err := workload.AdditionsOf(w, c.flavor)
		if err != nil {
			return false, fmt.Errorf("the tolerations of Workload %s/%s: %w", w.Namespace, w.Name, err)
		}
		if workload.ToleratesForEver(w, additions, name, node.Spec.Taints) {
			return false, nil
		}
	}
	return !slices.ContainsFunc(c.allPods.by(byWorkload, join(w.Namespace, w.Name)), func(pod *corev1.Pod) bool {
		return pod.Spec.NodeName == name && pod.DeletionTimestamp == nil && !workload.Terminated(pod)
	}), nil
}

// setUnhealthy notes that a node has failed for a workload, or that it is healthy again.
func (c *controller) setUnhealthy(ctx context.Context, w *kueue.Workload, node string, failed bool) error {
	this := kueue.UnhealthyNode{Name: node}
	noted := slices.Contains(w.Status.UnhealthyNodes, this)
	switch {
	case failed == noted:
		return nil
	case failed && len(w.Status.UnhealthyNodes) > 0:
		var all []string
		for _, other := range append(slices.Clone(w.Status.UnhealthyNodes), this) {
			all = append(all, other.Name)
		}
		c.engine.Evict(nameOf(w), kueue.WorkloadEvictedDueToNodeFailures, c.now())
		_, err := c.evict(ctx, w, kueue.WorkloadEvictedDueToNodeFailures,
			"Workload eviction triggered due to multiple TAS assigned node failures, including: "+strings.Join(all, ", "))
		return err
	}
	changed, err := c.setStatus(ctx, w, func(w *kueue.Workload) bool {
		if failed {
			w.Status.UnhealthyNodes = append(w.Status.UnhealthyNodes, this)
		} else {
			w.Status.UnhealthyNodes = slices.DeleteFunc(w.Status.UnhealthyNodes, func(n kueue.UnhealthyNode) bool { return n == this })
		}
		return true
	})
	if err != nil {
		return err
	}
	c.report(changed)
	return nil
}

// strayMessage is Kueue's message for a pod that waits for a node to which its workload is not assigned any more.
const strayMessage = "Pod terminated by Kueue NodeController due to node taint"

// endStrays fails pods that are to go to a node and can not: their workload has moved to another one, or the node is not
// available. Their owners make others.
func (c *controller) endStrays(ctx context.Context, node *corev1.Node) error {
	for _, pod := range c.allPods.all() {
		if nodeToCheck(pod) != node.Name || pod.Spec.NodeName != "" || pod.Status.Phase != corev1.PodPending || workload.HasGate(pod, kueue.TopologyGate) {
			continue
		}
		w, there := c.workloads.get(types.NamespacedName{Namespace: pod.Namespace, Name: pod.Annotations[kueue.WorkloadAnnotation]})
		if !there || workload.IsFinished(w) || workload.IsEvicted(w) {
			continue
		}
		if workload.IsOn(w, node.Name) {
			additions, err := workload.AdditionsOf(w, c.flavor)
			if err != nil || scheduler.NodeReady(node) && workload.ToleratesForEver(w, additions, node.Name, node.Spec.Taints) {
				continue
			}
		}
		changed := pod.DeepCopy()
		changed.Status.Phase = corev1.PodFailed
		changed.Status.Conditions = append(changed.Status.Conditions, corev1.PodCondition{
			Type: "TerminatedByKueue", Status: corev1.ConditionTrue, Reason: "UnschedulableOnAssignedNode", Message: strayMessage,
			LastTransitionTime: metav1.NewTime(c.now()),
		})
		if _, err := patch(ctx, c.allPods, c.core.CoreV1().Pods(pod.Namespace), pod, changed, false, "status"); ignoreNotFound(err) != nil {
			return fmt.Errorf("ending pod %s/%s, whose node has failed: %w", pod.Namespace, pod.Name, err)
		}
		c.events.workload.Eventf(changed, nil, corev1.EventTypeNormal, "PodTerminatedByKueue", "PodTerminated", strayMessage)
	}
	return nil
}
