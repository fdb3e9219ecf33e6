package quota

import (
	"fmt"
	"slices"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
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
	claimed := &claims{workloads: map[*workload]bool{}, places: map[string][]placement{}}
	for len(ordered) > 0 && ordered[0].replaces {
		e.decideReplacement(ordered[0], claimed)
		ordered = ordered[1:]
	}
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
	e.places.uncounted = true
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

// claims are the workloads that entries of a cycle have taken as targets, and where their pods are.
type claims struct {
	workloads map[*workload]bool
	places    map[string][]placement // by domain
}

func (c *claims) add(w *workload) {
	if c.workloads[w] {
		return
	}
	c.workloads[w] = true
	for _, at := range w.placed {
		c.places[at.domain] = append(c.places[at.domain], at)
	}
}

// at are the pods of the claimed workloads in some domains.
func (c *claims) at(places []placement) []placement {
	var all []placement
	for i, p := range places {
		if !slices.ContainsFunc(places[:i], func(before placement) bool { return before.domain == p.domain }) {
			all = append(all, c.places[p.domain]...)
		}
	}
	return all
}

// decide is Kueue's scheduler, processEntry.
func (e *Engine) decide(en *entry, claimed *claims) {
	if en.outcome == outNotSelected {
		return
	}
	room := en.fitsFreed(claimed)
	if room == noPlace {
		e.nominateAgain(en)
		room = en.fitsFreed(claimed)
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
			e.places.use(en.a.places)
		}
	case slices.ContainsFunc(en.targets, func(v victim) bool { return claimed.workloads[v.w] }):
		en.outcome, en.message = outOverlaps, "Workload has overlapping preemption targets with another workload"
	case room != roomy:
		en.outcome, en.message = outTaken, "Workload no longer fits after processing another workload"
	default:
		for _, v := range en.targets {
			claimed.add(v.w)
			v.w.liftFreed()
		}
		en.q.count(en.a.usage)
		e.places.use(en.a.places)
		if en.a.mode == needsPreemption {
			en.outcome = preempting
			en.message += fmt.Sprintf(". Pending the preemption of %d workload(s)", len(en.victims()))
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

// liftFreed is lift, and putFreed put, in the usage without those who are to be preempted.
func (w *workload) liftFreed() {
	w.heldIn.swapFreed()
	for _, u := range w.usage {
		w.heldIn.sub(u.pair, u.amount)
	}
	w.heldIn.swapFreed()
}

func (w *workload) putFreed() {
	w.heldIn.swapFreed()
	for _, u := range w.usage {
		w.heldIn.add(u.pair, u.amount)
	}
	w.heldIn.swapFreed()
}

// room is whether what an entry was to get is still there.
type room int

const (
	roomy room = iota
	noQuota
	noPlace
)

// fitsFreed reports whether what an entry was to get is still there, without all who are to be preempted in this cycle:
// those that others claimed, and its own targets.
func (en *entry) fitsFreed(claimed *claims) room {
	var mine []*workload
	for _, v := range en.targets {
		if !claimed.workloads[v.w] {
			mine = append(mine, v.w)
			v.w.liftFreed()
		}
	}
	found := roomy
	en.q.swapFreed()
	for _, u := range en.a.usage {
		if u.amount > max(0, en.q.available(u.pair)) {
			found = noQuota
		}
	}
	en.q.swapFreed()
	for _, w := range mine {
		w.putFreed()
	}
	if found == noQuota || len(en.a.places) == 0 {
		return found
	}
	freed := claimed.at(en.a.places)
	for _, w := range mine {
		freed = append(freed, w.placed...)
	}
	en.q.places.free(freed)
	if !en.q.places.fit(en.a.places) {
		found = noPlace
	}
	en.q.places.use(freed)
	return found
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
