package provider

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/action"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue"
	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
	"github.com/elastic-training/terraform-provider-elastic/internal/provider/drift"
)

const (
	whichQueue = "Namespace of the LocalQueue; without it the name is a ClusterQueue's."
	driftNote  = "\n\nWhere an `elastic_cluster_queue` or `elastic_local_queue` manages the queue, its next plan shows the difference to its `stop_policy`, warns, and sets it back; " +
		"`lifecycle { ignore_changes = [stop_policy] }` leaves it to the actions."
)

func newQueueHold() action.Action {
	return &onNamed{
		name: "queue_hold", object: "queue", namespace: whichQueue, invoke: stopping("queue-hold", kueue.Hold, "admits nothing more; what runs continues"),
		description: "Holds a queue: no further workload is admitted; running workloads continue." + driftNote,
	}
}

func newQueueDrain() action.Action {
	return &onNamed{
		name: "queue_drain", object: "queue", namespace: whichQueue, invoke: stopping("queue-drain", kueue.HoldAndDrain, "admits nothing more, and what runs is evicted and waits"),
		description: "Drains a queue: no further workload is admitted, and running workloads are evicted and wait until the queue is released. " +
			"Elastic training jobs write a checkpoint before they go, and go on from it." + driftNote,
	}
}

func newQueueRelease() action.Action {
	return &onNamed{
		name: "queue_release", object: "queue", namespace: whichQueue, invoke: stopping("queue-release", kueue.None, "admits again"),
		description: "Releases a queue that was held or drained: workloads are admitted again." + driftNote,
	}
}

// stopping sets a queue's stop policy, with the name of the action as the field manager.
func stopping(action string, policy kueue.StopPolicy, means string) func(context.Context, *cluster.Client, named, func(string)) error {
	return func(ctx context.Context, client *cluster.Client, on named, tell func(string)) error {
		ref, stop := cluster.Ref{Kind: "ClusterQueue", Name: on.name}, specOf("stopPolicy", policy)
		var err error
		if on.namespace == "" {
			err = cluster.MergeAs(ctx, client, client.Kueue().ClusterQueues(), action, on.name, stop)
		} else {
			ref.Kind, ref.Namespace = "LocalQueue", on.namespace
			err = cluster.MergeAs(ctx, client, client.Kueue().LocalQueues(on.namespace), action, on.name, stop)
		}
		if err == nil {
			tell(fmt.Sprintf("%s %s", ref, means))
		}
		return err
	}
}

// releasesQueue is the effect of setting stop_policy back on a queue that was held.
func releasesQueue(change drift.Change) string {
	var set string
	if change.Path.String() != "stop_policy" || change.To.As(&set) != nil || set != string(kueue.None) {
		return ""
	}
	return "That releases the queue, which then admits workloads again."
}
