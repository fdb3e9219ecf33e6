package provider

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
)

// queueGrace is how long a wait continues while the queue is missing: this apply, or another client, may create it a
// moment later.
const queueGrace = 20 * time.Second

// missingQueueError is the reason why a job cannot be admitted until its queue is created.
type missingQueueError struct{ problem string }

func (e *missingQueueError) Error() string { return e.problem }

// whileQueueExists is a context for a wait under a queue, "" for none. It ends, with a missingQueueError as its cause,
// when the queue or its ClusterQueue has been missing for queueGrace: waiting for the rest of the timeout could not
// succeed. If the account may not read queues, the wait continues. The returned function ends the context and waits
// until the watch has stopped.
func (c *jobCluster) whileQueueExists(ctx context.Context, namespace, queue string) (context.Context, func()) {
	watching, end := context.WithCancelCause(ctx)
	if queue == "" {
		return watching, func() { end(nil) }
	}
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		problem, patience := "", time.NewTimer(0)
		patience.Stop()
		defer func() { patience.Stop() }()
		// Its error is the context's end, or that queues cannot be read.
		_ = cluster.WaitFor(watching, c.client, c.client.Kueue().LocalQueues(namespace), cluster.Named(queue), func(found []*kueue.LocalQueue) (bool, error) {
			now := queueProblem(namespace, queue, found)
			if now != problem {
				patience.Stop()
				if problem = now; problem != "" {
					patience = time.AfterFunc(queueGrace, func() { end(&missingQueueError{problem: now}) })
				}
			}
			return false, nil
		})
	}()
	return watching, func() {
		end(nil)
		<-watched
	}
}

// clusterQueueDoesNotExist is a reason of a LocalQueue's condition Active (Kueue's pkg/controller/core).
const clusterQueueDoesNotExist = "ClusterQueueDoesNotExist"

// queueProblem is the reason why nothing can be admitted from a queue, "" if something may be: of the queues found, of
// which there is at most one.
func queueProblem(namespace, queue string, found []*kueue.LocalQueue) string {
	if len(found) == 0 {
		return fmt.Sprintf("LocalQueue %s/%s does not exist", namespace, queue)
	}
	active := meta.FindStatusCondition(found[0].Status.Conditions, kueue.LocalQueueActive)
	if active != nil && active.Reason == clusterQueueDoesNotExist {
		return fmt.Sprintf("ClusterQueue %s of LocalQueue %s/%s does not exist (%s)", found[0].Spec.ClusterQueue, namespace, queue, strings.TrimSuffix(active.Message, "."))
	}
	return ""
}
