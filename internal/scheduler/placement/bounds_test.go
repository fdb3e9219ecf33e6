package placement

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
)

// What Settled promises is compared with decisions in any order, with any choice between equals, and with pods that leave at
// any time.
func TestWhatIsSettledComesOutTheSameInEveryOrderAndEvictsNobody(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := New(anySnapshot(t))
		pods := slices.Clone(c.Pending())
		for i := range rapid.IntRange(1, 4).Draw(t, "new pods") {
			pod := c.Pod(anyPod(t, fmt.Sprint("new-", i)))
			for copies := range rapid.IntRange(1, 3).Draw(t, "copies") {
				same := *pod
				same.Name = fmt.Sprint(pod.Name, "-", copies)
				pods = append(pods, &same)
			}
		}
		leaves, told := map[*Pod]bool{}, map[*Pod]bool{}
		for _, n := range c.nodes {
			for _, o := range n.pods {
				told[o.pod] = rapid.IntRange(0, 9).Draw(t, "leaves") == 0
				leaves[o.pod] = o.terminating || told[o.pod]
			}
		}
		var groups []Group
		for _, pod := range pods {
			groups = append(groups, Group{pod, 1})
		}
		if !c.Settled(groups, func(pod *Pod) bool { return told[pod] }) {
			return // the tests below have clusters in which it is, and in which it is not
		}
		first := anyOrder(t, c.Clone(), pods, leaves)
		for pod, fits := range anyOrder(t, c.Clone(), pods, leaves) {
			if fits != first[pod] {
				t.Fatalf("%s starts in one order and waits in another", pod)
			}
		}
	})
}

// anyOrder tries pods in any order, and reports which of them start.
func anyOrder(t *rapid.T, c *Cluster, pods []*Pod, leaves map[*Pod]bool) map[*Pod]bool {
	c.TieBreak = func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "tie") }
	started := map[*Pod]bool{}
	for _, pod := range rapid.Permutation(pods).Draw(t, "order") {
		for _, n := range slices.Clone(c.nodes) {
			for _, o := range slices.Clone(n.pods) {
				if leaves[o.pod] && rapid.Bool().Draw(t, "left") {
					c.RemovePod(o.pod, n.name)
				}
			}
		}
		switch d := c.Schedule(pod); d.Kind {
		case Bound:
			started[pod] = true
			c.AddPod(pod, d.Node)
		case Preempts:
			t.Fatalf("%s evicts %v", pod, d.Victims)
		case Unschedulable, Gated:
			started[pod] = false
		}
	}
	return started
}

// A large pod takes all the room of the one node that small ones may go to, though it has room elsewhere.
func TestALargePodMayTakeTheSlotsOfManySmallOnes(t *testing.T) {
	c := New(nodes("small", "large").at("large").with(func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}}
		n.Status.Allocatable = amounts("cpu", "64", "memory", "64Gi", "pods", "110")
	}).Snapshot)
	large := prioritised("large", 0, amounts("cpu", "4", "memory", "1Gi"))
	large.Spec.Tolerations = []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}}
	groups := []Group{{c.Pod(prioritised("small", 0, amounts("cpu", "1", "memory", "1Gi"))), 1}, {c.Pod(large), 1}}
	if c.Settled(groups, func(*Pod) bool { return false }) {
		t.Error("the small pod is said to start, and waits where the large one came first")
	}
	if !c.Settled(groups[:1], func(*Pod) bool { return false }) {
		t.Error("the small pod alone is not said to start")
	}
}

func TestWhetherAPodWaitsIsNotSettledWhileAnotherIsStopping(t *testing.T) {
	for stops, change := range map[bool]func(*corev1.Pod){true: going, false: func(*corev1.Pod) {}} {
		c := New(nodes("node").at("node").runs("equal", 0, "3", change).Snapshot)
		groups := []Group{{c.Pod(prioritised("new", 0, amounts("cpu", "2", "memory", "1Gi"))), 1}}
		if settled := c.Settled(groups, func(*Pod) bool { return false }); settled == stops {
			t.Errorf("another pod stops: %t, settled: %t", stops, settled)
		}
	}
}
