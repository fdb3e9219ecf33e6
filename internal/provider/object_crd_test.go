package provider

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue/crd"
	"github.com/elastic-training/terraform-provider-elastic/internal/provider/apifield"
	"github.com/elastic-training/terraform-provider-elastic/internal/provider/quantity"
)

// definitions are the schemas of the fields in Kueue's CRDs, by resource type.
func definitions(t *testing.T) map[string]map[string]any {
	t.Helper()
	objects, err := crd.Objects()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]map[string]any{}
	for resourceType, object := range kueueObjects(t) {
		_, title, parentField, _ := object.description()
		for _, definition := range objects {
			if kind, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "kind"); kind != title {
				continue
			}
			versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
			path := []string{"schema", "openAPIV3Schema"}
			if parentField != "" {
				path = append(path, "properties", parentField)
			}
			schema, ok, err := unstructured.NestedMap(versions[0].(map[string]any), path...) //nolint:forcetypeassert // as CRDs are
			if !ok || err != nil {
				t.Fatalf("%s: %v", title, err)
			}
			if properties, _ := schema["properties"].(map[string]any); parentField == "" {
				for _, other := range []string{"apiVersion", "kind", "metadata", "status"} {
					delete(properties, other)
				}
			}
			found[resourceType] = schema
		}
		if found[resourceType] == nil {
			t.Fatalf("no CRD of %s", title)
		}
	}
	return found
}

func TestEveryFieldOfTheCRDsHasItsAttribute(t *testing.T) {
	// What the attributes leave out, and why.
	ignored := map[string]string{
		"elastic_resource_flavor.node_taints.time_added":    "a node's, not a flavor's",
		"elastic_cluster_queue.concurrent_admission_policy": "alpha, and off by default",
	}
	objects := kueueObjects(t)
	for resourceType, definition := range definitions(t) {
		var resp resource.SchemaResponse
		objects[resourceType].Schema(t.Context(), resource.SchemaRequest{}, &resp)
		attributes := maps.Clone(resp.Schema.Attributes)
		maps.DeleteFunc(attributes, func(name string, _ schema.Attribute) bool { return !isField(name) })
		compareFields(t, resourceType, definition, attributes, ignored)
	}
}

// compareFields compares an object's schema in a CRD with the attributes of the object.
func compareFields(t *testing.T, at string, definition map[string]any, attributes map[string]schema.Attribute, ignored map[string]string) {
	t.Helper()
	properties, _ := definition["properties"].(map[string]any)
	required, _ := definition["required"].([]any)
	for name := range attributes {
		if _, ok := properties[apifield.Camel(name)]; !ok {
			t.Errorf("%s.%s stands for no field", at, name)
		}
	}
	for field, property := range properties {
		property, _ := property.(map[string]any)
		where := at + "." + apifield.Snake(field)
		attribute, ok := attributes[apifield.Snake(field)]
		switch _, isIgnored := ignored[where]; {
		case isIgnored:
			continue
		case !ok:
			t.Errorf("%s is missing", where)
			continue
		case apifield.Camel(apifield.Snake(field)) != field:
			t.Errorf("%s stands for %s", where, apifield.Camel(apifield.Snake(field)))
		case slices.Contains(required, any(field)) && !attribute.IsRequired():
			t.Errorf("%s is not required, and the field is", where)
		}
		compareDefaults(t, where, property, attribute)
		items, _ := property["items"].(map[string]any)
		switch a := attribute.(type) {
		case schema.StringAttribute:
			_, isQuantity := a.GetType().(quantity.Type)
			if wants, _ := property["x-kubernetes-int-or-string"].(bool); wants != isQuantity || !wants && property["type"] != "string" {
				t.Errorf("%s is a text, the field a %v", where, property["type"])
			}
		case schema.Int64Attribute:
			if property["type"] != "integer" {
				t.Errorf("%s is a number, the field a %v", where, property["type"])
			}
		case schema.MapAttribute:
			if property["additionalProperties"] == nil {
				t.Errorf("%s is a map, the field a %v", where, property["type"])
			}
		case schema.ListAttribute:
			if items["type"] != "string" {
				t.Errorf("%s is a list of texts, the field a %v of %v", where, property["type"], items["type"])
			}
		case schema.ListNestedAttribute:
			if items["type"] != "object" {
				t.Errorf("%s is a list of objects, the field a %v of %v", where, property["type"], items["type"])
			}
			compareFields(t, where, items, a.NestedObject.Attributes, ignored)
		case schema.SingleNestedAttribute:
			compareFields(t, where, property, a.Attributes, ignored)
		default:
			t.Errorf("%s is a %T", where, attribute)
		}
	}
}

