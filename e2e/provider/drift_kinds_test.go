package provider_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/provider/apifield"
)

// driftKind is a kind of plain object whose fields others change: kueueKinds, and the one kind of Kubernetes' own.
type driftKind struct {
	kueueKind
	group schema.GroupVersionResource
	// configs have, all together, every attribute in a context in which another client can change it.
	configs []string
	// immutable are the attributes that the API server allows no client to change.
	immutable []string
}

const driftedMetadata = "\n labels = { team = \"ml\", \"example.com/cost\" = \"7\" }\n annotations = { \"example.com/owner\" = \"research\" }"

func driftKinds() []driftKind {
	class := kueueKind{
		resource: "elastic_priority_class", flat: true,
		updated: "value = 7\n global_default = false\n preemption_policy = \"Never\"\n description = \"for experiments\"",
		reduced: "value = 7\n preemption_policy = \"Never\"",
	}
	kinds := []driftKind{{
		kueueKind: class, group: schedulingv1.SchemeGroupVersion.WithResource("priorityclasses"),
		configs: []string{class.updated}, immutable: []string{"preemption_policy", "value"},
	}}
	immutable := map[string][]string{
		"elastic_local_queue":     {"cluster_queue"},
		"elastic_topology":        {"levels[0].node_label"},
		"elastic_admission_check": {"controller_name"},
	}
	// What the fields of updated exclude: a preference needs two words, and a time one effect.
	more := map[string]string{
		"elastic_cluster_queue":   `flavor_fungibility = { when_can_borrow = "TryNextFlavor", when_can_preempt = "TryNextFlavor" }`,
		"elastic_resource_flavor": `tolerations = [{ key = "example.com/slow", value = "yes", effect = "NoExecute" }, { key = "a", effect = "NoExecute" }]`,
	}
	for _, k := range kueueKinds() {
		k.updated = strings.ReplaceAll(k.updated, `labels = { team = "ml" }`, "")
		kind := driftKind{
			kueueKind: k, group: kueue.SchemeGroupVersion.WithResource(k.plural()), configs: []string{k.updated}, immutable: immutable[k.resource],
		}
		if attributes, ok := more[k.resource]; ok {
			kind.configs = append(kind.configs, attributes)
		}
		if k.resource == "elastic_resource_flavor" { // with a topology nothing of a flavor may change, and the topology's name never
			kind.configs = append(kind.configs, "topology_name = \"t\"\n node_labels = { a = \"b\" }")
			kind.immutable = []string{"topology_name"}
		}
		kinds = append(kinds, kind)
	}
	return kinds
}

func (k driftKind) objects(t *testing.T) dynamic.ResourceInterface {
	t.Helper()
	client, err := dynamic.NewForConfig(adminConfig(t))
	if err != nil {
		t.Fatal(err)
	}
	if k.namespaced {
		return client.Resource(k.group).Namespace(metav1.NamespaceDefault)
	}
	return client.Resource(k.group)
}

func (k driftKind) get(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()
	live, err := k.objects(t).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return live
}

// leaf is an attribute that holds no others, with its value.
type leaf struct {
	path    string // resource_groups[0].flavors[0].name
	pointer string // of the field, as JSON patches name it: /spec/resourceGroups/0/flavors/0/name
	value   any
	isNew   bool // the object does not have it yet
}

// leavesOf are all attributes of a value that are fields of the object, as deep as they go.
func (k driftKind) leavesOf(value tftypes.Value) []leaf {
	var leaves []leaf
	attributes := entriesOf(value)
	for _, name := range sortedNames(attributes) {
		switch name {
		case "name", "generate_name", "namespace", "uid", "wait_for", "timeouts":
		default:
			leaves = append(leaves, leavesIn(name, k.pointer(name), attributes[name])...)
		}
	}
	return leaves
}

// pointer is the field of an attribute.
func (k driftKind) pointer(attribute string) string {
	switch {
	case attribute == "labels" || attribute == "annotations":
		return "/metadata/" + attribute
	case k.flat:
		return "/" + apifield.Camel(attribute)
	default:
		return "/spec/" + apifield.Camel(attribute)
	}
}

func leavesIn(path, pointer string, value tftypes.Value) []leaf {
	if value.IsNull() {
		return nil
	}
	var leaves []leaf
	switch kind := value.Type(); {
	case kind.Is(tftypes.List{}):
		var items []tftypes.Value
		_ = value.As(&items)
		for i, item := range items {
			leaves = append(leaves, leavesIn(fmt.Sprintf("%s[%d]", path, i), fmt.Sprintf("%s/%d", pointer, i), item)...)
		}
	case kind.Is(tftypes.Map{}):
		entries := entriesOf(value)
		for _, key := range sortedNames(entries) {
			escaped := strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
			leaves = append(leaves, leavesIn(fmt.Sprintf("%s[%q]", path, key), pointer+"/"+escaped, entries[key])...)
		}
	case kind.Is(tftypes.Object{}):
		entries := entriesOf(value)
		for _, name := range sortedNames(entries) {
			leaves = append(leaves, leavesIn(path+"."+name, pointer+"/"+apifield.Camel(name), entries[name])...)
		}
	default:
		leaves = append(leaves, leaf{path: path, pointer: pointer, value: apifield.Expand(value)})
	}
	return leaves
}

