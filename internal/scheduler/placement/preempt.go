package placement

import (
	"cmp"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// preempt looks for pods to evict, after a search that found nothing; false: the pod may not
// (plugins/defaultpreemption; framework/preemption).
func (cy *cycle) preempt(decision *Decision) (eligible bool) {
	c, w := cy.c, cy.c.work
	if cy.abandoned() || cy.ineligible() != "" {
		return false
	}
	count := cy.helpful.count
	limit, offset := candidates(count), 0
	if limit < count {
		offset = c.choose(count)
	}
	dryRun := cy.dryRunPreemption
	if cy.hasMemo && len(c.budgets) == 0 && count > 0 {
		dryRun = cy.dryRunPreemptionCached
	}
	at, best, equal := dryRun(offset, limit)
	if equal > 0 {
		*decision = Decision{
			Kind: Preempts, Node: c.nodes[at].name, Equal: equal, Victims: slices.Clone(w.best), Violations: best.violations, Approximate: decision.Approximate,
		}
	}
	return true
}

// ineligible is the reason why the pod may not preempt; "" if it may (PodEligibleToPreemptOthers).
func (cy *cycle) ineligible() string {
	if policy := cy.pod.object.Spec.PreemptionPolicy; policy != nil && *policy == corev1.PreemptNever {
		return "not eligible due to preemptionPolicy=Never."
	}
	if at, reserved := cy.c.reserved(cy.pod); reserved && cy.at(at).resolvable() && cy.c.awaits(cy.pod) {
		return "not eligible due to a terminating pod on the nominated node."
	}
	return ""
}

// victims selects the pods to evict from a node, into workspace.victims, the most important first. drawn: the choice
// was partly random (SelectVictimsOnNode).
func (cy *cycle) victims(n *node) (rank ranking, helps, drawn bool) {
	w := cy.c.work
	w.lower = w.lower[:0]
	for i := range n.pods {
		if n.pods[i].pod.Priority < cy.pod.Priority {
			w.lower = append(w.lower, i)
		}
	}
	if len(w.lower) == 0 {
		return ranking{}, false, false
	}
	slices.SortStableFunc(w.lower, func(a, b int) int { return importance(n.pods[a].pod, n.pods[b].pod) })
	if cy.c.TieBreak != nil {
		drawn = cy.shuffle(n, w.lower)
	}
	rank, helps = cy.reprieve(n, w.lower)
	return rank, helps, drawn
}

// shuffle chooses an order for pods that nothing orders: kube-scheduler has them in the order of its cache. It reports
// whether there were any.
func (cy *cycle) shuffle(n *node, lower []int) (drawn bool) {
	for from := 0; from < len(lower); {
		end := from + 1
		for end < len(lower) && importance(n.pods[lower[from]].pod, n.pods[lower[end]].pod) == 0 {
			end++
		}
		drawn = drawn || end-from > 1
		for ; from < end; from++ {
			other := from + cy.c.choose(end-from)
			lower[from], lower[other] = lower[other], lower[from]
		}
	}
	return drawn
}

// reprieve evicts the pods at some places of a node, and spares as many as it can: in their order, those whose budget
// does not allow their eviction first.
func (cy *cycle) reprieve(n *node, lower []int) (ranking, bool) {
	w := cy.c.work
	w.requested = append(w.requested[:0], n.requested...)
	t := trial{node: n, requested: w.requested, count: len(n.pods)}
	least := cy.remember()
	move := func(pod *Pod, by int) {
		t.move(pod, by)
		cy.shift(pod, n, by)
	}
	for _, i := range lower {
		move(n.pods[i].pod, -1)
	}
	w.victims = w.victims[:0]
	violations := 0
	if cy.runFilterPluginsWithNominatedPods(&t) != feasible {
		for _, i := range lower {
			cy.shift(n.pods[i].pod, n, 1)
		}
	} else {
		violating := cy.c.violating(n, lower)
		for _, first := range []bool{true, false} {
			for j, i := range lower {
				if violating[j] != first {
					continue
				}
				pod := n.pods[i].pod
				move(pod, 1)
				if cy.runFilterPluginsWithNominatedPods(&t) == feasible {
					continue
				}
				move(pod, -1)
				w.victims = append(w.victims, pod)
				if first {
					violations++
				}
			}
		}
	}
	for _, pod := range w.victims {
		cy.shift(pod, n, 1)
	}
	cy.restore(least)
	w.requested = t.requested
	if len(w.victims) == 0 {
		return ranking{}, false
	}
	slices.SortStableFunc(w.victims, importance)
	return rank(w.victims, violations), true
}

// importance puts the pod first that is spared first: the higher priority, then the longer run (util.MoreImportantPod).
// Pods that have not started run the shortest.
func importance(a, b *Pod) int {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(since(a), since(b)))
}

// since is when a pod started, in nanoseconds; one that has not started counts as started later than any other.
func since(p *Pod) int64 {
	if p.Started.IsZero() {
		return math.MaxInt64
	}
	return p.Started.UnixNano()
}

// ranking is the values by which nodes' victims are compared (pickOneNodeForPreemption).
type ranking struct {
	violations int
	highest    int32
	sum        int64
	count      int
	start      int64
}

// rank is the ranking of victims, the most important first.
func rank(victims []*Pod, violations int) ranking {
	r := ranking{violations: violations, highest: victims[0].Priority, count: len(victims), start: since(victims[0])}
	for _, victim := range victims {
		r.sum += int64(victim.Priority) + math.MaxInt32 + 1
	}
	return r
}

// compare is greater than zero when these victims are to be preferred to others: fewer violations of budgets, then the
// lower highest priority, the smaller sum of priorities, fewer victims, and the later start of the one that runs
// longest among those of the highest priority.
func (r ranking) compare(other ranking) int {
	switch {
	case r.violations != other.violations:
		return cmp.Compare(other.violations, r.violations)
	case r.highest != other.highest:
		return cmp.Compare(other.highest, r.highest)
	case r.sum != other.sum:
		return cmp.Compare(other.sum, r.sum)
	case r.count != other.count:
		return cmp.Compare(other.count, r.count)
	}
	return cmp.Compare(r.start, other.start)
}

// queueOrder is the order of the scheduling queue: the higher priority, then the earlier (queuesort, PrioritySort).
func queueOrder(a, b *Pod) int {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), a.Created.Compare(b.Created))
}
