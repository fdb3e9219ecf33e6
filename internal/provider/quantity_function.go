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
		describes: "The one spelling that the API server has for an amount: `\"3\"` for `\"3000m\"`, `\"1Gi\"` for `\"1024Mi\"`. " +
			"Two quantities are the same amount where their canonical forms are equal, if they are of one kind: `\"1Gi\"` and `\"1073741824\"` are the same amount and stay two spellings, " +
			"since Kubernetes keeps powers of two, powers of ten and exponents apart. What is no quantity is an error that offers what may have been meant.",
		parameter: function.StringParameter{
			Name:                "amount",
			MarkdownDescription: "A number, or a number with a suffix: `\"500m\"`, `\"3\"`, `\"4096Mi\"`.",
		},
		returns: function.StringReturn{},
		of:      func(amount string) (any, error) { return quantity.Canonical(amount) },
	}
}
