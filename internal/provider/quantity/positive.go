package quantity

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Positive refuses zero and less: a request for no CPU is a mistake where the scheduler counts by requests.
func Positive() validator.String { return minimum{exclusive: true} }

// NotNegative refuses amounts below zero.
func NotNegative() validator.String { return minimum{} }

type minimum struct {
	exclusive bool
}

func (m minimum) Description(context.Context) string {
	if m.exclusive {
		return "must be more than zero"
	}
	return "must not be negative"
}

func (m minimum) MarkdownDescription(ctx context.Context) string { return m.Description(ctx) }

func (m minimum) ValidateString(ctx context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() {
		return
	}
	amount, err := resource.ParseQuantity(req.ConfigValue.ValueString())
	if err != nil {
		return // the type says so already
	}
	if amount.Sign() < 0 || m.exclusive && amount.Sign() == 0 {
		resp.Diagnostics.AddAttributeError(req.Path, "Quantity out of range",
			fmt.Sprintf("%s is %q; it %s.", req.Path, req.ConfigValue.ValueString(), m.Description(ctx)))
	}
}
