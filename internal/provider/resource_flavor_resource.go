package provider

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue/validation"
	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
)

// newResourceFlavor is elastic_resource_flavor.
func newResourceFlavor() func() resource.Resource {
	return newObject(&kind[*kueue.ResourceFlavor]{
		name: "resource_flavor", title: string(aResourceFlavor), apiVersion: kueue.SchemeGroupVersion.String(), parentField: "spec",
		attributes: resourceFlavorSchema,
		empty:      func() *kueue.ResourceFlavor { return &kueue.ResourceFlavor{} },
		in: func(client *cluster.Client, _ string) cluster.Resource[*kueue.ResourceFlavor] {
			return client.Kueue().ResourceFlavors()
		},
		afterRecreation:   "admitted workloads stay where they are",
		problems:          validation.ValidateResourceFlavor,
		changes:           validation.ValidateResourceFlavorUpdate,
		plannedAttributes: noAttributes[*kueue.ResourceFlavor],
		checks:            checkResourceFlavor,
		holders:           clusterQueuesUsing(usesFlavor),
		release:           "Take the flavor out of their resource_groups, or delete them.",
	})
}

func resourceFlavorSchema(ctx context.Context) schema.Schema {
	effect := "`NoSchedule`, `PreferNoSchedule` or `NoExecute`"
	return schema.Schema{
		MarkdownDescription: "A ResourceFlavor of Kueue: a kind of node with its own quota, such as a GPU model, or spot and on-demand machines. " +
			"In a cluster with identical nodes, one flavor without attributes is enough.\n\n" +
			"While a ClusterQueue refers to it, it cannot be deleted, because of Kueue's finalizer. Once `topology_name` is set, changes to it, to `node_labels` and to `tolerations` replace the flavor.",
		Attributes: kueueAttributes(ctx, "Name of the flavor, as in a ClusterQueue's `resource_groups`.", map[string]schema.Attribute{
			"node_labels": optionalTextMap("Labels of the flavor's nodes; at most 8. Kueue adds them to the node selector of pods that it admits with this flavor. A workload whose node selector contradicts them is not admitted with the flavor."),
			"node_taints": optionalObjects("Taints of the flavor's nodes; at most 8. A workload is admitted with the flavor only if the workload, or the flavor's `tolerations`, tolerates those with `NoSchedule` and `NoExecute`. "+
				"This describes nodes; it does not taint them.", map[string]schema.Attribute{
				"key":    requiredText("The taint's key."),
				"value":  optionalText("The taint's value."),
				"effect": requiredText(effect + "."),
			}),
			"tolerations": optionalObjects("Tolerations that Kueue adds to pods that it admits with this flavor; at most 8.", map[string]schema.Attribute{
				"key":                optionalText("The taint's key; if not set, with operator `Exists`, all taints match."),
				"operator":           optionalText("`Equal` (default) or `Exists`."),
				"value":              optionalText("The taint's value, with `Equal`."),
				"effect":             optionalText(effect + "; if not set, all effects."),
				"toleration_seconds": optionalInteger("Seconds for which a `NoExecute` taint is tolerated."),
			}),
			"topology_name": nonEmptyText("Name of a Topology, for topology-aware scheduling; it needs `node_labels`. Refer to `elastic_topology.NAME.name`."),
		}),
	}
}

func checkResourceFlavor(ctx context.Context, c *connection, flavor *kueue.ResourceFlavor) []check {
	if flavor.Spec.TopologyName == nil {
		return nil
	}
	return []check{{"topologyName", func(at path.Path) diag.Diagnostics {
		return c.checkReference(ctx, at, reference{kind: aTopology, name: string(*flavor.Spec.TopologyName)},
			"The flavor is created, but a ClusterQueue that uses it is inactive until the Topology exists.")
	}}}
}

// clusterQueuesUsing finds the ClusterQueues that use an object, for an error about its deletion.
func clusterQueuesUsing(uses func(queue *kueue.ClusterQueue, name string) bool) func(context.Context, *cluster.Client, string) ([]string, error) {
	return func(ctx context.Context, client *cluster.Client, name string) ([]string, error) {
		queues, err := client.Kueue().ClusterQueues().List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, client.Wrap("list", cluster.Ref{Kind: string(aClusterQueue)}, err)
		}
		var found []string
		for i := range queues.Items {
			if uses(&queues.Items[i], name) {
				found = append(found, fmt.Sprintf("ClusterQueue %s", queues.Items[i].Name))
			}
		}
		return found, nil
	}
}

func usesFlavor(queue *kueue.ClusterQueue, name string) bool {
	for _, group := range queue.Spec.ResourceGroups {
		for _, flavor := range group.Flavors {
			if string(flavor.Name) == name {
				return true
			}
		}
	}
	return false
}
