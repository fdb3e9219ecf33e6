package differential

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// constrain adds requirements and preferences to a pod about its node.
func (g *generator) constrain(pod *corev1.Pod) {
	if g.chance(g.taints) {
		g.tolerate(pod)
	}
	if g.chance(g.selectors) {
		g.require(pod)
	}
	if g.chance(g.preferences) {
		affinity := nodeAffinity(pod)
		for range g.within(span{1, 2}) {
			affinity.PreferredDuringSchedulingIgnoredDuringExecution = append(affinity.PreferredDuringSchedulingIgnoredDuringExecution,
				corev1.PreferredSchedulingTerm{Weight: int32(g.within(span{1, 100})), Preference: g.nodeTerm()})
		}
	}
	if g.chance(g.ports) {
		g.listen(pod)
	}
	if g.chance(g.podAffinity) {
		g.relate(pod)
	}
	if g.chance(g.spread) {
		g.spreadOut(pod)
	}
}

func (g *generator) tolerate(pod *corev1.Pod) {
	for range g.within(span{1, 2}) {
		toleration := corev1.Toleration{
			Key:      pick(g.rng, "dedicated", "spot", corev1.TaintNodeUnschedulable),
			Operator: corev1.TolerationOpEqual,
			Value:    pick(g.rng, "", "yes", "train"),
			Effect:   pick(g.rng, "", corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute),
		}
		if g.chance(0.5) {
			toleration.Operator, toleration.Value = corev1.TolerationOpExists, ""
			if g.chance(0.2) {
				toleration.Key = ""
			}
		}
		if seconds := int64(300); toleration.Effect == corev1.TaintEffectNoExecute && g.chance(0.3) {
			toleration.TolerationSeconds = &seconds
		}
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, toleration)
	}
}

// require restricts the nodes by a selector, by required affinity, or both.
func (g *generator) require(pod *corev1.Pod) {
	how := g.IntN(3)
	if how != 1 {
		pod.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: pick(g.rng, zones...)}
		if g.chance(0.4) {
			pod.Spec.NodeSelector = map[string]string{"disk": pick(g.rng, disks...)}
		}
	}
	if how == 0 {
		return
	}
	var terms []corev1.NodeSelectorTerm
	for range g.within(span{1, 2}) {
		terms = append(terms, g.nodeTerm())
	}
	if g.chance(0.2) {
		terms[0].MatchFields = []corev1.NodeSelectorRequirement{{
			Key: "metadata.name", Operator: pick(g.rng, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn), Values: []string{pick(g.rng, g.made.Nodes...).Name},
		}}
		if g.chance(0.5) {
			terms[0].MatchExpressions = nil
		}
	}
	nodeAffinity(pod).RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: terms}
}

func (g *generator) nodeTerm() corev1.NodeSelectorTerm {
	var term corev1.NodeSelectorTerm
	for range g.within(span{1, 2}) {
		requirement := corev1.NodeSelectorRequirement{Key: "disk", Operator: pick(g.rng, corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist)}
		switch g.IntN(4) {
		case 0:
		case 1:
			requirement = corev1.NodeSelectorRequirement{
				Key: "generation", Operator: pick(g.rng, corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt), Values: []string{pick(g.rng, "1", "2", "5")},
			}
		default:
			requirement = corev1.NodeSelectorRequirement{
				Key: corev1.LabelTopologyZone, Operator: pick(g.rng, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn),
				Values: []string{pick(g.rng, zones...)},
			}
			if other := pick(g.rng, zones...); g.chance(0.4) && !slices.Contains(requirement.Values, other) {
				requirement.Values = append(requirement.Values, other)
			}
		}
		term.MatchExpressions = append(term.MatchExpressions, requirement)
	}
	return term
}

// listen gives the first container host ports.
func (g *generator) listen(pod *corev1.Pod) {
	if g.chance(0.1) {
		pod.Spec.HostNetwork = true
		pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 8080, HostPort: 8080}}
		return
	}
	seen := map[int32]bool{}
	for range g.within(span{1, 2}) {
		port := corev1.ContainerPort{
			ContainerPort: pick(g.rng, int32(8080), 8081),
			HostPort:      pick(g.rng, int32(8080), 8080, 8081),
			Protocol:      pick(g.rng, corev1.ProtocolTCP, corev1.ProtocolTCP, corev1.ProtocolUDP),
			HostIP:        pick(g.rng, "", "", "0.0.0.0", "127.0.0.1", "10.0.0.1"),
		}
		if !seen[port.HostPort] { // equal ones within a pod are refused
			pod.Spec.Containers[0].Ports = append(pod.Spec.Containers[0].Ports, port)
		}
		seen[port.HostPort] = true
	}
}

