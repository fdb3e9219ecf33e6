package provider

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
)

// positiveDuration refuses what is no duration, and durations in which nothing can happen.
type positiveDuration struct{}

func (positiveDuration) Description(context.Context) string {
	return "a duration of more than zero: a number and a unit, such as 90s or 1h30m"
}

func (p positiveDuration) MarkdownDescription(ctx context.Context) string { return p.Description(ctx) }

func (positiveDuration) ValidateString(_ context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() {
		return
	}
	text := req.ConfigValue.ValueString()
	switch duration, err := time.ParseDuration(text); {
	case err != nil:
		resp.Diagnostics.AddAttributeError(req.Path, "Invalid duration", fmt.Sprintf("%s is %q; use a number and a unit, such as \"90s\" or \"1h30m\".", req.Path, text))
	case duration <= 0:
		resp.Diagnostics.AddAttributeError(req.Path, "Invalid duration", fmt.Sprintf("%s is %q; it must be more than zero. Omit it to use the default.", req.Path, text))
	}
}
