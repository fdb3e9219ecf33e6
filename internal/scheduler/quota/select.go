package quota

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/topology"
)

// barred is the reason why a flavor cannot be used for a pod set whatever its quota; an empty result: it can
// (Kueue's flavorassigner, checkFlavorForPodSets).
func (e *Engine) barred(set *PodSet, flavor string) (FlavorResult, string) {
	spec, known := e.flavors[flavor]
	if !known {
		return FlavorMissing, fmt.Sprintf("flavor %s not found", flavor)
	}
	if len(spec.NodeTaints) > 0 {
		tolerations := append(append([]corev1.Toleration(nil), set.Tolerations...), spec.Tolerations...)
		taint, untolerated := corev1helpers.FindMatchingUntoleratedTaint(klog.Background(), spec.NodeTaints, tolerations, func(t *corev1.Taint) bool {
			return t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
		}, true)
		if untolerated {
			return TaintNotTolerated, fmt.Sprintf("untolerated taint {%s %s %s %v} in flavor %s", taint.Key, taint.Value, taint.Effect, taint.TimeAdded, flavor)
		}
	}
	if len(set.NodeSelector) == 0 && set.NodeAffinity == nil {
		return "", ""
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: spec.NodeLabels}}
	match, err := requiredAffinity(set, spec.NodeLabels).Match(node)
	if err != nil {
		return AffinityMismatch, err.Error()
	}
	if !match {
		return AffinityMismatch, fmt.Sprintf("flavor %s doesn't match node affinity", flavor)
	}
	return "", ""
}

// topologyBars is the reason why a flavor cannot be used for a pod set because one of them has a topology and the other
// has not, or because it lacks a requested level; "" for none (Kueue's flavorassigner,
// checkPodSetAndFlavorMatchForTAS).
func (e *Engine) topologyBars(q *queue, set *PodSet, group *resourceGroup, flavor string) string {
	spec, known := e.flavors[flavor]
	asks, hasTopology := topology.Explicit(set.Topology), spec.TopologyName != nil
	switch {
	case !known || !asks && !hasTopology:
		return ""
	case asks && hasTopology:
		switch c := e.places.of[flavor]; {
		case e.config.NodesUnknown || c != nil && c.Tree().Has(set.Topology):
			return ""
		case c == nil:
			return fmt.Sprintf("Flavor %q information missing in TAS cache", flavor)
		}
		return fmt.Sprintf("Flavor %q does not contain the requested level", flavor)
	case asks:
		// A flavor may still provide what the pods themselves do not request.
		if !slices.ContainsFunc(group.covers, func(name string) bool { _, requested := set.Requests[corev1.ResourceName(name)]; return requested }) {
			return ""
		}
		return fmt.Sprintf("Flavor %q does not support TopologyAwareScheduling", flavor)
	case e.hasOnlyTopologies(q): // every pod of such a queue is placed by its topology
		return ""
	}
	return fmt.Sprintf("Flavor %q supports only TopologyAwareScheduling", flavor)
}

// hasOnlyTopologies reports whether all flavors of a queue have a topology (clusterQueue.isTASOnly).
func (e *Engine) hasOnlyTopologies(q *queue) bool {
	for _, group := range q.groups {
		for _, flavor := range group.flavors {
			if e.flavors[flavor].TopologyName == nil {
				return false
			}
		}
	}
	return true
}

// requiredAffinity is a pod set's node selector and required affinity, restricted to the flavor's own label keys. A
// term of the affinity that says nothing about them matches everything, and with it the whole affinity.
func requiredAffinity(set *PodSet, own map[string]string) nodeaffinity.RequiredNodeAffinity {
	var spec corev1.PodSpec
	for key, value := range set.NodeSelector {
		if _, relevant := own[key]; relevant {
			if spec.NodeSelector == nil {
				spec.NodeSelector = map[string]string{}
			}
			spec.NodeSelector[key] = value
		}
	}
	if set.NodeAffinity != nil {
		if terms := relevantTerms(set.NodeAffinity.NodeSelectorTerms, own); len(terms) > 0 {
			spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms},
			}}
		}
	}
	return nodeaffinity.GetRequiredNodeAffinity(&corev1.Pod{Spec: spec})
}

func relevantTerms(terms []corev1.NodeSelectorTerm, own map[string]string) []corev1.NodeSelectorTerm {
	var filtered []corev1.NodeSelectorTerm
	for _, term := range terms {
		var requirements []corev1.NodeSelectorRequirement
		for _, r := range term.MatchExpressions {
			if _, relevant := own[r.Key]; relevant {
				requirements = append(requirements, r)
			}
		}
		if len(requirements) == 0 {
			return nil
		}
		filtered = append(filtered, corev1.NodeSelectorTerm{MatchExpressions: requirements})
	}
	return filtered
}
