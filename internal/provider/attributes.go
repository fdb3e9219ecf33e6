package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/int64default"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// The attributes of resources: optional ones, those with a default (…Or), and required ones, with the rules for their
// values. Those of data sources are in data_source.go.

func optionalText(description string, rules ...validator.String) schema.StringAttribute {
	return schema.StringAttribute{MarkdownDescription: description, Optional: true, Validators: rules}
}

func textOr(description, byDefault string, rules ...validator.String) schema.StringAttribute {
	return schema.StringAttribute{
		MarkdownDescription: description, Optional: true, Computed: true, Default: stringdefault.StaticString(byDefault), Validators: rules,
	}
}

func requiredText(description string, rules ...validator.String) schema.StringAttribute {
	return schema.StringAttribute{MarkdownDescription: description, Required: true, Validators: rules}
}

// nonEmptyText is text that must not be "".
func nonEmptyText(description string) schema.StringAttribute {
	return optionalText(description, stringvalidator.LengthAtLeast(1))
}

// nameAttribute is the name of another object.
func nameAttribute(description string) schema.StringAttribute {
	return optionalText(description, subdomain)
}

func optionalInteger(description string, rules ...validator.Int64) schema.Int64Attribute {
	return schema.Int64Attribute{MarkdownDescription: description, Optional: true, Validators: rules}
}

func integerOr(description string, byDefault int64, rules ...validator.Int64) schema.Int64Attribute {
	return schema.Int64Attribute{
		MarkdownDescription: description, Optional: true, Computed: true, Default: int64default.StaticInt64(byDefault), Validators: rules,
	}
}

func requiredInteger(description string, rules ...validator.Int64) schema.Int64Attribute {
	return schema.Int64Attribute{MarkdownDescription: description, Required: true, Validators: rules}
}

func optionalFlag(description string) schema.BoolAttribute {
	return schema.BoolAttribute{MarkdownDescription: description, Optional: true}
}

func flagOr(description string, byDefault bool) schema.BoolAttribute {
	return schema.BoolAttribute{MarkdownDescription: description, Optional: true, Computed: true, Default: booldefault.StaticBool(byDefault)}
}

func optionalTexts(description string, rules ...validator.List) schema.ListAttribute {
	return schema.ListAttribute{MarkdownDescription: description, ElementType: types.StringType, Optional: true, Validators: rules}
}

func optionalTextMap(description string, rules ...validator.Map) schema.MapAttribute {
	return schema.MapAttribute{MarkdownDescription: description, ElementType: types.StringType, Optional: true, Validators: rules}
}

func optionalObject(description string, attributes map[string]schema.Attribute) schema.SingleNestedAttribute {
	return schema.SingleNestedAttribute{MarkdownDescription: description, Optional: true, Attributes: attributes}
}

func optionalObjects(description string, attributes map[string]schema.Attribute) schema.ListNestedAttribute {
	return schema.ListNestedAttribute{
		MarkdownDescription: description, Optional: true, NestedObject: schema.NestedAttributeObject{Attributes: attributes},
	}
}

func requiredObjects(description string, attributes map[string]schema.Attribute) schema.ListNestedAttribute {
	return schema.ListNestedAttribute{
		MarkdownDescription: description, Required: true, NestedObject: schema.NestedAttributeObject{Attributes: attributes},
	}
}

// textRule is a rule for a text that is known.
type textRule struct {
	words string
	// problem is what is wrong with the text of an attribute; its title is "" where nothing is.
	problem func(at path.Path, text string) (title, detail string)
}

func (r textRule) Description(context.Context) string         { return r.words }
func (r textRule) MarkdownDescription(context.Context) string { return r.words }

func (r textRule) ValidateString(_ context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() {
		return
	}
	if title, detail := r.problem(req.Path, req.ConfigValue.ValueString()); title != "" {
		resp.Diagnostics.AddAttributeError(req.Path, title, detail)
	}
}
