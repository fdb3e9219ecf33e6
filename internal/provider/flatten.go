package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// flattener turns plain values into framework ones; empty values become null.
type flattener struct {
	ctx        context.Context             //nolint:containedctx // lives as long as one conversion
	attributes map[string]schema.Attribute // of the resource
	diags      diag.Diagnostics
}

// object is the value of the attribute with that name; its type is the schema's.
func (w *flattener) object(attribute string, value any) types.Object {
	object, diags := types.ObjectValueFrom(w.ctx, attributesOf(w.attributes[attribute].GetType()), value)
	w.diags.Append(diags...)
	return object
}

func attributesOf(t attr.Type) map[string]attr.Type {
	if list, ok := t.(attr.TypeWithElementType); ok {
		t = list.ElementType()
	}
	object, ok := t.(attr.TypeWithAttributeTypes)
	if !ok {
		return nil
	}
	return object.AttributeTypes()
}

func (w *flattener) list(element attr.Type, values any, length int) types.List {
	if length == 0 {
		return types.ListNull(element)
	}
	list, diags := types.ListValueFrom(w.ctx, element, values)
	w.diags.Append(diags...)
	return list
}

func (w *flattener) mapOf(element attr.Type, values any, length int) types.Map {
	if length == 0 {
		return types.MapNull(element)
	}
	value, diags := types.MapValueFrom(w.ctx, element, values)
	w.diags.Append(diags...)
	return value
}

func (w *flattener) json(value any, absent bool) types.String {
	if absent {
		return types.StringNull()
	}
	text, err := canonicalJSON(value)
	if err != nil {
		w.diags.AddError("Cannot write JSON", err.Error())
	}
	return types.StringValue(string(text))
}

func textOrNull(text string) types.String {
	if text == "" {
		return types.StringNull()
	}
	return types.StringValue(text)
}
