package provider

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// A list of Kubernetes' own objects, such as topology spread constraints, needs only its attribute and its field.
func TestAttributesOfListedKubernetesObjectsStandForTheAPIsFields(t *testing.T) {
	type settings struct {
		Spread    []corev1.TopologySpreadConstraint  `json:"spread"`
		Resources *corev1.ResourceRequirements       `json:"resources"`
		Own       []struct{ MountPath, Name string } `json:"own"`
	}
	names := listedFields(reflect.TypeFor[settings]())
	for _, attribute := range []string{"max_skew", "topology_key", "when_unsatisfiable", "label_selector", "match_labels", "match_expressions"} {
		if !names[attribute] {
			t.Errorf("%s is not a field of the API: %v", attribute, names)
		}
	}
	for _, attribute := range []string{"mount_path", "requests", "spread"} {
		if names[attribute] {
			t.Errorf("%s is a field of the API", attribute)
		}
	}
	if fieldOf("toleration_seconds") != "tolerationSeconds" || fieldOf("priority_class_name") != "priority_class_name" {
		t.Error("the names of a toleration's fields, or of a pod's settings, are others")
	}
}
