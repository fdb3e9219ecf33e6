package quota

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/topology"
)

// Clone copies the engine: what is done to either is not seen by the other. It costs about as much as a look at every
// workload.
func (e *Engine) Clone() *Engine {
	e.rebuild()
	return e.transplant(e.ordered, slices.Collect(maps.Values(e.nodes)), e.workloads)
}

// CloneTree copies what can have a say about workloads of a ClusterQueue: its tree, and the workloads that wait or hold
// quota there.
func (e *Engine) CloneTree(name string) *Engine {
	e.rebuild()
	q, known := e.queues[name]
	if !known {
		return e.transplant(nil, nil, nil)
	}
	if slices.ContainsFunc(q.groups, func(g resourceGroup) bool {
		return slices.ContainsFunc(g.flavors, func(f string) bool { return e.flavors[f].TopologyName != nil })
	}) {
		return e.Clone() // workloads of other trees may be on the same nodes
	}
	queues := []*queue{q}
	var nodes []*node
	if root := q.root(); root != &q.node {
		queues = root.subtree(nil)
		slices.SortFunc(queues, func(a, b *queue) int { return strings.Compare(a.name, b.name) })
		root.visit(func(n *node) { nodes = append(nodes, n) })
	}
	workloads := map[types.NamespacedName]*workload{}
	for _, q := range queues {
		for _, w := range q.line() {
			workloads[w.NamespacedName] = w
		}
		for _, w := range q.reserved {
			workloads[w.NamespacedName] = w
		}
	}
	return e.transplant(queues, nodes, workloads)
}

// transplant copies some queues, all cohorts that belong to them, and some workloads.
func (e *Engine) transplant(queues []*queue, nodes []*node, workloads map[types.NamespacedName]*workload) *Engine {
	c := *e
	c.flavors = maps.Clone(e.flavors)
	c.checks = maps.Clone(e.checks)
	c.namespaces = maps.Clone(e.namespaces)
	c.cohorts = maps.Clone(e.cohorts)
	c.localQueues = maps.Clone(e.localQueues) // its entries are replaced, never changed
	c.topologies, c.nodesByName, c.otherPods = maps.Clone(e.topologies), maps.Clone(e.nodesByName), maps.Clone(e.otherPods)
	c.places = &places{of: map[string]*topology.Capacity{}, findings: map[finding]found{}, stale: true}
	c.usages = e.usages.clone()
	c.retries = maps.Clone(e.retries)
	c.settled = maps.Clone(e.settled)
	c.touchedCohorts, c.touchedQueues = maps.Clone(e.touchedCohorts), maps.Clone(e.touchedQueues)
	t := transplant{
		nodes: make(map[*node]*node, len(nodes)+len(queues)), trees: map[*tree]*tree{},
		queues: make(map[*queue]*queue, len(queues)), workloads: make(map[*workload]*workload, len(workloads)),
	}
	t.plant(&c, queues, nodes, workloads)
	c.members = make(map[types.NamespacedName]map[*workload]bool, len(e.members))
	for _, w := range c.workloads {
		c.member(w, true)
	}
	c.suspects = map[*workload]bool{}
	for w := range e.suspects {
		if copied := t.workloads[w]; copied != nil {
			c.suspects[copied] = true
		}
	}
	return &c
}

// transplant maps what refers to each other in an engine to its copies.
type transplant struct {
	nodes     map[*node]*node
	trees     map[*tree]*tree
	queues    map[*queue]*queue
	workloads map[*workload]*workload
}

// plant makes the copies first, and then mends what they refer to.
func (t *transplant) plant(c *Engine, queues []*queue, nodes []*node, workloads map[types.NamespacedName]*workload) {
	copies := make([]workload, 0, len(workloads))
	c.workloads = make(map[types.NamespacedName]*workload, len(workloads))
	for name, w := range workloads {
		copies = append(copies, *w)
		copied := &copies[len(copies)-1]
		t.workloads[w], c.workloads[name] = copied, copied
	}
	c.queues = make(map[string]*queue, len(queues))
	c.ordered = make([]*queue, len(queues))
	for at, q := range queues {
		copied := *q
		copied.places, copied.usages = c.places, c.usages
		t.queues[q] = &copied
		t.nodes[&q.node] = &copied.node
		c.queues[q.name], c.ordered[at] = &copied, &copied
	}
	c.nodes = make(map[string]*node, len(nodes))
	for _, n := range nodes {
		copied := *n
		t.nodes[n], c.nodes[n.name] = &copied, &copied
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
	q.inadmissible = t.set(q.inadmissible)
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
