package kind

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// node is a Ready one of the tutorial's size.
func node(name string) corev1.Node {
	return corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: corev1.NodeStatus{
			Capacity:    corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("15Gi")},
			Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3920m"), corev1.ResourceMemory: resource.MustParse("15Gi")},
			Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
}

func TestAClusterIsReadyWhenEveryNodeIsAndTheWorkersHaveTheirSize(t *testing.T) {
	c := &Cluster{name: "c", names: []string{"c-control-plane", "c-worker", "c-worker2"}, machine: Tutorial()}
	if got := strings.Join(c.Workers(), " "); got != "c-worker c-worker2" {
		t.Fatalf("workers %s", got)
	}
	for name, test := range map[string]struct {
		bend     func(nodes []corev1.Node) []corev1.Node
		node     string
		wantText string
	}{
		"all is well": {bend: func(n []corev1.Node) []corev1.Node { return n }},
		"the control plane may have another size": {
			bend: func(n []corev1.Node) []corev1.Node {
				n[0].Status.Capacity[corev1.ResourceCPU] = resource.MustParse("2")
				return n
			},
		},
		"a node is missing": {
			bend: func(n []corev1.Node) []corev1.Node { return n[:2] },
			node: "c-worker2", wantText: "it has not registered",
		},
		"a kubelet says that it is not ready": {
			bend: func(n []corev1.Node) []corev1.Node {
				n[1].Status.Conditions[0] = corev1.NodeCondition{
					Type: corev1.NodeReady, Status: corev1.ConditionFalse, Reason: "KubeletNotReady", Message: "cni plugin not initialized",
				}
				return n
			},
			node: "c-worker", wantText: "it is not Ready: KubeletNotReady: cni plugin not initialized",
		},
		"a kubelet has said nothing yet": {
			bend: func(n []corev1.Node) []corev1.Node { n[0].Status.Conditions = nil; return n },
			node: "c-control-plane", wantText: "it is not Ready, and has not said why",
		},
		"a worker has the host's CPUs": {
			bend: func(n []corev1.Node) []corev1.Node {
				n[2].Status.Capacity[corev1.ResourceCPU] = resource.MustParse("2")
				return n
			},
			node: "c-worker2", wantText: "it reports 2 CPUs instead of 4",
		},
		"a worker has the host's memory": {
			bend: func(n []corev1.Node) []corev1.Node {
				n[2].Status.Capacity[corev1.ResourceMemory] = resource.MustParse("24684096Ki")
				return n
			},
			node: "c-worker2", wantText: "it reports 24684096Ki memory instead of 15Gi",
		},
		"the system's share is missing": {
			bend: func(n []corev1.Node) []corev1.Node {
				n[1].Status.Allocatable[corev1.ResourceCPU] = resource.MustParse("4")
				return n
			},
			node: "c-worker", wantText: "it reports 4 allocatable CPUs instead of 3920m",
		},
	} {
		t.Run(name, func(t *testing.T) {
			found := faults(c.names, c.isWorker, test.bend([]corev1.Node{node("c-control-plane"), node("c-worker"), node("c-worker2")}), c.machine)
			if test.node == "" && len(found) == 0 {
				return
			}
			if len(found) != 1 || found[test.node] != test.wantText {
				t.Errorf("found %v, want %q of %q", found, test.wantText, test.node)
			}
		})
	}
}
