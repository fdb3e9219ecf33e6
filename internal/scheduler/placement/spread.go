package placement

import (
	"maps"
	"math"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// constraint is one topology spread constraint (podtopologyspread, topologySpreadConstraint).
type constraint struct {
	maxSkew    int
	key        string
	selector   labels.Selector
	minDomains int
	// Which nodes count: all, or those that the pod's node affinity matches (honorAffinity) and whose taints it
	// tolerates (honorTaints).
	honorAffinity, honorTaints bool
}

// Without constraints of its own, a pod is spread over hosts and zones softly (podtopologyspread,
// systemDefaultConstraints).
var systemConstraints = []constraint{
	{maxSkew: 3, key: corev1.LabelHostname, minDomains: 1, honorAffinity: true},
	{maxSkew: 5, key: corev1.LabelTopologyZone, minDomains: 1, honorAffinity: true},
}

// constraints reads the pod's own constraints of one kind.
func (p *Pod) constraints(action corev1.UnsatisfiableConstraintAction) []constraint {
	var result []constraint
	for i := range p.object.Spec.TopologySpreadConstraints {
		from := &p.object.Spec.TopologySpreadConstraints[i]
		if from.WhenUnsatisfiable != action {
			continue
		}
		s := selector(from.LabelSelector)
		match := labels.Set{}
		for _, key := range from.MatchLabelKeys {
			if value, labelled := p.labels[key]; labelled {
				match[key] = value
			}
		}
		if requirements, selectable := s.Requirements(); len(match) > 0 && selectable {
			s = labels.SelectorFromSet(match).Add(requirements...)
		}
		c := constraint{
			maxSkew: int(from.MaxSkew), key: from.TopologyKey, selector: s, minDomains: 1,
			honorAffinity: from.NodeAffinityPolicy == nil || *from.NodeAffinityPolicy == corev1.NodeInclusionPolicyHonor,
			honorTaints:   from.NodeTaintsPolicy != nil && *from.NodeTaintsPolicy == corev1.NodeInclusionPolicyHonor,
		}
		if from.MinDomains != nil {
			c.minDomains = int(*from.MinDomains)
		}
		result = append(result, c)
	}
	return result
}

// spreading knows by which labels pods without constraints are spread: those that their services and their controller
// select by.
type spreading struct {
	services     map[string][]*corev1.Service
	replications map[types.NamespacedName]*corev1.ReplicationController
	replicaSets  map[types.NamespacedName]*appsv1.ReplicaSet
	statefulSets map[types.NamespacedName]*appsv1.StatefulSet
}

func newSpreading(snapshot *Snapshot) spreading {
	s := spreading{
		services: map[string][]*corev1.Service{}, replications: map[types.NamespacedName]*corev1.ReplicationController{},
		replicaSets: map[types.NamespacedName]*appsv1.ReplicaSet{}, statefulSets: map[types.NamespacedName]*appsv1.StatefulSet{},
	}
	for _, service := range snapshot.Services {
		if service.Spec.Selector != nil {
			s.services[service.Namespace] = append(s.services[service.Namespace], service)
		}
	}
	for _, o := range snapshot.ReplicationControllers {
		s.replications[types.NamespacedName{Namespace: o.Namespace, Name: o.Name}] = o
	}
	for _, o := range snapshot.ReplicaSets {
		s.replicaSets[types.NamespacedName{Namespace: o.Namespace, Name: o.Name}] = o
	}
	for _, o := range snapshot.StatefulSets {
		s.statefulSets[types.NamespacedName{Namespace: o.Namespace, Name: o.Name}] = o
	}
	return s
}

// selector is plugins/helper/spread.go, DefaultSelector.
func (s *spreading) selector(pod *Pod) labels.Selector {
	set := labels.Set{}
	for _, service := range s.services[pod.namespace] {
		if labels.Set(service.Spec.Selector).AsSelectorPreValidated().Matches(pod.labels) {
			maps.Copy(set, service.Spec.Selector)
		}
	}
	result := set.AsSelector()
	owner := metav1.GetControllerOfNoCopy(pod.object)
	if owner == nil {
		return result
	}
	name := types.NamespacedName{Namespace: pod.namespace, Name: owner.Name}
	add := func(from *metav1.LabelSelector) {
		if requirements, selectable := selector(from).Requirements(); selectable {
			result = result.Add(requirements...)
		}
	}
	switch owner.APIVersion + "/" + owner.Kind {
	case "v1/ReplicationController":
		if o := s.replications[name]; o != nil {
			maps.Copy(set, o.Spec.Selector)
			result = set.AsSelector()
		}
	case "apps/v1/ReplicaSet":
		if o := s.replicaSets[name]; o != nil {
			add(o.Spec.Selector)
		}
	case "apps/v1/StatefulSet":
		if o := s.statefulSets[name]; o != nil {
			add(o.Spec.Selector)
		}
	}
	return result
}

// softConstraints are those that choose between nodes, and whether they are the pod's own (podtopologyspread,
// initPreScoreState).
func (c *Cluster) softConstraints(pod *Pod) (soft []constraint, own bool) {
	if len(pod.object.Spec.TopologySpreadConstraints) > 0 {
		return pod.constraints(corev1.ScheduleAnyway), true
	}
	s := c.spreading.selector(pod)
	if s.Empty() {
		return nil, false
	}
	soft = slices.Clone(systemConstraints)
	for i := range soft {
		soft[i].selector = s
	}
	return soft, false
}

// count is how many pods on a node a constraint means; terminating ones are passed over (countPodsMatchSelector).
func (t *constraint) count(n *node, namespace string) int {
	if t.selector.Empty() {
		return 0
	}
	count := 0
	for _, o := range n.pods {
		if !o.terminating && o.pod.namespace == namespace && t.selector.Matches(o.pod.labels) {
			count++
		}
	}
	return count
}

// includes reports whether a node counts for a constraint of a pod (matchNodeInclusionPolicies).
func (t *constraint) includes(pod *Pod, n *node) bool {
	return (!t.honorAffinity || pod.preFilterState.matches(n)) && (!t.honorTaints || pod.preFilterState.tolerates(n))
}

// labelled reports whether a node has the keys of all constraints.
func labelled(n *node, constraints []constraint) bool {
	for i := range constraints {
		if _, has := n.object.Labels[constraints[i].key]; !has {
			return false
		}
	}
	return true
}

// spreads is how the pods that an arriving pod's hard constraints mean are spread (podtopologyspread, preFilterState).
type spreads struct {
	pod         *Pod
	constraints []constraint
	counts      []map[string]int
	least       [][2]domain
}

// domain is a topology value and how many pods it holds.
type domain struct {
	value string
	pods  int
}

// spreads counts for an arriving pod; nil when it has no hard constraints.
func (c *Cluster) spreads(pod *Pod) *spreads {
	constraints := pod.preFilterState.hard
	if len(constraints) == 0 {
		return nil
	}
	s := &spreads{pod: pod, constraints: constraints, counts: make([]map[string]int, len(constraints)), least: make([][2]domain, len(constraints))}
	for i := range constraints {
		s.counts[i] = map[string]int{}
	}
	for _, n := range c.nodes {
		if !labelled(n, constraints) {
			continue
		}
		for i := range constraints {
			if t := &constraints[i]; t.includes(pod, n) {
				s.counts[i][n.object.Labels[t.key]] += t.count(n, pod.namespace)
			}
		}
	}
	for i := range constraints {
		s.least[i] = [2]domain{{pods: math.MaxInt32}, {pods: math.MaxInt32}}
		for _, value := range slices.Sorted(maps.Keys(s.counts[i])) {
			s.see(i, value, s.counts[i][value])
		}
	}
	return s
}

// see keeps the two domains with the fewest pods up to date (criticalPaths.update).
func (s *spreads) see(i int, value string, pods int) {
	least := &s.least[i]
	known := -1
	switch value {
	case least[0].value:
		known = 0
	case least[1].value:
		known = 1
	}
	switch {
	case known >= 0:
		least[known].pods = pods
		if least[0].pods > least[1].pods {
			least[0], least[1] = least[1], least[0]
		}
	case pods < least[0].pods:
		least[0], least[1] = domain{value, pods}, least[0]
	case pods < least[1].pods:
		least[1] = domain{value, pods}
	}
}

// shift counts a pod as one more (or, by -1, one less) on a node (updateWithPod).
func (s *spreads) shift(other *Pod, n *node, by int) {
	if other.namespace != s.pod.namespace || !labelled(n, s.constraints) {
		return
	}
	for i := range s.constraints {
		t := &s.constraints[i]
		if !t.selector.Matches(other.labels) || !t.includes(s.pod, n) {
			continue
		}
		value := n.object.Labels[t.key]
		s.counts[i][value] += by
		s.see(i, value, s.counts[i][value])
	}
}

// filter is the filter of the plugin PodTopologySpread.
func (s *spreads) filter(n *node) filterStatus {
	for i := range s.constraints {
		t := &s.constraints[i]
		value, has := n.object.Labels[t.key]
		if !has {
			return spreadUnlabelled
		}
		least := s.least[i][0].pods
		if len(s.counts[i]) < t.minDomains {
			least = 0
		}
		self := 0
		if t.selector.Matches(s.pod.labels) {
			self = 1
		}
		if s.counts[i][value]+self-least > t.maxSkew {
			return spreadUnmatched
		}
	}
	return feasible
}
