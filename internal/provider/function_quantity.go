package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/function"

	"github.com/elastic-training/terraform-provider-elastic/internal/provider/quantity"
)

// quantityFunction is provider::elastic::quantity.
type quantityFunction struct{}

func newQuantityFunction() function.Function { return quantityFunction{} }

func (quantityFunction) Metadata(_ context.Context, _ function.MetadataRequest, resp *function.MetadataResponse) {
	resp.Name = "quantity"
}

func (quantityFunction) Definition(_ context.Context, _ function.DefinitionRequest, resp *function.DefinitionResponse) {
	resp.Definition = function.Definition{
		Summary: "The canonical form of a Kubernetes quantity",
		MarkdownDescription: "The one spelling that the API server has for an amount: `\"3\"` for `\"3000m\"`, `\"1Gi\"` for `\"1024Mi\"`. " +
			"Two quantities are the same amount where their canonical forms are equal, if they are of one kind: `\"1Gi\"` and `\"1073741824\"` are the same amount and stay two spellings, " +
			"since Kubernetes keeps powers of two, powers of ten and exponents apart. What is no quantity is an error that offers what may have been meant.",
		Parameters: []function.Parameter{function.StringParameter{
			Name:                "amount",
			MarkdownDescription: "A number, or a number with a suffix: `\"500m\"`, `\"3\"`, `\"4096Mi\"`.",
		}},
		Return: function.StringReturn{},
	}
}

func (quantityFunction) Run(ctx context.Context, req function.RunRequest, resp *function.RunResponse) {
	var amount string
	if resp.Error = req.Arguments.Get(ctx, &amount); resp.Error != nil {
		return
	}
	canonical, err := quantity.Canonical(amount)
	if err != nil {
		resp.Error = function.NewArgumentFuncError(0, err.Error())
		return
	}
	resp.Error = resp.Result.Set(ctx, canonical)
}