func compareDefaults(t *testing.T, where string, property map[string]any, attribute schema.Attribute) {
	t.Helper()
	got := apifield.Expand(apifield.DefaultOf(t.Context(), attribute))
	want, ok := property["default"]
	switch object, isObject := got.(map[string]any); {
	case !ok && (fmt.Sprint(got) == "[]" || fmt.Sprint(got) == "map[]" || got == ""): // the API says nothing of it
	case !ok && got != nil:
		t.Errorf("%s is %v by default, the field has no default", where, got)
	case ok && got == nil:
		t.Errorf("%s has no default, the field's is %v", where, want)
	case isObject: // the field's is empty, and its own fields have defaults, which are compared themselves
		if fields, _ := want.(map[string]any); len(fields) > 0 {
			t.Errorf("%s: default %v is not compared with %v", where, object, fields)
		}
	case ok && fmt.Sprint(got) != fmt.Sprint(want):
		t.Errorf("%s is %v by default, the field %v", where, got, want)
	}
}

// TestReplacementIsWhereTheAPIIsImmutable has a case for every rule of the CRDs that reads the old object: a rule
// without a case fails, as does a change that replaces though no rule is broken.
func TestReplacementIsWhereTheAPIIsImmutable(t *testing.T) {
	const flavor = `"nodeLabels":{"a":"b"},"tolerations":[{"key":"k","operator":"Exists"}]`
	cases := map[string]struct {
		rule        string // of the CRD: the path of the field that has it, and what it begins with
		was, is     string
		replacement string // the attribute, or "" for none
	}{
		"a local queue's ClusterQueue":          {"elastic_local_queue.clusterQueue: self == oldSelf", `{"clusterQueue":"a"}`, `{"clusterQueue":"b"}`, "cluster_queue"},
		"what stops a local queue":              {"", `{"clusterQueue":"a"}`, `{"clusterQueue":"a","stopPolicy":"Hold"}`, ""},
		"a check's controller":                  {"elastic_admission_check.controllerName: self == oldSelf", `{"controllerName":"a"}`, `{"controllerName":"b"}`, "controller_name"},
		"a check's parameters":                  {"", `{"controllerName":"a"}`, `{"controllerName":"a","parameters":{"apiGroup":"g","kind":"k","name":"n"}}`, ""},
		"a topology's levels":                   {"elastic_topology.levels: self == oldSelf", `{"levels":[{"nodeLabel":"a"}]}`, `{"levels":[{"nodeLabel":"a"},{"nodeLabel":"b"}]}`, "levels"},
		"labels of a flavor with a topology":    {"elastic_resource_flavor: !has(oldSelf.topologyName) || (has(self.nodeLabels)", `{"topologyName":"t",` + flavor + `}`, `{"topologyName":"t",` + strings.ReplaceAll(flavor, `"b"`, `"c"`) + `}`, "node_labels"},
		"tolerations of a flavor with topology": {"elastic_resource_flavor: !has(oldSelf.topologyName) || (has(self.tolerations)", `{"topologyName":"t",` + flavor + `}`, `{"topologyName":"t",` + strings.ReplaceAll(flavor, `"k"`, `"l"`) + `}`, "tolerations"},
		"a flavor's topology":                   {"elastic_resource_flavor: !has(oldSelf.topologyName) || (has(self.topologyName)", `{"topologyName":"t",` + flavor + `}`, `{` + flavor + `}`, "topology_name"},
		"a flavor's first topology":             {"", `{` + flavor + `}`, `{"topologyName":"t",` + flavor + `}`, ""},
		"labels of a flavor without topology":   {"", `{` + flavor + `}`, `{"nodeLabels":{"c":"d"}}`, ""},
		"taints of a flavor with a topology":    {"", `{"topologyName":"t",` + flavor + `}`, `{"topologyName":"t","nodeTaints":[{"key":"k","effect":"NoSchedule"}],` + flavor + `}`, ""},
		"a ClusterQueue's everything":           {"", groups(``, ``), groups(`,"borrowingLimit":"1"`, `,"cohortName":"c","queueingStrategy":"StrictFIFO","preemption":{"withinClusterQueue":"LowerPriority"}`), ""},
		"a cohort's parent":                     {"", `{}`, `{"parentName":"p"}`, ""},
		"a class's value":                       {"", `{"value":1}`, `{"value":2}`, ""},
	}
	resourceTypes := map[string]string{
		"a ClusterQueue's everything": "elastic_cluster_queue", "a cohort's parent": "elastic_cohort", "a class's value": "elastic_workload_priority_class",
		"what stops a local queue": "elastic_local_queue", "a check's parameters": "elastic_admission_check",
	}
	covered := map[string]bool{}
	objects := kueueObjects(t)
	for behaviour, c := range cases {
		resourceType, ok := resourceTypes[behaviour]
		if !ok {
			resourceType = "elastic_resource_flavor"
		}
		if c.rule != "" {
			covered[c.rule] = true
			resourceType, _, _ = strings.Cut(strings.SplitN(c.rule, ":", 2)[0], ".")
		}
		for is, config := range map[string]tftypes.Value{
			"known":             configurationOf(t, objects[resourceType], c.is),
			"not known yet, or": unknownAt(t, configurationOf(t, objects[resourceType], c.is), c.replacement),
		} {
			got := replacedBy(t, resourceType, configurationOf(t, objects[resourceType], c.was), config)
			if want := strings.Fields(c.replacement); !slices.Equal(got, want) {
				t.Errorf("%s, when it is %s: replaced for %q, want %q", behaviour, is, got, want)
			}
		}
	}
	for resourceType, definition := range definitions(t) {
		for _, rule := range rulesOnChange(resourceType, definition) {
			if !slices.ContainsFunc(slices.Collect(maps.Keys(covered)), func(known string) bool { return strings.HasPrefix(rule, known) }) {
				t.Errorf("there is no case for the rule %s", rule)
			}
		}
	}
}

