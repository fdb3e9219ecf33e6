package placement

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestEveryFilterReportsWhyItRejectsANode(t *testing.T) {
	pod := func(cpu string, changes ...func(*corev1.Pod)) *corev1.Pod {
		p := prioritised("new", 0, amounts("cpu", cpu))
		for _, change := range changes {
			change(p)
		}
		return p
	}
	zone := func(n *corev1.Node) { n.Labels["zone"] = "a" }
	for name, test := range map[string]struct {
		cluster *builder
		pod     *corev1.Pod
		want    string // what stands about the first node; "" when the pod fits
	}{
		"there is room":         {nodes("a"), pod("4"), ""},
		"the node is too small": {nodes("a"), pod("4500m"), "Insufficient cpu (requested 4.5, free 4)"},
		"others take too much":  {nodes("a").at("a").runs("x", 0, "3"), pod("1500m"), "Insufficient cpu (requested 1.5, free 1)"},
		"several resources are short": {nodes("a").at("a").runs("x", 0, "3"), pod("2", func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests = amounts("cpu", "2", "memory", "16Gi")
		}), "Insufficient cpu (requested 2, free 1), Insufficient memory (requested 16Gi, free 15Gi)"},
		"a device that the node lacks": {nodes("a"), pod("1", func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests["nvidia.com/gpu"] = amounts("n", "2")["n"]
		}), "Insufficient nvidia.com/gpu (requested 2, free 0)"},
		"it takes no more pods":                     {nodes("a").at("a").with(func(n *corev1.Node) { n.Status.Allocatable["pods"] = amounts("n", "1")["n"] }).runs("x", 0, "0"), pod("0"), "Too many pods (1 of 1)"},
		"the node is cordoned":                      {nodes("a").at("a").with(func(n *corev1.Node) { n.Spec.Unschedulable = true }), pod("1"), "node(s) were unschedulable"},
		"a taint is not tolerated":                  {nodes("a").at("a").with(func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "gpu", Value: "yes", Effect: "NoSchedule"}} }), pod("1"), "node(s) had untolerated taint(s) {gpu: yes}"},
		"a taint that stops pods is not tolerated":  {nodes("a").at("a").with(func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "gpu", Value: "yes", Effect: "NoExecute"}} }), pod("1"), "node(s) had untolerated taint(s) {gpu: yes}"},
		"a taint is tolerated":                      {nodes("a").at("a").with(func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "gpu", Value: "yes", Effect: "NoSchedule"}} }), pod("1", func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{{Operator: "Exists"}} }), ""},
		"a taint that is only a preference":         {nodes("a").at("a").with(func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "gpu", Effect: "PreferNoSchedule"}} }), pod("1"), ""},
		"the selector wants another label":          {nodes("a"), pod("1", func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"disk": "ssd"} }), "node(s) didn't match Pod's node affinity/selector"},
		"the affinity names another node":           {nodes("a", "b"), pod("1", onlyOn("b")), "node(s) didn't satisfy plugin(s) [NodeAffinity]"},
		"the affinity names this node":              {nodes("a", "b"), pod("1", onlyOn("a")), ""},
		"the port is taken":                         {nodes("a").at("a").runs("x", 0, "1", withPort(80)), pod("1", withPort(80)), "node(s) didn't have free ports for the requested pod ports"},
		"another port is taken":                     {nodes("a").at("a").runs("x", 0, "1", withPort(80)), pod("1", withPort(443)), ""},
		"it is repelled by what runs":               {nodes("a").at("a").runs("x", 0, "1", labelledAs("web")), pod("1", repelledBy("web", corev1.LabelHostname)), "node(s) didn't match pod anti-affinity rules"},
		"what runs is repelled by it":               {nodes("a").at("a").runs("x", 0, "1", repelledBy("web", corev1.LabelHostname)), pod("1", labelledAs("web")), "node(s) didn't satisfy existing pods anti-affinity rules"},
		"what it is drawn to runs elsewhere":        {nodes("a", "b").at("b").runs("x", 0, "1", labelledAs("web")), pod("1", drawnTo("web", corev1.LabelHostname)), "node(s) didn't match pod affinity rules"},
		"what it is drawn to runs nowhere":          {nodes("a"), pod("1", drawnTo("web", corev1.LabelHostname)), "node(s) didn't match pod affinity rules"},
		"the first of its kind may go anywhere":     {nodes("a"), pod("1", labelledAs("web"), drawnTo("web", corev1.LabelHostname)), ""},
		"its zone has more of its kind than others": {nodes("a", "b").at("a").with(zone).runs("x", 0, "1", labelledAs("spread")).at("b").with(func(n *corev1.Node) { n.Labels["zone"] = "b" }), pod("1", spreadOver("zone")), "node(s) didn't match pod topology spread constraints"},
		"the node has no zone to spread over":       {nodes("a"), pod("1", spreadOver("zone")), "node(s) didn't match pod topology spread constraints (missing required label)"},
	} {
		t.Run(name, func(t *testing.T) {
			c := New(test.cluster.Snapshot)
			if got := c.Explain(c.Pod(test.pod)).Nodes[0].Detail; got != test.want {
				t.Errorf("%q; want %q", got, test.want)
			}
		})
	}
}

