package provider

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/int64planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	corev1 "k8s.io/api/core/v1"
)

const (
	// highestUserPriority is the API's limit for classes that are not the system's (HighestUserDefinablePriority in
	// k8s.io/kubernetes/pkg/apis/scheduling).
	highestUserPriority = 1_000_000_000
	// lowestPriority is the smallest number that the API's field, an int32, holds.
	lowestPriority = -2_147_483_648
	// systemPrefix begins the names that the API reserves.
	systemPrefix = "system-"
)

func priorityClassSchema(ctx context.Context) schema.Schema {
	name, generateName := nameAttributes("class", "Name of the class, as in a pod's `priorityClassName`.", subdomain, notReserved)
	return schema.Schema{
		MarkdownDescription: "A PriorityClass (`scheduling.k8s.io/v1`): the priority of pods for the scheduler, and whether they preempt others.\n\n" +
			"`value` and `preemption_policy` are immutable in the API. Changing one deletes the class and creates it again under the same name " +
			"(`create_before_destroy` needs `generate_name`). Existing pods keep their priority; pods created in between are rejected.",
		Attributes: absentIsEmpty(map[string]schema.Attribute{
			// Required.
			"value": schema.Int64Attribute{
				MarkdownDescription: "The priority; higher values are more important. At most 1000000000. Changing it replaces the class.",
				Required:            true,
				Validators:          []validator.Int64{priorityValue{}},
				PlanModifiers:       []planmodifier.Int64{int64planmodifier.RequiresReplace()},
			},

			// Optional.
			"name":          name,
			"generate_name": generateName,
			"global_default": flagOr("Whether this class is the default for pods without a class. At most one class of a cluster may be the default. False by default.",
				false),
			"preemption_policy": schema.StringAttribute{
				MarkdownDescription: "`PreemptLowerPriority` (default): pods may preempt pods with a lower priority. `Never`: they wait, before pods with a lower priority. Changing it replaces the class.",
				Optional:            true,
				Computed:            true,
				Default:             stringdefault.StaticString(string(corev1.PreemptLowerPriority)),
				Validators:          []validator.String{stringvalidator.OneOf(string(corev1.PreemptLowerPriority), string(corev1.PreemptNever))},
				PlanModifiers:       []planmodifier.String{stringplanmodifier.RequiresReplace()},
			},
			"description": textOr("When to use this class.", ""),
			"labels":      labelsAttribute(),
			"annotations": annotationsAttribute(),
			"timeouts":    timeoutsAttribute(ctx, objectTimeout, "They include the time for which a finalizer delays a deletion"),

			// Computed.
			"uid": uidAttribute(),
		}),
	}
}

// notReserved refuses the names of the system's own classes.
var notReserved = textRule{"does not begin with " + systemPrefix, func(_ path.Path, name string) (title, detail string) {
	if !strings.HasPrefix(name, systemPrefix) {
		return "", ""
	}
	return "Reserved name", fmt.Sprintf("%q begins with %q, which Kubernetes reserves for its own priority classes. Choose another name.", name, systemPrefix)
}}

// priorityValue refuses numbers that the API refuses.
type priorityValue struct{}

func (priorityValue) Description(context.Context) string {
	return fmt.Sprintf("between %d and %d", lowestPriority, highestUserPriority)
}
func (v priorityValue) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

func (v priorityValue) ValidateInt64(ctx context.Context, req validator.Int64Request, resp *validator.Int64Response) {
	value := req.ConfigValue
	if value.IsNull() || value.IsUnknown() || value.ValueInt64() >= lowestPriority && value.ValueInt64() <= highestUserPriority {
		return
	}
	resp.Diagnostics.AddAttributeError(req.Path, "Priority out of range",
		fmt.Sprintf("The value of a priority class must be %s; higher values are Kubernetes' own. It is %d.", v.Description(ctx), value.ValueInt64()))
}
