package provider_test

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/elastic-training/terraform-provider-elastic/e2e/providertest"
)

// TestKueueIdentitiesAreWhatIsRead drives the provider as a Terraform does that keeps identities, which this machine's
// may not: an object is imported by its identity, read, and has that identity still.
func TestKueueIdentitiesAreWhatIsRead(t *testing.T) {
	const name = "identified"
	server := providertest.NewServer(t, map[string]string{"config_path": adminKubeconfig()})
	for _, k := range kueueKinds() {
		t.Run(k.resource, func(t *testing.T) {
			created := k.create(t, name, "somebody", k.createdFields)
			attributes := map[string]string{"name": name}
			kinds := map[string]tftypes.Type{"name": tftypes.String}
			if k.namespaced {
				attributes["namespace"], kinds["namespace"] = created.GetNamespace(), tftypes.String
			}
			kind := tftypes.Object{AttributeTypes: kinds}
			identity := &tfprotov6.ResourceIdentityData{IdentityData: providertest.Encoded(t, kind, attributes)}
			imported, err := server.ImportResourceState(t.Context(), &tfprotov6.ImportResourceStateRequest{TypeName: k.resource, Identity: identity})
			providertest.NoErrors(t, err, imported.Diagnostics)
			read, err := server.ReadResource(t.Context(), &tfprotov6.ReadResourceRequest{
				TypeName: k.resource, CurrentState: imported.ImportedResources[0].State, CurrentIdentity: imported.ImportedResources[0].Identity,
			})
			providertest.NoErrors(t, err, read.Diagnostics)
			state, err := read.NewState.Unmarshal(server.Schemas.ResourceSchemas[k.resource].ValueType())
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