func onlyOn(node string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}}}},
		}}}
	}
}

func zoned(zone string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Labels[corev1.LabelTopologyZone] = zone }
}

func pulled(size int64) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Status.Images = []corev1.ContainerImage{{Names: []string{"big:latest"}, SizeBytes: size}}
	}
}

func TestTheNodeIsTheOneWithTheHighestScore(t *testing.T) {
	ssd := func(n *corev1.Node) { n.Labels["disk"] = "ssd" }
	prefersSSD := func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{
			{Weight: 1, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "disk", Operator: corev1.NodeSelectorOpIn, Values: []string{"ssd"}}}}},
		}}}
	}
	service := func(b *builder) *builder {
		b.Services = append(b.Services, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "web"}}})
		return b
	}
	for name, test := range map[string]struct {
		cluster *builder
		changes []func(*corev1.Pod)
		want    string
	}{
		"they are indistinguishable":       {nodes("a", "b"), nil, "a b"},
		"less is taken of one":             {nodes("a", "b").at("a").runs("x", 0, "1"), nil, "b"},
		"a taint is better avoided":        {nodes("a", "b").at("a").with(func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "spot", Effect: "PreferNoSchedule"}} }), nil, "b"},
		"a preferred label outweighs room": {nodes("a", "b").at("a").with(ssd).runs("x", 0, "2"), []func(*corev1.Pod){prefersSSD}, "a"},
		"of its kind one is going there, which no longer counts for the spread": {
			nodes("a", "b").at("a").with(zoned("y")).runs("x", 0, "1", labelledAs("spread"), going).at("b").with(zoned("z")).runs("y", 0, "1", labelledAs("spread")),
			[]func(*corev1.Pod){spreadOver(corev1.LabelTopologyZone)},
			"a",
		},
		"its image is on the node": {nodes("a", "b").at("b").with(func(n *corev1.Node) {
			n.Status.Images = []corev1.ContainerImage{{Names: []string{"big:latest"}, SizeBytes: 2 << 30}}
		}), []func(*corev1.Pod){func(p *corev1.Pod) { p.Spec.Containers[0].Image = "big" }}, "b"},
		"its image is on the node, with the size that the first node reported": {
			nodes("a", "b", "c", "d").at("a").with(zoned("y")).at("b").with(zoned("y")).with(pulled(2<<30)).at("c").with(zoned("z")).with(pulled(1)).runs("x", 0, "500m"),
			[]func(*corev1.Pod){func(p *corev1.Pod) { p.Spec.Containers[0].Image = "big" }},
			"b",
		},
		"its service has a pod on one, as big as what runs on the other": {service(nodes("a", "b")).at("a").runs("x", 0, "1", labelledAs("web")).at("b").runs("y", 0, "1"), []func(*corev1.Pod){labelledAs("web")}, "b"},
		"a pod there would like its company":                             {nodes("a", "b").at("a").runs("x", 0, "1", drawnTo("web", corev1.LabelHostname), labelledAs("web")), []func(*corev1.Pod){labelledAs("web")}, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			p := prioritised("new", 0, amounts("cpu", "1", "memory", "1Gi"))
			for _, change := range test.changes {
				change(p)
			}
			c := New(test.cluster.Snapshot)
			var got []string
			for _, o := range c.Alternatives(c.Pod(p)).Options {
				got = append(got, o.String())
			}
			if text := strings.Join(got, " "); text != test.want {
				t.Errorf("%q; want %q: %v", text, test.want, c.Explain(c.Pod(p)).Nodes)
			}
		})
	}
}

