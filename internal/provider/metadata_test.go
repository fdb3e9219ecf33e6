package provider

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/resource"
)

func TestEveryResourceHasTimeouts(t *testing.T) {
	for _, construct := range (&elastic{}).Resources(t.Context()) {
		r := construct()
		var about resource.MetadataResponse
		r.Metadata(t.Context(), resource.MetadataRequest{ProviderTypeName: TypeName}, &about)
		var schema resource.SchemaResponse
		r.Schema(t.Context(), resource.SchemaRequest{}, &schema)
		if _, ok := schema.Schema.Attributes["timeouts"]; !ok {
			t.Errorf("%s has no timeouts", about.TypeName)
		}
	}
}
