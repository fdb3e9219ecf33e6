package podadmission

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// mergeLabelKeys adds the pod's own labels, which matchLabelKeys and mismatchLabelKeys name, to the selectors of its
// affinities and spread constraints (pkg/registry/core/pod/strategy.go, mutatePodAffinity and
// mutateTopologySpreadConstraints).
func mergeLabelKeys(pod *corev1.Pod) {
	merge := func(selector *metav1.LabelSelector, keys []string, operator metav1.LabelSelectorOperator) {
		if selector == nil { // it selects nothing
			return
		}
		for _, key := range keys {
			value, has := pod.Labels[key]
			requirement := metav1.LabelSelectorRequirement{Key: key, Operator: operator, Values: []string{value}}
			merged := slices.ContainsFunc(selector.MatchExpressions, func(r metav1.LabelSelectorRequirement) bool {
				return r.Key == key && r.Operator == operator && slices.Equal(r.Values, requirement.Values)
			})
			if has && !merged { // a pod that a dry run answered has it already
				selector.MatchExpressions = append(selector.MatchExpressions, requirement)
			}
		}
	}
	term := func(t *corev1.PodAffinityTerm) {
		merge(t.LabelSelector, t.MatchLabelKeys, metav1.LabelSelectorOpIn)
		merge(t.LabelSelector, t.MismatchLabelKeys, metav1.LabelSelectorOpNotIn)
	}
	terms := func(required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) {
		for i := range required {
			term(&required[i])
		}
		for i := range preferred {
			term(&preferred[i].PodAffinityTerm)
		}
	}
	if a := pod.Spec.Affinity; a != nil {
		if p := a.PodAffinity; p != nil {
			terms(p.RequiredDuringSchedulingIgnoredDuringExecution, p.PreferredDuringSchedulingIgnoredDuringExecution)
		}
		if p := a.PodAntiAffinity; p != nil {
			terms(p.RequiredDuringSchedulingIgnoredDuringExecution, p.PreferredDuringSchedulingIgnoredDuringExecution)
		}
	}
	for i := range pod.Spec.TopologySpreadConstraints {
		constraint := &pod.Spec.TopologySpreadConstraints[i]
		merge(constraint.LabelSelector, constraint.MatchLabelKeys, metav1.LabelSelectorOpIn)
	}
}