func TestVictimsAreChosenByTheSixCriteria(t *testing.T) {
	for name, test := range map[string]struct {
		cluster *builder
		cpu     string
		changes []func(*corev1.Pod)
		want    string
	}{
		"a node where no budget is hurt": {
			nodes("a", "b").budget(0, map[string]string{"app": "web"}).at("a").runs("x", 0, "4", labelledAs("web")).at("b").runs("y", 99, "4"),
			"4", nil, "b, evicting default/y",
		},
		"then the lower highest priority": {
			nodes("a", "b").at("a").runs("x", 5, "4").at("b").runs("y", 4, "2").runs("z", 4, "2"), "4", nil, "b, evicting default/y and default/z",
		},
		"the highest counts even where another's budget is hurt": {
			nodes("a", "b").budget(0, map[string]string{"app": "web"}).at("a").runs("x", 0, "2", labelledAs("web")).runs("y", 50, "2").
				at("b").runs("z", 40, "4", labelledAs("web")),
			"4", nil, "b, evicting default/z",
		},
		"then the smaller sum of priorities": {
			nodes("a", "b").at("a").runs("x", 5, "2").runs("w", 5, "2").at("b").runs("y", 5, "2").runs("z", 4, "2"), "4", nil, "b, evicting default/y and default/z",
		},
		"fewer victims have the smaller sum, even of negative priorities": {
			nodes("a", "b").at("a").runs("x", -5, "2").runs("w", -5, "2").at("b").runs("y", -5, "4"), "4", nil, "b, evicting default/y",
		},
		"then the later start": {
			nodes("a", "b").at("a").runs("x", 0, "4").at("b").runs("y", 0, "4"), "4", nil, "b, evicting default/y",
		},
		"then chance": {
			nodes("a", "b").at("a").runs("x", 0, "4", started(7)).at("b").runs("y", 0, "4", started(7)), "4", nil, "a, evicting default/x; b, evicting default/y",
		},
		"on a node those that run longest are spared": {
			nodes("a").at("a").runs("x", 0, "2").runs("y", 0, "2"), "2", nil, "a, evicting default/y",
		},
		"the more important is spared though it came later": {
			nodes("a").at("a").runs("x", 0, "2").runs("y", 1, "2"), "2", nil, "a, evicting default/x",
		},
		"a large one is evicted so that a smaller, less important one can stay": {
			nodes("a").at("a").runs("x", 5, "3").runs("y", 0, "1"), "3", nil, "a, evicting default/x",
		},
		"one whose budget is spent is spared before a more important one": {
			nodes("a").budget(0, map[string]string{"app": "web"}).at("a").runs("x", 0, "2", labelledAs("web")).runs("y", 5, "2"), "2", nil, "a, evicting default/y",
		},
		"pods that started together are equal": {
			nodes("a").at("a").runs("x", 0, "2", started(7)).runs("y", 0, "2", started(7)), "2", nil, "a, evicting default/y or default/x (equal)",
		},
		"of pods that started together those go that chance does not spare, few or many": {
			nodes("a").at("a").runs("x", 0, "2", started(7)).runs("y", 0, "1", started(7)).runs("z", 0, "1", started(7)),
			"2", nil, "a, evicting default/y and default/z; a, evicting default/x",
		},
		"a port is freed": {
			nodes("a").at("a").runs("x", 0, "1", withPort(80)).runs("y", 0, "1"), "1", []func(*corev1.Pod){withPort(80)}, "a, evicting default/x",
		},
		"of pods that started together chance gives one what their budget allows": {
			nodes("a", "b").budget(1, map[string]string{"app": "web"}).at("a").runs("w", 0, "1", started(7), withPort(80)).
				at("b").runs("x", 0, "1", started(7), labelledAs("web")).runs("y", 0, "1", started(7), labelledAs("web"), withPort(80)),
			"1",
			[]func(*corev1.Pod){withPort(80)},
			"a, evicting default/w; b, evicting default/y",
		},
		"the pod that repels it ends": {
			nodes("a").at("a").runs("x", 0, "1", labelledAs("web")).runs("y", 0, "1"), "1", []func(*corev1.Pod){repelledBy("web", corev1.LabelHostname)}, "a, evicting default/x",
		},
		"its equals are never evicted":           {nodes("a").at("a").runs("x", 100, "4"), "4", nil, "Unschedulable"},
		"eviction helps nothing on a small node": {nodes("a").at("a").runs("x", 0, "4"), "5", nil, "Unschedulable"},
		"its policy forbids it":                  {nodes("a").at("a").runs("x", 0, "4"), "4", []func(*corev1.Pod){never}, "Unschedulable"},
	} {
		t.Run(name, func(t *testing.T) {
			p := prioritised("new", 100, amounts("cpu", test.cpu))
			for _, change := range test.changes {
				change(p)
			}
			c := New(test.cluster.Snapshot)
			prospect := c.Alternatives(c.Pod(p))
			var got []string
			for _, o := range prospect.Options {
				got = append(got, o.String())
			}
			if len(got) == 0 {
				got = []string{string(prospect.Kind)}
			}
			if text := strings.Join(got, "; "); text != test.want {
				t.Errorf("%q; want %q", text, test.want)
			}
		})
	}
}

