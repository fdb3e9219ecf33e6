package apifield

import (
	"context"
	"math/big"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/defaults"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/elastic-training/terraform-provider-elastic/internal/provider/quantity"
)

// Flatten is Naming.Flatten for objects of Kubernetes.
func Flatten(ctx context.Context, attributes map[string]schema.Attribute, live map[string]any, prior map[string]tftypes.Value) map[string]tftypes.Value {
	return Naming(Camel).Flatten(ctx, attributes, live, prior)
}

// Flatten converts fields of the API's JSON to values of the attributes. It keeps the prior value if that means the
// same as the API's: another spelling of a quantity, or an empty value for an absent field. If both are absent, the
// value is the attribute's default. Flatten ignores fields without an attribute.
func (n Naming) Flatten(
	ctx context.Context, attributes map[string]schema.Attribute, live map[string]any, prior map[string]tftypes.Value,
) map[string]tftypes.Value {
	values := make(map[string]tftypes.Value, len(attributes))
	for name, attribute := range attributes {
		before, had := prior[name]
		if !had {
			before = tftypes.NewValue(attribute.GetType().TerraformType(ctx), nil)
		}
		values[name] = n.FlattenOne(ctx, attribute, live[n(name)], before)
	}
	return values
}

// FlattenOne is Flatten for the value of one attribute.
func (n Naming) FlattenOne(ctx context.Context, attribute schema.Attribute, live any, prior tftypes.Value) tftypes.Value {
	if live == nil {
		if !prior.IsNull() && prior.IsKnown() && isEmpty(prior) {
			return prior
		}
		return DefaultOf(ctx, attribute)
	}
	kind := attribute.GetType().TerraformType(ctx)
	switch a := attribute.(type) {
	case schema.SingleNestedAttribute:
		return tftypes.NewValue(kind, n.Flatten(ctx, a.Attributes, object(live), attributesOf(prior)))
	case schema.ListNestedAttribute:
		element, _ := kind.(tftypes.List)
		before := itemsOf(prior)
		items := []tftypes.Value{}
		for i, item := range list(live) {
			was := map[string]tftypes.Value{}
			if i < len(before) {
				was = attributesOf(before[i])
			}
			items = append(items, tftypes.NewValue(element.ElementType, n.Flatten(ctx, a.NestedObject.Attributes, object(item), was)))
		}
		return tftypes.NewValue(kind, items)
	case schema.ListAttribute:
		return tftypes.NewValue(kind, itemsOfType(a.ElementType.TerraformType(ctx), live))
	case schema.SetAttribute:
		return tftypes.NewValue(kind, itemsOfType(a.ElementType.TerraformType(ctx), live))
	case schema.MapAttribute:
		entries := map[string]tftypes.Value{}
		for key, entry := range object(live) {
			entries[key] = elementOf(a.ElementType.TerraformType(ctx), entry)
		}
		return tftypes.NewValue(kind, entries)
	case schema.MapNestedAttribute:
		element, _ := kind.(tftypes.Map)
		before := attributesOf(prior)
		entries := map[string]tftypes.Value{}
		for key, entry := range object(live) {
			var was map[string]tftypes.Value
			if value, had := before[key]; had {
				was = attributesOf(value)
			}
			entries[key] = tftypes.NewValue(element.ElementType, n.Flatten(ctx, a.NestedObject.Attributes, object(entry), was))
		}
		return tftypes.NewValue(kind, entries)
	case schema.Int64Attribute:
		whole, _ := live.(int64)
		return tftypes.NewValue(kind, new(big.Float).SetInt64(whole))
	case schema.Float64Attribute:
		if whole, isWhole := live.(int64); isWhole {
			return tftypes.NewValue(kind, new(big.Float).SetInt64(whole))
		}
		return tftypes.NewValue(kind, live)
	default:
		if text, ok := live.(string); ok && sameAmount(attribute.GetType(), text, prior) {
			return prior
		}
		return tftypes.NewValue(kind, live)
	}
}

