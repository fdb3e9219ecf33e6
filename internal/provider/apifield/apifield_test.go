package apifield_test

import (
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/objectdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"github.com/elastic-training/terraform-provider-elastic/internal/provider/apifield"
	"github.com/elastic-training/terraform-provider-elastic/internal/provider/quantity"
)

// attributes have one of every sort, nested as deep as Kueue's.
func attributes() map[string]schema.Attribute {
	text, amount := schema.StringAttribute{}, schema.StringAttribute{CustomType: quantity.Type{}}
	return map[string]schema.Attribute{
		"cohort_name":       text,
		"max_priority":      schema.Int64Attribute{},
		"global_default":    schema.BoolAttribute{Default: booldefault.StaticBool(false)},
		"stop_policy":       schema.StringAttribute{Default: stringdefault.StaticString("None")},
		"node_labels":       schema.MapAttribute{ElementType: types.StringType},
		"covered_resources": schema.ListAttribute{ElementType: types.StringType},
		"fair_sharing":      schema.SingleNestedAttribute{Attributes: map[string]schema.Attribute{"weight": amount}},
		"preemption": schema.SingleNestedAttribute{
			Attributes: map[string]schema.Attribute{"within_cluster_queue": schema.StringAttribute{Default: stringdefault.StaticString("Never")}},
			Default: objectdefault.StaticValue(types.ObjectValueMust(map[string]attr.Type{"within_cluster_queue": types.StringType},
				map[string]attr.Value{"within_cluster_queue": types.StringValue("Never")})),
		},
		"flavors": schema.ListNestedAttribute{NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
			"name": text,
			"resources": schema.ListNestedAttribute{NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
				"name": text, "nominal_quota": amount,
			}}},
		}}},
	}
}

func TestNamesAreTheSameInBothDirections(t *testing.T) {
	for attribute, field := range map[string]string{"value": "value", "cluster_queue": "clusterQueue", "when_can_borrow": "whenCanBorrow", "api_group": "apiGroup"} {
		if got := apifield.Camel(attribute); got != field {
			t.Errorf("%s is field %s, want %s", attribute, got, field)
		}
		if got := apifield.Snake(field); got != attribute {
			t.Errorf("%s is attribute %s, want %s", field, got, attribute)
		}
	}
}

