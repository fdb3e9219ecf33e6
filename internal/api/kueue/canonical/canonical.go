// Package canonical writes Kueue's objects in the one way among all that mean the same to Kueue: what has no order is
// sorted, and what is meant where it is left out is written.
package canonical

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Rewrite changes an object in place. Objects of other kinds stay as they are.
func Rewrite(object runtime.Object) {
	switch o := object.(type) {
	case *kueue.ClusterQueue:
		clusterQueue(o)
	case *kueue.Cohort:
		resourceGroups(o.Spec.ResourceGroups)
	case *kueue.ResourceFlavor:
		resourceFlavor(o)
	}
}

func clusterQueue(q *kueue.ClusterQueue) {
	spec := &q.Spec
	resourceGroups(spec.ResourceGroups)
	for _, group := range spec.ResourceGroups {
		for _, flavor := range group.Flavors {
			for i, quota := range flavor.Resources {
				if quota.LendingLimit == nil { // all of it
					flavor.Resources[i].LendingLimit = &quota.NominalQuota
				}
			}
		}
	}
	spec.NamespaceSelector = labelSelector(spec.NamespaceSelector)
	if f := spec.FlavorFungibility; f != nil && (f.Preference == nil || *f.Preference == "") {
		f.Preference = new(kueue.BorrowingOverPreemption)
	}
	if s := spec.AdmissionChecksStrategy; s != nil {
		for _, check := range s.AdmissionChecks {
			slices.Sort(check.OnFlavors)
		}
		slices.SortFunc(s.AdmissionChecks, func(a, b kueue.AdmissionCheckStrategyRule) int { return cmp.Compare(a.Name, b.Name) })
	}
}

func resourceFlavor(f *kueue.ResourceFlavor) {
	slices.SortFunc(f.Spec.NodeTaints, func(a, b corev1.Taint) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Value, b.Value), cmp.Compare(a.Effect, b.Effect))
	})
	for i, t := range f.Spec.Tolerations {
		f.Spec.Tolerations[i].Operator = cmp.Or(t.Operator, corev1.TolerationOpEqual)
	}
	slices.SortStableFunc(f.Spec.Tolerations, func(a, b corev1.Toleration) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Value, b.Value), cmp.Compare(a.Effect, b.Effect), cmp.Compare(a.Operator, b.Operator))
	})
}

// resourceGroups sorts groups and the resources in them. Flavors are tried in their order.
func resourceGroups(groups []kueue.ResourceGroup) {
	for _, group := range groups {
		slices.Sort(group.CoveredResources)
		for _, flavor := range group.Flavors {
			slices.SortFunc(flavor.Resources, func(a, b kueue.ResourceQuota) int { return cmp.Compare(a.Name, b.Name) })
		}
	}
	slices.SortFunc(groups, func(a, b kueue.ResourceGroup) int { return slices.Compare(a.CoveredResources, b.CoveredResources) })
}

// labelSelector writes every label that is matched as a requirement, in order. One that is no selector stays as it
// is.
func labelSelector(selector *metav1.LabelSelector) *metav1.LabelSelector {
	if selector == nil {
		return nil
	}
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return selector
	}
	requirements, _ := parsed.Requirements()
	canonical := &metav1.LabelSelector{}
	for _, r := range requirements {
		operator := r.Operator()
		if operator == selection.Equals { // a label that is matched is in a list of one
			operator = selection.In
		}
		canonical.MatchExpressions = append(canonical.MatchExpressions, metav1.LabelSelectorRequirement{
			Key: r.Key(), Operator: metav1.LabelSelectorOperator(operator), Values: slices.Sorted(slices.Values(r.ValuesUnsorted())),
		})
	}
	slices.SortFunc(canonical.MatchExpressions, func(a, b metav1.LabelSelectorRequirement) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Operator, b.Operator), slices.Compare(a.Values, b.Values))
	})
	return canonical
}