// leavesInJSON are the fields of an object that hold no others, its labels and annotations among them.
func (k driftKind) leavesInJSON(object *unstructured.Unstructured) []leaf {
	var leaves []leaf
	var walk func(pointer string, value any)
	walk = func(pointer string, value any) {
		switch v := value.(type) {
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(v)) {
				walk(pointer+"/"+strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1"), v[key])
			}
		case []any:
			for i, item := range v {
				walk(fmt.Sprintf("%s/%d", pointer, i), item)
			}
		default:
			leaves = append(leaves, leaf{pointer: pointer, value: value})
		}
	}
	for _, of := range []string{"labels", "annotations"} {
		entries, _, _ := unstructured.NestedFieldNoCopy(object.Object, "metadata", of)
		walk("/metadata/"+of, entries)
	}
	fields := k.fieldsOf(object)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		walk(k.pointer(apifield.Snake(name)), fields[name])
	}
	return leaves
}

// schemaLeaves are the attributes of a schema that hold no others, without the places in lists and keys of maps.
func schemaLeaves(attributes []*tfprotov6.SchemaAttribute, prefix string) []string {
	var leaves []string
	for _, a := range attributes {
		switch {
		case !a.Optional && !a.Required:
		case prefix == "" && slices.Contains([]string{"name", "generate_name", "namespace", "wait_for", "fail_on_error", "on_finished", "master_priority_check", "timeouts"}, a.Name):
		case a.NestedType != nil:
			leaves = append(leaves, schemaLeaves(a.NestedType.Attributes, prefix+a.Name+".")...)
		default:
			leaves = append(leaves, prefix+a.Name)
		}
	}
	return leaves
}

// others are values that may replace a value. The API server decides which of them it accepts.
func others(value any) []any {
	switch v := value.(type) {
	case bool:
		return []any{!v}
	case int64:
		return []any{v + 1, v + 2}
	case string:
		values := []any{v + "-other", v + "-another", v + "other", v + "another", "71", "72"}
		for _, word := range []string{ // the quantities that no other one bounds, and those of Kueue's fields that have only some
			"1", "3",
			"None", "Hold", "Never", "LowerPriority", "Any", "LowerOrNewerEqualPriority", "StrictFIFO", "BestEffortFIFO",
			"MayStopSearch", "TryNextFlavor", "BorrowingOverPreemption", "PreemptionOverBorrowing",
			"UsageBasedAdmissionFairSharing", "NoAdmissionFairSharing", "NoSchedule", "NoExecute", "Equal", "Exists", "In", "NotIn", "DoesNotExist",
		} {
			if word != v {
				values = append(values, word)
			}
		}
		return values
	default:
		return nil
	}
}

// driftTester is the field manager that changes what is not its own.
const driftTester = "drift-tester"

// set changes fields as another client does; dry: only checks whether that is allowed.
func (k driftKind) set(t *testing.T, name string, dry bool, fields ...leaf) error {
	t.Helper()
	patch, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	options := metav1.PatchOptions{FieldManager: driftTester}
	if dry {
		options.DryRun = []string{metav1.DryRunAll}
	}
	_, err = k.objects(t).Patch(t.Context(), name, types.JSONPatchType, patch, options)
	if err != nil && !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) && !apierrors.IsBadRequest(err) {
		t.Fatalf("%s: %v", k.resource, err)
	}
	return err
}

// MarshalJSON is the operation of a JSON patch that sets the field.
func (l leaf) MarshalJSON() ([]byte, error) {
	operation := "replace"
	if l.isNew {
		operation = "add"
	}
	return json.Marshal(map[string]any{"op": operation, "path": l.pointer, "value": l.value})
}

// as is the field with another value.
func (l leaf) as(value any) leaf {
	l.value = value
	return l
}

// change is fields with other values than they have, which the API server takes only together.
type change []leaf

func (c change) paths() []string {
	var paths []string
	for _, l := range c {
		paths = append(paths, l.path)
	}
	return paths
}

// missing are the fields of another object that an object does not have.
func (k driftKind) missing(object, other *unstructured.Unstructured) (fields change) {
	there := k.fieldsOf(object)
	for name, value := range k.fieldsOf(other) {
		if _, has := there[name]; !has {
			attribute := apifield.Snake(name)
			fields = append(fields, leaf{path: attribute, pointer: k.pointer(attribute), value: value, isNew: true})
		}
	}
	return fields
}

// alike are a field and all others of the same value: what is named at several places has to change at all of them at once.
func alike(all []leaf, at leaf) change {
	return slices.DeleteFunc(slices.Clone(change(all)), func(l leaf) bool { return l.value != at.value })
}

// accepted are up to two changes of a field that the API server takes: of the field alone, or else of all alike.
func (k driftKind) accepted(t *testing.T, name string, all []leaf, at leaf) []change {
	t.Helper()
	for _, fields := range []change{{at}, alike(all, at)} {
		var changes []change
		for _, value := range others(at.value) {
			changed := slices.Clone(fields)
			for i := range changed {
				changed[i].value = value
			}
			if len(changes) < 2 && k.set(t, name, true, changed...) == nil {
				changes = append(changes, changed)
			}
		}
		if len(changes) > 0 {
			return changes
		}
	}
	return nil
}

func entriesOf(value tftypes.Value) map[string]tftypes.Value {
	entries := map[string]tftypes.Value{}
	if !value.IsNull() && value.IsKnown() {
		_ = value.As(&entries)
	}
	return entries
}

func sortedNames(entries map[string]tftypes.Value) []string {
	var names []string
	for name := range entries {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