func TestAPodThatWaitsForItsVictimsEvictsNoOther(t *testing.T) {
	c := New(nodes("a", "b").at("a").runs("low-a", 0, "4").at("b").runs("low-b", 0, "4").Snapshot)
	pod := c.Pod(prioritised("high", 100, amounts("cpu", "4")))
	d := c.Schedule(pod)
	if d.Kind != Preempts || d.Node != "b" {
		t.Fatalf("%s on %s", d.Kind, d.Node)
	}
	c.Preempt(pod, d.Node, d.Victims)
	if again := c.Schedule(pod); again.Kind != Unschedulable || c.Nominated(pod) != "b" {
		t.Fatalf("while its victim stops it is %s, nominated to %q", again.Kind, c.Nominated(pod))
	}
	if message := c.Explain(pod).Message; !strings.HasSuffix(message, "preemption: not eligible due to a terminating pod on the nominated node.") {
		t.Error(message)
	}

	middling := c.Pod(prioritised("middling", 50, amounts("cpu", "4")))
	if other := c.Schedule(middling); other.Kind != Preempts || other.Node != "a" {
		t.Errorf("what is made for another is not for it: %s on %s", other.Kind, other.Node)
	}
	c.RemovePod(d.Victims[0], "b")
	if d := c.Schedule(middling); d.Kind != Preempts || d.Node != "a" {
		t.Errorf("nor is it when it is free: %s on %s", d.Kind, d.Node)
	}
	highest := c.Pod(prioritised("highest", 1000, amounts("cpu", "4")))
	if d := c.Schedule(highest); d.Kind != Bound || d.Node != "b" {
		t.Errorf("a more important pod may take it: %s on %s", d.Kind, d.Node)
	}
	if d := c.Schedule(pod); d.Kind != Bound || d.Node != "b" {
		t.Errorf("it is placed where room was made for it: %s on %s", d.Kind, d.Node)
	}

	c.AddPod(highest, "b")
	c.AddPod(c.Pod(prioritised("equal", 100, amounts("cpu", "4"))), "a")
	if d := c.Schedule(pod); d.Kind != Unschedulable && d.Node != "a" || c.Nominated(pod) != "" && d.Kind == Unschedulable {
		t.Errorf("its room is taken: %s on %s, nominated to %q", d.Kind, d.Node, c.Nominated(pod))
	}
}

