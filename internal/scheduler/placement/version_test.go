package placement

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestOnlyTheTestedVersionsOfKubernetesAreTested(t *testing.T) {
	for version, want := range map[string]string{
		"":                          "",
		"v1.36.1":                   "",
		"v1.36.3-gke.1234":          "",
		"v1.36.0+k3s1":              "",
		"v1.34.1-eks-3025e55":       "of version 1.34",
		"v1.37.1":                   "",
		"v1.38.0-alpha.1":           "of version 1.38",
		"v0.0.0-master+$Format:%H$": "of version 0.0",
		"unknown":                   "of an unknown version",
	} {
		if got := Untested(version); got != want {
			t.Errorf("%q is %q, not %q", version, got, want)
		}
	}
}

// TestTheRulesAreThoseOfTheClustersVersion has one pod for each rule in which 1.36 and 1.37 differ.
func TestTheRulesAreThoseOfTheClustersVersion(t *testing.T) {
	node := func() *corev1.Node { return machine("node-1", amounts("cpu", "4", "memory", "4Gi")) }
	gate := prioritised("gated", 0, amounts("cpu", "3"))
	gate.Spec.SchedulingGates, gate.Status.NominatedNodeName = []corev1.PodSchedulingGate{{Name: "example.com/quota"}}, "node-1"
	// Two containers trade a cpu: each one's greatest is 3, the greatest sum is 4.
	trade := prioritised("trade", 100, nil)
	trade.Spec.NodeName = "node-1"
	for name, cpu := range map[string][2]string{"a": {"1", "2"}, "b": {"2", "1"}} {
		requested, actual := amounts("cpu", cpu[0]), amounts("cpu", cpu[1])
		trade.Spec.Containers = append(trade.Spec.Containers, corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Requests: requested}})
		trade.Status.ContainerStatuses = append(trade.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: name, Resources: &corev1.ResourceRequirements{Requests: actual}, AllocatedResources: requested,
		})
	}
	for name, test := range map[string]struct {
		beside  *corev1.Pod
		cpu     string
		want136 Kind
		want137 Kind
	}{
		"a gated pod keeps the room on its node from 1.37":                     {gate, "2", Bound, Unschedulable},
		"containers that trade resources hold the sum of the pod from 1.37 on": {trade, "1", Unschedulable, Bound},
	} {
		for version, want := range map[string]Kind{"v1.36.1": test.want136, "v1.37.1": test.want137, "": test.want137} {
			c := New(Snapshot{Nodes: []*corev1.Node{node()}, Pods: []*corev1.Pod{test.beside}, Version: version})
			if got := c.Schedule(c.Pod(prioritised("new", 0, amounts("cpu", test.cpu)))).Kind; got != want {
				t.Errorf("%s: in %q a pod is %s, not %s", name, version, got, want)
			}
		}
	}
}

func TestTheOrderOfBudgetsThatCoverTheSamePodIsChanceFrom137(t *testing.T) {
	web, front := map[string]string{"app": "web"}, map[string]string{"tier": "front"}
	both := func(p *corev1.Pod) { p.Labels = map[string]string{"app": "web", "tier": "front"} }
	for version, want := range map[string]string{
		"v1.36.1": "b, evicting default/y",
		"v1.37.1": "a, evicting default/x; b, evicting default/y",
	} {
		// Where the budget of web comes first, the pod that has both uses it up, though its eviction is not allowed.
		b := nodes("a", "b").budget(0, front).budget(1, web).at("a").runs("f", 0, "1", both).runs("x", 0, "2", labelledAs("web")).at("b").runs("y", 50, "3")
		b.Version = version
		c := New(b.Snapshot)
		pod := c.Pod(prioritised("new", 100, amounts("cpu", "3")))
		var options []string
		for _, o := range c.Alternatives(pod).Options {
			options = append(options, o.String())
		}
		if got := strings.Join(options, "; "); got != want {
			t.Errorf("%s: %q; want %q", version, got, want)
		}
		decided := c.Schedule(pod)
		if one := (Option{Node: decided.Node, Victims: []Victim{{Pod: decided.Victims[0]}}}); !slices.Contains(options, one.String()) {
			t.Errorf("%s: the decision %q is not among %q", version, one, options)
		}
	}
}

func TestMoreBudgetsThanAreOrderedMakeTheAnswerApproximate(t *testing.T) {
	b := nodes("a").at("a").runs("x", 0, "4", labelledAs("web"))
	for range mostContested + 1 {
		b.budget(0, map[string]string{"app": "web"})
	}
	c := New(b.Snapshot)
	if p := c.Alternatives(c.Pod(prioritised("new", 100, amounts("cpu", "4")))); p.Kind != Preempts || len(p.Approximate) != 1 {
		t.Errorf("%s, approximate %q", p.Kind, p.Approximate)
	}
}

func TestImageVolumesCountInTheScoreOfImagesFrom137(t *testing.T) {
	pod := prioritised("pod", 0, amounts("cpu", "1"))
	pod.Spec.Containers[0].Image = "web:1"
	pod.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: "model:1"}}}}
	for version, want := range map[string]int{"v1.36.1": 1, "v1.37.1": 2} {
		c := New(Snapshot{Version: version})
		p := c.Pod(pod)
		c.preFilter(p)
		if got := p.preFilterState.imageCount; got != want {
			t.Errorf("in %s the score is divided by %d images, not %d", version, got, want)
		}
	}
}