func TestExpandLeavesOutWhatIsNotThere(t *testing.T) {
	unknown := tftypes.NewValue(tftypes.String, tftypes.UnknownValue)
	item := tftypes.Object{AttributeTypes: map[string]tftypes.Type{"node_label": tftypes.String}}
	for behaviour, c := range map[string]struct {
		value tftypes.Value
		want  any
	}{
		"null":                  {tftypes.NewValue(tftypes.String, nil), nil},
		"unknown":               {unknown, nil},
		"an empty text is kept": {text(""), ""},
		"no items are there":    {listOf(tftypes.String), []any{}},
		"an item of a list that is not known keeps its place": {
			listOf(tftypes.String, text("a"), unknown, text("c")), []any{"a", "", "c"},
		},
		"an object of a list that is not known keeps its place": {
			listOf(item, tftypes.NewValue(item, tftypes.UnknownValue), tftypes.NewValue(item, map[string]tftypes.Value{"node_label": unknown})),
			[]any{map[string]any{}, map[string]any{}},
		},
		"keys of maps stay as they are": {
			tftypes.NewValue(tftypes.Map{ElementType: tftypes.String}, map[string]tftypes.Value{"snake_case.io/a_b": text("x")}),
			map[string]any{"snake_case.io/a_b": "x"},
		},
		"an object without attributes is kept": {tftypes.NewValue(item, map[string]tftypes.Value{"node_label": tftypes.NewValue(tftypes.String, nil)}), map[string]any{}},
	} {
		t.Run(behaviour, func(t *testing.T) {
			if diff := cmp.Diff(c.want, apifield.Expand(c.value)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestANamingAppliesToSetsAndNestedMapsInBothDirections(t *testing.T) {
	naming := apifield.Naming(func(attribute string) string { return attribute })
	attributes := map[string]schema.Attribute{
		"run_as_user":   schema.Int64Attribute{},
		"learning_rate": schema.Float64Attribute{},
		"whole_rate":    schema.Float64Attribute{},
		"columns":       schema.MapAttribute{ElementType: types.ListType{ElemType: types.StringType}},
		"group_ids":     schema.SetAttribute{ElementType: types.Int64Type},
		"drop_names":    schema.SetAttribute{ElementType: types.StringType},
		"secret_keys":   schema.MapNestedAttribute{NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{"secret_name": schema.StringAttribute{}}}},
	}
	live := map[string]any{
		"run_as_user": int64(5), "learning_rate": 0.1, "whole_rate": int64(1), "columns": map[string]any{"label": []any{"species"}},
		"group_ids": []any{int64(9), int64(10)}, "drop_names": []any{"A", "B"},
		"secret_keys": map[string]any{"TOKEN": map[string]any{"secret_name": "s"}},
	}
	got := map[string]any{}
	for name, value := range naming.Flatten(t.Context(), attributes, live, nil) {
		got[name] = naming.Expand(value)
	}
	if diff := cmp.Diff(live, got); diff != "" {
		t.Error(diff)
	}
	unordered := tftypes.NewValue(tftypes.Set{ElementType: tftypes.String}, []tftypes.Value{text("b"), text("a"), tftypes.NewValue(tftypes.String, tftypes.UnknownValue)})
	if diff := cmp.Diff([]any{"a", "b"}, apifield.Expand(unordered)); diff != "" {
		t.Error(diff)
	}
}

func TestFlattenKeepsPriorValuesOfEqualMeaning(t *testing.T) {
	quota := func(spelled string) map[string]any {
		return map[string]any{"fairSharing": map[string]any{"weight": spelled}}
	}
	weight := func(t *testing.T, live, prior map[string]any) string {
		t.Helper()
		was := apifield.Flatten(t.Context(), attributes(), prior, nil)
		is := apifield.Flatten(t.Context(), attributes(), live, was)
		object, _ := apifield.Expand(is["fair_sharing"]).(map[string]any)
		return fmt.Sprint(object["weight"])
	}
	if got := weight(t, quota("3"), quota("3000m")); got != "3000m" {
		t.Errorf("the same amount is %q", got)
	}
	if got := weight(t, quota("4"), quota("3000m")); got != "4" {
		t.Errorf("another amount is %q", got)
	}
	prior := map[string]tftypes.Value{
		"cohort_name": text(""), "covered_resources": listOf(tftypes.String), "node_labels": tftypes.NewValue(tftypes.Map{ElementType: tftypes.String}, map[string]tftypes.Value{}),
	}
	live := apifield.Flatten(t.Context(), attributes(), map[string]any{}, prior)
	for name, want := range prior {
		if !live[name].Equal(want) {
			t.Errorf("%s: empty became %s", name, live[name])
		}
	}
	for name, want := range map[string]any{
		"stop_policy": "None", "global_default": false, "preemption": map[string]any{"withinClusterQueue": "Never"}, "fair_sharing": nil, "max_priority": nil,
	} {
		if diff := cmp.Diff(want, apifield.Expand(live[name])); diff != "" {
			t.Errorf("%s, which the API leaves out: %s", name, diff)
		}
	}
}

func TestWhateverIsAppliedIsReadAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		written := map[string]tftypes.Value{}
		for name, attribute := range attributes() {
			written[name] = draw(t, name, attribute)
		}
		fields := map[string]any{}
		for name, value := range written {
			if expanded := server(apifield.Expand(value)); expanded != nil {
				fields[apifield.Camel(name)] = expanded
			}
		}
		read := apifield.Flatten(t.Context(), attributes(), fields, written)
		for name, value := range written {
			if !read[name].Equal(value) {
				t.Fatalf("%s was %s and is %s", name, value, read[name])
			}
		}
	})
}

// server is an API server's version of JSON: quantities in their canonical form, and neither empty texts, lists and
// maps nor false; but objects stay, even empty ones.
func server(value any) any {
	switch value := value.(type) {
	case string:
		if amount, err := resource.ParseQuantity(value); err == nil {
			return amount.String()
		}
		if value == "" {
			return nil
		}
	case bool:
		if !value {
			return nil
		}
	case []any:
		if len(value) == 0 {
			return nil
		}
		items := make([]any, len(value))
		for i, item := range value {
			if items[i] = server(item); items[i] == nil {
				items[i] = item // of a list of texts
			}
		}
		return items
	case map[string]any:
		fields := map[string]any{}
		for name, field := range value {
			if field := server(field); field != nil {
				fields[name] = field
			}
		}
		return fields
	}
	return value
}

// draw is a value that a plan may have: one without a default may be null.
func draw(t *rapid.T, label string, attribute schema.Attribute) tftypes.Value {
	kind := attribute.GetType().TerraformType(t.Context())
	byDefault := apifield.DefaultOf(t.Context(), attribute)
	if !rapid.Bool().Draw(t, label+" is set") {
		return byDefault
	}
	switch a := attribute.(type) {
	case schema.Int64Attribute:
		return tftypes.NewValue(kind, new(big.Float).SetInt64(rapid.Int64Range(-1<<31, 1<<31).Draw(t, label)))
	case schema.BoolAttribute:
		return tftypes.NewValue(kind, rapid.Bool().Draw(t, label))
	case schema.MapAttribute:
		entries := map[string]tftypes.Value{}
		for key, value := range rapid.MapOfN(rapid.StringMatching(`[a-z_./]{1,5}`), word(), 1, 3).Draw(t, label) {
			entries[key] = text(value)
		}
		return tftypes.NewValue(kind, entries)
	case schema.ListAttribute:
		var items []tftypes.Value
		for _, item := range rapid.SliceOfN(word(), 0, 3).Draw(t, label) {
			items = append(items, text(item))
		}
		return tftypes.NewValue(kind, items)
	case schema.SingleNestedAttribute:
		return tftypes.NewValue(kind, drawAll(t, label, a.Attributes))
	case schema.ListNestedAttribute:
		items := []tftypes.Value{}
		for i := range rapid.IntRange(0, 3).Draw(t, label) {
			items = append(items, tftypes.NewValue(kind.(tftypes.List).ElementType, drawAll(t, fmt.Sprintf("%s[%d]", label, i), a.NestedObject.Attributes))) //nolint:forcetypeassert // as the schema has it
		}
		return tftypes.NewValue(kind, items)
	default:
		if _, isQuantity := attribute.GetType().(quantity.Type); isQuantity {
			return tftypes.NewValue(kind, rapid.SampledFrom([]string{"0", "3", "3000m", "1024Mi", "1Gi", "0.5", "1e3"}).Draw(t, label))
		}
		if byDefault.IsNull() {
			return tftypes.NewValue(kind, rapid.OneOf(word(), rapid.Just("")).Draw(t, label))
		}
		return tftypes.NewValue(kind, word().Draw(t, label))
	}
}

func drawAll(t *rapid.T, label string, attributes map[string]schema.Attribute) map[string]tftypes.Value {
	values := map[string]tftypes.Value{}
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		values[name] = draw(t, label+"."+name, attributes[name])
	}
	return values
}

