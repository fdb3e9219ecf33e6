package provider

import (
	"context"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
)

// replacement is an attribute whose change replaces a job, the reason, and its value in a model.
type replacement[T any] struct {
	attribute string
	why       string
	of        func(T) any
}

// reasonToReplace is the path at which a plan shows the replacement, and the reason.
type reasonToReplace struct {
	at  path.Path
	why string
}

// jobChange is a plan for an existing job.
type jobChange struct {
	what     string // "Training job default/low"
	state    jobModel
	plan     jobModel
	finished bool
	// observed are the attributes in which a wait finds something new.
	observed map[string]schema.Attribute
	reasons  func() ([]reasonToReplace, diag.Diagnostics)
	lost     func() string // what is lost by replacing it, in sentences
	// parts are the job's objects, and lossOf says what fails without one of them until an update creates it again.
	parts  func() []trainingjob.Object
	lossOf func(job string, part trainingjob.Object) trainingjob.Loss
}

// decide marks the job for replacement if necessary, with the reason and what is lost. It keeps observed attributes,
// unless the update waits for new values of them.
func (c jobChange) decide(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if c.finished && c.plan.OnFinished.ValueString() == onFinishedRecreate {
		// A path counts as a reason to replace only where the plan differs.
		resp.Diagnostics.Append(resp.Plan.SetAttribute(ctx, path.Root("phase"), types.StringUnknown())...)
		resp.RequiresReplace.Append(path.Root("phase"))
		return
	}
	reasons, diags := c.reasons()
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	if len(reasons) > 0 {
		var why strings.Builder
		for _, reason := range reasons {
			resp.RequiresReplace.Append(reason.at)
			why.WriteString(reason.why + ".\n")
		}
		resp.Diagnostics.AddWarning(c.what+" will be replaced", why.String()+"\n"+c.lost())
		return
	}
	resp.Diagnostics.Append(c.state.warnMissing(c.what, c.parts(), c.lossOf)...)
	resp.Diagnostics.Append(c.state.warnChanged(c.what, observationIn(ctx, req.Private).Writers)...)
	if c.plan.WaitFor.ValueString() == waitForCreated || c.finished || req.Plan.Raw.Equal(req.State.Raw) {
		return
	}
	for name, attribute := range c.observed {
		kind := attribute.GetType()
		unknown, err := kind.ValueFromTerraform(ctx, tftypes.NewValue(kind.TerraformType(ctx), tftypes.UnknownValue))
		if err != nil {
			panic(err) // every type has an unknown value
		}
		resp.Diagnostics.Append(resp.Plan.SetAttribute(ctx, path.Root(name), unknown)...)
	}
}