// relate gives a pod affinity or anti-affinity to others, required or preferred.
func (g *generator) relate(pod *corev1.Pod) {
	affinity := affinityOf(pod)
	required := g.chance(0.6)
	term := g.podTerm()
	weighted := corev1.WeightedPodAffinityTerm{Weight: int32(g.within(span{1, 100})), PodAffinityTerm: term}
	if g.chance(0.45) {
		affinity.PodAffinity = &corev1.PodAffinity{}
		if required {
			affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution = []corev1.PodAffinityTerm{term}
			if g.chance(0.15) {
				affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution = append(affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution, g.podTerm())
			}
		} else {
			affinity.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution = []corev1.WeightedPodAffinityTerm{weighted}
		}
		if g.chance(0.7) {
			return
		}
		term = g.podTerm()
		weighted.PodAffinityTerm = term
	}
	affinity.PodAntiAffinity = &corev1.PodAntiAffinity{}
	if required {
		affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution = []corev1.PodAffinityTerm{term}
	} else {
		affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution = []corev1.WeightedPodAffinityTerm{weighted}
	}
}

func (g *generator) podTerm() corev1.PodAffinityTerm {
	term := corev1.PodAffinityTerm{LabelSelector: g.podSelector(), TopologyKey: g.topology()}
	switch g.IntN(12) {
	case 3:
		term.LabelSelector = nil // which matches nothing
	case 4:
		term.LabelSelector = &metav1.LabelSelector{} // which matches everything
	case 5:
		term.Namespaces = []string{pick(g.rng, "default", "other")}
		term.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": pick(g.rng, teams...)}}
	case 0:
		term.Namespaces = []string{pick(g.rng, "default", "other")}
	case 1:
		term.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": pick(g.rng, teams...)}}
	case 2:
		term.NamespaceSelector = &metav1.LabelSelector{}
	}
	return term
}

func (g *generator) topology() string {
	return pick(g.rng, corev1.LabelHostname, corev1.LabelHostname, corev1.LabelTopologyZone, corev1.LabelTopologyZone, "disk")
}

func (g *generator) spreadOut(pod *corev1.Pod) {
	for range g.within(span{1, 2}) {
		constraint := corev1.TopologySpreadConstraint{
			MaxSkew:           int32(pick(g.rng, 1, 1, 2, 3)),
			TopologyKey:       g.topology(),
			WhenUnsatisfiable: pick(g.rng, corev1.DoNotSchedule, corev1.DoNotSchedule, corev1.ScheduleAnyway),
			LabelSelector:     g.podSelector(),
		}
		if constraint.WhenUnsatisfiable == corev1.DoNotSchedule && g.chance(0.2) {
			domains := int32(pick(g.rng, 1, 2, 3, 4))
			constraint.MinDomains = &domains
		}
		for _, policy := range []**corev1.NodeInclusionPolicy{&constraint.NodeAffinityPolicy, &constraint.NodeTaintsPolicy} {
			if value := pick(g.rng, corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore); g.chance(0.3) {
				*policy = &value
			}
		}
		switch g.IntN(10) {
		case 0:
			constraint.LabelSelector = &metav1.LabelSelector{}
		case 1:
			constraint.MatchLabelKeys = []string{"app"} // which must not be in the selector too
			constraint.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"tier": pick(g.rng, tiers...)}}
		}
		same := func(c corev1.TopologySpreadConstraint) bool { // twice the same is refused
			return c.TopologyKey == constraint.TopologyKey && c.WhenUnsatisfiable == constraint.WhenUnsatisfiable
		}
		if !slices.ContainsFunc(pod.Spec.TopologySpreadConstraints, same) {
			pod.Spec.TopologySpreadConstraints = append(pod.Spec.TopologySpreadConstraints, constraint)
		}
	}
}

func affinityOf(pod *corev1.Pod) *corev1.Affinity {
	if pod.Spec.Affinity == nil {
		pod.Spec.Affinity = &corev1.Affinity{}
	}
	return pod.Spec.Affinity
}

func nodeAffinity(pod *corev1.Pod) *corev1.NodeAffinity {
	affinity := affinityOf(pod)
	if affinity.NodeAffinity == nil {
		affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	return affinity.NodeAffinity
}