// word is a text that is no quantity.
func word() *rapid.Generator[string] { return rapid.StringMatching(`[g-z]{2,5}`) }

func text(s string) tftypes.Value { return tftypes.NewValue(tftypes.String, s) }

func listOf(kind tftypes.Type, items ...tftypes.Value) tftypes.Value {
	if items == nil {
		items = []tftypes.Value{}
	}
	return tftypes.NewValue(tftypes.List{ElementType: kind}, items)
}

func TestPathIsTheNearestAttribute(t *testing.T) {
	for field, want := range map[string]string{
		"cohortName":                           "cohort_name",
		".cohortName":                          "cohort_name",
		"preemption.withinClusterQueue":        "preemption.within_cluster_queue",
		"preemption.other":                     "preemption",
		"flavors[2].resources[0].nominalQuota": "flavors[2].resources[0].nominal_quota",
		"flavors[2].resources":                 "flavors[2].resources",
		"flavors[2]":                           "flavors[2]",
		`flavors[name="spot"].resources`:       "flavors",
		"coveredResources[1]":                  "covered_resources[1]",
		`coveredResources["cpu"]`:              "covered_resources",
		"nodeLabels[example.com/gpu]":          `node_labels["example.com/gpu"]`,
		"nodeLabels.example.com/gpu":           `node_labels["example.com/gpu"]`,
		"nodeLabels":                           "node_labels",
		"maxPriority.further":                  "max_priority",
	} {
		if got, ok := apifield.Path(attributes(), field); !ok || got.String() != want {
			t.Errorf("%s is %s, want %s", field, got, want)
		}
	}
	for _, field := range []string{"", ".", "other", "other.cohortName", "[0]"} {
		if got, ok := apifield.Path(attributes(), field); ok {
			t.Errorf("%q is %s", field, got)
		}
	}
}

func TestASentenceIsAboutTheOutermostAttributeOfItsFirstField(t *testing.T) {
	for sentence, want := range map[string]string{
		"nominalQuota must be nil when cohortName is empty":       "flavors",
		"invalid: spec: nodeLabels are immutable with cohortName": "node_labels",
		"withinClusterQueue=Never":                                "preemption",
		"invalid: spec: preemption is immutable with cohortName":  "preemption",
		"a preemption must have a cohortName":                     "cohort_name",
	} {
		if got, ok := apifield.Root(attributes(), sentence); !ok || got.String() != want {
			t.Errorf("%q is about %s, want %s", sentence, got, want)
		}
	}
	if got, ok := apifield.Root(attributes(), "marked objects are refused by podSets"); ok {
		t.Errorf("no attribute is %s", got)
	}
}

func FuzzPathIsWithinTheAttributes(f *testing.F) {
	for _, seed := range []string{"flavors[2].resources[0].nominalQuota", `flavors[name="a.b"].x`, "nodeLabels[a.b/c]", "a[", "]", "..", "flavors[-1]"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, field string) {
		if at, ok := apifield.Path(attributes(), field); ok {
			first, _, _ := strings.Cut(strings.SplitN(at.String(), ".", 2)[0], "[")
			if _, there := attributes()[first]; !there {
				t.Errorf("%q is %s", field, at)
			}
		}
	})
}

func TestSentencesNameAttributes(t *testing.T) {
	got := apifield.InAttributes(attributes(), `must be NoExecute with stopPolicy, withinClusterQueue and tolerationSeconds; see nodeLabelsOf`)
	if want := "must be NoExecute with stop_policy, within_cluster_queue and tolerationSeconds; see nodeLabelsOf"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
