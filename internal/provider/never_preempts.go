package provider

import (
	"context"
	"fmt"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
)

// queued is work that goes through a queue with a priority.
type queued struct {
	what  string // "elastic_task low"
	queue reference
	class reference
}

// plansQueued notes work that is planned to go through a LocalQueue with a WorkloadPriorityClass ("" for none); what is
// its resource and name ("elastic_task low"). It warns, at the attribute of the queue, when the queue never preempts
// though work of another class that was planned before shares it: users who set priorities expect preemption.
func (c *connection) plansQueued(ctx context.Context, at path.Path, what, namespace, queue, class string) diag.Diagnostics {
	var diags diag.Diagnostics
	work := queued{
		what: what, queue: reference{aLocalQueue, namespace, queue}, class: reference{aWorkloadPriorityClass, "", class},
	}
	mine, isQueue := c.clusterQueueOf(ctx, work.queue)
	c.planned.mu.Lock()
	others := slices.Clone(c.planned.queued)
	c.planned.queued = append(c.planned.queued, work)
	c.planned.mu.Unlock()
	if !isQueue {
		return diags
	}
	if f, found, _ := c.findReference(ctx, mine); !found || !f.neverPreempts {
		return diags
	}
	for _, other := range others {
		if other.what == what || other.class == work.class || !c.differ(ctx, other.class, work.class) {
			continue
		}
		if theirs, ok := c.clusterQueueOf(ctx, other.queue); ok && theirs == mine && c.planned.isFirst(mine) {
			diags.AddAttributeWarning(at, neverPreempts(mine.name), fmt.Sprintf(
				"%s and %s share ClusterQueue %s with different priorities. %s", what, other.what, mine.name, neverPreemptsDetail))
			return diags
		}
	}
	return diags
}

func neverPreempts(queue string) string {
	return fmt.Sprintf("ClusterQueue %s never preempts", queue)
}

const neverPreemptsDetail = `Its preemption.within_cluster_queue is "Never" (the default), so priorities only determine the order in the queue: ` +
	`a high-priority workload waits until low-priority workloads end. To let it preempt them, set ` +
	`preemption = { within_cluster_queue = "LowerPriority" }.`

// differingClasses are two WorkloadPriorityClasses of different value, planned or in the cluster, if there are.
func (c *connection) differingClasses(ctx context.Context) (low, high string, ok bool) {
	classes := map[string]int32{}
	if listed := c.catalogue(ctx, aWorkloadPriorityClass, ""); listed.err == nil {
		for name, f := range listed.attributes {
			classes[name] = f.value
		}
	}
	c.planned.mu.Lock()
	for ref, f := range c.planned.attributes {
		if ref.kind == aWorkloadPriorityClass {
			classes[ref.name] = f.value
		}
	}
	c.planned.mu.Unlock()
	for name, value := range classes {
		if low == "" || value < classes[low] || value == classes[low] && name < low {
			low = name
		}
		if high == "" || value > classes[high] || value == classes[high] && name < high {
			high = name
		}
	}
	return low, high, low != "" && classes[low] != classes[high]
}

// neverPreempting are the ClusterQueues planned so far whose workloads never make room for one another, and without a
// warning yet.
func (c *connection) neverPreempting() []string {
	c.planned.mu.Lock()
	defer c.planned.mu.Unlock()
	var names []string
	for ref, f := range c.planned.attributes {
		if ref.kind == aClusterQueue && f.neverPreempts && !c.planned.warned[ref] {
			names = append(names, ref.name)
		}
	}
	slices.Sort(names)
	return names
}

// differ reports whether two classes are known to have different values; no class is a priority of 0.
func (c *connection) differ(ctx context.Context, a, b reference) bool {
	values := [2]int32{}
	for i, class := range []reference{a, b} {
		if class.name == "" {
			continue
		}
		f, found, _ := c.findReference(ctx, class)
		if !found {
			return false
		}
		values[i] = f.value
	}
	return values[0] != values[1]
}

func (c *connection) clusterQueueOf(ctx context.Context, queue reference) (reference, bool) {
	f, found, _ := c.findReference(ctx, queue)
	return reference{kind: aClusterQueue, name: f.clusterQueue}, found && f.clusterQueue != ""
}

// warnOfNever warns of a ClusterQueue that never preempts where there are classes of different value; once per queue.
func (c *connection) warnOfNever(ctx context.Context, at path.Path, queue string) diag.Diagnostics {
	var diags diag.Diagnostics
	if low, high, ok := c.differingClasses(ctx); ok && c.planned.isFirst(reference{kind: aClusterQueue, name: queue}) {
		diags.AddAttributeWarning(at, neverPreempts(queue), fmt.Sprintf(
			"There are WorkloadPriorityClasses with different values, such as %s and %s. %s", low, high, neverPreemptsDetail))
	}
	return diags
}
