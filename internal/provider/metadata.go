package provider

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
)

// labelsAttribute, annotationsAttribute, uidAttribute and timeoutsAttribute are the same in every resource.
func labelsAttribute() schema.MapAttribute {
	return optionalTextMap("Labels of the object. Labels set by other clients are ignored.", labels{})
}

func annotationsAttribute() schema.MapAttribute {
	return optionalTextMap("Annotations of the object. Annotations set by other clients are ignored.", annotations{})
}

func uidAttribute() schema.StringAttribute {
	return schema.StringAttribute{
		MarkdownDescription: "UID of the object, set by the API server.",
		Computed:            true,
		PlanModifiers:       []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
	}
}

// timeoutsAttribute bounds operations, each by the given default; what it includes ends a sentence.
func timeoutsAttribute(ctx context.Context, byDefault time.Duration, includes string) schema.Attribute {
	of := func(operation string) string {
		return "Time limit of " + operation + ", such as `\"90s\"` or `\"1h30m\"`."
	}
	nested, _ := timeouts.Attributes(ctx, timeouts.Opts{
		Create: true, CreateDescription: of("a creation"), Update: true, UpdateDescription: of("an update"), Delete: true, DeleteDescription: of("a deletion"),
	}).(schema.SingleNestedAttribute)
	for name, attribute := range nested.Attributes {
		if text, ok := attribute.(schema.StringAttribute); ok {
			text.Validators = []validator.String{positiveDuration}
			nested.Attributes[name] = text
		}
	}
	nested = presentObject(ctx, nested)
	nested.MarkdownDescription = fmt.Sprintf("Time limits of the operations. %s. %g minutes by default.", includes, byDefault.Minutes())
	return nested
}

// ownedEntries is the state of the map metadata.FIELD: the current values of the entries that state had before, and the
// entries that this provider's field manager owns. All others belong to other writers.
func ownedEntries(client *cluster.Client, object metav1.Object, field string, prior types.Map) (types.Map, diag.Diagnostics) {
	owned, diags := ownedTexts(client, object, field, prior.Elements())
	if diags.HasError() || len(owned) == 0 && prior.IsNull() {
		return prior, diags
	}
	entries := map[string]attr.Value{}
	for key, value := range owned {
		entries[key] = types.StringValue(value)
	}
	return types.MapValue(types.StringType, entries)
}

// ownedTexts are the entries of the map metadata.FIELD that state had before, and those that our field manager owns.
func ownedTexts[V any](client *cluster.Client, object metav1.Object, field string, before map[string]V) (map[string]string, diag.Diagnostics) {
	var diags diag.Diagnostics
	owned, err := cluster.OwnedKeys(client, object, field)
	if err != nil {
		diags.AddError("Cannot read the owners of the "+field, err.Error())
		return nil, diags
	}
	live := object.GetLabels()
	if field == "annotations" {
		live = object.GetAnnotations()
	}
	texts := map[string]string{}
	for key, value := range live {
		if _, had := before[key]; had || owned[key] {
			texts[key] = value
		}
	}
	return texts, diags
}

// stringMap is a map for the API: nil for null, and without entries that are null.
func stringMap(ctx context.Context, value types.Map) (map[string]string, diag.Diagnostics) {
	if value.IsNull() || value.IsUnknown() {
		return nil, nil
	}
	var entries map[string]types.String
	diags := value.ElementsAs(ctx, &entries, false)
	texts := make(map[string]string, len(entries))
	for key, entry := range entries {
		if !entry.IsNull() {
			texts[key] = entry.ValueString()
		}
	}
	return texts, diags
}
