package provider

import (
	"context"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/elastic-training/terraform-provider-elastic/internal/task/accelerator"
)

// acceleratorLabels is provider::elastic::accelerator_labels.
type acceleratorLabels struct{}

func newAcceleratorLabels() function.Function { return acceleratorLabels{} }

func (acceleratorLabels) Metadata(_ context.Context, _ function.MetadataRequest, resp *function.MetadataResponse) {
	resp.Name = "accelerator_labels"
}

func (acceleratorLabels) Definition(_ context.Context, _ function.DefinitionRequest, resp *function.DefinitionResponse) {
	resp.Definition = function.Definition{
		Summary: "The labels of the nodes that have an accelerator",
		MarkdownDescription: "The node labels by which clouds, labellers and people mark the nodes that have an accelerator: the values by label key, any of which does. " +
			"It is the table that `accelerators` of `elastic_task` uses, for an `elastic_resource_flavor` or a `node_selector`. " +
			"Names are SkyPilot's, in any case; an unknown one is an error with the nearest names.",
		Parameters: []function.Parameter{function.StringParameter{
			Name:                "accelerator",
			MarkdownDescription: "The name, `\"T4\"`, or an accelerator request, `\"T4:4\"`. The number matters for TPUs alone, whose nodes have a topology.",
		}},
		Return: function.MapReturn{ElementType: types.ListType{ElemType: types.StringType}},
	}
}

func (acceleratorLabels) Run(ctx context.Context, req function.RunRequest, resp *function.RunResponse) {
	var text string
	if resp.Error = req.Arguments.Get(ctx, &text); resp.Error != nil {
		return
	}
	labels, err := labelsOf(text)
	if err != nil {
		resp.Error = function.NewArgumentFuncError(0, err.Error())
		return
	}
	resp.Error = resp.Result.Set(ctx, labels)
}

// labelsOf are the labels of the nodes that satisfy a request. A name without a number says nothing of the topology.
func labelsOf(text string) (map[string][]string, error) {
	request, err := accelerator.ParseRequest(text)
	if err != nil {
		return nil, err
	}
	table, err := accelerator.New(nil)
	if err != nil {
		return nil, err
	}
	labels, err := table.Labels(request.Name)
	if err != nil || !strings.Contains(text, ":") {
		return labels, err
	}
	if _, definition, err := table.Lookup(request.Name); err == nil && definition.Topologies[request.Count] != "" {
		labels[accelerator.TopologyKey] = []string{definition.Topologies[request.Count]}
	}
	return labels, nil
}
