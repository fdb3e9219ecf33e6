package placement

import (
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// Displacement is what is certain of the pods that are evicted for planned ones.
type Displacement struct {
	// Highest is a priority above which nothing is evicted.
	Highest int32
	// Candidates are the pods that may be evicted, by the names of their nodes. Fewest and Most are how many of them are.
	Candidates   map[string][]*Pod
	Fewest, Most int
	// Guarded is true if budgets (PDBs) cover pods that are less important than the planned ones.
	Guarded bool
}

// Displaces reports whether all planned pods start, whatever kube-scheduler chooses and in whatever order it tries pods, and
// whether some pod has to be evicted for it, while pending ones are tried too. false means that it is not known.
//
// The reason is that no pod of at least their priority is ever evicted, as no more important one can start: what those
// leave on the nodes is theirs in the end. A planned pod that finds no room when it is tried, though there are slots left, can
// evict what is less important there, and keeps the room. And where they do not all fit beside what is there now, somebody is
// evicted.
func (c *Cluster) Displaces(planned, pending []Group) bool {
	c = c.reader()
	if !c.decidesAlone(planned, pending) {
		return false
	}
	kinds, fewest := byDemands(planned), 0
	stays, now := c.floorAbove(planned[0].Pod.Priority-1), c.floor(none)
	for i, g := range kinds {
		if c.capacity(g.Pod, stays)-c.lost(g.Pod, stays, without(kinds, i)) < g.Count {
			return false
		}
		fewest = max(fewest, g.Count-c.capacity(g.Pod, now))
	}
	return fewest > 0
}

func none(*Pod) bool { return false }

// decidesAlone reports whether nodes' resources alone decide about planned pods, and no other pod may start that is as
// important or evicts others.
func (c *Cluster) decidesAlone(planned, pending []Group) bool {
	return c.contested(planned) && !c.returns() && c.neverFit(pending, none) && c.unrestricted(planned, pending)
}

// Displaced is what is certain of the pods that are evicted for planned ones while pending ones are tried too, also where not
// all of them start. divided reports whether the loss of a pod of at most some priority may stop a pod of a higher one. false
// means that nothing is known.
//
// The reason is that kube-scheduler prefers nodes where what it evicts is less important. While there is always a node left,
// among those that it compares, where a planned pod fits beside everything above a priority, it evicts nothing above it; nor do
// the pods that are created again in the place of those that it evicts.
func (c *Cluster) Displaced(planned, pending []Group, divided func(priority int32) bool) (Displacement, bool) {
	c = c.reader()
	terminates := func(o occupant) bool { return o.terminating } // and may be created again, and evicted then
	if !c.decidesAlone(planned, pending) || c.anyOnNodes(terminates) {
		return Displacement{}, false
	}
	priority := planned[0].Pod.Priority
	stays := c.floorAbove(priority - 1)
	starts := func(g Group) bool { return !c.neverFits(g.Pod, stays) } // in the place of a victim, and is evicted too
	if slices.ContainsFunc(pending, starts) {
		return Displacement{}, false
	}
	kinds, below := byDemands(planned), c.below(priority)
	if len(below) == 0 {
		return Displacement{}, true
	}
	d := Displacement{
		Guarded: c.anyOnNodes(func(o occupant) bool { return o.pod.Priority < priority && c.guarded(o.pod) }), Candidates: map[string][]*Pod{},
	}
	d.Highest, d.Fewest = c.highest(kinds, below, stays, d.Guarded, divided), c.fewest(kinds, stays)
	spreads, all, each := d.Highest > below[0], 0, 0 // what is created again may evict others too
	for at, n := range c.nodes {
		opens := slices.ContainsFunc(kinds, func(g Group) bool { return n.slotsBeside(g.Pod, stays.requested[at], stays.counts[at]) > 0 })
		for _, o := range n.pods {
			if opens && o.pod.Priority <= d.Highest || spreads && o.pod.Priority < d.Highest {
				d.Candidates[n.name] = append(d.Candidates[n.name], o.pod)
			}
		}
		all, each = all+len(d.Candidates[n.name]), max(each, len(d.Candidates[n.name]))
	}
	for _, g := range kinds {
		d.Most += g.Count * each
	}
	if d.Most = min(d.Most, all); spreads {
		d.Most = all
	}
	return d, true
}

// fewest is how many pods have to go at least for the planned ones that start in any case.
func (c *Cluster) fewest(kinds []Group, stays *floor) (fewest int) {
	now := c.floor(none)
	for i, g := range kinds {
		starting := min(g.Count, c.capacity(g.Pod, stays)-c.lost(g.Pod, stays, without(kinds, i)))
		most := 1
		for _, n := range c.nodes {
			for _, o := range n.pods {
				if o.pod.Priority < g.Pod.Priority {
					most = max(most, g.Pod.slotsOf(o.pod))
				}
			}
		}
		missing := max(starting-c.capacity(g.Pod, now), 0)
		fewest = max(fewest, (missing+most-1)/most)
	}
	return fewest
}

func without(kinds []Group, i int) []Group { return slices.Concat(kinds[:i], kinds[i+1:]) }

// floorAbove is what stays if everything up to a priority goes.
func (c *Cluster) floorAbove(priority int32) *floor {
	return c.floor(func(pod *Pod) bool { return pod.Priority <= priority })
}

// below are the priorities below one that pods on nodes have, the lowest first.
func (c *Cluster) below(priority int32) (below []int32) {
	for _, n := range c.nodes {
		for _, o := range n.pods {
			if o.pod.Priority < priority {
				below = append(below, o.pod.Priority)
			}
		}
	}
	slices.Sort(below)
	return slices.Compact(below)
}

// highest is a priority above which planned pods evict nothing: the lowest one that is known. Where pods are guarded,
// kube-scheduler compares first what budgets allow.
func (c *Cluster) highest(kinds []Group, below []int32, all *floor, guarded bool, divided func(priority int32) bool) int32 {
	last := len(below) - 1
	for _, priority := range below[:last] {
		if !guarded && !divided(priority) && c.spares(kinds, all, c.floorAbove(priority)) {
			return priority
		}
	}
	return below[last]
}

func (c *Cluster) guarded(pod *Pod) bool {
	return slices.ContainsFunc(c.budgets, func(b *budget) bool { return b.covers(pod) })
}

// spares reports whether planned pods always compare a node where they fit beside what stays if not all goes that they may
// evict.
func (c *Cluster) spares(kinds []Group, all, stays *floor) bool {
	for i, g := range kinds {
		c.preFilter(g.Pod)
		var slots []int // of the nodes where evictions help
		for at, n := range stays.nodes {
			if n.slotsBeside(g.Pod, all.requested[at], all.counts[at]) > 0 {
				slots = append(slots, n.slotsBeside(g.Pod, stays.requested[at], stays.counts[at]))
			}
		}
		if !anyHave(slots, fewestCandidates, g.Count+c.lost(g.Pod, stays, without(kinds, i))) {
			return false
		}
	}
	return true
}

// negligible is a probability that counts as none.
const negligible = 1e-12

// anyHave reports whether so many of some nodes have so many slots together, whichever of them they are. Which nodes
// kube-scheduler compares depends on the order of a map (NodeToStatus.ForEachExplicitNode), and this on a random hash: it draws
// them.
func anyHave(slots []int, nodes, least int) bool {
	slots = slices.Sorted(slices.Values(slots))
	nodes = min(nodes, len(slots))
	total, without := 0, 0
	for at, number := range slots {
		if at < nodes {
			total += number
		}
		if number == 0 {
			without++
		}
	}
	return total >= least || fewerOf(len(slots)-without, without, nodes, least) < negligible
}

// fewerOf is the probability that fewer than least of some good things are among so many that are drawn from good and bad ones.
func fewerOf(good, bad, drawn, least int) (probability float64) {
	for k := max(0, drawn-bad); k <= min(least-1, good, drawn); k++ {
		probability += math.Exp(logChoices(good, k) + logChoices(bad, drawn-k) - logChoices(good+bad, drawn))
	}
	return probability
}

// logChoices is the logarithm of the number of ways to choose k of n things.
func logChoices(n, k int) float64 {
	logFactorial := func(n int) float64 {
		log, _ := math.Lgamma(float64(n) + 1)
		return log
	}
	return logFactorial(n) - logFactorial(k) - logFactorial(n-k)
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
