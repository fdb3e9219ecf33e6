package placement

// Kind is the kind of a decision.
type Kind string

const (
	// Bound means that the pod goes to Decision.Node.
	Bound Kind = "Bound"
	// Preempts means that Decision.Victims are evicted from Decision.Node, which is reserved for the pod.
	Preempts Kind = "Preempts"
	// Unschedulable means that the pod fits nowhere, and that no eviction helps.
	Unschedulable Kind = "Unschedulable"
	// Gated means that the pod has scheduling gates, or belongs to another scheduler: it is not tried.
	Gated Kind = "Gated"
)

// Decision is the scheduling decision about one pod.
type Decision struct {
	Kind Kind
	// Node is where the pod goes, or which is reserved for it.
	Node string
	// Equal is how many nodes came out equal, this one included, of those that were looked at.
	Equal int
	// Victims (Preempts), the most important first. Some may be terminating already.
	Victims []*Pod
	// Violations (Preempts) is how many victims' disruption budgets do not allow it.
	Violations int
	// Approximate lists what the pod uses that is not modelled.
	Approximate []string
}

// Schedule decides about one pod. Nothing is changed, except for where the next search begins, and that a pod which is
// nominated to a node and finds no way to go there, or anywhere, loses its nomination.
func (c *Cluster) Schedule(pod *Pod) Decision {
	decision, lost := c.decide(pod)
	if lost {
		c.Denominate(pod)
	}
	return decision
}

// decide is Schedule without its effect on nominations; lost reports whether the pod's nomination, if it has one, is to
// end.
func (c *Cluster) decide(pod *Pod) (decision Decision, lost bool) {
	if gated(pod) {
		return Decision{Kind: Gated}, false
	}
	cy := c.cycle(pod)
	decision = Decision{Kind: Unschedulable, Approximate: pod.preFilterState.approximate}
	if at, reserved := c.reserved(pod); reserved && cy.at(at) == feasible {
		decision.Kind, decision.Node, decision.Equal = Bound, c.nodes[at].name, 1
		return decision, false
	}
	at, equal := cy.search()
	if equal == 0 {
		eligible := cy.preempt(&decision)
		return decision, eligible && decision.Kind == Unschedulable
	}
	decision.Kind, decision.Node, decision.Equal = Bound, c.nodes[at].name, equal
	return decision, false
}

// gated reports whether the default scheduler leaves a pod alone.
func gated(pod *Pod) bool {
	return len(pod.object.Spec.SchedulingGates) > 0 || foreign(pod)
}

// foreign reports whether a pod belongs to another scheduler.
func foreign(pod *Pod) bool {
	name := pod.object.Spec.SchedulerName
	return name != "" && name != defaultScheduler
}

const defaultScheduler = "default-scheduler"

// reserved is the node that the pod is nominated to: it is tried first, and alone (evaluateNominatedNode).
func (c *Cluster) reserved(pod *Pod) (at int, reserved bool) {
	name, nominated := c.nominated[pod]
	if !nominated {
		return 0, false
	}
	at, known := c.position[name]
	return at, known
}

func (c *Cluster) choose(n int) int {
	if c.TieBreak == nil || n == 1 {
		return 0
	}
	return c.TieBreak(n)
}
