package quota

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Answer is what would become of a workload.
type Answer struct {
	// Decision about it: Admit, Preempt (it would be admitted once its targets are gone) or Wait.
	Decision
	// Ahead is how many pending workloads of its queue would come before it while it waits.
	Ahead int
	// Others are the decisions that would be made before the one about it.
	Others []Decision
}

// Text is the decision in a sentence.
func (a *Answer) Text() string {
	switch a.Kind {
	case Admit:
		return fmt.Sprintf("%s is admitted by ClusterQueue %s with %s", a.Workload, a.ClusterQueue, flavorsText(a.Admission))
	case Preempt:
		var victims []string
		for _, t := range a.Targets {
			victims = append(victims, fmt.Sprintf("%s (priority %d, %s)", t.Workload, t.Priority, t.Reason))
		}
		return fmt.Sprintf("%s is admitted by ClusterQueue %s with %s once these are evicted: %s",
			a.Workload, a.ClusterQueue, flavorsText(a.Admission), strings.Join(victims, ", "))
	}
	return fmt.Sprintf("%s waits, behind %d others: %s", a.Workload, a.Ahead, a.Message)
}

// flavorsText lists what an admission gives.
func flavorsText(a *kueue.Admission) string {
	var parts []string
	for _, set := range a.PodSetAssignments {
		for _, name := range sortedResources(set.Flavors) {
			q := set.ResourceUsage[name]
			parts = append(parts, fmt.Sprintf("%s %s of %s for %d × %s", &q, name, set.Flavors[name], *set.Count, set.Name))
		}
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}

// maxWhatIfCycles bounds WhatIf: workloads that are ahead and not tried yet are tried first, each in a cycle.
const maxWhatIfCycles = 1000

// WhatIf returns the decision about a workload if it were added now (or changed to this), without changing
// anything. Those ahead of it in its queue that were not tried yet are decided first, on the understanding that what is
// evicted gives its quota back at once.
func (e *Engine) WhatIf(w Workload, now time.Time) Answer {
	var queue string
	if l := e.localQueues[types.NamespacedName{Namespace: w.Namespace, Name: w.Queue}]; l != nil {
		queue = string(l.spec.ClusterQueue)
	}
	c := e.CloneTree(queue)
	c.SetWorkload(w)
	a := Answer{}
	for range maxWhatIfCycles {
		r := c.Cycle(now)
		for _, d := range r.Decisions {
			if d.Workload == w.NamespacedName && (d.Kind == Admit || d.Kind == Preempt) {
				a.Decision = d
				return a
			}
			if d.Workload != w.NamespacedName && d.Kind != Wait {
				a.Others = append(a.Others, d)
			}
			if d.Kind == Evict {
				c.Release(d.Workload)
			}
			for _, t := range d.Targets {
				c.Release(t.Workload)
			}
		}
		// Once it was tried in vain, only others' releases can help it.
		if r.Settled || slices.ContainsFunc(r.Decisions, func(d Decision) bool { return d.Workload == w.NamespacedName && d.Cause == NoFit }) {
			break
		}
	}
	a.Decision = c.Why(w.NamespacedName)
	a.Ahead, _ = c.Position(w.NamespacedName)
	return a
}

// Why returns why a known workload waits: a Decision of Kind Wait with the reason and message of its condition
// QuotaReserved=False, and the cause. For one that holds quota or has ended, Kind is empty.
func (e *Engine) Why(name types.NamespacedName) Decision {
	e.rebuild()
	w, known := e.workloads[name]
	d := Decision{Kind: Wait, Workload: name, Reason: kueue.WorkloadInadmissible}
	if !known || w.Finished || w.Reservation != nil {
		d.Kind, d.Reason = "", ""
		return d
	}
	l := e.localQueues[w.localQueue()]
	var q *queue
	if l != nil {
		d.ClusterQueue = string(l.spec.ClusterQueue)
		q = e.queues[d.ClusterQueue]
	}
	switch {
	case w.Inactive:
		d.Cause, d.Reason, d.Message = Inactive, kueue.WorkloadPending, "The workload is deactivated"
	case w.Gated != "":
		d.Cause, d.Reason, d.Message = Gated, kueue.WorkloadAdmissionGated, "Admission is gated by: "+w.Gated
	case l == nil:
		d.Cause, d.Message = QueueStopped, fmt.Sprintf("LocalQueue %s doesn't exist", w.Queue)
	case l.stopped():
		d.Cause, d.Message = QueueStopped, fmt.Sprintf("LocalQueue %s is inactive", w.Queue)
	case q == nil:
		d.Cause, d.Message = QueueInactive, fmt.Sprintf("ClusterQueue %s doesn't exist", d.ClusterQueue)
	case !q.active:
		d.Cause, d.Message = QueueInactive, fmt.Sprintf("ClusterQueue %s is inactive", q.name)
	case w.Held != "":
		d.Cause, d.Reason, d.Message = Held, kueue.WorkloadPending, "It is held back after an eviction: "+w.Held
	case w.untried:
		d.Cause, d.Reason, d.Message = Alike, kueue.WorkloadPending, "Bypassed scheduling evaluation because an equivalent workload recently failed"
	case w.lastDecision.Kind != "":
		return w.lastDecision
	default:
		d.Cause, d.Reason, d.Message = Behind, kueue.WorkloadPending, "Workload is pending evaluation in the scheduling queue"
	}
	return d
}
