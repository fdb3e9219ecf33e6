package provider

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// planner plans resources with Terraform's requests, without a cluster.
type planner struct {
	server  tfprotov6.ProviderServer
	kinds   map[string]tftypes.Type
	schemas map[string]map[string]schema.Attribute
	states  sync.Map // by resource type and configuration: what applied has made
}

// tester is a test or a draw of one.
type tester interface {
	Helper()
	Context() context.Context
	Fatalf(format string, args ...any)
}

func newPlanner(t *testing.T) *planner {
	t.Helper()
	server, schemas := server(t)
	p := &planner{server: server, kinds: map[string]tftypes.Type{}, schemas: map[string]map[string]schema.Attribute{}}
	for _, newResource := range (&elastic{}).Resources(t.Context()) {
		r := newResource()
		var named resource.MetadataResponse
		r.Metadata(t.Context(), resource.MetadataRequest{ProviderTypeName: TypeName}, &named)
		var described resource.SchemaResponse
		r.Schema(t.Context(), resource.SchemaRequest{}, &described)
		p.kinds[named.TypeName] = schemas.ResourceSchemas[named.TypeName].ValueType()
		p.schemas[named.TypeName] = described.Schema.Attributes
	}
	kind := schemas.Provider.ValueType()
	configuration := value(t, kind, map[string]any{"host": "http://127.0.0.1:1", "forecast": "off"})
	configured, err := server.ConfigureProvider(t.Context(), &tfprotov6.ConfigureProviderRequest{Config: encoded(t, configuration)})
	if err != nil {
		t.Fatal(err)
	}
	noErrors(t, configured.Diagnostics)
	return p
}

// applied is the state after a configuration was applied: what was planned, and of the cluster that it runs.
func (p *planner) applied(t tester, resourceType string, config map[string]any) tftypes.Value {
	t.Helper()
	kind := p.kinds[resourceType]
	key := resourceType + string(encoded(t, value(t, kind, config)).MsgPack)
	if state, known := p.states.Load(key); known { // planned and found sound before
		return state.(tftypes.Value) //nolint:forcetypeassert // nothing else is stored
	}
	p.validate(t, resourceType, config)
	planned, _ := p.planned(t, resourceType, tftypes.NewValue(kind, nil), config)
	observed := map[string]string{"uid": "6ba7b810-9dad-11d1-80b4-00c04fd430c8", "phase": "Running", "logs": "kubectl logs job/low"}
	if prefix, ok := config["generate_name"].(string); ok {
		observed["name"] = prefix + "bcdfg"
	}
	attributes := attributesIn(planned)
	for name, v := range attributes {
		if v.IsKnown() {
			continue
		}
		attributes[name] = tftypes.NewValue(v.Type(), nil)
		if text, ok := observed[name]; ok {
			attributes[name] = str(text)
		} else if !isComputedOnly(p.schemas[resourceType][name]) {
			t.Fatalf("%s is not known, though the configuration is", name)
		}
	}
	state := tftypes.NewValue(kind, attributes)
	p.states.Store(key, state)
	return state
}

func isComputedOnly(a schema.Attribute) bool { return !a.IsOptional() && !a.IsRequired() }

// validate refuses a configuration that terraform validate refuses.
func (p *planner) validate(t tester, resourceType string, config map[string]any) {
	t.Helper()
	configured := value(t, p.kinds[resourceType], config)
	validated, err := p.server.ValidateResourceConfig(t.Context(), &tfprotov6.ValidateResourceConfigRequest{
		TypeName: resourceType, Config: encoded(t, configured),
		ClientCapabilities: &tfprotov6.ValidateResourceConfigClientCapabilities{WriteOnlyAttributesAllowed: true},
	})
	if err != nil {
		t.Fatalf("%v", err)
	}
	accepted(t, config, validated.Diagnostics)
}

