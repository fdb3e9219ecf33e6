package quota

import (
	"fmt"
	"slices"
	"strings"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/topology"
)

// assignment is what the search through the flavors gave a workload.
type assignment struct {
	sets []assignedSet
	// borrows is the greatest of the flavors'.
	borrows int
	// usage is what all pod sets take together, by pairs of the queue's tree.
	usage []pairAmount
	scan  *scan
	mode  assignmentMode
	// trials are the flavors that were looked at; only for Explain.
	trials []FlavorTrial
	// places are the domains of all pod sets that were placed by topology.
	places []placement
	// replaced is what the predecessor holds, by pod set; nil: there is none.
	replaced []heldSet
}

// assignedSet is what a pod set got.
type assignedSet struct {
	of       *podSetRequests
	count    int32
	requests []request // of all pods, with the resource pods if the queue covers it
	chosen   []choice
	reasons  []string
	// err is why it cannot be placed whatever the quota.
	err string
	// placed is where its pods go, by topology; nil: anywhere.
	placed *topology.Assignment
}

// choice is the flavor of one resource.
type choice struct {
	resource   string
	flavor     string
	pair       int
	preemption preemptionMode
	borrows    int
	stop       int // where the search stopped; -1: it saw the last flavor
}

func (s *assignedSet) mode() assignmentMode {
	switch {
	case s.err != "":
		return noFit
	case len(s.reasons) == 0:
		return fits
	case len(s.chosen) == 0:
		return noFit
	}
	worst := fits
	for _, c := range s.chosen {
		worst = min(worst, c.preemption.assignmentMode())
	}
	return worst
}

// message is why the assignment cannot be admitted now, as Kueue writes it.
func (a *assignment) message() string {
	var parts []string
	for _, s := range a.sets {
		if s.err != "" {
			return fmt.Sprintf("failed to assign flavors to pod set %s: %s", s.of.Name, s.err)
		}
		if len(s.reasons) > 0 {
			parts = append(parts, fmt.Sprintf("couldn't assign flavors to pod set %s: %s", s.of.Name, strings.Join(slices.Sorted(slices.Values(s.reasons)), ", ")))
		}
	}
	return strings.Join(parts, "; ")
}

// needs lists the pairs for which others would have to be preempted.
func (a *assignment) needs() []int {
	var pairs []int
	for _, s := range a.sets {
		for _, c := range s.chosen {
			if c.preemption.assignmentMode() == needsPreemption && !slices.Contains(pairs, c.pair) {
				pairs = append(pairs, c.pair)
			}
		}
	}
	return pairs
}

// demand is what must fit once others were preempted. It leaves the resource pods out, as Kueue does.
func (a *assignment) demand(w *workload) []pairAmount {
	var all []pairAmount
	for i := range w.sets {
		if i >= len(a.sets) {
			break
		}
		s := &a.sets[i]
		count := s.count
		if i < len(a.replaced) {
			count = w.sets[i].count - int32(a.replaced[i].count) //nolint:gosec // it was an int32
		}
		for _, r := range scaled(&w.sets[i], count) {
			if r.amount == 0 {
				continue
			}
			for _, c := range s.chosen {
				if c.resource == r.resource {
					all = addTo(all, c.pair, r.amount)
				}
			}
		}
	}
	return all
}

// add appends a pod set and what it takes.
func (a *assignment) add(set *assignedSet) {
	stops := make(map[string]int, len(set.chosen))
	for _, c := range set.chosen {
		a.borrows = max(a.borrows, c.borrows)
		for _, r := range set.requests {
			if r.resource == c.resource {
				a.usage = addTo(a.usage, c.pair, r.amount.minus(a.heldBefore(set.of.Name, r.resource)))
			}
		}
		stops[c.resource] = c.stop
	}
	a.sets = append(a.sets, *set)
	a.scan.stops = append(a.scan.stops, stops)
}

func addTo(all []pairAmount, p int, v Amount) []pairAmount {
	for i := range all {
		if all[i].pair == p {
			all[i].amount = all[i].amount.plus(v)
			return all
		}
	}
	return append(all, pairAmount{p, v})
}

func amountIn(all []pairAmount, p int) Amount {
	for _, u := range all {
		if u.pair == p {
			return u.amount
		}
	}
	return 0
}

// scaled are the requests of count pods of a set.
func scaled(s *podSetRequests, count int32) []request {
	all := make([]request, len(s.perPod), len(s.perPod)+1)
	for i, r := range s.perPod {
		all[i] = request{r.resource, r.amount.times(int64(count))}
	}
	return all
}
