package placement

import "slices"

// cycle is one pod's way through the filters.
type cycle struct {
	c          *Cluster
	pod        *Pod
	affinities *affinities // nil: the plugin is skipped
	spreads    *spreads    // nil: the same
	mounts     *mounts     // nil: it has no volume claims
	// rejection is why no node comes into question, before any is looked at (PreFilter); "" where some may.
	rejection string
	// hasMemo: there is a memo of the pod's shape.
	hasMemo bool
	// helpful are the nodes where evictions may help, once search has found none.
	helpful *positionSet
}

func (c *Cluster) cycle(pod *Pod) *cycle {
	c.preFilter(pod)
	cy := &cycle{c: c, pod: pod, affinities: c.affinities(pod), spreads: c.spreads(pod), mounts: c.mounts(pod)}
	switch {
	case cy.mounts != nil && cy.mounts.unready != "":
		cy.rejection = cy.mounts.unready
	case pod.wants != nil:
		cy.rejection = pod.wants.missing
	}
	cy.hasMemo = cy.usesMemo()
	return cy
}

// abandoned reports whether the claims of a pod are such that kube-scheduler does not come to preemption: an
// earlier PostFilter plugin lacks the state that its PreFilter did not compute (dynamicresources).
func (cy *cycle) abandoned() bool { return cy.mounts != nil && cy.mounts.unready != "" }

// shift counts a pod as one more (or, by -1, one less) on a node, in what the filters know of other nodes.
func (cy *cycle) shift(other *Pod, n *node, by int) {
	if cy.affinities != nil {
		cy.affinities.shift(other, n, by)
	}
	if cy.spreads != nil {
		cy.spreads.shift(other, n, by)
	}
}

// restore puts back what shift forgot, once its counts are undone.
func (cy *cycle) restore(least [][2]domain) {
	if cy.spreads != nil {
		copy(cy.spreads.least, least)
	}
}

func (cy *cycle) remember() [][2]domain {
	if cy.spreads == nil {
		return nil
	}
	return slices.Clone(cy.spreads.least)
}

// at is the status of the node at a position.
func (cy *cycle) at(position int) filterStatus { return cy.status(cy.c.nodes[position]) }

// status is the status of a node as it is.
func (cy *cycle) status(n *node) filterStatus {
	if cy.rejection != "" {
		return rejected
	}
	if v := cy.pod.fixed(n); v != feasible {
		return v
	}
	return cy.runFilterPluginsWithNominatedPods(&trial{node: n, requested: n.requested, count: len(n.pods)})
}

// runFilterPluginsWithNominatedPods is the status of a node that passes the fixed filters. Pods of at least the same
// priority that are nominated to it count as if they ran there; and the pod must fit without them too
// (RunFilterPluginsWithNominatedPods).
func (cy *cycle) runFilterPluginsWithNominatedPods(t *trial) filterStatus {
	if len(t.nominated) > 0 {
		if v := cy.runWithNominatedPods(t); v != feasible {
			return v
		}
	}
	return cy.runFilterPlugins(t)
}

func (cy *cycle) runWithNominatedPods(t *trial) filterStatus {
	with := *t
	for _, nominated := range t.nominated {
		if nominated.Priority >= cy.pod.Priority && nominated != cy.pod {
			with.nominatedPods = append(with.nominatedPods, nominated)
		}
	}
	if len(with.nominatedPods) == 0 {
		return feasible
	}
	least := cy.remember()
	with.requested = slices.Clone(t.requested)
	for _, nominated := range with.nominatedPods {
		with.requested = with.requested.add(nominated.held, 1)
		with.count++
		cy.shift(nominated, t.node, 1)
	}
	v := cy.runFilterPlugins(&with)
	for _, nominated := range with.nominatedPods {
		cy.shift(nominated, t.node, -1)
	}
	cy.restore(least)
	return v
}

// runFilterPlugins applies the filters that read more than the node object, in kube-scheduler's order.
func (cy *cycle) runFilterPlugins(t *trial) filterStatus {
	if v := t.ports(cy.pod); v != feasible {
		return v
	}
	if v := t.resources(cy.pod, t.requested, t.count); v != feasible {
		return v
	}
	if cy.mounts != nil {
		if v := cy.mountable(t); v != feasible {
			return v
		}
	}
	if cy.spreads != nil {
		if v := cy.spreads.filter(t.node); v != feasible {
			return v
		}
	}
	if cy.affinities != nil {
		if v := cy.affinities.filter(t.node); v != feasible {
			return v
		}
	}
	return cy.allocate(t.node)
}

// workspace is memory that is reused.
type workspace struct {
	feasible      []int
	helpful       positionSet
	scores, part  []int64
	requested     quantities
	lower         []int
	violating     []bool
	victims, best []*Pod

	// memos are the shapes that have one, and oldest is the next to lose it.
	memos  []*preFilterState
	oldest int
}

// grow is a slice of a length, with any content.
func grow[T any](s []T, length int) []T {
	if cap(s) < length {
		return make([]T, length, length+length/2)
	}
	return s[:length]
}
