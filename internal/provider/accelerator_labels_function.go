package provider

import (
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/task/accelerator"
)

// newAcceleratorLabels is provider::elastic::accelerator_labels.
func newAcceleratorLabels() function.Function {
	return &ofText{
		name:    "accelerator_labels",
		summary: "The labels of the nodes that have an accelerator",
		describes: "Node labels that mark nodes with an accelerator, as values by label key: those of cloud providers, of GPU feature discovery, and those that users set. A node needs only one of them. " +
			"Use them in an `elastic_resource_flavor` or a `node_selector`; `accelerators` of `elastic_task` uses the same table. " +
			"Names are SkyPilot's, in upper or lower case; for an unknown name, the error suggests similar ones.",
		parameter: function.StringParameter{
			Name:                "accelerator",
			MarkdownDescription: "The name, `\"T4\"`, or an accelerator request, `\"T4:4\"`. The number is used only for TPUs, whose nodes have a topology.",
		},
		returns: function.MapReturn{ElementType: types.ListType{ElemType: types.StringType}},
		of:      func(request string) (any, error) { return labelsOf(request) },
	}
}

// labelsOf are the labels of the nodes that satisfy a request. A name without a number leaves the topology open.
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
