package placement

import (
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// Displaces reports whether all planned pods start, whatever kube-scheduler chooses and in whatever order it tries pods, and
// whether some pod has to be evicted for it, while pending ones are tried too. false means that it is not known.
//
// The reason is that no pod of at least their priority is ever evicted, as no more important one can start: what those
// leave on the nodes is theirs in the end. A planned pod that finds no room when it is tried, though there are slots left, can
// evict what is less important there, and keeps the room. And where they do not all fit beside what is there now, somebody is
// evicted.
func (c *Cluster) Displaces(planned, pending []Group) bool {
	c = c.reader()
	none := func(*Pod) bool { return false }
	if !c.contested(planned) || c.returns() || !c.neverFit(pending, none) || !c.unrestricted(planned, pending) {
		return false
	}
	priority, evicts := planned[0].Pod.Priority, false
	stays, now := c.floor(func(pod *Pod) bool { return pod.Priority < priority }), c.floor(none)
	kinds := byDemands(planned)
	for i, g := range kinds {
		others := slices.Concat(kinds[:i], kinds[i+1:])
		if c.capacity(g.Pod, stays)-c.lost(g.Pod, stays, others) < g.Count {
			return false
		}
		evicts = evicts || c.capacity(g.Pod, now) < g.Count
	}
	return evicts
}

// Crowded reports whether some planned pods always wait, whatever is less important or leaves: there is too little beside the
// others for all of them. false means that it is not known.
func (c *Cluster) Crowded(planned, pending []Group, leaves func(*Pod) bool) bool {
	c = c.reader()
	if !c.contested(planned) {
		return false
	}
	priority := planned[0].Pod.Priority
	above := slices.DeleteFunc(slices.Clone(pending), func(g Group) bool { return g.Pod.Priority <= priority })
	stays := c.floor(func(pod *Pod) bool { return pod.Priority < priority || leaves(pod) })
	return c.neverFit(above, leaves) && slices.ContainsFunc(byDemands(planned), func(g Group) bool {
		return g.Pod.wants == nil && c.capacity(g.Pod, stays) < g.Count
	})
}

// contested reports whether pods are of one priority, and no pod of at least that priority is about to come or go.
func (c *Cluster) contested(planned []Group) bool {
	if len(planned) == 0 || len(c.nominated) > 0 {
		return false
	}
	priority := planned[0].Pod.Priority
	return !slices.ContainsFunc(planned, func(g Group) bool { return g.Pod.Priority != priority }) &&
		!c.anyOnNodes(func(o occupant) bool { return o.terminating && o.pod.Priority >= priority })
}

func (c *Cluster) anyOnNodes(is func(occupant) bool) bool {
	return slices.ContainsFunc(c.nodes, func(n *node) bool { return slices.ContainsFunc(n.pods, is) })
}

// returns reports whether a pod is stopping in whose place one may be created that can evict others.
func (c *Cluster) returns() bool {
	lowest := int32(math.MaxInt32)
	for _, n := range c.nodes {
		for _, o := range n.pods {
			lowest = min(lowest, o.pod.Priority)
		}
	}
	return c.anyOnNodes(func(o occupant) bool { return o.terminating && o.pod.Priority > lowest })
}

// neverFit reports whether pods neither start nor evict others while nothing leaves that is as important as they are.
func (c *Cluster) neverFit(pods []Group, leaves func(*Pod) bool) bool {
	floors := map[int32]*floor{}
	return !slices.ContainsFunc(pods, func(g Group) bool {
		priority := g.Pod.Priority
		if floors[priority] == nil {
			floors[priority] = c.floor(func(pod *Pod) bool { return pod.Priority < priority || leaves(pod) })
		}
		return !c.neverFits(g.Pod, floors[priority])
	})
}

// unrestricted reports whether nodes' resources alone decide about planned pods, and they may evict others.
func (c *Cluster) unrestricted(planned, pending []Group) bool {
	return !slices.ContainsFunc(planned, func(g Group) bool {
		cy, spec := c.cycle(g.Pod), &g.Pod.object.Spec
		never := spec.PreemptionPolicy != nil && *spec.PreemptionPolicy == corev1.PreemptNever
		a := g.Pod.preFilterState
		repelled := func(by *Pod) bool {
			return slices.ContainsFunc(by.antiAffinity, func(t term) bool { return t.matches(g.Pod, c.namespaces[g.Pod.namespace]) })
		}
		repels := func(other Group) bool { return repelled(other.Pod) }
		return !cy.local() || never || len(g.Pod.ports) > 0 || spec.NodeName != "" || a.names != nil || a.conflicting || len(a.approximate) > 0 ||
			!slices.Equal(g.Pod.requests, g.Pod.held) || slices.ContainsFunc(pending, repels) ||
			c.withAntiAffinity > 0 && c.anyOnNodes(func(o occupant) bool { return repelled(o.pod) })
	})
}

// byDemands joins groups whose pods may go to the same nodes, and take the same there.
func byDemands(groups []Group) (kinds []Group) {
	for _, g := range groups {
		at := slices.IndexFunc(kinds, func(k Group) bool { return sameDemands(k.Pod, g.Pod) })
		if at < 0 {
			kinds = append(kinds, g)
		} else {
			kinds[at].Count += g.Count
		}
	}
	return kinds
}

func sameDemands(a, b *Pod) bool {
	one, other := &a.object.Spec, &b.object.Spec
	return slices.Equal(a.requests, b.requests) && slices.Equal(a.held, b.held) && a.wants == nil && b.wants == nil &&
		equality.Semantic.DeepEqual(one.NodeSelector, other.NodeSelector) && equality.Semantic.DeepEqual(one.Affinity, other.Affinity) &&
		equality.Semantic.DeepEqual(one.Tolerations, other.Tolerations)
}

// capacity is how many such pods fit on all nodes together beside what stays there.
func (c *Cluster) capacity(pod *Pod, stays *floor) (slots int) {
	c.preFilter(pod)
	for at, n := range stays.nodes {
		slots += n.slotsBeside(pod, stays.requested[at], stays.counts[at])
	}
	return slots
}

// lost is how many slots of a pod others take at most, wherever they go. They go to as many nodes as they are, and all of
// them to one node take the most there.
func (c *Cluster) lost(pod *Pod, stays *floor, others []Group) int {
	each, count, most := 0, 0, 0
	for _, g := range others {
		each, count = each+g.Count*pod.slotsOf(g.Pod), count+g.Count
	}
	for at, n := range stays.nodes {
		requested := slices.Clone(stays.requested[at])
		for _, g := range others {
			for range g.Count {
				requested = requested.add(g.Pod.held, 1)
			}
		}
		left := n.slotsBeside(pod, requested, stays.counts[at]+count)
		most = max(most, n.slotsBeside(pod, stays.requested[at], stays.counts[at])-left)
	}
	return min(each, most*count)
}

// slotsBeside is how many such pods fit on a node that holds so much.
func (n *node) slotsBeside(pod *Pod, requested quantities, count int) int {
	if pod.fixed(n) != feasible || n.resources(pod, requested, count) != feasible {
		return 0
	}
	return n.slots(pod, requested, count)
}