func TestALargeClusterIsNamedAsSampled(t *testing.T) {
	b := &builder{}
	for i := range 300 {
		b.Nodes = append(b.Nodes, machine(fmt.Sprint("node-", i), amounts("cpu", "4", "memory", "16Gi")))
		b.at(fmt.Sprint("node-", i)).runs(fmt.Sprint("low-", i), int32(i), "1")
	}
	c := New(b.Snapshot)
	bound := c.Alternatives(c.Pod(prioritised("small", 1000, amounts("cpu", "2"))))
	if !bound.Sampled || bound.Kind != Bound || len(bound.Options) != 300 {
		t.Errorf("%d options, sampled %v: 144 of 300 equal nodes are compared, and any of them may win", len(bound.Options), bound.Sampled)
	}
	preempts := c.Alternatives(c.Pod(prioritised("large", 1000, amounts("cpu", "4"))))
	if !preempts.Sampled || preempts.Kind != Preempts || len(preempts.Options) != 201 {
		t.Errorf("%d options, sampled %v: of 300 candidates 100 are compared, so that the best of any 100 may win", len(preempts.Options), preempts.Sampled)
	}
	start := c.next
	first := c.Schedule(c.Pod(prioritised("small", 1000, amounts("cpu", "2"))))
	if c.next != (start+enough(300))%300 || first.Equal != enough(300) {
		t.Errorf("the search went from %d to %d and found %d equals", start, c.next, first.Equal)
	}
}

func TestWhatIsNotModelledIsNamed(t *testing.T) {
	c := New(nodes("a").Snapshot)
	for name, test := range map[string]struct {
		change func(*corev1.PodSpec)
		want   string
	}{
		"nothing special": {func(*corev1.PodSpec) {}, ""},
		"a volume claim": {func(s *corev1.PodSpec) {
			s.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
		}, "pod default/new uses volume claim data, which may tie it to a zone or a node"},
		"a resource claim": {func(s *corev1.PodSpec) { s.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu"}} }, "pod default/new uses resource claim gpu, whose devices are not modelled"},
	} {
		t.Run(name, func(t *testing.T) {
			p := prioritised("new", 0, amounts("cpu", "1"))
			test.change(&p.Spec)
			if got := strings.Join(c.Schedule(c.Pod(p)).Approximate, "; "); got != test.want {
				t.Errorf("%q; want %q", got, test.want)
			}
			if got := strings.Join(c.Alternatives(c.Pod(p)).Approximate, "; "); got != test.want {
				t.Errorf("%q; want %q", got, test.want)
			}
		})
	}
	gated := prioritised("gated", 0, amounts("cpu", "1"))
	gated.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "kueue.x-k8s.io/admission"}}
	if kind := c.Schedule(c.Pod(gated)).Kind; kind != Gated {
		t.Errorf("a pod with gates is %s", kind)
	}
}

func TestNodesComeZoneByZone(t *testing.T) {
	b := nodes("a1", "a2", "b1", "a3", "c1")
	for _, n := range b.Nodes {
		n.Labels[corev1.LabelTopologyZone] = n.Name[:1]
	}
	c := New(b.Snapshot)
	names := func() string {
		var names []string
		for _, n := range c.Nodes() {
			names = append(names, n.Name)
		}
		return strings.Join(names, " ")
	}
	if got := names(); got != "a1 b1 c1 a2 a3" {
		t.Error(got)
	}
	lost := c.RemoveNode("b1")
	c.AddNode(b.Nodes[2])
	if got := names(); got != "a1 c1 b1 a2 a3" || len(lost) != 0 {
		t.Error(got, lost)
	}
}

