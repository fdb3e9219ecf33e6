package provider

import (
	"context"
	"math"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/provider/quantity"
)

// kueueAttributes are the attributes of one of Kueue's kinds: its own, and those that all kinds share. If package
// validation checks the allowed words of an attribute, the schema does not, so that a mistake is reported once.
func kueueAttributes(ctx context.Context, nameDescription string, own map[string]schema.Attribute) map[string]schema.Attribute {
	own["name"], own["generate_name"] = nameAttributes("object", nameDescription, subdomain)
	own["labels"] = labelsAttribute()
	own["annotations"] = annotationsAttribute()
	own["uid"] = uidAttribute()
	own["timeouts"] = timeoutsAttribute(ctx, objectTimeout, "They include the wait for the object's conditions")
	return absentIsEmpty(own)
}

// waitForAttribute is for kinds whose controller reports the condition Active.
func waitForAttribute(when string) schema.StringAttribute {
	return textOr("When create and update are complete: `created` (default): the API server has stored the object; `active`: Kueue has set the condition `Active`, which it sets "+when+
		" If the wait times out, apply prints a warning with the condition's reason, never an error. The wait is limited by `timeouts`, and by 20 s if Kueue does not run.",
		waitForCreated, stringvalidator.OneOf(waitForCreated, waitForActive))
}

// wordAttribute is one of some words, the default of which the API server would choose itself.
func wordAttribute[T ~string](description string, byDefault T) schema.StringAttribute {
	return textOr(description, string(byDefault))
}

// defaultedAttribute is an object that always exists; if it is omitted, its attributes have their defaults.
func defaultedAttribute(ctx context.Context, description string, attributes map[string]schema.Attribute) schema.SingleNestedAttribute {
	return presentObject(ctx, schema.SingleNestedAttribute{MarkdownDescription: description, Attributes: attributes})
}

func quantityAttribute(description string) schema.StringAttribute {
	return schema.StringAttribute{
		MarkdownDescription: description,
		CustomType:          quantity.Type{},
		Optional:            true,
	}
}

// int32Validators bound a number to what the API's field holds.
func int32Validators() []validator.Int64 {
	return []validator.Int64{int64validator.Between(math.MinInt32, math.MaxInt32)}
}

func stopPolicyAttribute(queue string) schema.StringAttribute {
	return wordAttribute("`None` (default): workloads are admitted. `Hold`: no further workloads are admitted; running ones continue. "+
		"`HoldAndDrain`: running workloads are evicted, too. Use it to empty a "+queue+" before you delete it.", kueue.None)
}

func fairSharingAttribute(what string) schema.SingleNestedAttribute {
	weight := quantityAttribute("Weight for fair sharing; `\"1\"` by default. Kueue compares usage divided by weight; the larger the value, the lower the precedence. " +
		"With `\"0\"` the precedence is always the lowest. Other values must be more than 10⁻⁹.")
	weight.Computed = true
	weight.Default = stringdefault.StaticString("1")
	return optionalObject("Share of "+what+"; it has an effect only if fair sharing is enabled in Kueue's configuration.",
		map[string]schema.Attribute{"weight": weight})
}

// resourceGroupsAttribute is the quota of a ClusterQueue or a Cohort, whose limits have the given descriptions.
func resourceGroupsAttribute(description, nominal, borrowing, lending string) schema.ListNestedAttribute {
	nominalQuota := quantityAttribute(nominal)
	nominalQuota.Optional, nominalQuota.Required = false, true
	return optionalObjects(description+" A resource and a flavor may be in one group only. At most 16 groups.", map[string]schema.Attribute{
		"covered_resources": schema.ListAttribute{
			MarkdownDescription: "Resources of this group, such as `cpu`, `memory` and `nvidia.com/gpu`. Kueue assigns all of them to a workload from the same flavor.",
			ElementType:         types.StringType,
			Required:            true,
		},
		"flavors": requiredObjects("Flavors that provide the resources, in the order in which Kueue tries them.", map[string]schema.Attribute{
			"name": requiredText("Name of a ResourceFlavor: refer to `elastic_resource_flavor.NAME.name`."),
			"resources": requiredObjects("Quotas, one for each of `covered_resources` and in the same order.", map[string]schema.Attribute{
				"name":            requiredText("Name of the resource."),
				"nominal_quota":   nominalQuota,
				"borrowing_limit": quantityAttribute(borrowing),
				"lending_limit":   quantityAttribute(lending),
			}),
		}),
	})
}
