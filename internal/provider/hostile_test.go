package provider

import (
	"fmt"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// The tests of this file give every attribute of everything that can be configured unexpected values, through
// Terraform's protocol, and check what a user needs in all diagnostics: an attribute, its name in the text, no
// duplicate, and never the claim that the provider is broken.

// hostileTexts are for every text.
func hostileTexts() []string {
	return []string{
		"", " ", "\x00", "a\nb", "-1", "-5.5", "1e400", "1e-400", "99999999999999999999", "NaN", "null", "{}", "{", "%s%d%!", "../x", "A B", "ümläut",
		strings.Repeat("a", 300), "-5m", "0s", "synthetic://digits?records=-1", "T4:-1", "T4:99999999999999999999", ":",
	}
}

// hostileNumbers are for every number.
func hostileNumbers() []*big.Float {
	var numbers []*big.Float
	for _, text := range []string{
		"0", "-1", "-5.5", "1e400", "-1e400", "1e-400", "256", "2147483648", "-2147483649", "9223372036854775807", "9223372036854775808",
	} {
		n, _, err := big.ParseFloat(text, 10, 512, big.ToNearestEven)
		if err != nil {
			panic(err) // the list is this file's
		}
		numbers = append(numbers, n)
	}
	return numbers
}

// hostile are values of a type, unknown among them; not null, which a schema checks by itself.
func hostile(kind tftypes.Type) []tftypes.Value {
	values := []tftypes.Value{tftypes.NewValue(kind, tftypes.UnknownValue)}
	add := func(of tftypes.Type, value any) { values = append(values, tftypes.NewValue(of, value)) }
	switch k := kind.(type) {
	case tftypes.List:
		add(k, []tftypes.Value{})
		add(k, []tftypes.Value{tftypes.NewValue(k.ElementType, nil)})
		for _, element := range hostile(k.ElementType) {
			add(k, []tftypes.Value{element, element})
		}
	case tftypes.Map:
		add(k, map[string]tftypes.Value{})
		add(k, map[string]tftypes.Value{"key": tftypes.NewValue(k.ElementType, nil)})
		for i, element := range hostile(k.ElementType) {
			if i%3 == 0 { // the keys are what maps have of their own
				add(k, map[string]tftypes.Value{"key": element})
			}
		}
		for _, key := range []string{"", "\x00", "a b", "/", "-1", strings.Repeat("k", 300)} {
			element := tftypes.NewValue(k.ElementType, nil)
			if k.ElementType.Is(tftypes.String) {
				element = str("x")
			}
			add(k, map[string]tftypes.Value{key: element})
		}
	case tftypes.Object:
		nothing := map[string]tftypes.Value{}
		for name, attribute := range k.AttributeTypes {
			nothing[name] = tftypes.NewValue(attribute, nil)
		}
		add(k, nothing)
	default:
		switch {
		case kind.Is(tftypes.String):
			for _, text := range hostileTexts() {
				add(kind, text)
			}
		case kind.Is(tftypes.Number):
			for _, n := range hostileNumbers() {
				add(kind, n)
			}
		case kind.Is(tftypes.DynamicPseudoType):
			for _, of := range []tftypes.Type{tftypes.String, tftypes.Number, tftypes.Bool, tftypes.List{ElementType: tftypes.String}, tftypes.List{ElementType: tftypes.Number}} {
				values = append(values, hostile(of)...)
			}
			values = append(values, tftypes.NewValue(tftypes.Object{AttributeTypes: map[string]tftypes.Type{"a": tftypes.String}}, map[string]tftypes.Value{"a": str("x")}))
		}
	}
	return values
}

// place is an attribute within a configuration, and its type.
type place struct {
	steps []any // string: an attribute or a map's key; int: a list's index
	kind  tftypes.Type
}

func (p place) String() string {
	var b strings.Builder
	for _, step := range p.steps {
		fmt.Fprintf(&b, ".%v", step)
	}
	return strings.TrimPrefix(b.String(), ".")
}

// places are all attributes that can be configured, at any depth: the first item of each list, one key of each map.
func places(attributes []*tfprotov6.SchemaAttribute, under ...any) []place {
	var found []place
	for _, a := range attributes {
		if !a.Optional && !a.Required {
			continue
		}
		at := append(slices.Clone(under), a.Name)
		found = append(found, place{steps: at, kind: a.ValueType()})
		if a.NestedType == nil {
			continue
		}
		switch a.NestedType.Nesting {
		case tfprotov6.SchemaObjectNestingModeList, tfprotov6.SchemaObjectNestingModeSet:
			at = append(at, 0)
		case tfprotov6.SchemaObjectNestingModeMap:
			at = append(at, "key")
		}
		found = append(found, places(a.NestedType.Attributes, at...)...)
	}
	return found
}

// put is a configuration with another value at a place; what the place is in is made where it is missing.
func put(t *testing.T, into tftypes.Value, steps []any, value tftypes.Value) tftypes.Value {
	t.Helper()
	if len(steps) == 0 {
		return value
	}
	kind := into.Type()
	switch step := steps[0].(type) {
	case int:
		element := kind.(tftypes.List).ElementType //nolint:forcetypeassert // as places has it
		var items []tftypes.Value
		if !into.IsNull() {
			noError(t, into.As(&items))
		}
		if items = slices.Clone(items); len(items) == 0 {
			items = []tftypes.Value{tftypes.NewValue(element, nil)}
		}
		items[step] = put(t, items[step], steps[1:], value)
		return tftypes.NewValue(kind, items)
	case string:
		entries := map[string]tftypes.Value{}
		if !into.IsNull() {
			noError(t, into.As(&entries))
			entries = maps.Clone(entries)
		}
		if of, is := kind.(tftypes.Map); is {
			if _, there := entries[step]; !there {
				entries[step] = tftypes.NewValue(of.ElementType, nil)
			}
		} else {
			for name, attribute := range kind.(tftypes.Object).AttributeTypes { //nolint:forcetypeassert // as places has it
				if _, there := entries[name]; !there {
					entries[name] = tftypes.NewValue(attribute, nil)
				}
			}
		}
		entries[step] = put(t, entries[step], steps[1:], value)
		return tftypes.NewValue(kind, entries)
	default:
		t.Fatalf("no step %v", step)
		return value
	}
}

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// plain is a value of a type from Go's strings, ints, bools, []any and map[string]any; omitted attributes are null.
func plain(t *testing.T, kind tftypes.Type, value any) tftypes.Value {
	t.Helper()
	if value == nil {
		return tftypes.NewValue(kind, nil)
	}
	switch k := kind.(type) {
	case tftypes.List:
		var items []tftypes.Value
		for _, item := range value.([]any) { //nolint:forcetypeassert // this file's own values
			items = append(items, plain(t, k.ElementType, item))
		}
		return tftypes.NewValue(k, items)
	case tftypes.Map:
		entries := map[string]tftypes.Value{}
		for key, item := range value.(map[string]any) { //nolint:forcetypeassert // this file's own values
			entries[key] = plain(t, k.ElementType, item)
		}
		return tftypes.NewValue(k, entries)
	case tftypes.Object:
		given := value.(map[string]any) //nolint:forcetypeassert // this file's own values
		entries := map[string]tftypes.Value{}
		for name, attribute := range k.AttributeTypes {
			entries[name] = plain(t, attribute, given[name])
		}
		for name := range given {
			if _, known := k.AttributeTypes[name]; !known {
				t.Fatalf("there is no attribute %s", name)
			}
		}
		return tftypes.NewValue(k, entries)
	}
	if kind.Is(tftypes.DynamicPseudoType) {
		return str(value.(string)) //nolint:forcetypeassert // this file's own values
	}
	if n, is := value.(int); is {
		return number(float64(n))
	}
	return tftypes.NewValue(kind, value)
}

// sound are configurations in which one value at a time is replaced. Attributes that exclude one another are in
// several.
func sound() map[string][]map[string]any {
	quotas := []any{map[string]any{
		"covered_resources": []any{"cpu"},
		"flavors": []any{map[string]any{
			"name": "any", "resources": []any{map[string]any{"name": "cpu", "nominal_quota": "4", "borrowing_limit": "1", "lending_limit": "1"}},
		}},
	}}
	toleration := []any{map[string]any{"key": "a", "operator": "Exists", "effect": "NoSchedule"}}
	pod := func(more map[string]any) map[string]any {
		settings := map[string]any{
			"priority_class_name": "low", "resources": map[string]any{"requests": map[string]any{"cpu": "1", "memory": "1Gi"}, "limits": map[string]any{"memory": "2Gi"}},
			"node_selector": map[string]any{"a": "b"}, "tolerations": toleration, "env": map[string]any{"A": "b"}, "termination_grace_period_seconds": 40,
		}
		maps.Copy(settings, more)
		return settings
	}
	job := map[string]any{
		"name": "x", "image": "trainer:1", "model": map[string]any{"name": "mnist"},
		"data":     map[string]any{"training": "synthetic://digits?records=1000&seed=1", "validation": "synthetic://digits?records=100&seed=2", "records_per_task": 100},
		"training": map[string]any{"minibatch_size": 10, "grads_to_wait": 2},
		"master":   pod(nil), "workers": pod(map[string]any{"min": 1, "max": 2}),
		"output": "/output", "checkpoint": map[string]any{"interval_steps": 5, "max_to_keep": 2}, "evaluation": map[string]any{"interval_epochs": 1},
		"volumes": []any{map[string]any{"name": "output", "mount_path": "/output", "claim_name": "models", "mount_on": "master"}},
	}
	return map[string][]map[string]any{
		"elastic_priority_class":          {{"name": "x", "value": 1}},
		"elastic_workload_priority_class": {{"name": "x", "value": 1}},
		"elastic_resource_flavor": {{
			"name": "x", "node_labels": map[string]any{"a": "b"}, "tolerations": toleration,
			"node_taints": []any{map[string]any{"key": "a", "value": "b", "effect": "NoSchedule"}},
		}},
		"elastic_cluster_queue": {{"name": "x", "cohort_name": "all", "resource_groups": quotas}},
		"elastic_local_queue":   {{"name": "x", "namespace": "default", "cluster_queue": "y"}},
		"elastic_cohort":        {{"name": "x", "parent_name": "y", "resource_groups": quotas}},
		"elastic_topology":      {{"name": "x", "levels": []any{map[string]any{"node_label": "a"}}}},
		"elastic_admission_check": {{
			"name": "x", "controller_name": "example.com/c", "parameters": map[string]any{"api_group": "g", "kind": "K", "name": "n"},
		}},
		"elastic_training_job": {job},
		"elastic_task": {
			{
				"name": "x", "run": "true", "num_nodes": 1, "accelerators": "T4:1", "cpus": "1", "memory": "1", "queue": map[string]any{"name": "q", "workload_priority_class": "p"},
				"secrets_wo": map[string]any{"TOKEN": "x"}, "secrets_wo_version": 1,
			},
			{"name": "x", "yaml": "run: echo\n"},
		},
	}
}

// theProvidersFault is a text that a user who only mistyped a value must not get.
var theProvidersFault = regexp.MustCompile(`(?i)always an error in the provider|bug in the provider|report (this|the following) to the provider|issue (with|in) the provider|panic`)

// findings are the faults of the diagnostics of a configuration.
func findings(diagnostics []*tfprotov6.Diagnostic) []string {
	var found []string
	at := map[string]*tfprotov6.Diagnostic{}
	for _, d := range diagnostics {
		text := d.Summary + ": " + d.Detail
		report := func(what string) { found = append(found, fmt.Sprintf("%s, at %q: %.400s", what, where(d), text)) }
		if theProvidersFault.MatchString(text) {
			report("it blames the provider")
		}
		if where(d) == "" {
			report("it names no attribute")
			continue
		}
		if d.Severity != tfprotov6.DiagnosticSeverityError {
			continue
		}
		if other, twice := at[where(d)]; twice {
			report(fmt.Sprintf("it is reported twice (%.200s: %.200s)", other.Summary, other.Detail))
		}
		at[where(d)] = d
		if steps := d.Attribute.Steps(); len(steps) > 1 && !strings.Contains(strings.ReplaceAll(text, `"`, ""), withoutKey(d.Attribute)) {
			report("its text does not name the attribute")
		}
		if len(text) > 4000 {
			report(fmt.Sprintf("it has %d characters", len(text)))
		}
	}
	return found
}

// withoutKey is an attribute as a text names it; a map may be named instead of one of its entries, whose key may be
// anything.
func withoutKey(at *tftypes.AttributePath) string {
	var named []tftypes.AttributePathStep
	for _, step := range at.Steps() {
		if _, isKey := step.(tftypes.ElementKeyString); isKey {
			break
		}
		named = append(named, step)
	}
	return where(&tfprotov6.Diagnostic{Attribute: tftypes.NewAttributePathWithSteps(named)})
}

// hasErrors reports whether Terraform would go on.
func hasErrors(diagnostics []*tfprotov6.Diagnostic) bool {
	return slices.ContainsFunc(diagnostics, func(d *tfprotov6.Diagnostic) bool { return d.Severity == tfprotov6.DiagnosticSeverityError })
}

// report fails the test once for each kind of finding at a place.
func report(t *testing.T, p place, value tftypes.Value, step string, found []string) {
	t.Helper()
	for _, f := range found {
		t.Errorf("%s: %s = %.120q: %s", step, p, value.String(), strings.ReplaceAll(f, "\n", " "))
	}
}

func TestHostileValuesOfResourcesAreRefusedAtTheirAttribute(t *testing.T) {
	server, schemas := planningServer(t)
	for resourceType, schema := range schemas.ResourceSchemas {
		kind := schema.ValueType()
		configurations := sound()[resourceType]
		if len(configurations) == 0 {
			t.Errorf("%s: this test has no configuration of it", resourceType)
		}
		for i, given := range configurations {
			t.Run(fmt.Sprintf("%s %d", resourceType, i), func(t *testing.T) {
				t.Parallel()
				base := plain(t, kind, given)
				if found := validated(t, server, resourceType, kind, base); len(found) > 0 {
					t.Fatalf("%s: %s", found[0].Summary, found[0].Detail)
				}
				for at, p := range places(schema.Block.Attributes) {
					for v, value := range hostile(p.kind) {
						if testing.Short() && (v+at)%5 > 0 {
							continue
						}
						config := put(t, baseFor(t, base, p), p.steps, value)
						diagnostics := validated(t, server, resourceType, kind, config)
						report(t, p, value, "validate", findings(diagnostics))
						// Planning takes as long as all the rest; meaningless texts all plan alike.
						if hasErrors(diagnostics) || value.IsKnown() && p.kind.Is(tftypes.String) && v%4 > 0 {
							continue
						}
						resp, err := server.PlanResourceChange(t.Context(), &tfprotov6.PlanResourceChangeRequest{
							TypeName: resourceType, PriorState: dynamic(t, kind, tftypes.NewValue(kind, nil)),
							Config: dynamic(t, kind, config), ProposedNewState: dynamic(t, kind, config),
						})
						noError(t, err)
						report(t, p, value, "plan", findings(append(resp.Diagnostics, diagnostics...)))
					}
				}
			})
		}
	}
}

// baseFor is a sound configuration without what excludes a place's attribute.
func baseFor(t *testing.T, base tftypes.Value, p place) tftypes.Value {
	t.Helper()
	if p.String() != "generate_name" {
		return base
	}
	return put(t, base, []any{"name"}, tftypes.NewValue(tftypes.String, nil))
}

func TestHostileValuesOfEverythingElseAreRefusedAtTheirAttribute(t *testing.T) {
	server, schemas := planningServer(t)
	lists, acts := server.(tfprotov6.ListResourceServer), server.(tfprotov6.ActionServer) //nolint:forcetypeassert // the framework's server is both
	try := func(name string, schema *tfprotov6.Schema, given map[string]any, validate func(config *tfprotov6.DynamicValue) ([]*tfprotov6.Diagnostic, error)) {
		t.Run(name, func(t *testing.T) {
			kind := schema.ValueType()
			base := plain(t, kind, given)
			for _, p := range places(schema.Block.Attributes) {
				for _, value := range hostile(p.kind) {
					diagnostics, err := validate(dynamic(t, kind, put(t, base, p.steps, value)))
					noError(t, err)
					report(t, p, value, "validate", findings(diagnostics))
				}
			}
		})
	}
	try("provider", schemas.Provider, map[string]any{"host": "https://127.0.0.1:1"}, func(config *tfprotov6.DynamicValue) ([]*tfprotov6.Diagnostic, error) {
		resp, err := server.ValidateProviderConfig(t.Context(), &tfprotov6.ValidateProviderConfigRequest{Config: config})
		return resp.Diagnostics, err
	})
	pods := []any{map[string]any{"name": "a", "requests": map[string]any{"cpu": "1"}}}
	sources := map[string]map[string]any{"elastic_forecast": {"name": "x", "pods": pods}, "elastic_training_job": {"name": "x"}}
	for name, schema := range schemas.DataSourceSchemas {
		try("data "+name, schema, nonNil(sources[name]), func(config *tfprotov6.DynamicValue) ([]*tfprotov6.Diagnostic, error) {
			resp, err := server.ValidateDataResourceConfig(t.Context(), &tfprotov6.ValidateDataResourceConfigRequest{TypeName: name, Config: config})
			return resp.Diagnostics, err
		})
	}
	for name, schema := range schemas.ListResourceSchemas {
		try("list "+name, schema, map[string]any{}, func(config *tfprotov6.DynamicValue) ([]*tfprotov6.Diagnostic, error) {
			resp, err := lists.ValidateListResourceConfig(t.Context(), &tfprotov6.ValidateListResourceConfigRequest{TypeName: name, Config: config})
			return resp.Diagnostics, err
		})
	}
	for name, schema := range schemas.ActionSchemas {
		try("action "+name, schema.Schema, map[string]any{"name": "x"}, func(config *tfprotov6.DynamicValue) ([]*tfprotov6.Diagnostic, error) {
			resp, err := acts.ValidateActionConfig(t.Context(), &tfprotov6.ValidateActionConfigRequest{ActionType: name, Config: config})
			return resp.Diagnostics, err
		})
	}
}

func nonNil(given map[string]any) map[string]any {
	if given == nil {
		return map[string]any{}
	}
	return given
}

func TestHostileArgumentsOfFunctionsAreTheCallersMistake(t *testing.T) {
	server, schemas := planningServer(t)
	for name := range schemas.Functions {
		for _, text := range append(hostileTexts(), "run: [", "resources: {accelerators: {T4: -5.5}}\nrun: x", "--num_worker=1e400", "--num_worker=-5.5", "--job_name", "T4:-5.5") {
			argument := dynamic(t, tftypes.String, str(text))
			resp, err := server.CallFunction(t.Context(), &tfprotov6.CallFunctionRequest{Name: name, Arguments: []*tfprotov6.DynamicValue{argument}})
			noError(t, err)
			if e := resp.Error; e != nil && (e.FunctionArgument == nil || theProvidersFault.MatchString(e.Text)) {
				t.Errorf("%s(%q): %s", name, text, e.Text)
			}
		}
	}
}

func TestHostileImportIDsAreRefusedOrRead(t *testing.T) {
	server, schemas := planningServer(t)
	refused := map[string]int{}
	ids := append(hostileTexts(), "/", "a/", "/a", "a/b/c", "default/A B", "default//", "default/../x", " default/x", strings.Repeat("a", 300)+"/x")
	for resourceType := range schemas.ResourceSchemas {
		for _, id := range ids {
			resp, err := server.ImportResourceState(t.Context(), &tfprotov6.ImportResourceStateRequest{TypeName: resourceType, ID: id})
			noError(t, err)
			for _, d := range resp.Diagnostics {
				refused[resourceType]++
				if theProvidersFault.MatchString(d.Summary+d.Detail) || !strings.Contains(d.Summary, "Invalid import ID") {
					t.Errorf("%s %q: %s: %s", resourceType, id, d.Summary, d.Detail)
				}
			}
			if len(resp.Diagnostics) > 1 {
				t.Errorf("%s %q: %d diagnostics", resourceType, id, len(resp.Diagnostics))
			}
		}
		if refused[resourceType] < len(ids)/2 {
			t.Errorf("%s: of %d IDs %d were refused", resourceType, len(ids), refused[resourceType])
		}
	}
}

// meansSomething are attributes of resources whose empty text is a value, or the same as an omitted attribute, with the
// reason.
var meansSomething = map[string]string{
	"description": "free text",
	"setup":       "a script of no commands is no script",

	"flavor_fungibility.when_can_borrow": kueuesDefault, "flavor_fungibility.when_can_preempt": kueuesDefault, "queueing_strategy": kueuesDefault,
	"preemption.borrow_within_cohort.policy": kueuesDefault, "preemption.reclaim_within_cohort": kueuesDefault, "preemption.within_cluster_queue": kueuesDefault,

	"node_taints.0.value": "a taint may have no value",
	"tolerations.0.key":   everyTaint, "tolerations.0.operator": everyTaint, "tolerations.0.effect": everyTaint, "tolerations.0.value": everyTaint,
	"master.tolerations.0.key": everyTaint, "master.tolerations.0.value": everyTaint, "workers.tolerations.0.key": everyTaint, "workers.tolerations.0.value": everyTaint,

	"volumes.0.config_map": noSource, "volumes.0.host_path": noSource,
}

const (
	kueuesDefault = "Kueue's API takes an empty word for its default"
	everyTaint    = "the API takes an empty text for every taint, or for Equal"
	noSource      = "is no source, of which a volume needs exactly one"
)

func TestAnEmptyTextIsRefusedWhereItCannotBeMeant(t *testing.T) {
	server, schemas := planningServer(t)
	for resourceType, schema := range schemas.ResourceSchemas {
		kind := schema.ValueType()
		for _, p := range places(schema.Block.Attributes) {
			if !p.kind.Is(tftypes.String) {
				continue
			}
			base := plain(t, kind, sound()[resourceType][0])
			if p.String() == "yaml" {
				base = plain(t, kind, sound()[resourceType][1])
			}
			config := put(t, baseFor(t, base, p), p.steps, str(""))
			if _, may := meansSomething[p.String()]; !may && !hasErrors(validated(t, server, resourceType, kind, config)) {
				t.Errorf("%s: %s = \"\" is accepted", resourceType, p)
			}
		}
	}
}

// planningServer is a provider that plans without a cluster.
func planningServer(t *testing.T) (tfprotov6.ProviderServer, *tfprotov6.GetProviderSchemaResponse) {
	t.Helper()
	server := providerserver.NewProtocol6(New("test", environment(nil))())()
	schemas, err := server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	noError(t, err)
	kind := schemas.Provider.ValueType()
	config := plain(t, kind, map[string]any{"host": "https://127.0.0.1:1", "forecast": "off"})
	configured, err := server.ConfigureProvider(t.Context(), &tfprotov6.ConfigureProviderRequest{Config: dynamic(t, kind, config)})
	noError(t, err)
	noErrors(t, configured.Diagnostics)
	return server, schemas
}

func validated(t *testing.T, server tfprotov6.ProviderServer, resourceType string, kind tftypes.Type, config tftypes.Value) []*tfprotov6.Diagnostic {
	t.Helper()
	resp, err := server.ValidateResourceConfig(t.Context(), &tfprotov6.ValidateResourceConfigRequest{
		TypeName: resourceType, Config: dynamic(t, kind, config),
		ClientCapabilities: &tfprotov6.ValidateResourceConfigClientCapabilities{WriteOnlyAttributesAllowed: true},
	})
	noError(t, err)
	return resp.Diagnostics
}

func dynamic(t *testing.T, kind tftypes.Type, value tftypes.Value) *tfprotov6.DynamicValue {
	t.Helper()
	encoded, err := tfprotov6.NewDynamicValue(kind, value)
	noError(t, err)
	return &encoded
}
