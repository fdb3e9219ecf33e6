package provider

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// server is the provider as Terraform talks to it, so that what this machine's Terraform does not know is tested too.
func server(t *testing.T) (tfprotov6.ProviderServer, *tfprotov6.GetProviderSchemaResponse) {
	t.Helper()
	server := providerserver.NewProtocol6(New("test", environment(nil))())()
	schema, err := server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	noErrors(t, schema.Diagnostics)
	return server, schema
}

func noErrors(t *testing.T, diagnostics []*tfprotov6.Diagnostic) {
	t.Helper()
	for _, d := range diagnostics {
		if d.Severity == tfprotov6.DiagnosticSeverityError {
			t.Fatalf("%s: %s", d.Summary, d.Detail)
		}
	}
}

func TestSecretsOfTheConfigurationAreSensitive(t *testing.T) {
	_, schema := server(t)
	var sensitive []string
	for _, attribute := range schema.Provider.Block.Attributes {
		if attribute.Sensitive {
			sensitive = append(sensitive, attribute.Name)
		}
	}
	slices.Sort(sensitive)
	if want := []string{"client_key", "token"}; !slices.Equal(sensitive, want) {
		t.Errorf("sensitive are %v, want %v", sensitive, want)
	}
	for _, attribute := range schema.Provider.Block.Attributes {
		if attribute.Name != "exec" {
			continue
		}
		for _, inner := range attribute.NestedType.Attributes {
			if inner.Sensitive != (inner.Name == "env") {
				t.Errorf("exec.%s: sensitive is %t", inner.Name, inner.Sensitive)
			}
		}
	}
}

func TestNoBlocksAndADescriptionEverywhere(t *testing.T) {
	_, schema := server(t)
	schemas := map[string]*tfprotov6.Schema{"provider": schema.Provider}
	for name, s := range schema.ResourceSchemas {
		schemas[name] = s
	}
	for name, s := range schema.DataSourceSchemas {
		schemas["data."+name] = s
	}
	for name, s := range schema.ListResourceSchemas {
		schemas["list."+name] = s
	}
	for name, s := range schema.ActionSchemas {
		schemas["action."+name] = s.Schema
	}
	for name, s := range schemas {
		if len(s.Block.BlockTypes) > 0 {
			t.Errorf("%s has blocks", name)
		}
		describe(t, name, s.Block.Attributes)
	}
}

func describe(t *testing.T, where string, attributes []*tfprotov6.SchemaAttribute) {
	t.Helper()
	for _, attribute := range attributes {
		if attribute.Description == "" {
			t.Errorf("%s.%s has no description", where, attribute.Name)
		}
		if attribute.NestedType != nil {
			describe(t, where+"."+attribute.Name, attribute.NestedType.Attributes)
		}
	}
}

func TestIdentityIsTheName(t *testing.T) {
	server, _ := server(t)
	resp, err := server.GetResourceIdentitySchemas(t.Context(), &tfprotov6.GetResourceIdentitySchemasRequest{})
	if err != nil {
		t.Fatal(err)
	}
	attributes := resp.IdentitySchemas["elastic_priority_class"].IdentityAttributes
	if len(attributes) != 1 || attributes[0].Name != "name" || !attributes[0].RequiredForImport {
		t.Errorf("got %v", attributes)
	}
}

func TestImportByIdentity(t *testing.T) {
	server, schema := server(t)
	identity := tftypes.Object{AttributeTypes: map[string]tftypes.Type{"name": tftypes.String}}
	value, err := tfprotov6.NewDynamicValue(identity, tftypes.NewValue(identity, map[string]tftypes.Value{"name": str("high")}))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := server.ImportResourceState(t.Context(), &tfprotov6.ImportResourceStateRequest{
		TypeName: "elastic_priority_class",
		Identity: &tfprotov6.ResourceIdentityData{IdentityData: &value},
	})
	if err != nil {
		t.Fatal(err)
	}
	noErrors(t, resp.Diagnostics)
	if len(resp.ImportedResources) != 1 {
		t.Fatalf("imported %d", len(resp.ImportedResources))
	}
	if got := decoded(t, schema, resp.ImportedResources[0].State); !got["name"].Equal(str("high")) {
		t.Errorf("got %v", got)
	}
}

// decoded is the state of a priority class.
func decoded(t *testing.T, schema *tfprotov6.GetProviderSchemaResponse, state *tfprotov6.DynamicValue) map[string]tftypes.Value {
	t.Helper()
	value, err := state.Unmarshal(schema.ResourceSchemas["elastic_priority_class"].ValueType())
	if err != nil {
		t.Fatal(err)
	}
	attributes := map[string]tftypes.Value{}
	if err := value.As(&attributes); err != nil {
		t.Fatal(err)
	}
	return attributes
}

