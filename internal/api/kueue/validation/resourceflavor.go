package validation

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// mostOfAFlavor is how many labels, taints and tolerations a flavor may have of each.
const mostOfAFlavor = 8

// ValidateResourceFlavor reports why a flavor would be refused.
func ValidateResourceFlavor(flavor *kueue.ResourceFlavor) field.ErrorList {
	spec, path := &flavor.Spec, field.NewPath("spec")
	errs := metadata(&flavor.ObjectMeta, false)
	errs = append(errs, items(len(spec.NodeLabels), path.Child("nodeLabels"), 0, mostOfAFlavor)...)
	errs = append(errs, labels(spec.NodeLabels, path.Child("nodeLabels"))...)
	errs = append(errs, taints(spec.NodeTaints, path.Child("nodeTaints"))...)
	errs = append(errs, tolerations(spec.Tolerations, path.Child("tolerations"))...)
	if spec.TopologyName != nil {
		errs = append(errs, requiredReference(*spec.TopologyName, path.Child("topologyName"))...)
		if len(spec.NodeLabels) == 0 {
			errs = append(errs, field.Required(path.Child("nodeLabels"), "a flavor with topologyName needs a label at least, by which its nodes are found"))
		}
	}
	return errs
}

// ValidateResourceFlavorUpdate reports why a change of a flavor would be refused.
func ValidateResourceFlavorUpdate(updated, existing *kueue.ResourceFlavor) field.ErrorList {
	errs := ValidateResourceFlavor(updated)
	if existing.Spec.TopologyName == nil {
		return errs
	}
	const remedy = "a flavor with topologyName keeps its labels, tolerations and topology; make another flavor"
	path := field.NewPath("spec")
	if updated.Spec.TopologyName == nil || *updated.Spec.TopologyName != *existing.Spec.TopologyName {
		is := kueue.TopologyReference("")
		if updated.Spec.TopologyName != nil {
			is = *updated.Spec.TopologyName
		}
		errs = append(errs, immutable(path.Child("topologyName"), *existing.Spec.TopologyName, is, remedy))
	}
	if !apiequality.Semantic.DeepEqual(updated.Spec.NodeLabels, existing.Spec.NodeLabels) {
		errs = append(errs, immutable(path.Child("nodeLabels"), existing.Spec.NodeLabels, updated.Spec.NodeLabels, remedy))
	}
	if !apiequality.Semantic.DeepEqual(updated.Spec.Tolerations, existing.Spec.Tolerations) {
		errs = append(errs, immutable(path.Child("tolerations"), describe(existing.Spec.Tolerations), describe(updated.Spec.Tolerations), remedy))
	}
	return errs
}

func taints(taints []corev1.Taint, path *field.Path) field.ErrorList {
	type identity struct {
		key    string
		effect corev1.TaintEffect
	}
	errs := items(len(taints), path, 0, mostOfAFlavor)
	seen := map[identity]bool{}
	for i, taint := range taints {
		path := path.Index(i)
		errs = append(errs, labelKey(taint.Key, "the key of a taint", path.Child("key"))...)
		errs = append(errs, labelValue(taint.Value, "the value of a taint", path.Child("value"))...)
		if taint.Effect == "" {
			errs = append(errs, field.Required(path.Child("effect"), "a taint needs an effect: "+list(taintEffects())))
		} else {
			errs = append(errs, oneOf(taint.Effect, path.Child("effect"), taintEffects()...)...)
		}
		id := identity{taint.Key, taint.Effect}
		if seen[id] {
			errs = append(errs, from(Webhook, duplicate(path, taint.Key, "there is a taint with this key and this effect already; a node cannot have both"))...)
		}
		seen[id] = true
	}
	return errs
}

func tolerations(tolerations []corev1.Toleration, path *field.Path) field.ErrorList {
	errs := items(len(tolerations), path, 0, mostOfAFlavor)
	for i, toleration := range tolerations {
		path := path.Index(i)
		operators := []corev1.TolerationOperator{corev1.TolerationOpEqual, corev1.TolerationOpExists}
		errs = append(errs, oneOf(toleration.Operator, path.Child("operator"), operators...)...)
		if toleration.Key != "" {
			errs = append(errs, labelKey(toleration.Key, "the key of a taint", path.Child("key"))...)
		} else if toleration.Operator != corev1.TolerationOpExists && slices.Contains(append(operators, ""), toleration.Operator) {
			errs = append(errs, field.Invalid(path.Child("operator"), toleration.Operator, "must be Exists without a key, which then tolerates every taint; or name a key"))
		}
		if toleration.Operator == corev1.TolerationOpExists && toleration.Value != "" {
			errs = append(errs, field.Invalid(path.Child("value"), toleration.Value, "has no meaning with operator Exists: leave it out, or use Equal"))
		}
		errs = append(errs, oneOf(toleration.Effect, path.Child("effect"), taintEffects()...)...)
		if toleration.TolerationSeconds != nil && toleration.Effect != corev1.TaintEffectNoExecute {
			errs = append(errs, field.Invalid(path.Child("effect"), toleration.Effect, "must be NoExecute with tolerationSeconds; no other effect removes running pods"))
		}
	}
	return errs
}

// describe writes tolerations for a message, as kubectl describe does: "key=value:NoSchedule, other op=Exists".
func describe(tolerations []corev1.Toleration) string {
	texts := make([]string, len(tolerations))
	for i, toleration := range tolerations {
		texts[i] = toleration.Key
		if toleration.Value != "" {
			texts[i] += "=" + toleration.Value
		}
		if toleration.Effect != "" {
			texts[i] += ":" + string(toleration.Effect)
		}
		if toleration.Operator == corev1.TolerationOpExists {
			texts[i] += " op=Exists"
		}
	}
	return list(texts)
}
