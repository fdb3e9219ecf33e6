package placement

import "slices"

// dryRunPreemption selects the victims of node after node where evictions may help, from the offset-th on, until limit
// nodes help and not all of them violate a budget. It returns the best node and the number of equally good ones, and
// leaves these in workspace.best; equal is 0 if evictions help nowhere (DryRunPreemption, pickOneNodeForPreemption).
func (cy *cycle) dryRunPreemption(offset, limit int) (at int, best ranking, equal int) {
	c, w := cy.c, cy.c.work
	found, unviolating := 0, 0
	for other := range cy.helpful.from(offset) {
		rank, helps, _ := cy.victims(c.nodes[other])
		if !helps {
			continue
		}
		order := 1
		if found > 0 {
			order = rank.compare(best)
		}
		switch {
		case order > 0:
			equal = 1
		case order == 0:
			equal++
			if c.TieBreak != nil && c.TieBreak(equal) == 0 {
				order = 1
			}
		}
		if order > 0 {
			best, at = rank, other
			w.best, w.victims = w.victims, w.best
		}
		found++
		if rank.violations == 0 {
			unviolating++
		}
		if unviolating > 0 && found >= limit {
			break
		}
	}
	return at, best, equal
}

// eviction is the result of evictions on a node. Its zero value means that the victims are still to be selected: it
// sorts before all others, so that the best of a window is known when nothing in it is open.
type eviction ranking

func (e eviction) open() bool { return e.count == 0 }

func (e eviction) compare(other eviction) int {
	switch {
	case e.open() && other.open():
		return 0
	case e.open():
		return 1
	case other.open():
		return -1
	}
	return ranking(e).compare(ranking(other))
}

// passing are the victims of a node that were chosen at random: another selection may choose others.
type passing struct {
	at      int
	victims []*Pod
}

// dryRunPreemptionCached is dryRunPreemption without budgets to violate, by cached results: of the nodes that the
// search would visit, it evaluates only those without a cached result.
func (cy *cycle) dryRunPreemptionCached(offset, limit int) (at int, best ranking, equal int) {
	m, w := &cy.pod.preFilterState.memo, cy.c.work
	m.prepare()
	x, from := &m.evictions, m.helpful.nth(offset)
	for {
		window := x.window(from, limit)
		most, ties := x.top(window)
		if ties == 0 {
			return 0, ranking{}, 0
		}
		if most.open() {
			cy.settle(m, x.find(window, most, 0))
			continue
		}
		at = x.find(window, most, int32(cy.c.choose(int(ties))))
		if i := slices.IndexFunc(m.passing, func(p passing) bool { return p.at == at }); i >= 0 {
			w.best = append(w.best[:0], m.passing[i].victims...)
		} else {
			cy.victims(cy.c.nodes[at])
			w.best, w.victims = w.victims, w.best
		}
		return at, ranking(most), int(ties)
	}
}

// settle finds out what evictions on a node come to.
func (cy *cycle) settle(m *memo, at int) {
	rank, helps, drawn := cy.victims(cy.c.nodes[at])
	if drawn {
		m.passing = append(m.passing, passing{at: at, victims: slices.Clone(cy.c.work.victims)})
	}
	if helps {
		m.evictions.set(at, eviction(rank))
	} else {
		m.evictions.drop(at)
	}
}

// prepare forgets, before a decision, the evictions that held for the last one only. (Where a pod is nominated, memo
// does.)
func (m *memo) prepare() {
	if m.evictions.nodes == 0 {
		m.evictions = newIndex[eviction](len(m.statuses))
		for at := range m.helpful.from(0) {
			m.reopen(at)
		}
	}
	for _, p := range m.passing {
		m.reopen(p.at)
	}
	m.passing = m.passing[:0]
}

// reopen forgets what evictions on a node come to.
func (m *memo) reopen(at int) {
	if m.statuses[at].resolvable() {
		m.evictions.set(at, eviction{})
	} else {
		m.evictions.drop(at)
	}
}
