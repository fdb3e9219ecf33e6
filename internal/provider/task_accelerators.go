package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/task/accelerator"
)

const acceleratorShapes = `write one text, "T4:4", a list in order of preference, ["H100:8", "A100:8"], or a set of equal rank, toset(["H100:8", "A100:8"])`

// acceleratorTexts are the texts of a known value, and whether their order is one of preference. The problem is "" or a
// sentence. It omits elements that are not known yet.
func acceleratorTexts(value types.Dynamic) (texts []string, ordered bool, problem string) {
	var elements []attr.Value
	switch v := value.UnderlyingValue().(type) {
	case types.String:
		return []string{v.ValueString()}, false, ""
	case types.Tuple:
		elements, ordered = v.Elements(), true
	case types.List:
		elements, ordered = v.Elements(), true
	case types.Set:
		elements = v.Elements()
	default:
		return nil, false, "The value is neither text nor a list of texts: " + acceleratorShapes + "."
	}
	for _, element := range elements {
		text, ok := element.(types.String)
		switch {
		case !ok || text.IsNull():
			return nil, false, "An element is no text: " + acceleratorShapes + "."
		case !text.IsUnknown():
			texts = append(texts, text.ValueString())
		}
	}
	if len(elements) == 0 {
		return nil, false, "There is no accelerator in it: " + acceleratorShapes + ", or leave the attribute out."
	}
	return texts, ordered, ""
}

// acceleratorsValue is the value of the attribute in a state without configuration.
func acceleratorsValue(requests []accelerator.Request, ordered bool) types.Dynamic {
	switch len(requests) {
	case 0:
		return types.DynamicNull()
	case 1:
		return types.DynamicValue(types.StringValue(requests[0].String()))
	}
	values, kinds := make([]attr.Value, len(requests)), make([]attr.Type, len(requests))
	for i, request := range requests {
		values[i], kinds[i] = types.StringValue(request.String()), types.StringType
	}
	if !ordered {
		return types.DynamicValue(types.SetValueMust(types.StringType, values)) // strings only
	}
	return types.DynamicValue(types.TupleValueMust(kinds, values)) // what a list in brackets is
}

// acceleratorList refuses values of other shapes.
type acceleratorList struct{}

func (acceleratorList) Description(context.Context) string {
	return "one text, a list or a set of texts such as T4:4"
}

func (a acceleratorList) MarkdownDescription(ctx context.Context) string { return a.Description(ctx) }

func (acceleratorList) ValidateDynamic(_ context.Context, req validator.DynamicRequest, resp *validator.DynamicResponse) {
	if absent(req.ConfigValue) {
		return
	}
	if _, _, problem := acceleratorTexts(req.ConfigValue); problem != "" {
		resp.Diagnostics.AddAttributeError(req.Path, "Invalid accelerators", problem)
	}
}
