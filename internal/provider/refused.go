package provider

import (
	"context"
	"fmt"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/attr/xattr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// The framework reports what a schema refuses, and then what the resource's own validation refuses. Many rules are in
// both: the schema's appear in the documentation and apply to one value, the resource's are those of the job, the task
// or Kueue, and apply to all of it, also when it comes from a file. withoutRepetition prevents two reports of one
// mistake.

// withoutRepetition leaves out errors at attributes that the schema refuses, and makes one error of several at another
// one.
func withoutRepetition(ctx context.Context, s schema.Schema, config tftypes.Value, diags diag.Diagnostics) diag.Diagnostics {
	var kept diag.Diagnostics
	at := map[string]int{} // positions in kept of the errors, by attribute
	for _, d := range diags {
		with, hasPath := d.(diag.DiagnosticWithPath)
		if d.Severity() != diag.SeverityError || !hasPath {
			kept.Append(d)
			continue
		}
		attribute := with.Path().String()
		i, reported := at[attribute]
		switch {
		case reported && kept[i].Summary() == d.Summary():
			kept[i] = diag.NewAttributeErrorDiagnostic(with.Path(), d.Summary(), kept[i].Detail()+"\n"+d.Detail())
		case !reported && !schemaRefuses(ctx, s, config, with.Path()):
			at[attribute] = len(kept)
			kept = append(kept, d)
		}
	}
	return kept
}

// schemaRefuses reports whether the schema itself has an error at this attribute: a required one that is missing, or a
// value that the type or a validator refuses.
func schemaRefuses(ctx context.Context, s schema.Schema, config tftypes.Value, at path.Path) bool {
	attributes, value, walked := s.Attributes, config, path.Empty()
	var last schema.Attribute
	for _, step := range at.Steps() {
		switch step := step.(type) {
		case path.PathStepAttributeName:
			attribute, known := attributes[string(step)]
			if !known {
				return false
			}
			var fields map[string]tftypes.Value
			if value.IsNull() || !value.IsKnown() || value.As(&fields) != nil {
				return value.IsNull() && attribute.IsRequired()
			}
			value, walked, last = fields[string(step)], walked.AtName(string(step)), attribute
			if refusals := refusalsOf(ctx, s, config, last, walked, value); hasErrorAt(refusals, at) {
				return true
			}
			attributes = attributesWithin(attribute)
		case path.PathStepElementKeyInt:
			var items []tftypes.Value
			if value.IsNull() || !value.IsKnown() || value.As(&items) != nil || int(step) >= len(items) {
				return false
			}
			value, walked = items[step], walked.AtListIndex(int(step))
		case path.PathStepElementKeyString:
			var entries map[string]tftypes.Value
			if value.IsNull() || !value.IsKnown() || value.As(&entries) != nil {
				return false
			}
			value, walked = entries[string(step)], walked.AtMapKey(string(step))
		}
		if value.Type() == nil {
			return false
		}
	}
	return last != nil && value.IsNull() && last.IsRequired()
}

func attributesWithin(attribute schema.Attribute) map[string]schema.Attribute {
	switch a := attribute.(type) {
	case schema.SingleNestedAttribute:
		return a.Attributes
	case schema.ListNestedAttribute:
		return a.NestedObject.Attributes
	case schema.MapNestedAttribute:
		return a.NestedObject.Attributes
	default:
		return nil
	}
}

func hasErrorAt(diags diag.Diagnostics, at path.Path) bool {
	return slices.ContainsFunc(diags.Errors(), func(d diag.Diagnostic) bool {
		with, ok := d.(diag.DiagnosticWithPath)
		return ok && with.Path().Equal(at)
	})
}

// refusalsOf are the errors of an attribute's type and validators for its value.
func refusalsOf(ctx context.Context, s schema.Schema, config tftypes.Value, attribute schema.Attribute, at path.Path, raw tftypes.Value) diag.Diagnostics {
	var diags diag.Diagnostics
	kind := attribute.GetType()
	if numbers, ok := kind.(interface {
		Validate(ctx context.Context, in tftypes.Value, at path.Path) diag.Diagnostics
	}); ok {
		if diags = numbers.Validate(ctx, raw, at); diags.HasError() {
			return diags
		}
	}
	value, err := kind.ValueFromTerraform(ctx, raw)
	if err != nil {
		diags.AddAttributeError(at, "Invalid attribute value", err.Error())
		return diags
	}
	if checked, ok := value.(xattr.ValidateableAttribute); ok {
		resp := &xattr.ValidateAttributeResponse{}
		checked.ValidateAttribute(ctx, xattr.ValidateAttributeRequest{Path: at}, resp)
		diags.Append(resp.Diagnostics...)
	}
	diags.Append(validatorsOf(ctx, tfsdk.Config{Raw: config, Schema: s}, attribute, at, value)...)
	return diags
}

// validatorsOf runs an attribute's validators.
func validatorsOf(ctx context.Context, config tfsdk.Config, attribute schema.Attribute, at path.Path, value attr.Value) diag.Diagnostics {
	var diags diag.Diagnostics
	where := at.Expression()
	switch a := attribute.(type) {
	case schema.StringAttribute:
		text, more := value.(basetypes.StringValuable).ToStringValue(ctx) //nolint:forcetypeassert // the attribute's type makes it
		diags.Append(more...)
		for _, v := range a.Validators {
			resp := &validator.StringResponse{}
			v.ValidateString(ctx, validator.StringRequest{Path: at, PathExpression: where, Config: config, ConfigValue: text}, resp)
			diags.Append(resp.Diagnostics...)
		}
	case schema.Int64Attribute:
		whole, more := value.(basetypes.Int64Valuable).ToInt64Value(ctx) //nolint:forcetypeassert // the attribute's type makes it
		diags.Append(more...)
		for _, v := range a.Validators {
			resp := &validator.Int64Response{}
			v.ValidateInt64(ctx, validator.Int64Request{Path: at, PathExpression: where, Config: config, ConfigValue: whole}, resp)
			diags.Append(resp.Diagnostics...)
		}
	case schema.ListAttribute:
		items, more := value.(basetypes.ListValuable).ToListValue(ctx) //nolint:forcetypeassert // the attribute's type makes it
		diags.Append(more...)
		for _, v := range a.Validators {
			resp := &validator.ListResponse{}
			v.ValidateList(ctx, validator.ListRequest{Path: at, PathExpression: where, Config: config, ConfigValue: items}, resp)
			diags.Append(resp.Diagnostics...)
		}
	case schema.MapAttribute:
		entries, more := value.(basetypes.MapValuable).ToMapValue(ctx) //nolint:forcetypeassert // the attribute's type makes it
		diags.Append(more...)
		for _, v := range a.Validators {
			resp := &validator.MapResponse{}
			v.ValidateMap(ctx, validator.MapRequest{Path: at, PathExpression: where, Config: config, ConfigValue: entries}, resp)
			diags.Append(resp.Diagnostics...)
		}
	case schema.DynamicAttribute:
		anything, more := value.(basetypes.DynamicValuable).ToDynamicValue(ctx) //nolint:forcetypeassert // the attribute's type makes it
		diags.Append(more...)
		for _, v := range a.Validators {
			resp := &validator.DynamicResponse{}
			v.ValidateDynamic(ctx, validator.DynamicRequest{Path: at, PathExpression: where, Config: config, ConfigValue: anything}, resp)
			diags.Append(resp.Diagnostics...)
		}
	}
	return diags
}

// nullItems are errors about items of lists, and about objects in maps, that are null: no field of the API can hold
// them, and the framework cannot read them. An entry of a map of texts may be null, and is as if it were not there.
func nullItems(config tftypes.Value) diag.Diagnostics {
	var diags diag.Diagnostics
	var walk func(at path.Path, value tftypes.Value)
	item := func(at path.Path, value tftypes.Value) {
		if value.IsNull() {
			diags.AddAttributeError(at, "Null item", fmt.Sprintf("%s is null. Omit it, for example with [for x in … : x if x != null].", at))
			return
		}
		walk(at, value)
	}
	walk = func(at path.Path, value tftypes.Value) {
		if value.IsNull() || !value.IsKnown() {
			return
		}
		switch kind := value.Type().(type) {
		case tftypes.List:
			var items []tftypes.Value
			_ = value.As(&items) // a list, by its type
			for i, v := range items {
				item(at.AtListIndex(i), v)
			}
		case tftypes.Map:
			var entries map[string]tftypes.Value
			_ = value.As(&entries) // a map, by its type
			for key, v := range entries {
				if !kind.ElementType.Is(tftypes.String) {
					item(at.AtMapKey(key), v)
				}
			}
		case tftypes.Object:
			var fields map[string]tftypes.Value
			_ = value.As(&fields) // an object, by its type
			for name, v := range fields {
				walk(at.AtName(name), v)
			}
		}
	}
	walk(path.Empty(), config)
	return diags
}
