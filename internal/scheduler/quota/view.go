package quota

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// Workload gives what the engine knows of a workload, with its reservation and eviction as they are now. It is not to
// be changed.
func (e *Engine) Workload(name types.NamespacedName) (Workload, bool) {
	w, known := e.workloads[name]
	if !known {
		return Workload{}, false
	}
	return w.Workload, true
}

// Usage is the quota and the usage of a ClusterQueue, for every flavor and resource that it has a quota for or whose
// quota its workloads hold, in the order of its spec.
func (e *Engine) Usage(queue string) []FlavorUsage {
	e.rebuild()
	q, known := e.queues[queue]
	if !known {
		return nil
	}
	var all []FlavorUsage
	for p, i := range q.at {
		if i < 0 {
			continue
		}
		c, t := q.cells[i], q.tree.pairs[p]
		name := resourceName(t)
		u := FlavorUsage{Flavor: t.flavor, Resource: name, Nominal: c.nominal.quantity(name), Reserved: q.usage[i].quantity(name), Borrowed: Amount(0).quantity(name)}
		if beyond := q.usage[i].minus(c.nominal); beyond > 0 && q.parent != nil {
			u.Borrowed = beyond.quantity(name)
		}
		all = append(all, u)
	}
	slices.SortStableFunc(all, func(a, b FlavorUsage) int { return q.rank(a.Flavor) - q.rank(b.Flavor) })
	return all
}

// rank is a flavor's place in the queue's spec; those that are not in it come last.
func (q *queue) rank(flavor string) int {
	at := 0
	for _, g := range q.groups {
		for _, f := range g.flavors {
			if f == flavor {
				return at
			}
			at++
		}
	}
	return at
}

// Pending lists a ClusterQueue's pending workloads in the order in which they will be tried, those that were tried in
// vain and those held back included, as Kueue's visibility API does.
func (e *Engine) Pending(queue string) []types.NamespacedName {
	q, known := e.queues[queue]
	if !known {
		return nil
	}
	var names []types.NamespacedName
	for _, w := range q.line() {
		names = append(names, w.NamespacedName)
	}
	return names
}

// line is all pending workloads in order.
func (q *queue) line() []*workload {
	all := slices.Clone(q.waiting.items)
	for w := range q.inadmissible {
		all = append(all, w)
	}
	slices.SortFunc(all, q.before)
	return all
}

// Position is how many pending workloads of its ClusterQueue come before a workload; false if it is not pending
// there.
func (e *Engine) Position(name types.NamespacedName) (int, bool) {
	w, known := e.workloads[name]
	if !known || w.pendingIn == nil {
		return 0, false
	}
	ahead := 0
	count := func(other *workload) {
		if other != w && w.pendingIn.before(other, w) < 0 {
			ahead++
		}
	}
	for _, other := range w.pendingIn.waiting.items {
		count(other)
	}
	for other := range w.pendingIn.inadmissible {
		count(other)
	}
	return ahead, true
}
