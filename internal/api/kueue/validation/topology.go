package validation

import (
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

const (
	mostLevels       = 16
	longestNodeLabel = 316
)

// nodeLabel is the CRD's pattern for the key of a level's label. It does not bound the parts of the key, as labels do.
var nodeLabel = regexp.MustCompile(`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$`)

// ValidateTopology reports why a topology would be refused.
func ValidateTopology(topology *kueue.Topology) field.ErrorList {
	levels, path := topology.Spec.Levels, field.NewPath("spec", "levels")
	errs := metadata(&topology.ObjectMeta, false)
	errs = append(errs, items(len(levels), path, 1, mostLevels)...)
	for i, level := range levels {
		path := path.Index(i).Child("nodeLabel")
		errs = append(errs, length(level.NodeLabel, path, 1, longestNodeLabel)...)
		if level.NodeLabel != "" && !nodeLabel.MatchString(level.NodeLabel) {
			errs = append(errs, field.Invalid(path, level.NodeLabel, "is not the key of a label, such as cloud.provider.com/topology-rack"))
		}
		if slices.Contains(levels[:i], level) {
			errs = append(errs, duplicate(path, level.NodeLabel, "a label is one level only"))
		}
		if level.NodeLabel == corev1.LabelHostname && i != len(levels)-1 {
			errs = append(errs, field.Invalid(path, level.NodeLabel, "must be the last level: nothing is narrower than a host"))
		}
	}
	return errs
}

// ValidateTopologyUpdate reports why a change of a topology would be refused. Its levels are immutable.
func ValidateTopologyUpdate(updated, existing *kueue.Topology) field.ErrorList {
	errs := ValidateTopology(updated)
	if !slices.Equal(updated.Spec.Levels, existing.Spec.Levels) {
		errs = append(errs, immutable(field.NewPath("spec", "levels"), nodeLabels(existing), nodeLabels(updated), "make another topology"))
	}
	return errs
}

func nodeLabels(topology *kueue.Topology) string {
	var keys []string
	for _, level := range topology.Spec.Levels {
		keys = append(keys, level.NodeLabel)
	}
	return list(keys)
}