// planned is the plan of a valid configuration for a state, and the attributes that replace the object.
func (p *planner) planned(t tester, resourceType string, state tftypes.Value, config map[string]any) (tftypes.Value, []*tftypes.AttributePath) {
	t.Helper()
	kind := p.kinds[resourceType]
	configured := value(t, kind, config)
	proposed := proposedNew(p.schemas[resourceType], state, configured)
	resp, err := p.server.PlanResourceChange(t.Context(), &tfprotov6.PlanResourceChangeRequest{
		TypeName: resourceType, PriorState: encoded(t, state), ProposedNewState: encoded(t, proposed), Config: encoded(t, configured),
	})
	if err != nil {
		t.Fatalf("%v", err)
	}
	accepted(t, config, resp.Diagnostics)
	planned, err := resp.PlannedState.Unmarshal(kind)
	if err != nil {
		t.Fatalf("%v", err)
	}
	if problem := invalidPlan(p.schemas[resourceType], state, configured, planned); problem != "" {
		t.Fatalf("Terraform would refuse this plan of %v: %s", config, problem)
	}
	return planned, resp.RequiresReplace
}

func accepted(t tester, config map[string]any, diagnostics []*tfprotov6.Diagnostic) {
	t.Helper()
	for _, d := range diagnostics {
		if d.Severity == tfprotov6.DiagnosticSeverityError {
			t.Fatalf("%v: %s: %s", config, d.Summary, d.Detail)
		}
	}
}

func encoded(t tester, v tftypes.Value) *tfprotov6.DynamicValue {
	t.Helper()
	e, err := tfprotov6.NewDynamicValue(v.Type(), v)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return &e
}

// proposedNew is the plan that Terraform proposes (objchange.ProposedNew): the configuration, and the state for
// computed attributes that it omits.
func proposedNew(attributes map[string]schema.Attribute, state, config tftypes.Value) tftypes.Value {
	configured, before := attributesIn(config), attributesIn(state)
	if configured == nil {
		return config
	}
	proposed := maps.Clone(configured)
	for name, attribute := range attributes {
		was, known := before[name]
		switch a := attribute.(type) {
		case schema.SingleNestedAttribute:
			if !configured[name].IsNull() && known {
				proposed[name] = proposedNew(a.Attributes, was, configured[name])
			}
		case schema.ListNestedAttribute:
			items, old := itemsIn(configured[name]), itemsIn(was)
			for i := range min(len(items), len(old)) {
				items[i] = proposedNew(a.NestedObject.Attributes, old[i], items[i])
			}
			if items != nil {
				proposed[name] = tftypes.NewValue(configured[name].Type(), items)
			}
		}
		if configured[name].IsNull() && attribute.IsComputed() && known {
			proposed[name] = was
		}
	}
	return tftypes.NewValue(config.Type(), proposed)
}

// invalidPlan is Terraform's objection to a plan (objchange.AssertPlanValid), or "": a configured value is planned as
// configured or as before, and a value that is neither configured nor computed is not planned.
func invalidPlan(attributes map[string]schema.Attribute, state, config, planned tftypes.Value) string {
	configured, before, after := attributesIn(config), attributesIn(state), attributesIn(planned)
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		attribute, is, will := attributes[name], configured[name], after[name]
		was, ok := before[name]
		switch {
		case will.Equal(is), ok && will.Equal(was) && !was.IsNull() && !is.IsNull(), attribute.IsComputed() && is.IsNull(), attribute.IsWriteOnly():
			continue
		case is.IsNull() || will.IsNull():
			return fmt.Sprintf("%s is configured as %s and planned as %s", name, is, will)
		}
		problem := ""
		switch a := attribute.(type) {
		case schema.SingleNestedAttribute:
			problem = invalidPlan(a.Attributes, was, is, will)
		case schema.ListNestedAttribute:
			items, old, next := itemsIn(is), itemsIn(was), itemsIn(will)
			if len(items) != len(next) {
				return name + " has another length"
			}
			for i := range items {
				prior := tftypes.NewValue(items[i].Type(), nil)
				if i < len(old) {
					prior = old[i]
				}
				if problem == "" {
					problem = invalidPlan(a.NestedObject.Attributes, prior, items[i], next[i])
				}
			}
		case schema.MapNestedAttribute:
			items, old, next := attributesIn(is), attributesIn(was), attributesIn(will)
			for key := range items {
				prior, ok := old[key]
				if !ok {
					prior = tftypes.NewValue(items[key].Type(), nil)
				}
				if problem == "" {
					problem = invalidPlan(a.NestedObject.Attributes, prior, items[key], next[key])
				}
			}
		default:
			problem = fmt.Sprintf("configured as %s, planned as %s, and was %s", is, will, was)
		}
		if problem != "" {
			return name + ": " + problem
		}
	}
	return ""
}
