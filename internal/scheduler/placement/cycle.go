package placement

import "slices"

// cycle is one pod's way through the filters.
type cycle struct {
	c          *Cluster
	pod        *Pod
	affinities *affinities // nil: the plugin is skipped
	spreads    *spreads    // nil: the same
	mounts     *mounts     // nil: it has no volume claims
	// kept: there is a memo of the pod's shape.
	kept bool
	// helpful are the nodes where evictions may help, once search has found none.
	helpful *positionSet
}

func (c *Cluster) cycle(pod *Pod) *cycle {
	c.arrive(pod)
	cy := &cycle{c: c, pod: pod, affinities: c.affinities(pod), spreads: c.spreads(pod), mounts: c.mounts(pod)}
	cy.kept = cy.keeps()
	return cy
}

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

// at is the verdict on the node at a position.
func (cy *cycle) at(position int) verdict { return cy.judge(cy.c.nodes[position]) }

// judge is the verdict on a node as it is.
func (cy *cycle) judge(n *node) verdict {
	if v := cy.pod.fixed(n); v != feasible {
		return v
	}
	return cy.filter(&trial{node: n, requested: n.requested, count: len(n.pods)})
}

// filter is the verdict on a node that passes the fixed filters. Pods of at least the same priority that are nominated
// to it count as if they ran there; and the pod must fit without them too (RunFilterPluginsWithNominatedPods).
func (cy *cycle) filter(t *trial) verdict {
	if len(t.nominated) > 0 {
		if v := cy.withNominated(t); v != feasible {
			return v
		}
	}
	return cy.run(t)
}

func (cy *cycle) withNominated(t *trial) verdict {
	with := *t
	for _, guest := range t.nominated {
		if guest.Priority >= cy.pod.Priority && guest != cy.pod {
			with.guests = append(with.guests, guest)
		}
	}
	if len(with.guests) == 0 {
		return feasible
	}
	least := cy.remember()
	with.requested = slices.Clone(t.requested)
	for _, guest := range with.guests {
		with.requested = with.requested.add(guest.held, 1)
		with.count++
		cy.shift(guest, t.node, 1)
	}
	v := cy.run(&with)
	for _, guest := range with.guests {
		cy.shift(guest, t.node, -1)
	}
	cy.restore(least)
	return v
}

// run applies the filters that read more than the node object, in kube-scheduler's order.
func (cy *cycle) run(t *trial) verdict {
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
	memos  []*arrival
	oldest int
}

// grow is a slice of a length, with any content.
func grow[T any](s []T, length int) []T {
	if cap(s) < length {
		return make([]T, length, length+length/2)
	}
	return s[:length]
}
