package fakekueue_test

import (
	"context"
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue"
)

// newTopologyWorld is a world whose flavor has a topology of hosts.
func newTopologyWorld(t *testing.T, cpu string) *world {
	t.Helper()
	w := newNamespace(t)
	topology := &kueue.Topology{
		ObjectMeta: metav1.ObjectMeta{Name: w.global("hosts")},
		Spec:       kueue.TopologySpec{Levels: []kueue.TopologyLevel{{NodeLabel: corev1.LabelHostname}}},
	}
	_, err := w.kueue.Topologies().Create(t.Context(), topology, metav1.CreateOptions{})
	w.must(err)
	w.flavor("default", kueue.ResourceFlavorSpec{
		NodeLabels: map[string]string{corev1.LabelOSStable: "linux"}, TopologyName: new(kueue.TopologyReference(w.global("hosts"))),
	})
	w.clusterQueue("cq", w.quota(cpu))
	w.localQueue(queueName, "cq")
	w.class("low", 10)
	w.class("high", 1000)
	return w
}

func requires(level string) func(*batchv1.Job) {
	return func(job *batchv1.Job) {
		job.Spec.Template.Annotations = map[string]string{kueue.PodSetRequiredTopologyAnnotation: level}
	}
}

func TestPodsOfAFlavorWithATopologyGetTheirDomain(t *testing.T) {
	t.Parallel()
	w := newTopologyWorld(t, "1000")
	w.job("together", "low", 3, forever, requires(corev1.LabelHostname))
	admitted := w.becomes("together", "Admitted")
	domains := admitted.Status.Admission.PodSetAssignments[0].TopologyAssignment.Domains()
	if len(domains) != 1 || domains[0].Values[0] != "cpu-1" || domains[0].Count != 3 {
		t.Errorf("the pods are assigned to %v", domains)
	}
	for _, pod := range w.running("together-", 3) {
		if pod.Spec.NodeName != "cpu-1" || pod.Spec.NodeSelector[corev1.LabelHostname] != "cpu-1" || len(pod.Spec.SchedulingGates) > 0 {
			t.Errorf("pod %s is on %s, with node selector %v and gates %v", pod.Name, pod.Spec.NodeName, pod.Spec.NodeSelector, pod.Spec.SchedulingGates)
		}
	}

	// A pod that requests nothing is placed too: its queue has no other flavor.
	w.pod("single", "low", forever)
	if pod := w.running("single", 1)[0]; pod.Annotations[kueue.PodSetUnconstrainedTopologyAnnotation] != "true" || pod.Spec.NodeSelector[corev1.LabelHostname] != "cpu-1" {
		t.Errorf("pod single has annotations %v and node selector %v", pod.Annotations, pod.Spec.NodeSelector)
	}

	w.job("large", "low", 1, forever, requires(corev1.LabelHostname), func(job *batchv1.Job) {
		job.Spec.Template.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("100")
	})
	w.eventually("a pod of 100 CPU waits: no node has so many", func(ctx context.Context) error {
		waiting, err := w.workloadOf(ctx, "large")
		if err != nil {
			return err
		}
		return waits(waiting, fmt.Sprintf(`topology %q doesn't allow to fit any of 1 pod(s). Total nodes: 2; excluded: resource "cpu": 1, taint "%s=present:NoSchedule": 1`,
			w.global("hosts"), gpu))
	})
}

func TestAQueueWaitsForTheTopologyOfItsFlavor(t *testing.T) {
	t.Parallel()
	w := newNamespace(t)
	w.flavor("default", kueue.ResourceFlavorSpec{
		NodeLabels: map[string]string{corev1.LabelOSStable: "linux"}, TopologyName: new(kueue.TopologyReference(w.global("later"))),
	})
	w.clusterQueue("cq", w.quota("4"))
	w.queueIs(metav1.ConditionFalse, kueue.ClusterQueueActiveReasonTopologyNotFound,
		fmt.Sprintf("Can't admit new workloads: there is no Topology %q for TAS flavor %q.", w.global("later"), w.global("default")))
	_, err := w.kueue.Topologies().Create(t.Context(), &kueue.Topology{
		ObjectMeta: metav1.ObjectMeta{Name: w.global("later")},
		Spec:       kueue.TopologySpec{Levels: []kueue.TopologyLevel{{NodeLabel: corev1.LabelHostname}}},
	}, metav1.CreateOptions{})
	w.must(err)
	w.queueIs(metav1.ConditionTrue, kueue.ClusterQueueActiveReasonReady, "Can admit new workloads")
}
