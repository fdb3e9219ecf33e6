package forecast

import (
	"slices"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/placement"
)

// maxPossible bounds how many victims the forecast keeps of choices that it does not follow.
const maxPossible = 64

// possible notes the pods that a choice would evict which the forecast does not follow.
func (r *run) possible(c choice, by *podOutcome) {
	for _, pod := range c.victims {
		if !r.stops(pod) {
			r.alsoPossible(victim{pod: pod, node: c.node, job: by.job, by: by.role})
		}
	}
}

// alsoPossible notes a pod that may stop besides the victims of the run.
func (r *run) alsoPossible(v victim) {
	switch {
	case slices.ContainsFunc(r.others, func(o victim) bool { return o.pod == v.pod }):
	case len(r.others) == maxPossible:
		r.cut = true
	default:
		r.others = append(r.others, v)
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
		if d := lagging.Schedule(pod); d.Kind == placement.Preempts {
			choices = union(choices, r.choices(lagging, pod, d, view))
		}
	}
	return choices
}

// steps bounds how many evictions, and how many nodes with stopping pods, are looked at one by one where their order
// relative to the next decision is open. Of more of them only all together are looked at.
func (s splitter) steps() int {
	if s.most < mostRuns(alwaysAll) {
		return 1
	}
	return 8
}

// unnoticed returns the decisions that the scheduler makes before its cache shows that victims are stopping: all of
// them, or those that were evicted last. Those victims stop in addition to the victims of its next decisions; with
// mayWait it may find no node then.
func (r *run) unnoticed(pod *placement.Pod, now []choice) (early []choice, mayWait bool) {
	decisions, most := r.evictionsUnderWay(), r.steps()
	before := r.cluster
	for at, victims := range slices.Backward(decisions) {
		if victims[0].job == r.jobOf(pod) && victims[0].by == r.roleOf(pod) {
			break // it is not tried again before its own victims are known to stop
		}
		before = before.Clone()
		for _, v := range victims {
			before.Unnoticed(v.pod, v.node)
		}
		if at > 0 && len(decisions) > most {
			continue
		}
		choices := r.decided(before, pod)
		mayWait = mayWait || len(choices) == 0 && len(now) > 0
		r.cut = r.cut || len(decisions) > most && !equalChoices(choices, now)
		early = union(early, choices)
	}
	return early, mayWait
}

// evictionsUnderWay are the victims of the scheduler that are stopping, those of one decision in a list.
func (r *run) evictionsUnderWay() (decisions [][]victim) {
	for _, v := range r.lost {
		if v.stopped || !v.evicted() {
			continue
		}
		if last := len(decisions) - 1; last >= 0 && decisions[last][0].node == v.node && decisions[last][0].by == v.by {
			decisions[last] = append(decisions[last], v)
			continue
		}
		decisions = append(decisions, []victim{v})
	}
	return decisions
}

// sooner are the runs in which stopping pods are gone when the next pod is tried, as far as that changes its choices:
// those on all nodes, or on one of them. There the pods before it are tried again too.
func (r *run) sooner(pod *placement.Pod, now []choice) (runs []*run) {
	nodes := r.stoppingNodes()
	if len(nodes) == 0 {
		return nil
	}
	ways := []func(string) bool{func(string) bool { return true }}
	if len(nodes) > 1 && len(nodes) <= r.steps() {
		for _, node := range r.unlike(nodes) {
			ways = append(ways, func(other string) bool { return node == other })
		}
	}
	for _, gone := range ways {
		then := r.cluster.Clone()
		for _, v := range r.lost {
			if !v.stopped && gone(v.node) {
				then.RemovePod(v.pod, v.node)
			}
		}
		// Pods that are created later may come before one that is not planned.
		its := r.outcomes[pod]
		overtaken := len(r.later) > 0 && (its == nil || its.instead != nil)
		if !overtaken && r.unchanged(now, then, pod) {
			continue
		}
		full := r.room() < 2
		r.cut = r.cut || full || len(nodes) > 1 && len(ways) == 1
		if full {
			break
		}
		way := r.fork()
		way.clearNodes(gone)
		way.again(pod)
		runs = append(runs, way)
	}
	return runs
}

// unlike are the nodes without those that are equal to others of them, also in what has changed there.
func (r *run) unlike(nodes []string) (unlike []string) {
	choices := make([]choice, len(nodes))
	for i, node := range nodes {
		choices[i].node = node
	}
	for _, c := range r.distinct(r, choices) {
		unlike = append(unlike, c.node)
	}
	return unlike
}

// again puts a pod back into its queue, and adds the waiting pods that are in none.
func (r *run) again(pod *placement.Pod) {
	r.queues[r.from] = append([]*placement.Pod{pod}, r.queues[r.from]...)
	r.requeue()
}

// requeue adds the waiting pods that are in no queue.
func (r *run) requeue() {
	queued := map[*placement.Pod]bool{}
	for _, queue := range r.queues {
		for _, one := range queue {
			queued[one] = true
		}
	}
	others := func(pods []*placement.Pod) []*placement.Pod {
		return slices.DeleteFunc(pods, func(one *placement.Pod) bool { return queued[one] })
	}
	lists := append(r.retries(others(r.waiting(nil))), r.opportunists(nil)...)
	for _, list := range lists {
		r.queues = append(r.queues, others(list))
	}
}

// decided are the decisions that a cluster allows for a pod; none if it finds no node.
func (r *run) decided(cluster *placement.Cluster, pod *placement.Pod) []choice {
	d := cluster.Schedule(pod)
	if !found(d) {
		return nil
	}
	return r.choices(cluster, pod, d, len(r.views)-1)
}

// found reports whether a pod has found a node, by evictions or without.
func found(d placement.Decision) bool {
	return d.Kind == placement.Bound || d.Kind == placement.Preempts
}

// union adds choices to others.
func union(some, more []choice) []choice {
	has := lookup(some, len(more))
	for _, c := range more { // which differ from one another
		if !has(c) {
			some = append(some, c)
		}
	}
	return some
}

// lookup returns whether a choice is one of many. It is called that many times: in a large cluster both are thousands.
func lookup(choices []choice, times int) (has func(choice) bool) {
	const few = 16
	if len(choices) <= few || times <= few {
		return func(c choice) bool { return slices.ContainsFunc(choices, c.equal) }
	}
	of := make(map[string][]choice, len(choices)) // by node
	for _, c := range choices {
		of[c.node] = append(of[c.node], c)
	}
	return func(c choice) bool { return slices.ContainsFunc(of[c.node], c.equal) }
}

// unchanged reports whether a cluster allows the same decisions for a pod as before. In a large cluster it is taken to if
// one of them is the same: to find all takes too long there.
func (r *run) unchanged(before []choice, cluster *placement.Cluster, pod *placement.Pod) bool {
	if r.steps() > 1 {
		return equalChoices(before, r.decided(cluster, pod))
	}
	d := cluster.Schedule(pod)
	if !found(d) {
		return len(before) == 0
	}
	return slices.ContainsFunc(before, choice{node: d.Node, victims: d.Victims}.equal)
}

// equalChoices reports whether two lists have the same choices.
func equalChoices(some, others []choice) bool {
	if len(some) != len(others) {
		return false
	}
	has := lookup(others, len(some))
	return !slices.ContainsFunc(some, func(c choice) bool { return !has(c) })
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
	prospect := cluster.Alternatives(pod)
	r.cut = r.cut || len(prospect.Approximate) > len(d.Approximate) // there are too many options to name all
	for _, option := range prospect.Options {
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
