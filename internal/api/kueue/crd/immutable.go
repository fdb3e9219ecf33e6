package crd

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// ImmutableField is a field whose value cannot be changed, so that another value needs another object.
type ImmutableField struct {
	Kind string // "LocalQueue"
	Path string // "spec.clusterQueue"
	// When is the field that makes it immutable once it is set, such as "spec.topologyName"; "": always. A field that is always
	// immutable but optional can still be set where it was absent.
	When string
}

// ImmutableFields derives from the CRDs' rules which fields of the kinds that users declare are immutable. A rule that
// compares with the old object in a way that is not understood is an error, so that none is missed. Workload is left
// out: Kueue makes workloads, and what is immutable of them depends on their status.
func ImmutableFields() ([]ImmutableField, error) {
	objects, err := Objects()
	if err != nil {
		return nil, err
	}
	var fields []ImmutableField
	for _, object := range objects {
		kind, _, _ := unstructured.NestedString(object.Object, "spec", "names", "kind")
		version := Version(object, kueue.SchemeGroupVersion.Version)
		if kind == "Workload" || version == nil {
			continue
		}
		schema, _, _ := unstructured.NestedMap(version, "schema", "openAPIV3Schema")
		err := eachRule("", schema, func(path, rule string) error {
			if !strings.Contains(rule, "oldSelf") {
				return nil
			}
			field, ok := immutableBy(path, rule)
			if !ok {
				return fmt.Errorf("%s %s: the rule %q compares with the old object in a way that ImmutableFields does not know; teach it", kind, path, rule)
			}
			field.Kind = kind
			fields = append(fields, field)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return fields, nil
}

// Version is the part of a CustomResourceDefinition about one version; nil where it has none of that name.
func Version(definition *unstructured.Unstructured, name string) map[string]any {
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	for _, version := range versions {
		if version, ok := version.(map[string]any); ok && version["name"] == name {
			return version
		}
	}
	return nil
}

// onceSet matches the rule that a field beside another is immutable once that one is set, which may be the field itself.
var onceSet = regexp.MustCompile(`^!has\(oldSelf\.(\w+)\) \|\| \(.*\bself\.(\w+) == oldSelf\.(\w+)\)+$`)

// immutableBy is what a rule about the schema at path makes immutable.
func immutableBy(path, rule string) (ImmutableField, bool) {
	if rule == "self == oldSelf" {
		return ImmutableField{Path: path}, true
	}
	match := onceSet.FindStringSubmatch(rule)
	if match == nil || match[2] != match[3] {
		return ImmutableField{}, false
	}
	return ImmutableField{Path: path + "." + match[2], When: path + "." + match[1]}, true
}

// eachRule calls do for every CEL rule in a schema, with the path of what the rule is about.
func eachRule(path string, schema map[string]any, do func(path, rule string) error) error {
	rules, _, _ := unstructured.NestedSlice(schema, "x-kubernetes-validations")
	for _, rule := range rules {
		text, _, _ := unstructured.NestedString(rule.(map[string]any), "rule")
		if err := do(path, text); err != nil {
			return err
		}
	}
	properties, _, _ := unstructured.NestedMap(schema, "properties")
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if err := eachRule(strings.TrimPrefix(path+"."+name, "."), properties[name].(map[string]any), do); err != nil {
			return err
		}
	}
	if items, ok, _ := unstructured.NestedMap(schema, "items"); ok {
		return eachRule(path+"[]", items, do)
	}
	return nil
}