func TestAnUnknownHostDefersWhereTerraformCan(t *testing.T) {
	server, schema := server(t)
	kind := schema.Provider.ValueType()
	object, ok := kind.(tftypes.Object)
	if !ok {
		t.Fatal("the schema is no object")
	}
	values := map[string]tftypes.Value{}
	for name, attribute := range object.AttributeTypes {
		values[name] = tftypes.NewValue(attribute, nil)
	}
	values["host"] = unknown(tftypes.String)
	config, err := tfprotov6.NewDynamicValue(kind, tftypes.NewValue(kind, values))
	if err != nil {
		t.Fatal(err)
	}
	configured, err := server.ConfigureProvider(t.Context(), &tfprotov6.ConfigureProviderRequest{
		Config:             &config,
		ClientCapabilities: &tfprotov6.ConfigureProviderClientCapabilities{DeferralAllowed: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	noErrors(t, configured.Diagnostics)

	class := schema.ResourceSchemas["elastic_priority_class"].ValueType()
	attributes := map[string]tftypes.Value{}
	for name, attribute := range class.(tftypes.Object).AttributeTypes {
		attributes[name] = tftypes.NewValue(attribute, nil)
	}
	attributes["name"] = str("high")
	state, err := tfprotov6.NewDynamicValue(class, tftypes.NewValue(class, attributes))
	if err != nil {
		t.Fatal(err)
	}
	read, err := server.ReadResource(t.Context(), &tfprotov6.ReadResourceRequest{
		TypeName: "elastic_priority_class", CurrentState: &state,
		ClientCapabilities: &tfprotov6.ReadResourceClientCapabilities{DeferralAllowed: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	noErrors(t, read.Diagnostics)
	if read.Deferred == nil || read.Deferred.Reason != tfprotov6.DeferredReasonProviderConfigUnknown {
		t.Errorf("got %v", read.Deferred)
	}
}

func TestMoveFromTheKubernetesProvider(t *testing.T) {
	const address = "registry.terraform.io/hashicorp/kubernetes"
	full := map[string]tftypes.Value{
		"name": str("high"), "value": number(1000), "global_default": boolean(true), "preemption_policy": str("Never"), "description": str("urgent"),
		"labels": strMap(map[string]tftypes.Value{"team": str("ml")}), "annotations": strMap(map[string]tftypes.Value{"a/b": str("c")}), "uid": str("u-1"),
	}
	sparse := map[string]tftypes.Value{
		"name": str("low"), "value": number(0), "global_default": boolean(false), "preemption_policy": str("PreemptLowerPriority"),
		"description": str(""), "labels": tftypes.NewValue(tftypes.Map{ElementType: tftypes.String}, nil),
		"annotations": tftypes.NewValue(tftypes.Map{ElementType: tftypes.String}, nil), "uid": tftypes.NewValue(tftypes.String, nil),
	}
	const oldState = `{"id":"high","metadata":[{"annotations":{"a/b":"c"},"generate_name":"","generation":1,"labels":{"team":"ml"},"name":"high","resource_version":"7","uid":"u-1"}],
		"value":1000,"global_default":true,"description":"urgent","preemption_policy":"Never"}`
	for source, c := range map[string]struct {
		typeName, state string
		want            map[string]tftypes.Value
	}{
		"kubernetes_priority_class":           {"kubernetes_priority_class", oldState, full},
		"kubernetes_priority_class_v1":        {"kubernetes_priority_class_v1", oldState, full},
		"kubernetes_priority_class, sparsely": {"kubernetes_priority_class", `{"metadata":[{"name":"low","labels":null,"annotations":{}}],"value":0,"description":""}`, sparse},
		"kubernetes_manifest": {"kubernetes_manifest", `{
			"manifest":{"type":["object",{}],"value":{"apiVersion":"scheduling.k8s.io/v1","kind":"PriorityClass","value":1000,"globalDefault":true,"description":"urgent","preemptionPolicy":"Never",
				"metadata":{"name":"high","labels":{"team":"ml"},"annotations":{"a/b":"c"}}}},
			"object":{"type":["object",{}],"value":{"apiVersion":"scheduling.k8s.io/v1","kind":"PriorityClass","metadata":{"name":"high","uid":"u-1"}}},
			"computed_fields":null,"field_manager":[],"timeouts":[],"wait":[],"wait_for":null}`, full},
	} {
		t.Run(source, func(t *testing.T) {
			server, schema := server(t)
			if !json.Valid([]byte(c.state)) {
				t.Fatal("the test's state is no JSON")
			}
			resp, err := server.MoveResourceState(t.Context(), &tfprotov6.MoveResourceStateRequest{
				SourceProviderAddress: address, SourceTypeName: c.typeName, TargetTypeName: "elastic_priority_class",
				SourceState: &tfprotov6.RawState{JSON: []byte(c.state)},
			})
			if err != nil {
				t.Fatal(err)
			}
			noErrors(t, resp.Diagnostics)
			got := decoded(t, schema, resp.TargetState)
			for name, want := range c.want {
				if !got[name].Equal(want) {
					t.Errorf("%s is %s, want %s", name, got[name], want)
				}
			}
			for name, value := range got {
				if _, wanted := c.want[name]; !wanted && !value.IsNull() {
					t.Errorf("%s is %s, and the other provider's state does not have it", name, value)
				}
			}
		})
	}
	for refusal, c := range map[string]struct{ address, typeName, state string }{
		"another kind of manifest":         {address, "kubernetes_manifest", `{"manifest":{"value":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"}}}}`},
		"a state without metadata":         {address, "kubernetes_priority_class", `{"value":1}`},
		"a state that is damaged":          {address, "kubernetes_priority_class", `{"metadata":7}`},
		"another resource":                 {address, "kubernetes_config_map", `{}`},
		"a provider of the same typenames": {"registry.terraform.io/somebody/else", "kubernetes_priority_class", oldState},
	} {
		t.Run(refusal+" is refused", func(t *testing.T) {
			server, _ := server(t)
			resp, err := server.MoveResourceState(t.Context(), &tfprotov6.MoveResourceStateRequest{
				SourceProviderAddress: c.address, SourceTypeName: c.typeName, TargetTypeName: "elastic_priority_class",
				SourceState: &tfprotov6.RawState{JSON: []byte(c.state)},
			})
			if err != nil {
				t.Fatal(err)
			}
			if len(resp.Diagnostics) == 0 {
				t.Error("no error")
			}
		})
	}
}
