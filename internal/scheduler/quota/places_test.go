package quota

import (
	"testing"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

func TestKueueTriesAgainWhatWaitsWheneverANodeOfATopologyChangesEvenIfItIsNotAvailable(t *testing.T) {
	topology := kueue.TopologyReference("racks")
	e := New(Config{})
	e.SetTopology("racks", []string{"kubernetes.io/hostname"})
	e.SetFlavor("old", kueue.ResourceFlavorSpec{TopologyName: &topology, NodeLabels: map[string]string{"kind": "old"}})
	if err := e.SetClusterQueue("team", kueue.ClusterQueueSpec{}); err != nil {
		t.Fatal(err)
	}
	node := Node{Name: "n1", Labels: map[string]string{"kind": "old", "kubernetes.io/hostname": "n1"}, Unavailable: true}
	other := Node{Name: "n2", Labels: map[string]string{"kind": "new", "kubernetes.io/hostname": "n2"}}
	labelled := node
	labelled.Labels = map[string]string{"kind": "old", "kubernetes.io/hostname": "n1", "more": ""}
	for _, step := range []struct {
		what string
		do   func()
		want bool
	}{
		{"a node that is not available is added", func() { e.SetNode(node) }, true},
		{"nothing of it changes", func() { e.SetNode(node) }, false},
		{"a node of no topology is added", func() { e.SetNode(other) }, false},
		{"a label changes", func() { e.SetNode(labelled) }, true},
		{"it is deleted", func() { e.DeleteNode("n1") }, true},
	} {
		clear(e.retries)
		step.do()
		if got := len(e.retries) > 0; got != step.want {
			t.Errorf("%s: workloads are tried again: %v", step.what, got)
		}
	}
}
