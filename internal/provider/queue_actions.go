package provider

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/action"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
	"github.com/elastic-training/terraform-provider-elastic/internal/provider/drift"
)

const (
	whichQueue = "Namespace of the LocalQueue; if not set, the name is that of a ClusterQueue."
	holdNote   = "\n\nIf an `elastic_cluster_queue` or `elastic_local_queue` manages the queue and does not set `stop_policy`, the queue stays as it is until " +
		"the action `elastic_queue_release` runs, and each plan warns of it. If the configuration sets `stop_policy`, the next plan shows the difference, warns, and resets it."
)

// Suffixes of the field managers of the actions that stop a queue.
const (
	holds  = "queue-hold"
	drains = "queue-drain"
)

func newQueueHold() action.Action {
	return &onNamed{
		name: "queue_hold", object: "queue", namespace: whichQueue,
		invoke:      stopping(holds, kueue.Hold, "admits no further workloads; running workloads continue"),
		description: "Holds a queue: no further workload is admitted; running workloads continue." + holdNote,
	}
}

func newQueueDrain() action.Action {
	return &onNamed{
		name: "queue_drain", object: "queue", namespace: whichQueue,
		invoke: stopping(drains, kueue.HoldAndDrain, "admits no further workloads; running workloads are evicted and queued again"),
		description: "Drains a queue: no further workload is admitted, and running workloads are evicted and wait until the queue is released. " +
			"Elastic training jobs write a checkpoint before they stop, and continue from it." + holdNote,
	}
}

func newQueueRelease() action.Action {
	return &onNamed{
		name: "queue_release", object: "queue", namespace: whichQueue, invoke: stopping("queue-release", kueue.None, "admits workloads again"),
		description: "Releases a queue that was held or drained: workloads are admitted again.",
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

// heldBy is the action that set the stop policy which a queue has; "" for none. An apply that leaves the value as it is
// shares the field with the action, and a release takes it over.
func heldBy(client *cluster.Client, queue metav1.Object) (string, error) {
	owners, err := cluster.Owners(queue, "spec", "stopPolicy")
	for _, action := range []string{holds, drains} {
		if slices.Contains(owners, client.FieldManager()+"-"+action) {
			return action, err
		}
	}
	return "", err
}

// keepHeld leaves a queue as an action has stopped it, where the configuration does not set stop_policy: an apply for
// another reason must not release it.
func (o *object[T]) keepHeld(ctx context.Context, req *resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	const attribute = "stop_policy"
	if !o.stops || req.State.Raw.IsNull() || !valuesOf(req.Config.Raw)[attribute].IsNull() {
		return
	}
	action := observationIn(ctx, req.Private).Held
	state, plan := valuesOf(req.State.Raw), valuesOf(req.Plan.Raw)
	if policy := state.text(attribute); action != "" && policy != string(kueue.None) {
		plan[attribute] = state[attribute]
		req.Plan.Raw = o.raw(ctx, plan)
		resp.Plan.Raw = req.Plan.Raw
		resp.Diagnostics.AddAttributeWarning(path.Root(attribute), fmt.Sprintf("%s %s is stopped by an action", o.title, o.importID(state)),
			fmt.Sprintf("stop_policy is %q, set by the action elastic_%s: the queue admits no workloads. To admit workloads again, invoke the action elastic_queue_release, or set stop_policy = %q.",
				policy, strings.ReplaceAll(action, "-", "_"), kueue.None))
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
