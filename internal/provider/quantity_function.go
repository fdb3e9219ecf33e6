package provider

import (
	"github.com/hashicorp/terraform-plugin-framework/function"

	"github.com/elastic-training/terraform-provider-elastic/internal/provider/quantity"
)

// newQuantity is provider::elastic::quantity.
func newQuantity() function.Function {
	return &ofText{
		name:    "quantity",
		summary: "The canonical form of a Kubernetes quantity",
		describes: "The spelling that the API server uses for an amount: `\"3\"` for `\"3000m\"`, `\"1Gi\"` for `\"1024Mi\"`. " +
			"Quantities with equal canonical forms are the same amount. The reverse holds only for quantities with the same kind of suffix: `\"1Gi\"` and `\"1073741824\"` are the same amount and have two canonical forms, " +
			"because Kubernetes distinguishes powers of two, powers of ten and exponents. For an invalid quantity, the error suggests a valid one.",
		parameter: function.StringParameter{
			Name:                "amount",
			MarkdownDescription: "A number, or a number with a suffix: `\"500m\"`, `\"3\"`, `\"4096Mi\"`.",
		},
		returns: function.StringReturn{},
		of:      func(amount string) (any, error) { return quantity.Canonical(amount) },
	}
}
