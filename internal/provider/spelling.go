package provider

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/elastic-training/terraform-provider-elastic/internal/provider/apifield"
)

// respelled is a planned value in which every attribute that the configuration merely spells differently keeps its
// prior value: "1000m" for "1", a list without order in another order, a default that is written out. The function same
// decides whether two values of the resource mean the same, by the objects that each of them would create; respelled
// knows no particular attribute.
//
// Terraform accepts a planned value that equals the configuration's or the prior one, provided that neither of the
// latter is null. Therefore an optional attribute of the resource has a default that is not null. Inside an attribute,
// anything may be omitted or written: respelled keeps the attribute as a whole, or else each attribute in it that it
// can.
func respelled(attributes map[string]schema.Attribute, config, prior, plan tftypes.Value, same func(a, b tftypes.Value) bool) tftypes.Value {
	r := &respelling{plan: plan, same: same}
	r.object(tftypes.NewAttributePath(), attributes, config, prior, plan)
	return r.plan
}

type respelling struct {
	plan tftypes.Value // as far as it is decided
	same func(a, b tftypes.Value) bool
}

// object visits the attributes of an object, whose values are objects themselves.
func (r *respelling) object(at *tftypes.AttributePath, attributes map[string]schema.Attribute, config, prior, plan tftypes.Value) {
	configured, before, after := attributesIn(config), attributesIn(prior), attributesIn(plan)
	if before == nil || after == nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		attribute := attributes[name]
		if attribute.IsOptional() || attribute.IsRequired() {
			r.attribute(at.WithAttributeName(name), attribute, configured[name], before[name], after[name])
		}
	}
}

func (r *respelling) attribute(at *tftypes.AttributePath, attribute schema.Attribute, config, prior, plan tftypes.Value) {
	if plan.Equal(prior) || prior.IsNull() || isAbsent(config) && !attribute.IsComputed() {
		return
	}
	if plan.IsFullyKnown() {
		if kept := replaced(r.plan, at, prior); r.same(kept, r.plan) {
			r.plan = kept
			return
		}
	}
	switch a := attribute.(type) {
	case schema.SingleNestedAttribute:
		r.object(at, a.Attributes, config, prior, plan)
	case schema.ListNestedAttribute:
		configured, before, after := itemsIn(config), itemsIn(prior), itemsIn(plan)
		if len(configured) != len(after) || len(before) != len(after) {
			return
		}
		for i := range after {
			r.object(at.WithElementKeyInt(i), a.NestedObject.Attributes, configured[i], before[i], after[i])
		}
	case schema.MapNestedAttribute:
		configured, before, after := attributesIn(config), attributesIn(prior), attributesIn(plan)
		for _, key := range slices.Sorted(maps.Keys(after)) {
			if was, ok := before[key]; ok {
				r.object(at.WithElementKeyString(key), a.NestedObject.Attributes, configured[key], was, after[key])
			}
		}
	}
}

// replaced is a value with another one at a place in it.
func replaced(whole tftypes.Value, at *tftypes.AttributePath, by tftypes.Value) tftypes.Value {
	changed, err := tftypes.Transform(whole, func(place *tftypes.AttributePath, value tftypes.Value) (tftypes.Value, error) {
		if place.Equal(at) {
			return by, nil
		}
		return value, nil
	})
	if err != nil { // both are values of the same attribute
		return whole
	}
	return changed
}

// isAbsent holds for null, and for what is in something that is not there.
func isAbsent(value tftypes.Value) bool { return value.Type() == nil || value.IsNull() }

// attributesIn are those of an object, or the entries of a map; nil where it is null or unknown.
func attributesIn(value tftypes.Value) map[string]tftypes.Value {
	var attributes map[string]tftypes.Value
	if isAbsent(value) || !value.IsKnown() || value.As(&attributes) != nil {
		return nil
	}
	return attributes
}

func itemsIn(value tftypes.Value) []tftypes.Value {
	var items []tftypes.Value
	if isAbsent(value) || !value.IsKnown() || value.As(&items) != nil {
		return nil
	}
	return items
}

// withDefaults is a state or plan in which no attribute with a default is null: a state that was read is as complete as
// a plan. Computed attributes that are not configured have their values of prior, if there is one.
func withDefaults(ctx context.Context, attributes map[string]schema.Attribute, value tftypes.Value) tftypes.Value {
	given := attributesIn(value)
	if given == nil {
		return value
	}
	filled := maps.Clone(given)
	for name, attribute := range attributes {
		if filled[name].IsNull() {
			filled[name] = apifield.DefaultOf(ctx, attribute)
		}
	}
	return tftypes.NewValue(value.Type(), filled)
}

// observedAsBefore is a plan whose computed attributes keep their values where the framework has made them unknown,
// because it found a change that is only another spelling. A value that the schema plans for one is a change.
func observedAsBefore(attributes map[string]schema.Attribute, prior, plan tftypes.Value) tftypes.Value {
	before, after := attributesIn(prior), maps.Clone(attributesIn(plan))
	if before == nil || after == nil {
		return plan
	}
	for name, attribute := range attributes {
		if !attribute.IsOptional() && !attribute.IsRequired() && !after[name].IsKnown() {
			after[name] = before[name]
		}
	}
	return tftypes.NewValue(plan.Type(), after)
}

// sameTimeouts reports whether two values of attribute timeouts bound every operation by the same time. A text that is no
// duration is only equal to itself.
func sameTimeouts(a, b tftypes.Value, byDefault time.Duration) bool {
	was, is := attributesIn(a), attributesIn(b)
	of := func(texts map[string]tftypes.Value, operation string) any {
		text, _ := apifield.Expand(texts[operation]).(string)
		if text == "" {
			return byDefault
		}
		if d, err := time.ParseDuration(text); err == nil {
			return d
		}
		return text
	}
	for _, operation := range []string{"create", "read", "update", "delete"} {
		if of(was, operation) != of(is, operation) {
			return false
		}
	}
	return true
}

// sameOtherwise compares the attributes of two values of a resource that do not affect its objects, such as wait_for:
// all that are not among compared, nor computed.
func sameOtherwise(attributes map[string]schema.Attribute, a, b tftypes.Value, compared map[string]bool, timeout time.Duration) bool {
	was, is := attributesIn(a), attributesIn(b)
	for name, attribute := range attributes {
		switch {
		case compared[name] || !attribute.IsOptional() && !attribute.IsRequired():
		case name == "timeouts":
			if !sameTimeouts(was[name], is[name], timeout) {
				return false
			}
		case !was[name].Equal(is[name]):
			return false
		}
	}
	return true
}
