package validationtest

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Draw makes an object of any kind that is right or has a few things wrong with it.
func Draw(t *rapid.T) Object {
	return rapid.OneOf(
		rapid.Custom(func(t *rapid.T) Object { return drawAdmissionCheck(t) }),
		rapid.Custom(func(t *rapid.T) Object { return drawClusterQueue(t) }),
		rapid.Custom(func(t *rapid.T) Object { return drawCohort(t) }),
		rapid.Custom(func(t *rapid.T) Object { return drawLocalQueue(t) }),
		rapid.Custom(func(t *rapid.T) Object { return drawResourceFlavor(t) }),
		rapid.Custom(func(t *rapid.T) Object { return drawTopology(t) }),
	).Draw(t, "object")
}

// mostly takes one of the good, and now and then one of the bad.
func mostly[T any](t *rapid.T, what string, good, bad []T) T {
	if rapid.IntRange(0, 19).Draw(t, what+" is bad") == 0 {
		return rapid.SampledFrom(bad).Draw(t, what)
	}
	return rapid.SampledFrom(good).Draw(t, what)
}

func drawName[T ~string](t *rapid.T, what string) T {
	return mostly(t, what, []T{"a", "b", "c.d", "e-1"}, []T{"", "A", "-a", "a_b"})
}

// drawReference is the name of another object, or none.
func drawReference[T ~string](t *rapid.T, what string) T {
	return mostly(t, what, []T{"a", "b", "", ""}, []T{"A", "a."})
}

func drawQuantity(t *rapid.T, what string) resource.Quantity {
	return mostly(t, what, []resource.Quantity{*quantity("0"), *quantity("1"), *quantity("1500m"), *quantity("4Gi")}, []resource.Quantity{*quantity("-1"), *quantity("1n")})
}

func drawOptional[T any](t *rapid.T, what string, draw func(*rapid.T, string) T) *T {
	if rapid.Bool().Draw(t, "no "+what) {
		return nil
	}
	value := draw(t, what)
	return &value
}

func drawAdmissionCheck(t *rapid.T) *kueue.AdmissionCheck {
	check := &kueue.AdmissionCheck{ObjectMeta: named("check")}
	check.Spec.ControllerName = mostly(t, "controller", []string{"example.com/check"}, []string{""})
	if rapid.Bool().Draw(t, "parameters") {
		check.Spec.Parameters = &kueue.AdmissionCheckParametersReference{
			APIGroup: mostly(t, "group", []string{"example.com"}, []string{"", "Example"}),
			Kind:     mostly(t, "kind", []string{"Config", "c-1", "C"}, []string{"", "1C", "C.", "C-"}),
			Name:     drawName[string](t, "name"),
		}
	}
	return check
}

func drawClusterQueue(t *rapid.T) *kueue.ClusterQueue {
	queue := &kueue.ClusterQueue{ObjectMeta: named("queue")}
	spec := &queue.Spec
	spec.CohortName = drawReference[kueue.CohortReference](t, "cohort")
	spec.ResourceGroups = drawGroups(t)
	spec.QueueingStrategy = mostly(t, "strategy", []kueue.QueueingStrategy{"", kueue.StrictFIFO, kueue.BestEffortFIFO}, []kueue.QueueingStrategy{"x"})
	if rapid.Bool().Draw(t, "selector") {
		spec.NamespaceSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
			Key:      mostly(t, "selector's key", []string{"team"}, []string{"", "-"}),
			Operator: mostly(t, "selector's operator", []metav1.LabelSelectorOperator{metav1.LabelSelectorOpIn}, []metav1.LabelSelectorOperator{"", "Is", metav1.LabelSelectorOpExists}),
			Values:   mostly(t, "selector's values", [][]string{{"a"}}, [][]string{nil, {"a b"}}),
		}}}
	}
	if rapid.Bool().Draw(t, "preemption") {
		spec.Preemption = drawPreemption(t)
	}
	if rapid.Bool().Draw(t, "fungibility") {
		policies := []kueue.FlavorFungibilityPolicy{"", kueue.MayStopSearch, kueue.TryNextFlavor, kueue.TryNextFlavor}
		spec.FlavorFungibility = &kueue.FlavorFungibility{
			WhenCanBorrow:  mostly(t, "when it can borrow", policies, []kueue.FlavorFungibilityPolicy{"Borrow"}),
			WhenCanPreempt: mostly(t, "when it can preempt", policies, []kueue.FlavorFungibilityPolicy{"Preempt"}),
			Preference: drawOptional(t, "preference", func(t *rapid.T, what string) kueue.FlavorFungibilityPreference {
				return mostly(t, what, []kueue.FlavorFungibilityPreference{kueue.BorrowingOverPreemption, kueue.PreemptionOverBorrowing}, []kueue.FlavorFungibilityPreference{"", "x"})
			}),
		}
	}
	if rapid.Bool().Draw(t, "checks") {
		spec.AdmissionChecksStrategy = &kueue.AdmissionChecksStrategy{AdmissionChecks: rapid.SliceOfN(rapid.Custom(drawCheck), 0, 3).Draw(t, "checks")}
	}
	spec.StopPolicy = drawOptional(t, "stop policy", drawStopPolicy)
	spec.FairSharing = drawFairSharing(t)
	if rapid.Bool().Draw(t, "admission scope") {
		spec.AdmissionScope = &kueue.AdmissionScope{AdmissionMode: mostly(t, "mode", []kueue.AdmissionMode{kueue.NoAdmissionFairSharing}, []kueue.AdmissionMode{"", "x"})}
	}
	return queue
}

