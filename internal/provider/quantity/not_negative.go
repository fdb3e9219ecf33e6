package quantity

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
)

// NotNegative refuses amounts below zero.
func NotNegative() validator.String { return notNegative{} }

type notNegative struct{}

func (notNegative) Description(context.Context) string { return "must not be negative" }

func (m notNegative) MarkdownDescription(ctx context.Context) string { return m.Description(ctx) }

func (m notNegative) ValidateString(ctx context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() {
		return
	}
	amount, err := Parse(req.ConfigValue.ValueString())
	if err != nil {
		return // the type reports it already
	}
	if amount.Sign() < 0 {
		resp.Diagnostics.AddAttributeError(req.Path, "Quantity out of range",
			fmt.Sprintf("%s is %q; it %s.", req.Path, req.ConfigValue.ValueString(), m.Description(ctx)))
	}
}
