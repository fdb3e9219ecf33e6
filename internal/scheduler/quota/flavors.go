package quota

import (
	"fmt"
	"math"
	"slices"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// search looks for flavors. counts, one per pod set, asks for fewer pods than the workload wants; nil: all. Usage of
// the tree is as it is.
type search struct {
	engine *Engine
	w      *workload
	q      *queue
	// explain makes assign keep what it looked at.
	explain bool
	// only has the flavors, by pod set and resource, that a second search in a cycle may choose; nil: all.
	only map[string]map[string]string
}

const resourcePods = "pods"

// assign gives every pod set a flavor for each of its resources, or says why not (Kueue's flavorassigner,
// assignFlavors).
func (s *search) assign(counts []int32) assignment {
	a := assignment{scan: &scan{generation: s.q.generation, cycle: s.engine.cycle, shape: s.w.shape}}
	if old := s.engine.predecessor(s.w, s.q); old != nil {
		a.replaced = old.heldSets()
	}
	for _, members := range s.groups() {
		if !s.assignGroup(&a, members, counts) {
			break
		}
	}
	a.mode = fits
	for i := range a.sets {
		a.mode = min(a.mode, a.sets[i].mode())
	}
	if len(a.sets) == 0 {
		a.mode = noFit
	}
	s.place(&a)
	return a
}

// groups are the indexes of the pod sets that get flavors together.
func (s *search) groups() [][]int {
	var groups [][]int
	named := map[string]int{}
	for i := range s.w.sets {
		name := s.w.sets[i].Group
		if name == "" {
			groups = append(groups, []int{i})
			continue
		}
		if at, known := named[name]; known {
			groups[at] = append(groups[at], i)
			continue
		}
		named[name] = len(groups)
		groups = append(groups, []int{i})
	}
	return groups
}

// assignGroup adds the pod sets of a group to the assignment. It returns false if one got nothing, which ends the
// search.
func (s *search) assignGroup(a *assignment, members []int, counts []int32) bool {
	sets := make([]assignedSet, len(members))
	var together []request
	for i, at := range members {
		of := &s.w.sets[at]
		count := of.count
		if counts != nil && count != 0 {
			count = counts[at]
		}
		sets[i] = assignedSet{of: of, count: count, requests: scaled(of, count)}
		if s.q.group(resourcePods) != nil {
			sets[i].requests = setRequest(sets[i].requests, resourcePods, Amount(count))
		}
		for _, r := range sets[i].requests {
			together = addRequest(together, r)
		}
	}
	chosen, reasons := s.chooseAll(a, members, together)
	complete := true
	for i := range sets {
		set := &sets[i]
		set.reasons = reasons
		for _, c := range chosen {
			if slices.ContainsFunc(set.requests, func(r request) bool { return r.resource == c.resource }) ||
				len(set.requests) == 0 && set.of.Group != "" && s.engine.placesPods(c.flavor) {
				set.chosen = append(set.chosen, c)
			}
		}
		a.add(set)
		complete = complete && (len(set.requests) == 0 || len(set.chosen) > 0)
	}
	return complete
}

// chooseAll picks the flavors of all resources of a group of pod sets; none if there is a resource for which there is
// none.
func (s *search) chooseAll(a *assignment, members []int, requests []request) (chosen []choice, reasons []string) {
	for _, r := range requests {
		group := s.q.group(r.resource)
		if group == nil && (r.amount == 0 || s.engine.config.IgnoreUndeclared) {
			continue
		}
		if slices.ContainsFunc(chosen, func(c choice) bool { return c.resource == r.resource }) {
			continue // with its resource group
		}
		if group == nil {
			return nil, []string{fmt.Sprintf("resource %s unavailable in ClusterQueue", r.resource)}
		}
		found, why := s.choose(a, members, group, r.resource, requests)
		if len(found) == 0 {
			return nil, why
		}
		chosen = append(chosen, found...)
		reasons = append(reasons, why...)
	}
	return chosen, reasons
}

// choose walks the flavors of a resource group, from where the last search stopped, and picks one for all of the
// group's resources (Kueue's flavorassigner, findFlavorForPodSets). Reasons are given unless the pick fits.
func (s *search) choose(a *assignment, members []int, group *resourceGroup, first string, requests []request) ([]choice, []string) {
	var best []choice
	bestMode := flavorMode{modeNoFit, math.MaxInt}
	bestTrial := -1
	var reasons []string
	attempted := -1
	for at := s.w.scan.next(members[0], first); at < len(group.flavors); at++ {
		attempted = at
		flavor := group.flavors[at]
		if s.passesOver(members, first, flavor) {
			reasons = append(reasons, fmt.Sprintf("skipping flavor %s as it is not found in the nomination mapping for resource %s", flavor, first))
			continue
		}
		if result, why := s.barred(members, group, flavor); result != "" {
			reasons = append(reasons, why)
			s.tried(a, members, FlavorTrial{Flavor: flavor, Result: result, Reasons: []string{why}})
			continue
		}
		choices, whole, why := s.try(a, members, group, flavor, requests)
		reasons = append(reasons, why...)
		s.tried(a, members, FlavorTrial{Flavor: flavor, Result: whole.preemption.result(), Borrows: whole.borrowingLevel, Reasons: why})
		if !s.q.shouldTryNextFlavor(whole) {
			best, bestMode, bestTrial = choices, whole, len(a.trials)-1
			break
		}
		if whole.betterThan(bestMode, s.q.preference()) {
			best, bestMode, bestTrial = choices, whole, len(a.trials)-1
		}
	}
	if attempted == len(group.flavors)-1 {
		attempted = -1
	}
	for i := range best {
		best[i].stop = attempted
	}
	if bestTrial >= 0 && s.explain {
		a.trials[bestTrial].Chosen = true
	}
	if bestMode.preemption == modeFit {
		return best, nil
	}
	return best, reasons
}

func (s *search) barred(members []int, group *resourceGroup, flavor string) (FlavorResult, string) {
	for _, at := range members {
		set := s.w.sets[at].PodSet
		if why := s.engine.topologyBars(s.q, set, group, flavor); why != "" {
			return TopologyMismatch, why
		}
		if result, why := s.engine.barred(set, flavor); result != "" {
			return result, why
		}
	}
	return "", ""
}

// passesOver reports whether a second search in a cycle leaves out a flavor, because the first did not choose it.
func (s *search) passesOver(members []int, resource, flavor string) bool {
	if len(s.only) == 0 {
		return false
	}
	return !slices.ContainsFunc(members, func(at int) bool { return s.only[s.w.sets[at].Name][resource] == flavor })
}

func (s *search) tried(a *assignment, members []int, trial FlavorTrial) {
	if !s.explain {
		return
	}
	for _, at := range members {
		trial.PodSets = append(trial.PodSets, s.w.sets[at].Name)
	}
	a.trials = append(a.trials, trial)
}

// try evaluates a flavor for all resources of a group; the whole is as good as the worst of them.
func (s *search) try(
	a *assignment, members []int, group *resourceGroup, flavor string, requests []request,
) (choices []choice, whole flavorMode, reasons []string) {
	whole = flavorMode{modeFit, 0}
	for _, r := range requests {
		if !slices.Contains(group.covers, r.resource) {
			continue
		}
		p := s.q.tree.number[pair{flavor, r.resource}]
		amount, other := a.beyondPredecessor(members, r, flavor)
		if other != "" {
			reasons = append(reasons, other)
			whole = flavorMode{modeNoFit, math.MaxInt}
		}
		one, why := s.fit(p, amountIn(a.usage, p), amount)
		if why != "" {
			reasons = append(reasons, why)
		}
		if whole.betterThan(one, s.q.preference()) {
			whole = one
		}
		choices = append(choices, choice{resource: r.resource, flavor: flavor, pair: p, preemption: one.preemption, borrows: one.borrowingLevel})
	}
	if whole.preemption == modeNoFit {
		choices = nil
	}
	return choices, whole, reasons
}

// fit decides how an amount of a pair can be obtained, on top of what earlier pod sets take (Kueue's flavorassigner,
// fitsResourceQuota).
func (s *search) fit(p int, before, amount Amount) (flavorMode, string) {
	q, t := s.q, s.q.tree.pairs[p]
	resource := resourceName(t)
	all := before.plus(amount)
	if most := q.potential(p); all > most {
		return flavorMode{modeNoFit, 0}, fmt.Sprintf(
			"insufficient quota for %s in flavor %s, previously considered podsets requests (%s) + current podset request (%s) > maximum capacity (%s)",
			t.resource, t.flavor, before.text(resource), amount.text(resource), most.text(resource))
	}
	height, below := q.heightFor(p, all)
	free := max(0, q.available(p))
	if all <= free {
		return flavorMode{modeFit, height}, ""
	}
	why := fmt.Sprintf("insufficient unused quota for %s in flavor %s, %s more needed", t.resource, t.flavor, all.minus(free).text(resource))
	own, _ := q.cellAt(p)
	if own.nominal < all && !below && !s.preemptsWhileBorrowing() {
		return flavorMode{modeNoFit, height}, why
	}
	mode, height := s.simulate(p, all)
	return flavorMode{mode, height}, why
}

// preemptsWhileBorrowing reports whether the queue may preempt for quota that it has to borrow.
func (s *search) preemptsWhileBorrowing() bool {
	return !s.q.neverBorrowsByPreemption() || s.engine.config.FairSharing != nil && s.q.reclaimPolicy() != kueue.PreemptionPolicyNever
}

// simulate tries preemption for one pair alone.
func (s *search) simulate(p int, all Amount) (preemptionMode, int) {
	hunt := s.engine.hunt(s.w, s.q, []int{p}, []pairAmount{{p, all}})
	victims := hunt.victims()
	if len(victims) == 0 {
		height, _ := s.q.heightFor(p, all)
		return modeNoCandidates, height
	}
	for _, v := range victims {
		v.w.lift()
	}
	height, _ := s.q.heightFor(p, all)
	for _, v := range victims {
		v.w.put()
	}
	for _, v := range victims {
		if v.w.heldIn == s.q {
			return modePreempt, height
		}
	}
	return modeReclaim, height
}

func setRequest(requests []request, resource string, amount Amount) []request {
	for i := range requests {
		if requests[i].resource == resource {
			requests[i].amount = amount
			return requests
		}
	}
	at, _ := slices.BinarySearchFunc(requests, resource, func(r request, name string) int { return resourceOrder(r.resource, name) })
	return slices.Insert(requests, at, request{resource, amount})
}

func addRequest(requests []request, r request) []request {
	for i := range requests {
		if requests[i].resource == r.resource {
			requests[i].amount = requests[i].amount.plus(r.amount)
			return requests
		}
	}
	at, _ := slices.BinarySearchFunc(requests, r.resource, func(r request, name string) int { return resourceOrder(r.resource, name) })
	return slices.Insert(requests, at, r)
}
