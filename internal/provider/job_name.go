package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/cluster/jobparts"
)

// exampleName gives a job with only a prefix, which may be unknown, a name like the later one, for the rules that look
// at its other attributes. The rules of names are checked at the prefix.
func (m *jobModel) exampleName() (isExample bool) {
	if !m.Name.IsNull() {
		return false
	}
	m.Name = types.StringValue(m.GenerateName.ValueString() + exampleLetters)
	return true
}

// withPlannedName is a plan, and the model of it, with a name for what has only a prefix until it is created: so it can
// be compared with other objects, and forecast. Terraform does not see it.
func (m *jobModel) withPlannedName(plan tftypes.Value, names *plannedNames) tftypes.Value {
	if !m.Name.IsUnknown() || m.GenerateName.ValueString() == "" {
		return plan
	}
	m.Name = types.StringValue(names.next(m.GenerateName.ValueString()))
	return replaced(plan, tftypes.NewAttributePath().WithAttributeName("name"), tftypes.NewValue(tftypes.String, m.Name.ValueString()))
}

// renamed are the reasons to replace a job by its name or its prefix, which a comparison of its objects does not find.
func renamed(replaces path.Paths) []reasonToReplace {
	var reasons []reasonToReplace
	for _, at := range replaces {
		if at.Equal(path.Root("generate_name")) {
			reasons = append(reasons, reasonToReplace{at: at, why: "generate_name is no prefix of the present name"})
		}
	}
	return reasons
}

// changePrefix writes the prefix of the name, of which only the Job knows, when it has changed under the same name.
func (c *jobCluster) changePrefix(ctx context.Context, job trainingjob.JobRef, before, after types.String) diag.Diagnostics {
	var diags diag.Diagnostics
	if before.Equal(after) {
		return diags
	}
	change := map[string]any{"metadata": map[string]any{"uid": job.UID, "generateName": after.ValueStringPointer()}}
	if err := jobparts.Of(c.client, jobparts.Named(job)).Patch(ctx, change); err != nil {
		c.subject.explain(&diags, err)
	}
	return diags
}
