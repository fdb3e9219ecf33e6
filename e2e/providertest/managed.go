package providertest

import (
	"context"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
	ctymsgpack "github.com/zclconf/go-cty/cty/msgpack"
)

// Managed is a resource that a test drives through the provider's protocol as Terraform does: configured, refreshed,
// planned and applied, with the private data that the provider keeps. A step costs no process, so that a test can
// afford many.
type Managed struct {
	server   *Server
	resource string
	schema   *tfprotov6.Schema
	config   tftypes.Value
	State    tftypes.Value
	private  []byte
	identity *tfprotov6.ResourceIdentityData
}

// Planned is what the provider answered to a plan.
type Planned struct {
	Value       tftypes.Value
	Replaces    []*tftypes.AttributePath
	Diagnostics []*tfprotov6.Diagnostic
	answer      *tfprotov6.PlanResourceChangeResponse
}

// Manage is a resource that is not there yet, with attributes as a resource block has them.
func (s *Server) Manage(t *testing.T, resource, attributes string) *Managed {
	t.Helper()
	m := &Managed{server: s, resource: resource, schema: s.Schemas.ResourceSchemas[resource]}
	m.State = tftypes.NewValue(m.schema.ValueType(), nil)
	m.Configure(t, attributes)
	return m
}

// Configure gives the resource another configuration.
func (m *Managed) Configure(t *testing.T, attributes string) {
	t.Helper()
	file, diags := hclsyntax.ParseConfig([]byte(attributes), "main.tf", hcl.InitialPos)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	set, diags := file.Body.JustAttributes()
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	functions := &hcl.EvalContext{Functions: map[string]function.Function{"jsonencode": stdlib.JSONEncodeFunc}}
	values := map[string]cty.Value{}
	for name, attribute := range set {
		if values[name], diags = attribute.Expr.Value(functions); diags.HasErrors() {
			t.Fatal(diags)
		}
	}
	kind := ctyType(m.schema.ValueType())
	object, err := convert.Convert(cty.ObjectVal(values), kind)
	if err != nil {
		t.Fatalf("%s: %v", m.resource, err)
	}
	encoded, err := ctymsgpack.Marshal(object, kind.WithoutOptionalAttributesDeep())
	if err != nil {
		t.Fatal(err)
	}
	m.config = m.decode(t, &tfprotov6.DynamicValue{MsgPack: encoded})
}

// Refresh reads the resource.
func (m *Managed) Refresh(t *testing.T) []*tfprotov6.Diagnostic {
	t.Helper()
	diagnostics, _ := m.TryRefresh(t)
	NoErrors(t, nil, diagnostics)
	return diagnostics
}