// DefaultOf is the value that an attribute has when the configuration leaves it out; null where it has no default.
func DefaultOf(ctx context.Context, attribute schema.Attribute) tftypes.Value {
	var value attr.Value
	switch a := attribute.(type) {
	case schema.StringAttribute:
		if a.Default != nil {
			resp := defaults.StringResponse{}
			a.Default.DefaultString(ctx, defaults.StringRequest{}, &resp)
			value = resp.PlanValue
		}
	case schema.BoolAttribute:
		if a.Default != nil {
			resp := defaults.BoolResponse{}
			a.Default.DefaultBool(ctx, defaults.BoolRequest{}, &resp)
			value = resp.PlanValue
		}
	case schema.Int64Attribute:
		if a.Default != nil {
			resp := defaults.Int64Response{}
			a.Default.DefaultInt64(ctx, defaults.Int64Request{}, &resp)
			value = resp.PlanValue
		}
	case schema.MapAttribute:
		value = defaultMap(ctx, a.Default)
	case schema.MapNestedAttribute:
		value = defaultMap(ctx, a.Default)
	case schema.ListAttribute:
		value = defaultList(ctx, a.Default)
	case schema.ListNestedAttribute:
		value = defaultList(ctx, a.Default)
	case schema.SingleNestedAttribute:
		if a.Default != nil {
			resp := defaults.ObjectResponse{}
			a.Default.DefaultObject(ctx, defaults.ObjectRequest{}, &resp)
			value = resp.PlanValue
		}
	}
	kind := attribute.GetType().TerraformType(ctx)
	if value == nil {
		return tftypes.NewValue(kind, nil)
	}
	plain, err := value.ToTerraformValue(ctx)
	if err != nil { // a static default of another type than its attribute's
		return tftypes.NewValue(kind, nil)
	}
	return plain
}

func defaultMap(ctx context.Context, of defaults.Map) attr.Value {
	if of == nil {
		return nil
	}
	resp := defaults.MapResponse{}
	of.DefaultMap(ctx, defaults.MapRequest{}, &resp)
	return resp.PlanValue
}

func defaultList(ctx context.Context, of defaults.List) attr.Value {
	if of == nil {
		return nil
	}
	resp := defaults.ListResponse{}
	of.DefaultList(ctx, defaults.ListRequest{}, &resp)
	return resp.PlanValue
}

// isEmpty reports whether the API does not distinguish a value from an absent one: "", no items, no entries, false.
func isEmpty(value tftypes.Value) bool {
	switch expanded := Expand(value).(type) {
	case string:
		return expanded == ""
	case []any:
		return len(expanded) == 0
	case map[string]any:
		return len(expanded) == 0 && value.Type().Is(tftypes.Map{})
	default:
		return expanded == false
	}
}

func sameAmount(kind attr.Type, live string, prior tftypes.Value) bool {
	if _, ok := kind.(quantity.Type); !ok || prior.IsNull() || !prior.IsKnown() {
		return false
	}
	was, errWas := quantity.Parse(as[string](prior))
	is, errIs := quantity.Parse(live)
	return errWas == nil && errIs == nil && was.Cmp(is) == 0
}

// as is the Go value of a known value; its zero when it has another type, which a schema's values have not.
func as[T any](value tftypes.Value) T {
	var plain T
	_ = value.As(&plain)
	return plain
}

func number(value tftypes.Value) *big.Float {
	plain := new(big.Float)
	_ = value.As(&plain)
	return plain
}

func attributesOf(object tftypes.Value) map[string]tftypes.Value {
	if object.IsNull() || !object.IsKnown() {
		return nil
	}
	return as[map[string]tftypes.Value](object)
}

func itemsOf(list tftypes.Value) []tftypes.Value {
	if list.IsNull() || !list.IsKnown() {
		return nil
	}
	return as[[]tftypes.Value](list)
}

// elementOf is an entry of a map: a text, or a list of texts.
func elementOf(kind tftypes.Type, live any) tftypes.Value {
	if of, isList := kind.(tftypes.List); isList {
		return tftypes.NewValue(kind, itemsOfType(of.ElementType, live))
	}
	return tftypes.NewValue(kind, live)
}

func itemsOfType(kind tftypes.Type, live any) []tftypes.Value {
	items := []tftypes.Value{}
	for _, item := range list(live) {
		items = append(items, tftypes.NewValue(kind, item))
	}
	return items
}

func object(live any) map[string]any {
	fields, _ := live.(map[string]any)
	return fields
}

func list(live any) []any {
	items, _ := live.([]any)
	return items
}
