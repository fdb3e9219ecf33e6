package placement

import "cmp"

// memo caches what was computed about the nodes for pods of one shape. Its cost is what has changed since it was last
// used: simulations schedule thousands of pods of few shapes.
//
// It is for pods for which only the node itself matters (see usesMemo). If pods are nominated to a node, the result
// for a pod depends on its priority, and on whether it is nominated there itself.
type memo struct {
	cluster *Cluster
	layout  *layout
	seen    int // up to where in Cluster.journal

	versions  []uint32       // of the nodes that it knows
	statuses  []filterStatus // of the filters
	index     index[score]   // of the nodes that the pods fit on
	helpful   positionSet    // where evictions may help
	nominated positionSet    // where pods are nominated

	// priority of the pod that used it last.
	priority int32
	// own is the nominated node of the pod that used it last; -1: none.
	own int
	// evictions are of the helpful nodes but those where they turned out not to help. It is created on first use.
	evictions index[eviction]
	// passing are those evictions that hold for one decision only.
	passing []passing
}

// score is the part of a node's score that depends on the node alone.
type score int16

func (s score) compare(other score) int { return cmp.Compare(s, other) }

// mostMemos bounds the memory of a cluster's memos: each takes some 40 bytes per node, and 150 more once its pods
// preempt.
const mostMemos = 256

// usesMemo reports whether there is or should be a memo for the pod's shape: only a node itself and its pods matter for
// the pod (no topology, and no ports, whose check would take longer than all else), and its shape has occurred before.
func (cy *cycle) usesMemo() bool {
	a := cy.pod.preFilterState
	if cy.c.reading || len(cy.pod.ports) > 0 || cy.spreads != nil || cy.affinities != nil || cy.mounts != nil || cy.pod.wants != nil {
		return false
	}
	a.searches++
	if a.searches == 2 {
		w := cy.c.work
		if len(w.memos) < mostMemos {
			w.memos = append(w.memos, a)
		} else {
			oldest := w.memos[w.oldest]
			oldest.memo, oldest.searches = memo{}, 0
			w.memos[w.oldest] = a
			w.oldest = (w.oldest + 1) % mostMemos
		}
	}
	return a.searches > 1
}

// memo is the memo of the pod's shape, brought up to date.
func (cy *cycle) memo() *memo {
	c, m := cy.c, &cy.pod.preFilterState.memo
	if m.layout != c.layout {
		n := len(c.nodes)
		*m = memo{
			layout: c.layout, versions: make([]uint32, n), statuses: make([]filterStatus, n), index: newIndex[score](n), helpful: newPositionSet(n), nominated: newPositionSet(n),
			priority: cy.pod.Priority, own: -1,
		}
	}
	if m.cluster != c || m.seen < c.forgotten {
		m.cluster = c
		for at := range c.nodes {
			cy.look(m, at)
		}
	} else {
		for _, at := range c.journal[m.seen-c.forgotten:] {
			cy.look(m, int(at))
		}
	}
	m.seen = c.forgotten + len(c.journal)
	if m.priority != cy.pod.Priority {
		m.priority, m.evictions, m.passing = cy.pod.Priority, index[eviction]{}, nil
		for at := range m.nominated.from(0) {
			cy.note(m, at)
		}
	}
	if m.own >= 0 {
		cy.note(m, m.own)
	}
	m.own = -1
	if at, reserved := c.reserved(cy.pod); reserved {
		m.own = at
		cy.note(m, at)
	}
	return m
}

// look brings what the memo knows of a node up to date.
func (cy *cycle) look(m *memo, at int) {
	if m.versions[at] != cy.c.versions[at] {
		m.versions[at] = cy.c.versions[at]
		m.nominated.set(at, len(cy.c.nodes[at].nominated) > 0)
		cy.note(m, at)
	}
}

func (cy *cycle) note(m *memo, at int) {
	v := cy.at(at)
	m.statuses[at] = v
	m.helpful.set(at, v.resolvable())
	if v == feasible {
		m.index.set(at, score(base(cy.pod, cy.c.nodes[at])))
	} else {
		m.index.drop(at)
	}
	if m.evictions.nodes > 0 {
		m.reopen(at)
	}
}

// touch notes that a node changes.
func (c *Cluster) touch(at int) {
	*c.changes++
	c.versions[at] = *c.changes
	if len(c.journal) > 2*len(c.nodes) { // reading it would cost more than looking at every node
		c.forgotten += len(c.journal)
		c.journal = c.journal[:0]
	}
	c.journal = append(c.journal, int32(at))
}