// TryRefresh reads the resource, and reports whether it could be read.
func (m *Managed) TryRefresh(t *testing.T) ([]*tfprotov6.Diagnostic, bool) {
	t.Helper()
	answer, err := m.server.ReadResource(t.Context(), &tfprotov6.ReadResourceRequest{
		TypeName: m.resource, CurrentState: m.encode(t, m.State), Private: m.private, CurrentIdentity: m.identity,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range answer.Diagnostics {
		if d.Severity == tfprotov6.DiagnosticSeverityError {
			return answer.Diagnostics, false
		}
	}
	m.State, m.private, m.identity = m.decode(t, answer.NewState), answer.Private, answer.NewIdentity
	return answer.Diagnostics, true
}

// Plan plans to make the resource as it is configured.
func (m *Managed) Plan(t *testing.T) *Planned {
	t.Helper()
	proposed := tftypes.NewValue(m.schema.ValueType(), proposed(m.schema.Block.Attributes, mapOf(m.State), mapOf(m.config)))
	answer, err := m.server.PlanResourceChange(t.Context(), &tfprotov6.PlanResourceChangeRequest{
		TypeName: m.resource, PriorState: m.encode(t, m.State), ProposedNewState: m.encode(t, proposed), Config: m.encode(t, m.config),
		PriorPrivate: m.private, PriorIdentity: m.identity,
	})
	NoErrors(t, err, answer.Diagnostics)
	return &Planned{Value: m.decode(t, answer.PlannedState), Replaces: answer.RequiresReplace, Diagnostics: answer.Diagnostics, answer: answer}
}

// Apply applies a plan, and gives what was wrong. What the provider leaves in state is there in any case.
func (m *Managed) Apply(t *testing.T, planned *Planned) []*tfprotov6.Diagnostic {
	t.Helper()
	answer, err := m.server.ApplyResourceChange(t.Context(), &tfprotov6.ApplyResourceChangeRequest{
		TypeName: m.resource, PriorState: m.encode(t, m.State), PlannedState: planned.answer.PlannedState, Config: m.encode(t, m.config),
		PlannedPrivate: planned.answer.PlannedPrivate, PlannedIdentity: planned.answer.PlannedIdentity,
	})
	if err != nil {
		t.Fatal(err)
	}
	m.State, m.private, m.identity = m.decode(t, answer.NewState), answer.Private, answer.NewIdentity
	return answer.Diagnostics
}

// Make creates the resource.
func (m *Managed) Make(t *testing.T) {
	t.Helper()
	NoErrors(t, nil, m.Apply(t, m.Plan(t)))
	m.Refresh(t)
}

// Import forgets the resource and imports the object with that ID.
func (m *Managed) Import(t *testing.T, id string) {
	t.Helper()
	answer, err := m.server.ImportResourceState(t.Context(), &tfprotov6.ImportResourceStateRequest{TypeName: m.resource, ID: id})
	NoErrors(t, err, answer.Diagnostics)
	imported := answer.ImportedResources[0]
	m.State, m.private, m.identity = m.decode(t, imported.State), imported.Private, imported.Identity
	m.Refresh(t)
}

// Remake deletes the resource and creates it, as Terraform does with what a plan replaces.
func (m *Managed) Remake(t *testing.T) {
	t.Helper()
	m.Destroy(t)
	m.State, m.private, m.identity = tftypes.NewValue(m.schema.ValueType(), nil), nil, nil
	m.Make(t)
}

// Destroy deletes the resource.
func (m *Managed) Destroy(t *testing.T) {
	t.Helper()
	// In a cleanup the test's context has ended.
	none := m.encode(t, tftypes.NewValue(m.schema.ValueType(), nil))
	answer, err := m.server.ApplyResourceChange(context.WithoutCancel(t.Context()), &tfprotov6.ApplyResourceChangeRequest{
		TypeName: m.resource, PriorState: m.encode(t, m.State), PlannedState: none, Config: none, PlannedPrivate: m.private, PlannedIdentity: m.identity,
	})
	NoErrors(t, err, answer.Diagnostics)
}

func (m *Managed) encode(t *testing.T, value tftypes.Value) *tfprotov6.DynamicValue {
	t.Helper()
	encoded, err := tfprotov6.NewDynamicValue(m.schema.ValueType(), value)
	if err != nil {
		t.Fatalf("%s: %v", m.resource, err)
	}
	return &encoded
}

func (m *Managed) decode(t *testing.T, encoded *tfprotov6.DynamicValue) tftypes.Value {
	t.Helper()
	value, err := encoded.Unmarshal(m.schema.ValueType())
	if err != nil {
		t.Fatalf("%s: %v", m.resource, err)
	}
	return value
}

// proposed is Terraform's own proposal (objchange.ProposedNew): the configuration, and where it says nothing of a
// computed attribute what there was before.
func proposed(attributes []*tfprotov6.SchemaAttribute, prior, config map[string]tftypes.Value) map[string]tftypes.Value {
	values := map[string]tftypes.Value{}
	for _, a := range attributes {
		was, had := prior[a.Name]
		is := config[a.Name]
		values[a.Name] = is
		switch {
		case is.IsNull() && a.Computed && had:
			values[a.Name] = was
		case a.NestedType == nil || is.IsNull() || !had || was.IsNull():
		case a.NestedType.Nesting == tfprotov6.SchemaObjectNestingModeSingle:
			values[a.Name] = tftypes.NewValue(is.Type(), proposed(a.NestedType.Attributes, mapOf(was), mapOf(is)))
		case a.NestedType.Nesting == tfprotov6.SchemaObjectNestingModeList:
			var before, after []tftypes.Value
			_, _ = was.As(&before), is.As(&after)
			for i := range after {
				if i < len(before) {
					after[i] = tftypes.NewValue(after[i].Type(), proposed(a.NestedType.Attributes, mapOf(before[i]), mapOf(after[i])))
				}
			}
			values[a.Name] = tftypes.NewValue(is.Type(), after)
		}
	}
	return values
}

func mapOf(value tftypes.Value) map[string]tftypes.Value {
	all := map[string]tftypes.Value{}
	if !value.IsNull() && value.IsKnown() {
		_ = value.As(&all) // an object, as the schema has it
	}
	return all
}

// ctyType is a type as Terraform's language has it, whose attributes may be left out.
func ctyType(kind tftypes.Type) cty.Type {
	switch k := kind.(type) {
	case tftypes.Object:
		types, names := map[string]cty.Type{}, []string{}
		for name, attribute := range k.AttributeTypes {
			types[name] = ctyType(attribute)
			names = append(names, name)
		}
		return cty.ObjectWithOptionalAttrs(types, names)
	case tftypes.List:
		return cty.List(ctyType(k.ElementType))
	case tftypes.Set:
		return cty.Set(ctyType(k.ElementType))
	case tftypes.Map:
		return cty.Map(ctyType(k.ElementType))
	}
	switch {
	case kind.Is(tftypes.Number):
		return cty.Number
	case kind.Is(tftypes.Bool):
		return cty.Bool
	case kind.Is(tftypes.DynamicPseudoType):
		return cty.DynamicPseudoType
	default:
		return cty.String
	}
}
