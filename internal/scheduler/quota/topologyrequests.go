package quota

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/topology"
)

// topologyRequests is what an assignment asks of the topologies of its flavors.
type topologyRequests struct {
	requests map[string][]topology.Request // by flavor
	// key is equal for those that ask for the same.
	key string
}

// topologyRequests lists what the pod sets of an assignment ask for (Kueue's WorkloadsTopologyRequests). A pod set with flavors
// that cannot be placed gets an error instead; it reports whether there is none.
func (s *search) topologyRequests(a *assignment) (topologyRequests, bool) {
	all, good := topologyRequests{requests: map[string][]topology.Request{}}, true
	if s.engine.config.NodesUnknown {
		return all, true
	}
	onlyTopologies := s.engine.hasOnlyTopologies(s.q)
	for i := range s.w.sets {
		set := &s.w.sets[i]
		got := a.set(set.Name)
		if !topology.Explicit(set.Topology) && !onlyTopologies || got == nil || got.err != "" || got.count == 0 {
			continue
		}
		flavor, why := s.topologyFlavor(got)
		if why != "" {
			got.err, good = why, false
			continue
		}
		all.requests[flavor] = append(all.requests[flavor], topology.Request{
			PodSet: set.Name, Group: set.Group, Count: got.count, PerPod: scheduler.Units(set.Requests), Topology: set.Topology,
			NodeSelector: set.NodeSelector, NodeAffinity: set.NodeAffinity, Tolerations: set.Tolerations,
		})
	}
	if len(all.requests) > 0 {
		text, err := json.Marshal(all.requests)
		if err != nil {
			panic(fmt.Sprintf("quota: topology requests of %s: %v", s.w.NamespacedName, err)) // plain data cannot fail
		}
		all.key = string(text)
	}
	return all, good
}

// topologyFlavor is the one flavor with a topology that a pod set got, or why there is none.
func (s *search) topologyFlavor(got *assignedSet) (flavor, why string) {
	if !slices.ContainsFunc(s.q.groups, func(g resourceGroup) bool { return slices.ContainsFunc(g.flavors, s.engine.placesPods) }) {
		return "", "workload requires Topology, but there is no TAS cache information"
	}
	var found []string
	for _, c := range got.chosen {
		if s.engine.placesPods(c.flavor) && !slices.Contains(found, c.flavor) {
			found = append(found, c.flavor)
		}
	}
	switch len(found) {
	case 0:
		return "", "no TAS flavor assigned"
	case 1:
		return found[0], ""
	}
	slices.Sort(found)
	return "", "more than one TAS flavor assigned: " + strings.Join(found, ", ")
}

// placesPods reports whether a flavor has a topology that is known.
func (e *Engine) placesPods(flavor string) bool { return e.places.of[flavor] != nil }

// finding is a search for places and what came of it.
type finding struct {
	// The search: what is requested, and how things are; empty: as if no workload with a topology were there.
	key   string
	empty bool
	state uint64
}

type found struct {
	at      map[string]*topology.Assignment
	failure *topology.Failure
}

// find finds places for all, and remembers them: the heads of many queues often ask for the same. empty: as if no
// workload with a topology were there. The failure is that of the first pod set by name. (Kueue takes one in no order.)
func (p *places) find(all topologyRequests, empty bool) (map[string]*topology.Assignment, *topology.Failure) {
	f := finding{all.key, empty, p.state}
	if empty {
		f.state = 0
	}
	if known, has := p.findings[f]; has {
		return known.at, known.failure
	}
	at, failure := p.search(all, empty)
	p.findings[f] = found{at, failure}
	return at, failure
}

func (p *places) search(all topologyRequests, empty bool) (map[string]*topology.Assignment, *topology.Failure) {
	found := map[string]*topology.Assignment{}
	var first *topology.Failure
	onHosts := topology.Taken{}
	for _, flavor := range slices.Sorted(maps.Keys(all.requests)) {
		c := p.of[flavor]
		o := topology.Options{Empty: empty}
		if c.Tree().ByHost() {
			o.Taken = onHosts
		}
		placed, failure := c.Place(all.requests[flavor], o)
		maps.Copy(found, placed)
		if failure != nil && (first == nil || failure.PodSet < first.PodSet) {
			first = failure
		}
	}
	return found, first
}

// place looks for places once flavors are chosen: as things are, or, if that fails or the quota is not free either, as
// if all workloads with a topology could be evicted (Kueue's flavorassigner, the end of assignFlavors).
func (s *search) place(a *assignment) {
	if a.mode == noFit {
		return
	}
	all, good := s.topologyRequests(a)
	if !good {
		a.mode = noFit
		return
	}
	if len(all.requests) == 0 {
		return
	}
	if a.mode == fits {
		found, failure := s.engine.places.find(all, false)
		if failure == nil {
			a.placeAt(s, found)
			return
		}
		set := a.set(failure.PodSet)
		set.reasons = slices.Concat(set.reasons, []string{failure.Reason})
		a.setPreemptionMode(failure.PodSet, modePreempt)
		a.mode = needsPreemption
	}
	if _, failure := s.engine.places.find(all, true); failure != nil {
		a.setPreemptionMode(failure.PodSet, modeNoFit)
		a.mode = noFit
		return
	}
	for _, requests := range all.requests {
		for i := range requests {
			a.setPreemptionMode(requests[i].PodSet, modePreempt)
		}
	}
}

// set finds a pod set's part by name; nil if it has none.
func (a *assignment) set(name string) *assignedSet {
	for i := range a.sets {
		if a.sets[i].of.Name == name {
			return &a.sets[i]
		}
	}
	return nil
}

// setPreemptionMode sets what preemption a pod set's flavors need. The pod sets of a group share their choices.
func (a *assignment) setPreemptionMode(name string, g preemptionMode) {
	of := a.set(name)
	for i := range a.sets {
		set := &a.sets[i]
		if set != of && (of.of.Group == "" || set.of.Group != of.of.Group) {
			continue
		}
		for j := range set.chosen {
			if slices.ContainsFunc(of.chosen, func(c choice) bool { return c.resource == set.chosen[j].resource }) {
				set.chosen[j].preemption = g
			}
		}
	}
}

// placeAt gives pod sets their places.
func (a *assignment) placeAt(s *search, found map[string]*topology.Assignment) {
	for name, at := range found {
		a.set(name).placed = at
	}
	a.places = nil
	for i := range a.sets {
		set := &a.sets[i]
		if set.placed == nil {
			continue
		}
		flavor, why := s.topologyFlavor(set)
		if why != "" {
			panic(fmt.Sprintf("quota: %s has a place, but %s", set.of.Name, why)) // topologyRequests did not ask for it
		}
		for _, d := range set.placed.Domains {
			a.places = append(a.places, newPlacement(flavor, d.Values, scheduler.Units(set.of.Requests), d.Count))
		}
	}
}

// placeWithout gives an assignment that needs preemption its places: those that there are once its targets are gone,
// or, without targets, on an empty cluster, so that others do not take them in this cycle (Kueue's scheduler,
// updateAssignmentForTAS).
func (e *Engine) placeWithout(en *entry) {
	if en.a.mode != needsPreemption {
		return
	}
	s := search{engine: e, w: en.w, q: en.q}
	all, _ := s.topologyRequests(&en.a)
	if len(all.requests) == 0 {
		return
	}
	for _, v := range en.targets {
		v.w.lift()
	}
	found, _ := e.places.find(all, len(en.targets) == 0)
	for _, v := range en.targets {
		v.w.put()
	}
	en.a.placeAt(&s, found)
}
