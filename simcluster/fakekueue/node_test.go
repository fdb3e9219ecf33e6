package fakekueue_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue"
)

// bareNode adds a ready node without a kubelet: pods are bound to it, and never run.
func (w *world) bareNode(name string) {
	w.t.Helper()
	client := w.core.CoreV1().Nodes()
	_, err := client.Create(w.t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{"group": w.namespace, corev1.LabelHostname: name},
	}}, metav1.CreateOptions{})
	w.must(err)
	w.t.Cleanup(func() { _ = client.Delete(context.Background(), name, metav1.DeleteOptions{}) }) // the test may have deleted it
	amounts := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("8Gi"), corev1.ResourcePods: resource.MustParse("10")}
	w.eventually("node "+name+" is ready", func(ctx context.Context) error { // Kubernetes' controllers change it as well
		node, err := client.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		node.Status.Capacity, node.Status.Allocatable = amounts, amounts
		node.Status.Conditions = []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now(),
		}}
		_, err = client.UpdateStatus(ctx, node, metav1.UpdateOptions{})
		return err
	})
}

// losesNode deletes a node and its pods.
func (w *world) losesNode(name string) {
	w.t.Helper()
	w.must(w.core.CoreV1().Nodes().Delete(w.t.Context(), name, metav1.DeleteOptions{}))
	w.must(w.core.CoreV1().Pods(w.namespace).DeleteCollection(w.t.Context(), *metav1.NewDeleteOptions(0), metav1.ListOptions{FieldSelector: "spec.nodeName=" + name}))
}

// isAt waits until the Workload of an owner, and the pod that it has, are assigned to a node.
func (w *world) isAt(owner, node string) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("%s is on %s", owner, node), func(ctx context.Context) error {
		item, err := w.workloadOf(ctx, owner)
		if err != nil {
			return err
		}
		if item.Status.Admission == nil || item.Status.Admission.PodSetAssignments[0].TopologyAssignment == nil {
			return errors.New("it has no place")
		}
		if at := item.Status.Admission.PodSetAssignments[0].TopologyAssignment.Domains()[0].Values[0]; at != node || len(item.Status.UnhealthyNodes) > 0 {
			return fmt.Errorf("it is assigned to %s, with unhealthy nodes %v", at, item.Status.UnhealthyNodes)
		}
		pods, err := w.core.CoreV1().Pods(w.namespace).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
		if err != nil {
			return err
		}
		if len(pods.Items) != 1 {
			return fmt.Errorf("%d pods are on the node", len(pods.Items))
		}
		return nil
	})
}

func TestAFailedNodeIsReplacedOrTheWorkloadIsEvicted(t *testing.T) {
	t.Parallel()
	w := newNamespace(t)
	first, second := w.global("n-1"), w.global("n-2")
	w.bareNode(first)
	w.bareNode(second)
	_, err := w.kueue.Topologies().Create(t.Context(), &kueue.Topology{
		ObjectMeta: metav1.ObjectMeta{Name: w.global("hosts")},
		Spec:       kueue.TopologySpec{Levels: []kueue.TopologyLevel{{NodeLabel: corev1.LabelHostname}}},
	}, metav1.CreateOptions{})
	w.must(err)
	w.flavor("default", kueue.ResourceFlavorSpec{
		NodeLabels: map[string]string{"group": w.namespace}, TopologyName: new(kueue.TopologyReference(w.global("hosts"))),
	})
	w.clusterQueue("cq", w.quota("1000"))
	w.localQueue(queueName, "cq")

	w.job("train", "", 1, forever, requires(corev1.LabelHostname))
	w.isAt("train", first)
	w.losesNode(first)
	w.isAt("train", second)
	w.losesNode(second)
	w.eventually("train is evicted, because there is no other node", func(ctx context.Context) error {
		item, err := w.workloadOf(ctx, "train")
		if err != nil {
			return err
		}
		if state(item) != "Pending" {
			return fmt.Errorf("it is %s", state(item))
		}
		stats := item.Status.SchedulingStats
		if stats == nil || len(stats.Evictions) != 1 || stats.Evictions[0].Reason != kueue.WorkloadEvictedDueToNodeFailures {
			return fmt.Errorf("its evictions are %+v", stats)
		}
		return nil
	})
	third := w.global("n-3")
	w.bareNode(third)
	w.isAt("train", third)
}
