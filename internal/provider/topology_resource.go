package provider

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue/validation"
	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
)

// newTopology is elastic_topology.
func newTopology() func() resource.Resource {
	return newObject(&kind[*kueue.Topology]{
		name: "topology", title: string(aTopology), apiVersion: kueue.SchemeGroupVersion.String(), parentField: "spec",
		attributes: topologySchema,
		empty:      func() *kueue.Topology { return &kueue.Topology{} },
		in: func(client *cluster.Client, _ string) cluster.Resource[*kueue.Topology] {
			return client.Kueue().Topologies()
		},
		afterRecreation:   "workloads that were placed by it stay on their nodes",
		problems:          validation.ValidateTopology,
		changes:           validation.ValidateTopologyUpdate,
		plannedAttributes: noAttributes[*kueue.Topology],
		holders:           flavorsWithTopology,
		release:           "Delete these flavors: topology_name cannot change once it is set.",
	})
}

func topologySchema(ctx context.Context) schema.Schema {
	return schema.Schema{
		MarkdownDescription: "A Topology of Kueue: the distance between nodes, as levels of node labels, for topology-aware scheduling. ResourceFlavors refer to it.\n\n" +
			"While a ResourceFlavor refers to it, it cannot be deleted.",
		Attributes: kueueAttributes(ctx, "Name of the topology, as in a ResourceFlavor's `topology_name`.", map[string]schema.Attribute{
			"levels": requiredObjects("The levels, widest first; at most 16. `kubernetes.io/hostname` may only be the last level. Changing them replaces the topology.", map[string]schema.Attribute{
				"node_label": requiredText("Key of the label whose value names a node's domain at this level, such as `cloud.provider.com/topology-rack`."),
			}),
		}),
	}
}

func flavorsWithTopology(ctx context.Context, client *cluster.Client, name string) ([]string, error) {
	flavors, err := client.Kueue().ResourceFlavors().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, client.Wrap("list", cluster.Ref{Kind: string(aResourceFlavor)}, err)
	}
	var found []string
	for i := range flavors.Items {
		if topology := flavors.Items[i].Spec.TopologyName; topology != nil && string(*topology) == name {
			found = append(found, fmt.Sprintf("ResourceFlavor %s", flavors.Items[i].Name))
		}
	}
	return found, nil
}
