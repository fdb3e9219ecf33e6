package crd

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue"
)

// A type that was changed without `make generate` has other fields than its CRD: an API server drops what that does not know.
func TestTheCRDsHaveTheFieldsOfTheTypes(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := kueue.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	definitions, err := Objects()
	if err != nil {
		t.Fatal(err)
	}
	if len(definitions) == 0 {
		t.Error("there is no CRD")
	}
	for _, definition := range definitions {
		kind, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "kind")
		versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
		schema, ok, err := unstructured.NestedMap(versions[0].(map[string]any), "schema", "openAPIV3Schema") //nolint:forcetypeassert // as CRDs are
		if !ok || err != nil {
			t.Fatalf("%s has no schema: %v", kind, err)
		}
		object, err := scheme.New(kueue.SchemeGroupVersion.WithKind(kind))
		if err != nil {
			t.Fatal(err)
		}
		for _, inline := range []string{"apiVersion", "kind"} {
			unstructured.RemoveNestedField(schema, "properties", inline)
		}
		compareFields(t, kind, reflect.TypeOf(object), schema)
	}
}

// compareFields compares a type's fields, and those below that are of our types too, with the properties of its schema.
func compareFields(t *testing.T, at string, kind reflect.Type, schema map[string]any) {
	t.Helper()
	for kind.Kind() == reflect.Pointer || kind.Kind() == reflect.Slice {
		if kind.Kind() == reflect.Slice {
			schema, _, _ = unstructured.NestedMap(schema, "items")
		}
		kind = kind.Elem()
	}
	if kind.Kind() != reflect.Struct || kind.PkgPath() != reflect.TypeFor[kueue.ClusterQueue]().PkgPath() {
		return
	}
	properties, _, err := unstructured.NestedMap(schema, "properties")
	if err != nil {
		t.Fatalf("%s: %v", at, err)
	}
	fields := map[string]reflect.Type{}
	for i := range kind.NumField() {
		if name, _, _ := strings.Cut(kind.Field(i).Tag.Get("json"), ","); name != "" {
			fields[name] = kind.Field(i).Type
		}
	}
	if have, want := slices.Sorted(maps.Keys(properties)), slices.Sorted(maps.Keys(fields)); !slices.Equal(have, want) {
		t.Errorf("%s has the fields %v in its CRD, and %v in its type: run make generate", at, have, want)
	}
	for name, below := range fields {
		if property, ok := properties[name].(map[string]any); ok {
			compareFields(t, at+"."+name, below, property)
		}
	}
}