func drawGroups(t *rapid.T) []kueue.ResourceGroup {
	resources := []corev1.ResourceName{"cpu", "memory", "nvidia.com/gpu"}
	var groups []kueue.ResourceGroup
	for i := range rapid.IntRange(0, 2).Draw(t, "groups") {
		var group kueue.ResourceGroup
		for range mostly(t, "resources", []int{1, 2}, []int{0}) {
			group.CoveredResources = append(group.CoveredResources, mostly(t, "resource", resources[i:i+2], []corev1.ResourceName{"", "a b"}))
		}
		for range mostly(t, "flavors", []int{1, 2}, []int{0}) {
			flavor := kueue.FlavorQuotas{Name: drawName[kueue.ResourceFlavorReference](t, "flavor")}
			for _, name := range group.CoveredResources {
				flavor.Resources = append(flavor.Resources, kueue.ResourceQuota{
					Name:           mostly(t, "quota's resource", []corev1.ResourceName{name}, resources),
					NominalQuota:   drawQuantity(t, "nominal quota"),
					BorrowingLimit: drawOptional(t, "borrowing limit", drawQuantity),
					LendingLimit:   drawOptional(t, "lending limit", drawQuantity),
				})
			}
			if mostly(t, "missing quota", []bool{false}, []bool{true}) && len(flavor.Resources) > 0 {
				flavor.Resources = flavor.Resources[1:]
			}
			group.Flavors = append(group.Flavors, flavor)
		}
		groups = append(groups, group)
	}
	return groups
}

func drawPreemption(t *rapid.T) *kueue.ClusterQueuePreemption {
	all := []kueue.PreemptionPolicy{"", kueue.PreemptionPolicyNever, kueue.PreemptionPolicyLowerPriority, kueue.PreemptionPolicyAny, kueue.PreemptionPolicyLowerOrNewerEqualPriority}
	preemption := &kueue.ClusterQueuePreemption{
		WithinClusterQueue:  mostly(t, "within the queue", all[:3], all),
		ReclaimWithinCohort: mostly(t, "reclaim", all[:4], all),
	}
	if rapid.Bool().Draw(t, "borrow") {
		preemption.BorrowWithinCohort = &kueue.BorrowWithinCohort{
			Policy:               mostly(t, "borrow's policy", []kueue.BorrowWithinCohortPolicy{"", "Never", "LowerPriority"}, []kueue.BorrowWithinCohortPolicy{"Any"}),
			MaxPriorityThreshold: drawOptional(t, "threshold", func(t *rapid.T, what string) int32 { return rapid.Int32().Draw(t, what) }),
		}
	}
	return preemption
}

