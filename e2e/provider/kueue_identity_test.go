package provider_test

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// TestKueueIdentitiesAreWhatIsRead drives the provider as a Terraform does that keeps identities, which this machine's may
// not: an object is imported by its identity, read, and has that identity still.
func TestKueueIdentitiesAreWhatIsRead(t *testing.T) {
	const name = "identified"
	server, err := factories(t, nil)["elastic"]()
	if err != nil {
		t.Fatal(err)
	}
	schemas, err := server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	config := encoded(t, schemas.Provider.ValueType(), map[string]string{"config_path": adminKubeconfig()})
	configured, err := server.ConfigureProvider(t.Context(), &tfprotov6.ConfigureProviderRequest{Config: config})
	noErrors(t, err, configured.Diagnostics)
	for _, k := range kueueKinds() {
		t.Run(k.resource, func(t *testing.T) {
			created := k.create(t, name, "somebody", k.createdFields)
			attributes := map[string]string{"name": name}
			kinds := map[string]tftypes.Type{"name": tftypes.String}
			if k.namespaced {
				attributes["namespace"], kinds["namespace"] = created.GetNamespace(), tftypes.String
			}
			kind := tftypes.Object{AttributeTypes: kinds}
			identity := &tfprotov6.ResourceIdentityData{IdentityData: encoded(t, kind, attributes)}
			imported, err := server.ImportResourceState(t.Context(), &tfprotov6.ImportResourceStateRequest{TypeName: k.resource, Identity: identity})
			noErrors(t, err, imported.Diagnostics)
			read, err := server.ReadResource(t.Context(), &tfprotov6.ReadResourceRequest{
				TypeName: k.resource, CurrentState: imported.ImportedResources[0].State, CurrentIdentity: imported.ImportedResources[0].Identity,
			})
			noErrors(t, err, read.Diagnostics)
			state, err := read.NewState.Unmarshal(schemas.ResourceSchemas[k.resource].ValueType())
			if err != nil {
				t.Fatal(err)
			}
			values := map[string]tftypes.Value{}
			if err := state.As(&values); err != nil {
				t.Fatal(err)
			}
			if uid := tftypes.NewValue(tftypes.String, string(created.GetUID())); !values["uid"].Equal(uid) {
				t.Errorf("it read %s, want UID %s", values["uid"], uid)
			}
			got, err := read.NewIdentity.IdentityData.Unmarshal(kind)
			if err != nil {
				t.Fatal(err)
			}
			want, err := identity.IdentityData.Unmarshal(kind)
			if err != nil || !got.Equal(want) {
				t.Errorf("its identity is %s, want %s (%v)", got, want, err)
			}
		})
	}
}

// encoded is an object with the given texts, and null otherwise.
func encoded(t *testing.T, kind tftypes.Type, texts map[string]string) *tfprotov6.DynamicValue {
	t.Helper()
	object, ok := kind.(tftypes.Object)
	if !ok {
		t.Fatalf("no object but %s", kind)
	}
	values := map[string]tftypes.Value{}
	for name, attribute := range object.AttributeTypes {
		values[name] = tftypes.NewValue(attribute, nil)
	}
	for name, text := range texts {
		values[name] = tftypes.NewValue(tftypes.String, text)
	}
	value, err := tfprotov6.NewDynamicValue(kind, tftypes.NewValue(kind, values))
	if err != nil {
		t.Fatal(err)
	}
	return &value
}

func noErrors(t *testing.T, err error, diagnostics []*tfprotov6.Diagnostic) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range diagnostics {
		if d.Severity == tfprotov6.DiagnosticSeverityError {
			t.Fatalf("%s: %s", d.Summary, d.Detail)
		}
	}
}
