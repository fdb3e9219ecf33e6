package placement

// memo is what was found out about the nodes for pods of one shape: valid as long as a node has not changed since. Clusters that ask about
// thousands of pods of few shapes, as simulations do, look most answers up.
type memo struct {
	layout  *layout
	entries []entry // by position
	// priority is that of the pod for which evictions were tried, and evictions what came of it.
	priority  int32
	evictions []eviction
}

// entry is what is known of one node, as of a version of it.
type entry struct {
	version uint32
	// verdict of the filters: of pods for which only the node itself counts; else unknown.
	verdict verdict
	// base is the part of the score that depends on the node alone; -1: unknown.
	base int16
}

// eviction is what evictions on a node come to, as of a version of it.
type eviction struct {
	version uint32
	helps   bool
	rank    ranking
}

// remembered is the memo of a pod's shape, empty when the nodes are others than it knows.
func (c *Cluster) remembered(pod *Pod) *memo {
	m := &pod.arrival.memo
	if m.layout != c.layout {
		*m = memo{layout: c.layout, entries: make([]entry, len(c.nodes))}
	}
	return m
}

// entry is what is known of the node at a position as it now is.
func (c *Cluster) entry(m *memo, at int) *entry {
	e := &m.entries[at]
	if e.version != c.versions[at] {
		*e = entry{version: c.versions[at], base: -1}
	}
	return e
}

// touch notes that a node changes.
func (c *Cluster) touch(at int) {
	*c.changes++
	c.versions[at] = *c.changes
}

// alone says whether for the pod nothing counts but the node itself and what is on it: no topology, and no ports, whose owners it would take
// longer to look at than all else.
func (cy *cycle) alone() bool {
	return len(cy.pod.ports) == 0 && cy.spreads == nil && cy.affinities == nil
}

// base is the part of a node's score that depends on the node alone.
func (c *Cluster) base(m *memo, pod *Pod, at int) int64 {
	e := c.entry(m, at)
	if e.base < 0 {
		e.base = int16(weightFit*leastAllocated(pod, c.nodes[at]) + weightBalanced*balanced(pod, c.nodes[at]))
	}
	return int64(e.base)
}

// evict is what evictions on a node come to. fresh: the victims are in workspace.victims; else they would be the same as when they were last
// selected.
func (cy *cycle) evict(at int) (rank ranking, helps, fresh bool) {
	c, n := cy.c, cy.c.nodes[at]
	if !cy.alone() || len(c.budgets) > 0 || len(n.nominated) > 0 {
		rank, helps, _ = cy.victims(n)
		return rank, helps, true
	}
	m := c.remembered(cy.pod)
	if m.evictions == nil || m.priority != cy.pod.Priority {
		m.priority, m.evictions = cy.pod.Priority, make([]eviction, len(c.nodes))
	}
	e := &m.evictions[at]
	if e.version == c.versions[at] {
		return e.rank, e.helps, false
	}
	rank, helps, drawn := cy.victims(n)
	if !drawn {
		*e = eviction{version: c.versions[at], helps: helps, rank: rank}
	}
	return rank, helps, true
}
