package provider

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

func TestATasksSecretsAreWriteOnly(t *testing.T) {
	_, schema := server(t)
	found := false
	for _, attribute := range schema.ResourceSchemas["elastic_task"].Block.Attributes {
		if attribute.Name == "secrets_wo" {
			found = true
			if !attribute.WriteOnly || !attribute.Sensitive || attribute.Computed {
				t.Errorf("write-only %t, sensitive %t, computed %t", attribute.WriteOnly, attribute.Sensitive, attribute.Computed)
			}
		} else if attribute.WriteOnly || attribute.Sensitive {
			t.Errorf("%s: write-only %t, sensitive %t", attribute.Name, attribute.WriteOnly, attribute.Sensitive)
		}
	}
	if !found {
		t.Error("there is no secrets_wo")
	}
}

func TestATaskIsImportedByIdentity(t *testing.T) {
	server, schema := server(t)
	identities, err := server.GetResourceIdentitySchemas(t.Context(), &tfprotov6.GetResourceIdentitySchemasRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if attributes := identities.IdentitySchemas["elastic_task"].IdentityAttributes; len(attributes) != 2 {
		t.Errorf("the identity has %d attributes", len(attributes))
	}
	kind := tftypes.Object{AttributeTypes: map[string]tftypes.Type{"namespace": tftypes.String, "name": tftypes.String}}
	value, err := tfprotov6.NewDynamicValue(kind, tftypes.NewValue(kind, map[string]tftypes.Value{"namespace": str("ml"), "name": str("low")}))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := server.ImportResourceState(t.Context(), &tfprotov6.ImportResourceStateRequest{
		TypeName: "elastic_task", Identity: &tfprotov6.ResourceIdentityData{IdentityData: &value},
	})
	if err != nil {
		t.Fatal(err)
	}
	noErrors(t, resp.Diagnostics)
	state, err := resp.ImportedResources[0].State.Unmarshal(schema.ResourceSchemas["elastic_task"].ValueType())
	if err != nil {
		t.Fatal(err)
	}
	if !at(t, state, "name").Equal(str("low")) || !at(t, state, "namespace").Equal(str("ml")) {
		t.Errorf("got %s", state)
	}
}
