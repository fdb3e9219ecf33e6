package placement

import "slices"

// Group is pods that are equal to the scheduler but for their names.
type Group struct {
	Pod   *Pod
	Count int
}

// Settled reports whether each of the pods either starts at once or finds no node, and which of both, whatever
// kube-scheduler chooses and in whatever order it tries them. Then it evicts nobody. leaves is true of pods on nodes
// that may go besides those that are terminating. false means that it is not known.
//
// The reason is that a pod takes room on one node only. That is true of what a node has for itself: resources, ports, a
// number of pods.
func (c *Cluster) Settled(groups []Group, leaves func(*Pod) bool) bool {
	floors := map[int32]*floor{} // by the priority up to which pods may be evicted
	groups = slices.DeleteFunc(slices.Clone(groups), func(g Group) bool {
		priority := g.Pod.Priority
		if floors[priority] == nil {
			floors[priority] = c.floor(func(pod *Pod) bool { return pod.Priority < priority || leaves(pod) })
		}
		return c.neverFits(g.Pod, floors[priority])
	})
	return !slices.ContainsFunc(groups, func(g Group) bool { return !c.alwaysFits(g.Pod, groups) })
}

// alwaysFits reports whether a pod finds room wherever the others go: they take fewer slots than there are, or go to fewer
// nodes than it fits on.
func (c *Cluster) alwaysFits(pod *Pod, groups []Group) bool {
	var needed room
	for _, other := range groups {
		needed.slots += other.Count * pod.slotsOf(other.Pod)
		needed.nodes += other.Count
	}
	has, local := c.room(pod, needed)
	return local && (has.slots >= needed.slots || has.nodes >= needed.nodes || c.leavesRoom(pod, groups))
}

// leavesRoom is alwaysFits by what others take of a pod's slots on the nodes that there are, which may be none.
func (c *Cluster) leavesRoom(pod *Pod, groups []Group) bool {
	if len(c.nominated) > 0 || len(pod.ports) > 0 {
		return false
	}
	now, equal, others := &floor{nodes: c.nodes}, 0, []Group{}
	for _, n := range c.nodes {
		now.requested, now.counts = append(now.requested, n.requested), append(now.counts, len(n.pods))
	}
	for _, g := range groups {
		if sameDemands(pod, g.Pod) {
			equal += g.Count
		} else {
			others = append(others, g)
		}
	}
	return c.capacity(pod, now)-c.lost(pod, now, others) >= equal
}

// room is how many pods of one kind fit beside the present and the nominated ones.
type room struct {
	slots int // one after the other, on all nodes together
	nodes int // on which at least one fits
}

// room counts until it has found enough of either. local is false, and the counts mean nothing, where other pods, volumes or
// devices decide too: affinity between pods, spreading, claims.
func (c *Cluster) room(pod *Pod, enough room) (has room, local bool) {
	c = c.reader()
	cy := c.cycle(pod)
	if !cy.local() {
		return has, false
	}
	for _, at := range cy.positions() {
		if cy.at(at) == feasible {
			has.nodes++
			has.slots += cy.slotsOn(c.nodes[at])
		}
		if has.slots >= enough.slots || has.nodes >= enough.nodes {
			break
		}
	}
	return has, true
}

// local reports whether nodes' own resources and ports alone decide about the pod.
func (cy *cycle) local() bool {
	return !gated(cy.pod) && cy.rejection == "" && cy.affinities == nil && cy.spreads == nil && cy.mounts == nil && cy.pod.wants == nil
}

// slotsOn is how many pods like that of the cycle fit on a node on which one does.
func (cy *cycle) slotsOn(n *node) int {
	if len(cy.pod.ports) > 0 {
		return 1
	}
	requested, count := slices.Clone(n.requested), len(n.pods)
	for _, nominated := range n.nominated {
		if nominated.Priority >= cy.pod.Priority && nominated != cy.pod {
			requested = requested.add(nominated.held, 1)
			count++
		}
	}
	return n.slots(cy.pod, requested, count)
}

// slots is how many such pods fit, one after the other, on a node on which one does beside what it holds.
func (n *node) slots(pod *Pod, requested quantities, count int) int {
	slots := n.podsAllowed - count
	for slot := range max(len(pod.requests), len(pod.held)) {
		if takes := max(pod.requests.at(slot), pod.held.at(slot)); takes > 0 {
			slots = min(slots, int((n.allocatable.at(slot)-requested.at(slot))/takes))
		}
	}
	return max(slots, 1)
}

// slotsOf is how many slots of the pod another one takes at most, wherever it goes.
func (p *Pod) slotsOf(other *Pod) int {
	most := 1 // of the number of pods, or a port
	for slot, request := range p.requests {
		if request > 0 {
			most = max(most, int((other.held.at(slot)+request-1)/request))
		}
	}
	return most
}

// floor is the least that nodes hold: what is on them without the pods that may leave.
type floor struct {
	nodes     []*node
	requested []quantities
	counts    []int
}

// floor is that of the cluster's nodes, if the pods leave that are terminating and those of which leaves is true.
func (c *Cluster) floor(leaves func(*Pod) bool) *floor {
	f := &floor{nodes: slices.Clone(c.nodes), requested: make([]quantities, len(c.nodes)), counts: make([]int, len(c.nodes))}
	for at, n := range c.nodes {
		for _, o := range n.pods {
			if !o.terminating && !leaves(o.pod) {
				f.requested[at] = f.requested[at].add(o.pod.held, 1)
				f.counts[at]++
			}
		}
	}
	return f
}

// neverFits reports whether the pod fits on no node, however empty the nodes become. It looks at the nodes' objects,
// resources and numbers of pods alone: more pods never make more of these.
func (c *Cluster) neverFits(pod *Pod, least *floor) bool {
	c.preFilter(pod)
	if gated(pod) || pod.wants != nil {
		return false
	}
	for at, n := range least.nodes {
		if n.resources(pod, least.requested[at], least.counts[at]) == feasible && pod.fixed(n) == feasible {
			return false
		}
	}
	return true
}
