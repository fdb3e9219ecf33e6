package provider

import (
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// topologyAttribute describes the request for `pods`, of which an attribute counts how many there are. Rules that
// concern several attributes are the job's.
func topologyAttribute(description, pods, counted string) schema.SingleNestedAttribute {
	return optionalObject(description+" Needs `queue.name`, and a queue with a flavor whose `topology_name` is a Topology with these levels. "+
		"Set one of `required`, `preferred` and `unconstrained`, or slices; `required` and `preferred` may be combined with slices. Changing it replaces the job.", map[string]schema.Attribute{
		"required": nonEmptyText("Level of the Topology, as the key of its node label, such as `cloud.provider.com/topology-rack`: all " + pods + " run in one domain of this level. " +
			"Until a domain has enough free capacity, the job waits."),
		"preferred":      nonEmptyText("The same as a preference: if no domain of this level has enough free capacity, Kueue tries the next wider level, and finally distributes the pods over several domains."),
		"unconstrained":  optionalFlag("Whether the pods may run on any nodes; false by default. Kueue then admits them only if nodes have enough free capacity, in addition to quota."),
		"slice_size":     optionalInteger("Number of pods in a slice, in the order of their numbers; `" + counted + "` must be a multiple of it. Needs `slice_required`."),
		"slice_required": nonEmptyText("Level of the Topology: each slice runs in one domain of this level. Needs `slice_size`. It is the level of `required` or `preferred`, or a narrower one."),
	})
}

// checkTopologyQueue refuses a topology of a training job without a queue, whose definition has no place for it.
func checkTopologyQueue(topology, queue attr.Value) diag.Diagnostics {
	var diags diag.Diagnostics
	if !topology.IsNull() && !topology.IsUnknown() && queue.IsNull() {
		diags.AddAttributeError(path.Root("topology"), "Topology without a queue",
			"topology is set, but queue is not: only Kueue places pods by a topology. Set queue.name to a LocalQueue, or remove topology.")
	}
	return diags
}

// topologyIsKnown reports whether everything is known that decides whether a topology is valid.
func topologyIsKnown(config tftypes.Value) bool {
	for _, attribute := range []string{"topology", "queue", "workers.min", "workers.max", "num_nodes"} {
		if !isKnown(config, attribute) {
			return false
		}
	}
	return true
}
