package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
)

// priorityClassModel is the resource's value in configuration, plan and state.
type priorityClassModel struct {
	Name             types.String `tfsdk:"name"`
	Value            types.Int64  `tfsdk:"value"`
	GlobalDefault    types.Bool   `tfsdk:"global_default"`
	PreemptionPolicy types.String `tfsdk:"preemption_policy"`
	Description      types.String `tfsdk:"description"`
	Labels           types.Map    `tfsdk:"labels"`
	Annotations      types.Map    `tfsdk:"annotations"`
	UID              types.String `tfsdk:"uid"`
}

func (m *priorityClassModel) identity() priorityClassIdentity {
	return priorityClassIdentity{Name: m.Name}
}

func (m *priorityClassModel) subject() subject {
	return subject{
		resourceType: TypeName + "_priority_class",
		importID:     m.Name.ValueString(),
		attributes:   []string{"value", "global_default", "preemption_policy", "description"},
	}
}

// object is the PriorityClass that a plan describes.
func (m *priorityClassModel) object(ctx context.Context) (*schedulingv1.PriorityClass, diag.Diagnostics) {
	labels, diags := stringMap(ctx, m.Labels)
	annotations, more := stringMap(ctx, m.Annotations)
	diags.Append(more...)
	policy := corev1.PreemptionPolicy(m.PreemptionPolicy.ValueString())
	return &schedulingv1.PriorityClass{
		ObjectMeta:       metav1.ObjectMeta{Name: m.Name.ValueString(), Labels: labels, Annotations: annotations},
		Value:            int32(m.Value.ValueInt64()), //nolint:gosec // the schema bounds it
		GlobalDefault:    m.GlobalDefault.ValueBool(),
		PreemptionPolicy: &policy,
		Description:      m.Description.ValueString(),
	}, diags
}

// read takes over what the cluster says. Absent and empty descriptions are the same to the API: the state keeps its own.
func (m *priorityClassModel) read(client *cluster.Client, live *schedulingv1.PriorityClass) diag.Diagnostics {
	var diags, more diag.Diagnostics
	m.Name = types.StringValue(live.Name)
	m.Value = types.Int64Value(int64(live.Value))
	m.GlobalDefault = types.BoolValue(live.GlobalDefault)
	policy := corev1.PreemptLowerPriority // what the API makes of none
	if live.PreemptionPolicy != nil {
		policy = *live.PreemptionPolicy
	}
	m.PreemptionPolicy = types.StringValue(string(policy))
	if live.Description != m.Description.ValueString() {
		m.Description = types.StringValue(live.Description)
		if live.Description == "" {
			m.Description = types.StringNull()
		}
	}
	m.Labels, more = ownedEntries(client, live, "labels", m.Labels)
	diags.Append(more...)
	m.Annotations, more = ownedEntries(client, live, "annotations", m.Annotations)
	diags.Append(more...)
	m.UID = types.StringValue(string(live.UID))
	return diags
}
