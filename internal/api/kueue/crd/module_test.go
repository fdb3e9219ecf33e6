package crd

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/yaml"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the definitions from Kueue's module; review the diff")

// leftOut are Kueue's kinds that are not here, and why.
var leftOut = map[string]string{
	"MultiKueueCluster":         "running on other clusters is out of scope",
	"MultiKueueConfig":          "running on other clusters is out of scope",
	"ProvisioningRequestConfig": "cluster autoscalers are out of scope; an AdmissionCheck may refer to one by name",
}

func TestTheDefinitionsAreThoseOfKueuesModule(t *testing.T) {
	module, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kueue").Output()
	if err != nil {
		t.Fatal(err)
	}
	definitions, err := Read(os.DirFS(filepath.Join(strings.TrimSpace(string(module)), "config/components/crd/bases")))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for _, definition := range definitions {
		if kind, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "kind"); leftOut[kind] == "" {
			want["kueue.x-k8s.io_"+strings.TrimSuffix(definition.GetName(), ".kueue.x-k8s.io")+".yaml"] = reduced(t, definition)
		}
	}
	if *rewrite {
		for name, text := range want {
			if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	got := map[string]string{}
	names, err := filepath.Glob("*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		got[name] = string(text)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("run go test ./internal/api/kueue/crd -rewrite (-Kueue's +these):\n%s", diff)
	}
}

// reduced is a definition in the one version, without texts and without the schema of pods.
func reduced(t *testing.T, definition *unstructured.Unstructured) string {
	t.Helper()
	version := Version(definition, kueue.SchemeGroupVersion.Version)
	if version == nil {
		t.Fatalf("%s has no version %s", definition.GetName(), kueue.SchemeGroupVersion.Version)
	}
	schema, _, err := unstructured.NestedMap(version, "schema", "openAPIV3Schema")
	if err != nil {
		t.Fatal(err)
	}
	withoutTexts(schema)
	template := []string{"properties", "spec", "properties", "podSets", "items", "properties", "template"}
	if _, isWorkload, _ := unstructured.NestedMap(schema, template...); isWorkload {
		if err := unstructured.SetNestedMap(schema, map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}, template...); err != nil {
			t.Fatal(err)
		}
	}
	version["schema"] = map[string]any{"openAPIV3Schema": schema}
	if err := unstructured.SetNestedSlice(definition.Object, []any{version}, "spec", "versions"); err != nil {
		t.Fatal(err)
	}
	unstructured.RemoveNestedField(definition.Object, "spec", "conversion")
	text, err := yaml.Marshal(definition.Object)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// withoutTexts removes the descriptions of a schema. A field may have that name too.
func withoutTexts(schema map[string]any) {
	delete(schema, "description")
	for _, of := range []string{"items", "additionalProperties"} {
		if below, isSchema := schema[of].(map[string]any); isSchema {
			withoutTexts(below)
		}
	}
	properties, _ := schema["properties"].(map[string]any)
	for _, below := range properties {
		withoutTexts(below.(map[string]any)) //nolint:forcetypeassert // as CRDs are
	}
}
