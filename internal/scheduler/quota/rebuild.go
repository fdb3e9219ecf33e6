package quota

import (
	"maps"
	"slices"
	"strings"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// rebuild makes the trees anew from the objects, after changes. Usage is counted from the workloads that hold quota.
func (e *Engine) rebuild() {
	if !e.stale {
		return
	}
	e.stale = false
	e.ordered = slices.SortedFunc(maps.Values(e.queues), func(a, b *queue) int { return strings.Compare(a.name, b.name) })
	e.plantCohorts()
	for _, q := range e.ordered {
		q.active = e.admits(q)
		q.parent = nil
		if name := string(q.spec.CohortName); name != "" && !e.inCycle(name) {
			q.parent = e.nodes[name]
			q.parent.queues = append(q.parent.queues, q)
		} else {
			newTree(&q.node).count(e, q)
		}
	}
	for _, n := range e.nodes {
		if n.parent == nil {
			newTree(n).countAll(e)
		}
	}
	e.bumpGenerations()
}

// plantCohorts makes the nodes of all cohorts that are objects or are named by one or by a queue, and links those that
// are in no cycle.
func (e *Engine) plantCohorts() {
	e.nodes = map[string]*node{}
	for name, spec := range e.cohorts {
		e.nodes[name] = &node{name: name, weight: weightOf(spec.FairSharing)}
	}
	named := func(name kueue.CohortReference) {
		if name != "" && e.nodes[string(name)] == nil {
			e.nodes[string(name)] = &node{name: string(name), weight: weightOf(nil)}
		}
	}
	for _, spec := range e.cohorts {
		named(spec.ParentName)
	}
	for _, q := range e.ordered {
		named(q.spec.CohortName)
	}
	for _, name := range slices.Sorted(maps.Keys(e.nodes)) {
		if parent := e.cohorts[name].ParentName; parent != "" && !e.inCycle(name) {
			child := e.nodes[name]
			child.parent = e.nodes[string(parent)]
			child.parent.children = append(child.parent.children, child)
		}
	}
}

// inCycle reports whether the way up from a cohort never ends.
func (e *Engine) inCycle(name string) bool {
	seen := map[string]bool{}
	for ; name != ""; name = string(e.cohorts[name].ParentName) {
		if seen[name] {
			return true
		}
		seen[name] = true
	}
	return false
}

func newTree(root *node) *tree { return &tree{root: root, number: map[pair]int{}} }

// of gives the number of a pair.
func (t *tree) of(p pair) int {
	i, known := t.number[p]
	if !known {
		i = len(t.pairs)
		t.number[p] = i
		t.pairs = append(t.pairs, p)
	}
	return i
}

// countAll counts a tree of cohorts. All pairs are numbered first, because the nodes' tables are as long as there are
// pairs.
func (t *tree) countAll(e *Engine) {
	t.root.visit(func(n *node) {
		t.numberPairs(e.cohorts[n.name].ResourceGroups)
		for _, q := range n.queues {
			t.numberQueue(q)
		}
	})
	t.countCohort(e, t.root)
}

// count counts a tree that is a ClusterQueue.
func (t *tree) count(e *Engine, q *queue) {
	t.numberQueue(q)
	t.countQueue(e, q)
}

func (n *node) visit(f func(*node)) {
	f(n)
	for _, child := range n.children {
		child.visit(f)
	}
}

func (t *tree) numberPairs(groups []kueue.ResourceGroup) {
	for _, g := range groups {
		for _, f := range g.Flavors {
			for _, r := range f.Resources {
				t.of(pair{string(f.Name), string(r.Name)})
			}
		}
	}
}

func (t *tree) numberQueue(q *queue) {
	t.numberPairs(q.spec.ResourceGroups)
	for _, g := range q.groups {
		for _, f := range g.flavors {
			for _, r := range g.covers {
				t.of(pair{f, r})
			}
		}
	}
	for _, w := range q.reserved {
		for _, held := range w.holds {
			t.of(held.pair)
		}
	}
}

// table gives a node room for all pairs, and its own quotas.
func (t *tree) table(n *node, groups []kueue.ResourceGroup) {
	n.tree = t
	n.at = make([]int32, len(t.pairs))
	for i := range n.at {
		n.at[i] = -1
	}
	n.cells, n.usage, n.lendable = nil, nil, nil
	for _, g := range groups {
		for _, f := range g.Flavors {
			for _, r := range f.Resources {
				c := n.reach(t.of(pair{string(f.Name), string(r.Name)}))
				*c = cell{listed: true, nominal: amountOf(r.Name, r.NominalQuota)}
				if r.BorrowingLimit != nil {
					c.limitsBorrow, c.mayBorrow = true, amountOf(r.Name, *r.BorrowingLimit)
				}
				if r.LendingLimit != nil {
					c.limitsLend, c.mayLend = true, amountOf(r.Name, *r.LendingLimit)
				}
				c.subtree = c.nominal
			}
		}
	}
}

// reach gives the cell of a pair, made if need be.
func (n *node) reach(p int) *cell {
	if n.at[p] < 0 {
		n.at[p] = int32(len(n.cells))
		n.cells = append(n.cells, cell{})
		n.usage = append(n.usage, 0)
	}
	return &n.cells[n.at[p]]
}

func (t *tree) countQueue(e *Engine, q *queue) {
	t.table(&q.node, q.spec.ResourceGroups)
	for _, g := range q.groups {
		for _, f := range g.flavors {
			for _, r := range g.covers {
				q.reach(t.of(pair{f, r}))
			}
		}
	}
	q.height = 0
	for _, w := range q.reserved {
		w.usage = w.usage[:0]
		for _, held := range w.holds {
			p := t.of(held.pair)
			q.reach(p)
			q.usage[q.at[p]] = q.usage[q.at[p]].plus(held.amount)
			w.usage = append(w.usage, pairAmount{p, held.amount})
		}
	}
	if e.config.FairSharing != nil && q.parent == nil {
		q.countLendable()
	}
}

func (t *tree) countCohort(e *Engine, n *node) {
	t.table(n, e.cohorts[n.name].ResourceGroups)
	n.height = 0
	for _, child := range n.children {
		t.countCohort(e, child)
		n.gather(child)
		n.height = max(n.height, child.height+1)
	}
	for _, q := range n.queues {
		t.countQueue(e, q)
		n.gather(&q.node)
		if q.active {
			n.height = max(n.height, 1)
		}
	}
	if e.config.FairSharing != nil && n.parent == nil {
		n.visit((*node).countLendable)
	}
}

// gather adds what a child lends to the quota, and what it uses beyond what it does not lend to the usage.
func (n *node) gather(child *node) {
	for p, i := range child.at {
		if i < 0 {
			continue
		}
		from, to := &child.cells[i], n.reach(p)
		to.listed = to.listed || from.listed
		to.subtree = to.subtree.plus(from.subtree.minus(from.localQuota()))
		at := n.at[p]
		n.usage[at] = n.usage[at].plus(max(0, child.usage[i].minus(from.localQuota())))
	}
}

// bumpGenerations voids the flavor progress in all trees whose quota or shape changed.
func (e *Engine) bumpGenerations() {
	bumped := map[*node]bool{}
	bump := func(root *node) {
		if bumped[root] {
			return
		}
		bumped[root] = true
		root.visit(func(n *node) {
			for _, q := range n.queues {
				q.generation++
			}
		})
	}
	for name := range e.touchedCohorts {
		if n := e.nodes[name]; n != nil {
			bump(n.root())
		}
	}
	for name := range e.touchedQueues {
		switch q := e.queues[name]; {
		case q == nil:
		case q.parent == nil:
			q.generation++
		default:
			bump(q.root())
		}
	}
	clear(e.touchedCohorts)
	clear(e.touchedQueues)
}

// admits reports whether a queue may admit anything (condition Active of a ClusterQueue).
func (e *Engine) admits(q *queue) bool {
	if name := string(q.spec.CohortName); q.stopped() || name != "" && e.inCycle(name) {
		return false
	}
	for check := range q.checks() {
		if !e.checks[check] { // it is missing, or not active
			return false
		}
	}
	for _, g := range q.groups {
		for _, f := range g.flavors {
			spec, known := e.flavors[f]
			needsTopology := spec.TopologyName != nil && !e.config.NodesUnknown
			if !known || needsTopology && e.topologies[string(*spec.TopologyName)] == nil {
				return false
			}
		}
	}
	return true
}

// checks gives the admission checks and the flavors for which each runs; an empty list: all.
func (q *queue) checks() map[string][]kueue.ResourceFlavorReference {
	found := map[string][]kueue.ResourceFlavorReference{}
	if q.spec.AdmissionChecksStrategy != nil {
		for _, c := range q.spec.AdmissionChecksStrategy.AdmissionChecks {
			found[string(c.Name)] = c.OnFlavors
		}
	}
	return found
}
