package forecast

import (
	"slices"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/placement"
)

// maxPossible bounds how many victims the forecast keeps of choices that it does not follow.
const maxPossible = 64

// possible notes the pods that a choice would evict which the forecast does not follow.
func (r *run) possible(c choice, by *fate) {
	for _, pod := range c.victims {
		if len(r.others) == maxPossible {
			return
		}
		if !slices.ContainsFunc(r.others, func(v victim) bool { return v.pod == pod }) {
			r.others = append(r.others, victim{pod: pod, node: c.node, job: by.job, by: by.role})
		}
	}
}

// choice is one of several equal decisions.
type choice struct {
	node    string
	victims []*placement.Pod
	view    int // the index of the budgets' view
}

func (c choice) equal(other choice) bool {
	return c.node == other.node && slices.Equal(c.victims, other.victims)
}

// alwaysAll is the number of nodes up to which kube-scheduler compares all feasible nodes (minFeasibleNodesToFind).
const alwaysAll = 100

// laggingChoices adds the decisions that the scheduler makes before it observes the new status of disruption budgets
// after evictions.
func (r *run) laggingChoices(pod *placement.Pod, choices []choice) []choice {
	for view, budgets := range r.views[:len(r.views)-1] {
		lagging := r.cluster.At(budgets)
		d := lagging.Schedule(pod)
		if d.Kind != placement.Preempts {
			continue
		}
		for _, c := range r.choices(lagging, pod, d, view) {
			if !slices.ContainsFunc(choices, c.equal) {
				choices = append(choices, c)
			}
		}
	}
	return choices
}

// unnoticed returns the decisions that the scheduler makes before its cache shows that victims are stopping. Those
// victims stop in addition to the victims of its next decisions; with mayWait it may find no node then.
func (r *run) unnoticed(pod *placement.Pod, noticed placement.Decision) (early []choice, mayWait bool) {
	if r.fates[pod] == nil || !r.evicting() {
		return nil, false
	}
	before := r.cluster.Clone()
	for _, v := range r.lost {
		if !v.stopped && v.evicted() {
			before.Unnoticed(v.pod, v.node)
		}
	}
	placed := func(d placement.Decision) bool { return d.Kind == placement.Bound || d.Kind == placement.Preempts }
	d := before.Schedule(pod)
	if !placed(d) {
		return nil, placed(noticed)
	}
	return r.choices(before, pod, d, len(r.views)-1), false
}

// evicting reports whether victims of the scheduler are stopping.
func (r *run) evicting() bool {
	return slices.ContainsFunc(r.lost, func(v victim) bool { return !v.stopped && v.evicted() })
}

// choices returns a decision and all decisions that are equal to it.
func (r *run) choices(cluster *placement.Cluster, pod *placement.Pod, d placement.Decision, view int) []choice {
	choices := []choice{{node: d.Node, victims: d.Victims, view: view}}
	add := func(c choice) {
		c.view = view
		if !c.equal(choices[0]) { // the others differ from one another
			choices = append(choices, c)
		}
	}
	if d.Kind == placement.Bound && d.Equal == 1 && len(cluster.Nodes()) <= alwaysAll {
		return choices
	}
	for _, option := range cluster.Alternatives(pod).Options {
		victims := make([]*placement.Pod, len(option.Victims))
		for i, v := range option.Victims {
			victims[i] = v.Pod
		}
		add(choice{node: option.Node, victims: victims})
		for i, v := range option.Victims {
			for _, or := range v.Or {
				other := slices.Clone(victims)
				other[i] = or
				add(choice{node: option.Node, victims: other})
			}
		}
	}
	return choices
}

// maxNodesNamed bounds how many equal nodes an answer names.
const maxNodesNamed = 64

func namesOf(c choice, equal []choice) (nodes []string, others int) {
	nodes = []string{c.node}
	for _, e := range equal {
		switch {
		case e.node == c.node:
		case len(nodes) == maxNodesNamed:
			others++
		default:
			nodes = append(nodes, e.node)
		}
	}
	return nodes, others
}
