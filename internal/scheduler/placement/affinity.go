package placement

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// term is one term of affinity or anti-affinity to other pods (framework.AffinityTerm).
type term struct {
	namespaces        map[string]bool
	namespaceSelector labels.Selector
	selector          labels.Selector
	key               string
	weight            int64 // of preferred terms
}

// matches reports whether a pod is meant. namespaceLabels are those of its namespace where they count: see reach.
func (t *term) matches(pod *Pod, namespaceLabels labels.Set) bool {
	return (t.namespaces[pod.namespace] || t.namespaceSelector.Matches(namespaceLabels)) && t.selector.Matches(pod.labels)
}

// terms reads the pod's affinity. A selector that cannot be parsed (validation refuses those) matches nothing.
func (p *Pod) terms() {
	affinity := p.object.Spec.Affinity
	if affinity == nil {
		return
	}
	if a := affinity.PodAffinity; a != nil {
		p.affinity = p.required(a.RequiredDuringSchedulingIgnoredDuringExecution)
		p.preferredAffinity = p.preferred(a.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if a := affinity.PodAntiAffinity; a != nil {
		p.antiAffinity = p.required(a.RequiredDuringSchedulingIgnoredDuringExecution)
		p.preferredAntiAffinity = p.preferred(a.PreferredDuringSchedulingIgnoredDuringExecution)
	}
}

func (p *Pod) required(terms []corev1.PodAffinityTerm) []term {
	var result []term
	for i := range terms {
		result = append(result, p.term(&terms[i], 0))
	}
	return result
}

func (p *Pod) preferred(terms []corev1.WeightedPodAffinityTerm) []term {
	var result []term
	for i := range terms {
		result = append(result, p.term(&terms[i].PodAffinityTerm, int64(terms[i].Weight)))
	}
	return result
}

func (p *Pod) term(from *corev1.PodAffinityTerm, weight int64) term {
	t := term{
		namespaces: map[string]bool{}, key: from.TopologyKey, weight: weight,
		selector: selector(from.LabelSelector), namespaceSelector: selector(from.NamespaceSelector),
	}
	if len(from.Namespaces) == 0 && from.NamespaceSelector == nil {
		t.namespaces[p.namespace] = true
	}
	for _, namespace := range from.Namespaces {
		t.namespaces[namespace] = true
	}
	return t
}

func selector(from *metav1.LabelSelector) labels.Selector {
	s, err := metav1.LabelSelectorAsSelector(from)
	if err != nil {
		return labels.Nothing()
	}
	return s
}

// hasAffinity reports whether the pod has any term of affinity or anti-affinity (framework.podWithAffinity).
func (p *Pod) hasAffinity() bool {
	return len(p.affinity) > 0 || len(p.antiAffinity) > 0 || len(p.preferredAffinity) > 0 || len(p.preferredAntiAffinity) > 0
}

// reach is the terms of an arriving pod with the namespaces that their selectors match now (interpodaffinity,
// mergeAffinityTermNamespacesIfNotEmpty). As in the original the selector itself stays, and is matched with no labels
// at all: a selector that matches a namespace without labels matches every namespace.
func (c *Cluster) reach(terms []term) []term {
	reached := make([]term, len(terms))
	for i, t := range terms {
		reached[i] = t
		if t.namespaceSelector.Empty() {
			continue
		}
		namespaces := map[string]bool{}
		for name := range t.namespaces {
			namespaces[name] = true
		}
		for name, set := range c.namespaces {
			if t.namespaceSelector.Matches(set) {
				namespaces[name] = true
			}
		}
		reached[i].namespaces = namespaces
	}
	return reached
}

// pair is a value of a topology key: one domain.
type pair struct{ key, value string }

// affinities counts, for every topology domain, the matches of an arriving pod's terms and of the terms of running pods
// (interpodaffinity, preFilterState).
type affinities struct {
	pod             *Pod
	namespaceLabels labels.Set
	affinity        []term
	antiAffinity    []term
	// existing counts, per domain, terms of running pods' anti-affinity that mean the pod.
	existing map[pair]int
	// wanted and unwanted count, per domain, running pods that the pod's own terms mean.
	wanted, unwanted map[pair]int
}

// affinities counts what matters to an arriving pod; nil when nothing does.
func (c *Cluster) affinities(pod *Pod) *affinities {
	if c.withAntiAffinity == 0 && len(pod.affinity) == 0 && len(pod.antiAffinity) == 0 {
		return nil
	}
	a := &affinities{
		pod: pod, namespaceLabels: c.namespaces[pod.namespace], affinity: c.reach(pod.affinity), antiAffinity: c.reach(pod.antiAffinity),
		existing: map[pair]int{}, wanted: map[pair]int{}, unwanted: map[pair]int{},
	}
	own := len(a.affinity) > 0 || len(a.antiAffinity) > 0
	for _, n := range c.nodes {
		if !own && n.withAntiAffinity == 0 {
			continue
		}
		for _, o := range n.pods {
			a.shift(o.pod, n, 1)
		}
	}
	if len(a.existing) == 0 && !own {
		return nil
	}
	return a
}

// shift counts a pod as one more (or, by -1, one less) on a node.
func (a *affinities) shift(other *Pod, n *node, by int) {
	for i := range other.antiAffinity {
		if t := &other.antiAffinity[i]; t.matches(a.pod, a.namespaceLabels) {
			bump(a.existing, n, t.key, by)
		}
	}
	if all(a.affinity, other) {
		for i := range a.affinity {
			bump(a.wanted, n, a.affinity[i].key, by)
		}
	}
	for i := range a.antiAffinity {
		if t := &a.antiAffinity[i]; t.matches(other, nil) {
			bump(a.unwanted, n, t.key, by)
		}
	}
}

// all reports whether every term means the pod; without terms none does (podMatchesAllAffinityTerms).
func all(terms []term, pod *Pod) bool {
	for i := range terms {
		if !terms[i].matches(pod, nil) {
			return false
		}
	}
	return len(terms) > 0
}

func bump(counts map[pair]int, n *node, key string, by int) {
	if value, labelled := n.object.Labels[key]; labelled {
		p := pair{key, value}
		if counts[p] += by; counts[p] == 0 {
			delete(counts, p)
		}
	}
}

// filter is the filter of the plugin InterPodAffinity.
func (a *affinities) filter(n *node) filterStatus {
	switch {
	case !a.affinityHolds(n):
		return affinityUnmatched
	case !a.antiAffinityHolds(n):
		return antiAffinityUnmatched
	case !a.othersHold(n):
		return othersAntiAffinity
	}
	return feasible
}

func (a *affinities) affinityHolds(n *node) bool {
	exist := true
	for i := range a.affinity {
		value, labelled := n.object.Labels[a.affinity[i].key]
		if !labelled {
			return false
		}
		exist = exist && a.wanted[pair{a.affinity[i].key, value}] > 0
	}
	// The first pod of a group with affinity to itself may go anywhere.
	return exist || len(a.wanted) == 0 && all(a.affinity, a.pod)
}

func (a *affinities) antiAffinityHolds(n *node) bool {
	for i := range a.antiAffinity {
		if value, labelled := n.object.Labels[a.antiAffinity[i].key]; labelled && a.unwanted[pair{a.antiAffinity[i].key, value}] > 0 {
			return false
		}
	}
	return true
}

func (a *affinities) othersHold(n *node) bool {
	for p, count := range a.existing {
		if value, labelled := n.object.Labels[p.key]; labelled && value == p.value && count > 0 {
			return false
		}
	}
	return true
}