func drawCheck(t *rapid.T) kueue.AdmissionCheckStrategyRule {
	return kueue.AdmissionCheckStrategyRule{
		Name: mostly(t, "check", []kueue.AdmissionCheckReference{"one", "two", "Three!"}, []kueue.AdmissionCheckReference{""}),
		OnFlavors: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) kueue.ResourceFlavorReference {
			return drawName[kueue.ResourceFlavorReference](t, "flavor")
		}), 0, 2).Draw(t, "on flavors"),
	}
}

func drawStopPolicy(t *rapid.T, what string) kueue.StopPolicy {
	return mostly(t, what, []kueue.StopPolicy{kueue.None, kueue.Hold, kueue.HoldAndDrain}, []kueue.StopPolicy{"", "Drain"})
}

func drawFairSharing(t *rapid.T) *kueue.FairSharing {
	if rapid.Bool().Draw(t, "no fair sharing") {
		return nil
	}
	return &kueue.FairSharing{Weight: drawOptional(t, "weight", drawQuantity)}
}

func drawCohort(t *rapid.T) *kueue.Cohort {
	return &kueue.Cohort{ObjectMeta: named(mostly(t, "name", []string{"a", "z"}, []string{"Z"})), Spec: kueue.CohortSpec{
		ParentName: drawReference[kueue.CohortReference](t, "parent"), ResourceGroups: drawGroups(t), FairSharing: drawFairSharing(t),
	}}
}

func drawLocalQueue(t *rapid.T) *kueue.LocalQueue {
	return &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Name: "queue", Namespace: Namespace}, Spec: kueue.LocalQueueSpec{
		ClusterQueue: drawReference[kueue.ClusterQueueReference](t, "cluster queue"),
		StopPolicy:   drawOptional(t, "stop policy", drawStopPolicy),
		FairSharing:  drawFairSharing(t),
	}}
}

func drawResourceFlavor(t *rapid.T) *kueue.ResourceFlavor {
	keys, wrongKeys := []string{"", "example.com/a", "b"}, []string{"-", "a b"}
	values, wrongValues := []string{"", "x", "y"}, []string{"a b"}
	effects, wrongEffects := []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute}, []corev1.TaintEffect{"", "Never"}
	spec := kueue.ResourceFlavorSpec{TopologyName: drawOptional(t, "topology", drawName[kueue.TopologyReference])}
	for range rapid.IntRange(0, 2).Draw(t, "labels") {
		if spec.NodeLabels == nil {
			spec.NodeLabels = map[string]string{}
		}
		spec.NodeLabels[mostly(t, "label", keys[1:], wrongKeys)] = mostly(t, "label's value", values, wrongValues)
	}
	for range rapid.IntRange(0, 2).Draw(t, "taints") {
		spec.NodeTaints = append(spec.NodeTaints, corev1.Taint{
			Key: mostly(t, "taint", keys[1:], wrongKeys), Value: mostly(t, "taint's value", values, wrongValues), Effect: mostly(t, "taint's effect", effects, wrongEffects),
		})
	}
	for range rapid.IntRange(0, 2).Draw(t, "tolerations") {
		spec.Tolerations = append(spec.Tolerations, corev1.Toleration{
			Key:               mostly(t, "tolerated key", keys[1:], append(wrongKeys, "")),
			Operator:          mostly(t, "operator", []corev1.TolerationOperator{"", corev1.TolerationOpEqual, corev1.TolerationOpExists}, []corev1.TolerationOperator{"Lt"}),
			Value:             mostly(t, "tolerated value", values[:1], append(wrongValues, values...)),
			Effect:            mostly(t, "tolerated effect", effects, wrongEffects),
			TolerationSeconds: mostly(t, "seconds", []*int64{nil}, []*int64{new(int64)}),
		})
	}
	return flavor(spec)
}

func drawTopology(t *rapid.T) *kueue.Topology {
	level := rapid.Custom(func(t *rapid.T) kueue.TopologyLevel {
		return kueue.TopologyLevel{NodeLabel: mostly(t, "level", []string{"example.com/rack", "block", "Zone_1.a", corev1.LabelHostname}, []string{"", "-", "Example.com/rack", "a/b/c"})}
	})
	return &kueue.Topology{ObjectMeta: named("topology"), Spec: kueue.TopologySpec{Levels: rapid.SliceOfN(level, 0, 3).Draw(t, "levels")}}
}
