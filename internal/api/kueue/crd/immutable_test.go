package crd

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheImmutableFieldsAreThoseThatKueueFreezes(t *testing.T) {
	got, err := ImmutableFields()
	if err != nil {
		t.Fatal(err)
	}
	want := []ImmutableField{
		{Kind: "AdmissionCheck", Path: "spec.controllerName"},
		{Kind: "LocalQueue", Path: "spec.clusterQueue"},
		{Kind: "ResourceFlavor", Path: "spec.nodeLabels", When: "spec.topologyName"},
		{Kind: "ResourceFlavor", Path: "spec.tolerations", When: "spec.topologyName"},
		{Kind: "ResourceFlavor", Path: "spec.topologyName", When: "spec.topologyName"},
		{Kind: "Topology", Path: "spec.levels"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the CRDs' rules say otherwise (-want +got); RequiresReplace and ValidateUpdate have to follow:\n%s", diff)
	}
}

func TestARuleIsUnderstoodOnlyWhereItFreezesAField(t *testing.T) {
	for rule, want := range map[string]string{
		"self == oldSelf": "spec",
		"!has(oldSelf.a) || (has(self.a) && self.a == oldSelf.a)":                                     "spec.a when spec.a",
		"!has(oldSelf.a) || (has(self.b) == has(oldSelf.b) && (!has(self.b) || self.b == oldSelf.b))": "spec.b when spec.a",
		"!has(oldSelf.a) || self.a >= oldSelf.a":                                                      "",
		"self.a == oldSelf.a || self.b":                                                               "",
		"!has(oldSelf.a) || (has(self.b) && self.b == oldSelf.a)":                                     "",
	} {
		t.Run(rule, func(t *testing.T) {
			field, ok := immutableBy("spec", rule)
			got := field.Path
			if field.When != "" {
				got += " when " + field.When
			}
			if got != want || ok != (want != "") {
				t.Errorf("%q, %v; want %q", got, ok, want)
			}
		})
	}
}