func TestANodeThatChangesKeepsItsPods(t *testing.T) {
	b := nodes("a").at("a").runs("x", 0, "3")
	c := New(b.Snapshot)
	pod := c.Pod(prioritised("new", 0, amounts("cpu", "3")))
	if kind := c.Schedule(pod).Kind; kind != Unschedulable {
		t.Fatal(kind)
	}
	c.AddNode(machine("a", amounts("cpu", "6", "memory", "16Gi")))
	if d := c.Schedule(pod); d.Kind != Bound {
		t.Error(d.Kind)
	}
	if pods := c.PodsOn("a"); len(pods) != 1 || pods[0].Name != "x" {
		t.Error(pods)
	}
	if lost := c.RemoveNode("a"); len(lost) != 1 || !slices.Equal(c.Nodes(), nil) {
		t.Error(lost, c.Nodes())
	}
	if message := c.Explain(pod).Message; message != "no nodes available to schedule pods" {
		t.Error(message)
	}
}

func TestRoomIsKeptForNominatedPodsOfThisScheduler(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*corev1.Pod)
		want   Kind
	}{
		"a pod of the queue":         {func(*corev1.Pod) {}, Unschedulable},
		"another scheduler's pod":    {func(p *corev1.Pod) { p.Spec.SchedulerName = "another" }, Bound},
		"a pod behind a gate":        {func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "quota"}} }, Unschedulable},
		"a pod that is lower anyway": {func(p *corev1.Pod) { low := int32(1); p.Spec.Priority = &low }, Bound},
	} {
		t.Run(name, func(t *testing.T) {
			b := nodes("a")
			nominee := prioritised("nominee", 100, amounts("cpu", "3"))
			nominee.Status.NominatedNodeName = "a"
			test.change(nominee)
			b.Pods = append(b.Pods, nominee)
			c := New(b.Snapshot)
			if d := c.Schedule(c.Pod(prioritised("pod", 100, amounts("cpu", "3")))); d.Kind != test.want {
				t.Errorf("%s; want %s", d.Kind, test.want)
			}
		})
	}
}

func TestScoresRelativeToAPartOfTheNodesAreAReason(t *testing.T) {
	for nodes, want := range map[int]int{100: 0, 300: 1} {
		b := &builder{}
		for i := range nodes {
			b.Nodes = append(b.Nodes, machine(fmt.Sprint("node-", i), amounts("cpu", "4", "memory", "16Gi")))
		}
		pod := prioritised("small", 1000, amounts("cpu", "2"))
		equal := New(b.Snapshot)
		if got := equal.Alternatives(equal.Pod(pod)); len(got.Approximate) > 0 {
			t.Errorf("%d equal nodes: %q", nodes, got.Approximate)
		}
		b.Nodes[0].Spec.Taints = []corev1.Taint{{Key: "spot", Effect: corev1.TaintEffectPreferNoSchedule}}
		c := New(b.Snapshot)
		if got := c.Alternatives(c.Pod(pod)); len(got.Approximate) != want {
			t.Errorf("%d nodes of which one is better avoided: %q", nodes, got.Approximate)
		}
	}
}

// kube-scheduler tries the nominated node before the nodes that the pod's affinity names, and lists the plugin that
// rejects it among those that reject all other nodes.
func TestThePluginThatRejectsTheNominatedNodeIsInTheMessage(t *testing.T) {
	c := New(nodes("a", "b").at("b").runs("x", 1000, "3").Snapshot)
	pending := prioritised("pending", 0, amounts("cpu", "2"))
	onlyOn("b")(pending)
	pending.Status.NominatedNodeName = "b"
	if got, want := c.Explain(c.Pod(pending)).Nodes[0].Detail, "node(s) didn't satisfy plugin(s) [NodeAffinity]"; got != want {
		t.Errorf("not nominated in the snapshot: %q; want %q", got, want)
	}
	s := nodes("a", "b").at("b").runs("x", 1000, "3").Snapshot
	s.Pods = append(s.Pods, pending)
	c = New(s)
	if got, want := c.Explain(c.Pending()[0]).Nodes[0].Detail, "node(s) didn't satisfy plugin(s) [NodeAffinity NodeResourcesFit]"; got != want {
		t.Errorf("%q; want %q", got, want)
	}
}
