package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/function"
)

// ofText is a pure function of one text, without requests to a cluster.
type ofText struct {
	name      string // without the provider's: "quantity"
	summary   string
	describes string
	parameter function.StringParameter
	returns   function.Return
	// of is the function's value; its error is about the text.
	of func(text string) (any, error)
}

var _ function.Function = &ofText{}

// Functions lists the functions, in the order of the documentation.
func (p *elastic) Functions(context.Context) []func() function.Function {
	return []func() function.Function{
		newAcceleratorLabels, func() function.Function { return newElasticdlArgs(p.version) }, newQuantity, newSkypilotTask,
	}
}

func (f *ofText) Metadata(_ context.Context, _ function.MetadataRequest, resp *function.MetadataResponse) {
	resp.Name = f.name
}

func (f *ofText) Definition(_ context.Context, _ function.DefinitionRequest, resp *function.DefinitionResponse) {
	resp.Definition = function.Definition{
		Summary: f.summary, MarkdownDescription: f.describes, Parameters: []function.Parameter{f.parameter}, Return: f.returns,
	}
}

func (f *ofText) Run(ctx context.Context, req function.RunRequest, resp *function.RunResponse) {
	var text string
	if resp.Error = req.Arguments.Get(ctx, &text); resp.Error != nil {
		return
	}
	value, err := f.of(text)
	if err != nil {
		resp.Error = function.NewArgumentFuncError(0, err.Error())
		return
	}
	resp.Error = resp.Result.Set(ctx, value)
}
