package differential

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// A Step is one decision of the real scheduler, and the cluster that it was made on.
type Step struct {
	Before   *Snapshot
	Pod      *corev1.Pod // as it is in Before
	Decision Decision
	// Order is the order of the nodes in the scheduler's cache.
	Order []string
	// Candidates are the victims on each of the nodes that it compared for a preemption, if there were several.
	Candidates map[string][]string
}

// A Decision is a scheduler's decision about one pending pod. At most one of Node and Nominated is set; with neither
// the pod stays pending.
type Decision struct {
	// Node is the node that the pod is bound to.
	Node string
	// Nominated is the node reserved for it until its victims have stopped. It is empty if an earlier nomination merely
	// stays.
	Nominated string
	// Victims are the pods evicted for it, namespace/name, sorted. Pods that were being deleted already are not among
	// them.
	Victims []string
	// Message is the scheduler's message for a pod that it does not bind.
	Message string
	// Equals are all decisions between which the scheduler found no difference, this one included, where it had a choice:
	// which of them it takes is chance. They have no message and no equals.
	Equals []Decision
	// Sampled is true if only some of the nodes were considered; Equals are then all possible results of other samples.
	// It is known of the engine, not of the scheduler.
	Sampled bool
	// Approximate is true if the nodes that were considered also decide how each of them scores, so that Equals may miss
	// results. It is known of the engine, not of the scheduler.
	Approximate bool
}

// String is a decision in a line.
func (d Decision) String() string {
	var text string
	switch {
	case d.Node != "":
		text = "bound to " + d.Node
	case d.Nominated != "" && len(d.Victims) == 0:
		text = "nominated to " + d.Nominated + " without further victims"
	case d.Nominated != "":
		text = "nominated to " + d.Nominated + ", evicting " + strings.Join(d.Victims, ", ")
	default:
		text = "stays pending"
	}
	if d.Message != "" {
		text += " (" + d.Message + ")"
	}
	return text
}

// compareDecisions orders decisions by their effect.
func compareDecisions(a, b Decision) int {
	return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Nominated, b.Nominated), slices.Compare(a.Victims, b.Victims))
}

func sameDecision(a, b Decision) bool { return compareDecisions(a, b) == 0 }
