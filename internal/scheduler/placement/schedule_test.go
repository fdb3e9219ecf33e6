package placement

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func prioritised(name string, priority int32, requests corev1.ResourceList) *corev1.Pod {
	p := asking(requests)
	p.ObjectMeta = metav1.ObjectMeta{Namespace: "default", Name: name}
	p.Spec.Priority = &priority
	return p
}

func TestTheTutorialOfThreeNodesEndsInOneEviction(t *testing.T) {
	c := New(Snapshot{Nodes: []*corev1.Node{
		machine("node-1", amounts("cpu", "3920m", "memory", "15Gi")),
		machine("node-2", amounts("cpu", "3920m", "memory", "15Gi")),
		machine("node-3", amounts("cpu", "3920m", "memory", "15Gi")),
	}})
	for _, step := range []struct {
		name     string
		priority int32
		cpu      string
		kind     Kind
		node     string
		equal    int
		message  string
	}{
		{"low-master", 1000000, "1", Bound, "node-1", 3, ""},
		{"low-worker-0", 1000, "3", Bound, "node-2", 2, ""},
		{"low-worker-1", 1000, "3", Bound, "node-3", 1, ""},
		{"high-master", 1000000, "1", Bound, "node-1", 1, ""},
		{"high-worker-0", 1000000, "3", Preempts, "node-2", 2, "0/3 nodes are available: 3 Insufficient cpu. preemption: found a potential placement for pod on node node-2, preempting 1 victims"},
		{"low-worker-2", 1000, "3", Unschedulable, "", 0, "0/3 nodes are available: 3 Insufficient cpu. preemption: 0/3 nodes are available: 3 No preemption victims found for incoming pod."},
	} {
		pod := c.Pod(prioritised(step.name, step.priority, amounts("cpu", step.cpu, "memory", "1Gi")))
		e := c.Explain(pod)
		d := e.Decision
		if d.Kind != step.kind || d.Node != step.node || d.Equal != step.equal || e.Message != step.message {
			t.Fatalf("%s: %s on %q, %d equal: %q; want %+v", pod, d.Kind, d.Node, d.Equal, e.Message, step)
		}
		switch d.Kind {
		case Bound:
			c.AddPod(pod, d.Node)
		case Preempts:
			if got, want := e.Nodes[1].String(), "node-2: Insufficient cpu (requested 3, free 0.92); preempting default/low-worker-0 (priority 1000) makes room"; got != want {
				t.Errorf("explained as %q, not %q", got, want)
			}
			c.Preempt(pod, d.Node, d.Victims)
		}
	}
}
