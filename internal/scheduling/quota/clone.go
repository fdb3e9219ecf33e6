package quota

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// Clone copies the engine: what is done to either is not seen by the other. It costs about as much as a look at every workload.
func (e *Engine) Clone() *Engine {
	e.rebuild()
	c := *e
	c.flavors = maps.Clone(e.flavors)
	c.checks = maps.Clone(e.checks)
	c.namespaces = maps.Clone(e.namespaces)
	c.cohorts = maps.Clone(e.cohorts)
	c.localQueues = maps.Clone(e.localQueues) // its entries are replaced, never changed
	c.retries = maps.Clone(e.retries)
	c.settled = maps.Clone(e.settled)
	c.touchedCohorts, c.touchedQueues = maps.Clone(e.touchedCohorts), maps.Clone(e.touchedQueues)
	t := transplant{nodes: make(map[*node]*node, len(e.nodes)), trees: map[*tree]*tree{}, queues: make(map[*queue]*queue, len(e.queues)), workloads: make(map[*workload]*workload, len(e.workloads))}
	t.all(e, &c)
	return &c
}

// transplant maps what refers to each other in an engine to its copies.
type transplant struct {
	nodes     map[*node]*node
	trees     map[*tree]*tree
	queues    map[*queue]*queue
	workloads map[*workload]*workload
}

func (t *transplant) all(e, c *Engine) {
	// First the copies, then what they refer to.
	copies := make([]workload, len(e.workloads))
	c.workloads = make(map[types.NamespacedName]*workload, len(e.workloads))
	i := 0
	for name, w := range e.workloads {
		copies[i] = *w
		t.workloads[w] = &copies[i]
		c.workloads[name] = &copies[i]
		i++
	}
	c.queues = make(map[string]*queue, len(e.queues))
	c.ordered = make([]*queue, len(e.ordered))
	for at, q := range e.ordered {
		copied := *q
		t.queues[q] = &copied
		t.nodes[&q.node] = &copied.node
		c.queues[q.name], c.ordered[at] = &copied, &copied
	}
	c.nodes = make(map[string]*node, len(e.nodes))
	for name, n := range e.nodes {
		copied := *n
		t.nodes[n], c.nodes[name] = &copied, &copied
	}
	for _, n := range c.nodes {
		t.node(n)
	}
	for _, q := range c.ordered {
		t.node(&q.node)
		t.queue(q)
	}
	for i := range copies {
		t.workload(&copies[i])
	}
	c.members = make(map[types.NamespacedName]map[*workload]bool, len(e.members))
	for name, members := range e.members {
		c.members[name] = t.set(members)
	}
	c.suspects = t.set(e.suspects)
}

// node mends a copied node. Quotas are shared, because rebuild replaces them; usage is not.
func (t *transplant) node(n *node) {
	n.parent = t.nodes[n.parent]
	n.usage = slices.Clone(n.usage)
	if copied, done := t.trees[n.tree]; done {
		n.tree = copied
	} else if n.tree != nil {
		copied := *n.tree
		copied.root, copied.borrowers = t.nodes[n.tree.root], nil
		t.trees[n.tree] = &copied
		n.tree = &copied
	}
	n.children = mapped(n.children, t.nodes)
	n.queues = mapped(n.queues, t.queues)
}

func (t *transplant) queue(q *queue) {
	q.reserved = mapped(q.reserved, t.workloads)
	q.waiting = waitingHeap{queue: q, items: mapped(q.waiting.items, t.workloads)}
	q.parked = t.set(q.parked)
	q.alike = maps.Clone(q.alike)
	q.preemptor = t.workloads[q.preemptor]
}

func (t *transplant) workload(w *workload) {
	w.pendingIn, w.heldIn = t.queues[w.pendingIn], t.queues[w.heldIn]
	w.usage = slices.Clone(w.usage)
	if w.Reservation != nil {
		r := *w.Reservation
		w.Reservation = &r
	}
}

func (t *transplant) set(s map[*workload]bool) map[*workload]bool {
	copied := make(map[*workload]bool, len(s))
	for w := range s {
		copied[t.workloads[w]] = true
	}
	return copied
}

func mapped[T any](from []*T, to map[*T]*T) []*T {
	copied := make([]*T, len(from))
	for i, one := range from {
		copied[i] = to[one]
	}
	return copied
}
