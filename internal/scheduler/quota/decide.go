package quota

import (
	"fmt"
	"slices"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue"
)

// process decides in order, on usage to which each decision adds what it takes, and leaves the usage as it was.
func (e *Engine) process(ordered []*entry) {
	trees := map[*tree]bool{}
	var nodes []*node
	for _, en := range ordered {
		if t := en.q.tree; !trees[t] {
			trees[t] = true
			nodes = t.nodes(nodes)
		}
	}
	before := saveUsage(nodes)
	for _, n := range nodes {
		n.freed = slices.Clone(n.usage)
	}
	claimed := map[*workload]bool{}
	if e.config.FairSharing == nil {
		for _, en := range ordered {
			e.decide(en, claimed)
		}
	} else {
		e.tournaments(ordered, func(en *entry) { e.decide(en, claimed) })
	}
	before.restore()
	for _, n := range nodes {
		n.freed = nil
	}
}

// nodes appends all nodes of a tree.
func (t *tree) nodes(all []*node) []*node {
	all = append(all, t.root)
	for i := len(all) - 1; i < len(all); i++ {
		all = append(all, all[i].children...)
		for _, q := range all[i].queues {
			all = append(all, &q.node)
		}
	}
	return all
}

// decide is Kueue's scheduler, processEntry.
func (e *Engine) decide(en *entry, claimed map[*workload]bool) {
	if en.outcome == outNotSelected {
		return
	}
	en.message = en.a.message()
	switch {
	case en.a.mode == noFit:
		en.outcome = outNoFit
	case en.a.mode == needsPreemption && len(en.targets) == 0:
		en.outcome = outNoCandidates
		if en.q.reclaimPolicy() != kueue.PreemptionPolicyAny {
			// It could not get back later what others take now.
			en.q.count(en.setAside())
		}
	case slices.ContainsFunc(en.targets, func(v victim) bool { return claimed[v.w] }):
		en.outcome, en.message = outOverlaps, "Workload has overlapping preemption targets with another workload"
	case !en.fitsFreed():
		en.outcome, en.message = outTaken, "Workload no longer fits after processing another workload"
	default:
		for _, v := range en.targets {
			claimed[v.w] = true
		}
		en.q.count(en.a.usage)
		if en.a.mode == needsPreemption {
			en.outcome = preempting
			en.message += fmt.Sprintf(". Pending the preemption of %d workload(s)", len(en.targets))
		} else {
			en.outcome, en.message = admitted, ""
		}
	}
}

// setAside is the part of an entry's demand that is kept from others in this cycle although it cannot be had.
func (en *entry) setAside() []pairAmount {
	var all []pairAmount
	for _, u := range en.a.usage {
		c, used := en.q.cellAt(u.pair)
		switch {
		case en.a.borrows == 0:
			all = append(all, pairAmount{u.pair, max(0, min(u.amount, c.nominal.minus(used)))})
		case c.limitsBorrow:
			all = append(all, pairAmount{u.pair, min(u.amount, c.nominal.plus(c.mayBorrow).minus(used))})
		default:
			all = append(all, u)
		}
	}
	return all
}

func (q *queue) addAll(usage []pairAmount) {
	for _, u := range usage {
		q.add(u.pair, u.amount)
	}
}

// count adds what an entry takes, with and without those who are to be preempted.
func (q *queue) count(usage []pairAmount) {
	q.addAll(usage)
	q.swapFreed()
	q.addAll(usage)
	q.swapFreed()
}

// swapFreed changes the usage of a queue and the cohorts above it for what it is without those who are to be preempted,
// and back.
func (q *queue) swapFreed() {
	for n := &q.node; n != nil; n = n.parent {
		n.usage, n.freed = n.freed, n.usage
	}
}

// fitsFreed reports whether what an entry was to get is still there, without all who are to be preempted in this cycle,
// its own targets included. If so, its targets are counted among them from then on.
func (en *entry) fitsFreed() bool {
	for _, v := range en.targets {
		v.w.heldIn.swapFreed()
		v.w.lift()
		v.w.heldIn.swapFreed()
	}
	en.q.swapFreed()
	fits := true
	for _, u := range en.a.usage {
		fits = fits && u.amount <= max(0, en.q.available(u.pair))
	}
	en.q.swapFreed()
	if !fits {
		for _, v := range slices.Backward(en.targets) {
			v.w.heldIn.swapFreed()
			v.w.put()
			v.w.heldIn.swapFreed()
		}
	}
	return fits
}

// savedUsage is the usage of some nodes at a time.
type savedUsage []struct {
	n     *node
	usage []Amount
}

// saveUsage remembers the usage of nodes.
func saveUsage(nodes []*node) savedUsage {
	saved := make(savedUsage, len(nodes))
	for i, n := range nodes {
		saved[i].n, saved[i].usage = n, slices.Clone(n.usage)
	}
	return saved
}

func (s savedUsage) restore() {
	for _, one := range s {
		copy(one.n.usage, one.usage)
	}
}