// rulesOnChange are the rules below a field that look at the old object.
func rulesOnChange(at string, definition map[string]any) []string {
	var found []string
	rules, _ := definition["x-kubernetes-validations"].([]any)
	for _, rule := range rules {
		if text, _ := rule.(map[string]any)["rule"].(string); strings.Contains(text, "oldSelf") { //nolint:forcetypeassert // as CRDs are
			found = append(found, at+": "+text)
		}
	}
	properties, _ := definition["properties"].(map[string]any)
	for field, property := range properties {
		found = append(found, rulesOnChange(at+"."+field, property.(map[string]any))...) //nolint:forcetypeassert // as CRDs are
	}
	if items, ok := definition["items"].(map[string]any); ok {
		found = append(found, rulesOnChange(at+"[]", items)...)
	}
	return found
}

// unknownAt is a configuration whose top-level attribute is not known yet.
func unknownAt(t *testing.T, config tftypes.Value, attribute string) tftypes.Value {
	t.Helper()
	config, err := tftypes.Transform(config, func(at *tftypes.AttributePath, value tftypes.Value) (tftypes.Value, error) {
		if attribute != "" && where(&tfprotov6.Diagnostic{Attribute: at}) == attribute {
			return unknown(value.Type()), nil
		}
		return value, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// replacedBy plans a change, without a cluster, and returns the attributes that replace the object.
func replacedBy(t *testing.T, resourceType string, state, config tftypes.Value) []string {
	t.Helper()
	server, _ := server(t)
	encode := func(value tftypes.Value) *tfprotov6.DynamicValue {
		encoded, err := tfprotov6.NewDynamicValue(value.Type(), value)
		if err != nil {
			t.Fatal(err)
		}
		return &encoded
	}
	resp, err := server.PlanResourceChange(t.Context(), &tfprotov6.PlanResourceChangeRequest{
		TypeName: resourceType, PriorState: encode(state), ProposedNewState: encode(config), Config: encode(config),
	})
	if err != nil {
		t.Fatal(err)
	}
	noErrors(t, resp.Diagnostics)
	var found []string
	for _, at := range resp.RequiresReplace {
		found = append(found, where(&tfprotov6.Diagnostic{Attribute: at}))
	}
	return found
}
