package quantity

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"
)

// KeepEqual is a plan modifier that plans the prior state where the configuration says the same amounts in other words. It is
// for a single quantity, a map of quantities, and an object of quantities and maps of them; it keeps all of a value or
// nothing, since Terraform accepts a planned value that equals the configuration's or the prior one, and no mixture.
type KeepEqual struct{}

var (
	_ planmodifier.String = KeepEqual{}
	_ planmodifier.Map    = KeepEqual{}
	_ planmodifier.Object = KeepEqual{}
)

// Description says what the modifier does.
func (KeepEqual) Description(context.Context) string {
	return "Quantities of the same amount are no change, however they are spelled."
}

// MarkdownDescription is Description.
func (k KeepEqual) MarkdownDescription(ctx context.Context) string { return k.Description(ctx) }

// PlanModifyString keeps a single quantity.
func (KeepEqual) PlanModifyString(_ context.Context, req planmodifier.StringRequest, resp *planmodifier.StringResponse) {
	if keepable(req.StateValue, req.PlanValue, req.ConfigValue) && sameAmount(Value{StringValue: req.StateValue}, Value{StringValue: req.PlanValue}) {
		resp.PlanValue = req.StateValue
	}
}

// PlanModifyMap keeps a map of quantities.
func (KeepEqual) PlanModifyMap(_ context.Context, req planmodifier.MapRequest, resp *planmodifier.MapResponse) {
	if keepable(req.StateValue, req.PlanValue, req.ConfigValue) && equal(req.StateValue, req.PlanValue) {
		resp.PlanValue = req.StateValue
	}
}

// PlanModifyObject keeps an object of quantities and maps of them.
func (KeepEqual) PlanModifyObject(_ context.Context, req planmodifier.ObjectRequest, resp *planmodifier.ObjectResponse) {
	if keepable(req.StateValue, req.PlanValue, req.ConfigValue) && equal(req.StateValue, req.PlanValue) {
		resp.PlanValue = req.StateValue
	}
}

// keepable is Terraform's rule: prior and configuration are set, and the plan is known.
func keepable(state, plan, config attr.Value) bool {
	return !state.IsNull() && !config.IsNull() && !config.IsUnknown() && !plan.IsNull() && !plan.IsUnknown()
}

// equal holds for values with equal amounts in all places where there are quantities, and equal values elsewhere.
func equal(a, b attr.Value) bool {
	if a.IsNull() || b.IsNull() || a.IsUnknown() || b.IsUnknown() {
		return a.Equal(b)
	}
	switch a := a.(type) {
	case Value:
		b, ok := b.(Value)
		return ok && sameAmount(a, b)
	case basetypes.MapValue:
		b, ok := b.(basetypes.MapValue)
		return ok && sameEntries(a.Elements(), b.Elements())
	case basetypes.ObjectValue:
		b, ok := b.(basetypes.ObjectValue)
		return ok && sameEntries(a.Attributes(), b.Attributes())
	default:
		return a.Equal(b)
	}
}

func sameEntries(a, b map[string]attr.Value) bool {
	if len(a) != len(b) {
		return false
	}
	for key, x := range a {
		y, ok := b[key]
		if !ok || !equal(x, y) {
			return false
		}
	}
	return true
}
