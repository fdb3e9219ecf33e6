package provider

import (
	"context"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
)

// disruption is one of disruptions.
type disruption struct {
	At          types.String  `tfsdk:"at"`
	Role        types.String  `tfsdk:"role"`
	Pod         types.String  `tfsdk:"pod"`
	Kind        types.String  `tfsdk:"kind"`
	Reason      types.String  `tfsdk:"reason"`
	Message     types.String  `tfsdk:"message"`
	Preemptor   types.String  `tfsdk:"preemptor"`
	Step        types.Int64   `tfsdk:"step"`
	LostSteps   types.Int64   `tfsdk:"lost_steps"`
	LostSeconds types.Float64 `tfsdk:"lost_seconds"`
	Recovered   types.Float64 `tfsdk:"seconds_to_recover"`
	FullSize    types.Float64 `tfsdk:"seconds_to_full_size"`
}

func disruptionsAttribute() schema.Attribute {
	var kinds []string
	for _, kind := range trainingjob.DisruptionKinds() {
		kinds = append(kinds, string(kind))
	}
	seconds := func(description string) schema.Attribute {
		return schema.Float64Attribute{MarkdownDescription: description, Computed: true}
	}
	return readObjects("The newest disruptions of the job, oldest first: pods that were taken away before their work was done, and the cost.", map[string]schema.Attribute{
		"at":      readText("When, in RFC 3339."),
		"role":    readText("`master` or `worker`."),
		"pod":     readText("The pod's name; null if unknown."),
		"kind":    readText("`" + strings.Join(kinds, "`, `") + "`. `lost` is a master that did not report why it ended."),
		"reason":  readText("The reason of the pod's condition, such as `PreemptionByScheduler` or `EvictionByEvictionAPI`; of Kueue's preemption, such as `InClusterQueue`; or of the container, such as `OOMKilled`. Null if there is none."),
		"message": readText("The message with the reason; null if there is none."),
		"preemptor": readText("The pod or workload for which the pod was preempted: `pod NAMESPACE/NAME`, `workload NAMESPACE/NAME`, `UID …` or `unknown`. " +
			"It is a UID or unknown if the scheduler's Event, the pod or the workload no longer exists, or may not be listed. Null if the pod was not preempted."),
		"step":               readInteger("The highest completed step at that time."),
		"lost_steps":         readInteger("Steps that were completed and had to be repeated."),
		"lost_seconds":       seconds("Time until the recovery in which no new step was computed. If several disruptions have not recovered yet, the newest one has the lost steps and seconds of all of them, so that sums are correct."),
		"seconds_to_recover": seconds("Time until the first new step; null before it."),
		"seconds_to_full_size": seconds("Time until as many workers were ready as before; null before that, " +
			"also if the job has ended or `workers.max` was reduced."),
	})
}

// disruptionsOf is the list; empty without a disruption.
func disruptionsOf(ctx context.Context, all []trainingjob.Disruption) (types.List, diag.Diagnostics) {
	list := make([]disruption, len(all))
	for i, d := range all {
		list[i] = disruption{
			At: types.StringValue(d.At.UTC().Format(time.RFC3339)), Role: types.StringValue(d.Role), Pod: textOrNull(d.Pod),
			Kind: types.StringValue(string(d.Kind)), Reason: textOrNull(d.Reason), Message: textOrNull(d.Message), Preemptor: textOrNull(d.Preemptor()),
			Step: types.Int64Value(d.Step), LostSteps: types.Int64Value(d.LostSteps), LostSeconds: types.Float64Value(d.LostSeconds),
			Recovered: types.Float64PointerValue(d.Recovered), FullSize: types.Float64PointerValue(d.FullSize),
		}
	}
	object, _ := disruptionsAttribute().GetType().(attr.TypeWithElementType)
	return types.ListValueFrom(ctx, object.ElementType(), list)
}
