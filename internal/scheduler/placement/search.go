package placement

import "slices"

// search looks for a node that the pod fits on, and takes the one with the highest score, or one of so many equals; 0
// equals: there is none (findNodesThatPassFilters, prioritizeNodes). It begins where the last search ended, and ends as
// soon as it has found enough.
func (cy *cycle) search() (chosen, equal int) {
	switch {
	case cy.pod.preFilterState.conflicting:
		cy.helpful = &positionSet{}
		return 0, 0
	case cy.hasMemo && cy.pod.preFilterState.names == nil && cy.c.baseOnly(cy.pod):
		return cy.searchIndex()
	}
	feasible := cy.searchNodes()
	if len(feasible) == 0 {
		return 0, 0
	}
	if len(feasible) > 1 {
		feasible = highest(feasible, cy.c.scores(cy.pod, feasible))
	}
	return feasible[cy.c.choose(len(feasible))], len(feasible)
}

// searchIndex searches without a look at every node.
func (cy *cycle) searchIndex() (chosen, equal int) {
	c, m := cy.c, cy.memo()
	cy.helpful = &m.helpful
	x := &m.index
	if x.fits[1] == 0 {
		return 0, 0 // All were tried, so that the next search begins where this one did.
	}
	w := x.window(c.next, enough(x.nodes))
	c.next = (w.end + w.rest) % x.nodes
	best, ties := x.top(w)
	return x.find(w, best, int32(c.choose(int(ties)))), int(ties)
}

// searchNodes looks at node after node.
func (cy *cycle) searchNodes() []int {
	c, w := cy.c, cy.c.work
	w.feasible, w.helpful = w.feasible[:0], newPositionSet(len(c.nodes))
	cy.helpful = &w.helpful
	status := cy.at
	if cy.hasMemo {
		m := cy.memo()
		status = func(at int) filterStatus { return m.statuses[at] }
	}
	positions := cy.positions()
	limit, tried := enough(len(positions)), 0
	for tried < len(positions) && len(w.feasible) < limit {
		at := positions[(c.next+tried)%len(positions)]
		tried++
		v := status(at)
		w.helpful.set(at, v.resolvable())
		if v == feasible {
			w.feasible = append(w.feasible, at)
		}
	}
	if len(c.nodes) > 0 {
		c.next = (c.next + tried) % len(c.nodes)
	}
	return w.feasible
}

// positions are the nodes that come into question: those that the pod's affinity names, else all.
func (cy *cycle) positions() []int {
	c, a := cy.c, cy.pod.preFilterState
	if a.conflicting {
		return nil
	}
	if a.names == nil {
		return c.all
	}
	var positions []int
	for _, name := range a.names {
		if at, known := c.position[name]; known && !slices.Contains(positions, at) {
			positions = append(positions, at)
		}
	}
	slices.Sort(positions)
	return positions
}

// highest are the nodes with the highest score, in place.
func highest(nodes []int, scores []int64) []int {
	most := slices.Max(scores)
	best := nodes[:0]
	for i, score := range scores {
		if score == most {
			best = append(best, nodes[i])
		}
	}
	return best
}

// Limits of what kube-scheduler looks at in large clusters (schedule_one.go; DefaultPreemptionArgs).
const (
	fewestFeasible    = 100
	fewestPercentage  = 5
	fewestCandidates  = 100
	percentCandidates = 10
)

// enough is how many feasible nodes end the search (numFeasibleNodesToFind).
func enough(nodes int) int {
	if nodes < fewestFeasible {
		return nodes
	}
	return max(nodes*max(50-nodes/125, fewestPercentage)/100, fewestFeasible)
}

// candidates is how many nodes with victims end the search for more (calculateNumCandidates).
func candidates(nodes int) int {
	return min(max(nodes*percentCandidates/100, fewestCandidates), nodes)
}
