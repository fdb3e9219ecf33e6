package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/listdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/mapdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/objectdefault"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/elastic-training/terraform-provider-elastic/internal/provider/apifield"
)

// absentIsEmpty makes omitted maps and lists of a resource empty: otherwise Terraform would plan a change from null to
// empty, which the cluster does not distinguish. See respelled.
func absentIsEmpty(attributes map[string]schema.Attribute) map[string]schema.Attribute {
	for name, attribute := range attributes {
		if !attribute.IsOptional() || attribute.IsComputed() || attribute.IsWriteOnly() {
			continue
		}
		switch a := attribute.(type) {
		case schema.MapAttribute:
			a.Computed, a.Default = true, mapdefault.StaticValue(emptyMap(a.ElementType))
			attributes[name] = a
		case schema.MapNestedAttribute:
			a.Computed, a.Default = true, mapdefault.StaticValue(emptyMap(a.NestedObject.Type()))
			attributes[name] = a
		case schema.ListAttribute:
			a.Computed, a.Default = true, listdefault.StaticValue(emptyList(a.ElementType))
			attributes[name] = a
		case schema.ListNestedAttribute:
			a.Computed, a.Default = true, listdefault.StaticValue(emptyList(a.NestedObject.Type()))
			attributes[name] = a
		}
	}
	return attributes
}

func emptyMap(element attr.Type) types.Map {
	return types.MapValueMust(element, map[string]attr.Value{})
}

func emptyList(element attr.Type) types.List { return types.ListValueMust(element, []attr.Value{}) }

// presentObject is an object that always exists; if it is omitted, its attributes have their defaults, or are null.
func presentObject(ctx context.Context, object schema.SingleNestedAttribute) schema.SingleNestedAttribute {
	kinds, values := map[string]attr.Type{}, map[string]attr.Value{}
	for name, attribute := range object.Attributes {
		kinds[name] = attribute.GetType()
		// The default, or null, is a value of the attribute's own type.
		values[name], _ = kinds[name].ValueFromTerraform(ctx, apifield.DefaultOf(ctx, attribute))
	}
	object.Optional, object.Computed = true, true
	object.Default = objectdefault.StaticValue(types.ObjectValueMust(kinds, values))
	return object
}
