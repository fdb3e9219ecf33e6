package quota

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue/tas"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/topology"
)

// broken lists the workloads that have pods on failed nodes, in the order in which they are tried. Kueue calls that the
// second pass: they keep their quota, and come before the heads of the queues.
func (e *Engine) broken() []*workload {
	var all []*workload
	for _, q := range e.ordered {
		for _, w := range q.reserved {
			if q.active && len(w.UnhealthyNodes) > 0 && w.Evicted == "" && w.Reservation.Admitted && len(w.placed) > 0 {
				all = append(all, w)
			}
		}
	}
	slices.SortFunc(all, byAge)
	return all
}

// nominateReplacement finds other places for the pods of a failed node, in the flavors that the workload has.
func (e *Engine) nominateReplacement(en *entry) {
	w := en.w
	en.a = assignment{mode: fits, scan: &scan{}}
	old := map[string]*topology.Assignment{}
	for i := range w.Reservation.Admission.PodSetAssignments {
		given := &w.Reservation.Admission.PodSetAssignments[i]
		at := slices.IndexFunc(w.sets, func(s podSetRequests) bool { return s.Name == string(given.Name) })
		if at < 0 {
			continue
		}
		set := assignedSet{of: &w.sets[at], count: w.sets[at].Count}
		if given.Count != nil {
			set.count = *given.Count
		}
		for _, resource := range sortedResources(given.Flavors) {
			set.chosen = append(set.chosen, choice{resource: string(resource), flavor: string(given.Flavors[resource]), preemption: modeFit})
		}
		if t := given.TopologyAssignment; t != nil {
			set.placed = &topology.Assignment{Levels: t.Levels, Domains: tas.Domains(t)}
			old[string(given.Name)] = set.placed
		}
		en.a.sets = append(en.a.sets, set)
	}
	s := search{engine: e, w: w, q: en.q}
	all, good := s.topologyRequests(&en.a)
	for flavor, requests := range all.requests {
		all.requests[flavor] = slices.DeleteFunc(requests, func(r topology.Request) bool { return !w.isOnFailedNode(old[r.PodSet]) })
	}
	found, failure := e.places.replace(all, w.UnhealthyNodes[0], old)
	if !good || failure != nil {
		en.a.mode = noFit
		return
	}
	for name, at := range found {
		en.a.set(name).placed = at
	}
	en.a.places = s.moved(&en.a, old)
}

func (w *workload) isOnFailedNode(at *topology.Assignment) bool {
	return at != nil && slices.ContainsFunc(at.Domains, func(d tas.Domain) bool {
		return slices.Contains(w.UnhealthyNodes, d.Values[len(d.Values)-1])
	})
}

// replace is find for the pods of a failed node.
func (p *places) replace(all topologyRequests, broken string, old map[string]*topology.Assignment) (map[string]*topology.Assignment, *topology.Failure) {
	found, onHosts := map[string]*topology.Assignment{}, topology.Taken{}
	for _, flavor := range slices.Sorted(maps.Keys(all.requests)) {
		c := p.of[flavor]
		o := topology.Options{Broken: broken, Admitted: old}
		if c.Tree().ByHost() {
			o.Taken = onHosts
		}
		placed, failure := c.Place(all.requests[flavor], o)
		if failure != nil {
			return nil, failure
		}
		maps.Copy(found, placed)
	}
	return found, nil
}

// moved are the places that an assignment has beyond the old one, which is counted already.
func (s *search) moved(a *assignment, old map[string]*topology.Assignment) []placement {
	var all []placement
	for i := range a.sets {
		set := &a.sets[i]
		if set.placed == nil {
			continue
		}
		counted := map[string]int32{}
		for _, d := range old[set.of.Name].Domains {
			counted[topology.ID(d.Values)] += d.Count
		}
		flavor, why := s.topologyFlavor(set)
		if why != "" {
			continue
		}
		for _, d := range set.placed.Domains {
			if more := d.Count - counted[topology.ID(d.Values)]; more > 0 {
				all = append(all, newPlacement(flavor, d.Values, scheduler.Units(set.of.Requests), more))
			}
		}
	}
	return all
}

// decideReplacement is decide for a workload that keeps its quota.
func (e *Engine) decideReplacement(en *entry, claimed *claims) {
	room := en.fitsFreed(claimed)
	if room == noPlace {
		e.nominateReplacement(en)
		room = en.fitsFreed(claimed)
	}
	switch {
	case en.a.mode != fits:
		en.outcome = outNoReplacement
		en.message = "Workload was evicted as there was no replacement for unhealthy node(s): " + strings.Join(en.w.UnhealthyNodes, ",")
	case room != roomy:
		en.outcome, en.message = outTaken, "Workload no longer fits after processing another workload"
	default:
		en.outcome = admitted
		e.places.use(en.a.places)
	}
}

// settleReplacement carries over what came of it.
func (e *Engine) settleReplacement(r *Result, en *entry, evict func(reason string)) {
	w := en.w
	d := Decision{Workload: w.NamespacedName, ClusterQueue: en.q.name, Message: en.message}
	switch en.outcome {
	case admitted:
		d.Kind = Move
		admission := w.Reservation.Admission.DeepCopy()
		for i := range admission.PodSetAssignments {
			given := &admission.PodSetAssignments[i]
			if set := en.a.set(string(given.Name)); set != nil && set.placed != nil {
				given.TopologyAssignment = tas.NewAssignment(set.placed.Levels, set.placed.Domains)
			}
		}
		d.Admission, w.Reservation.Admission, w.UnhealthyNodes = admission, *admission, nil
		e.attach(w)
	case outNoReplacement:
		d.Kind, d.Reason = Evict, kueue.WorkloadEvictedDueToNodeFailures
		w.UnhealthyNodes = nil
		evict(d.Reason)
	default:
		d.Kind, d.Reason, d.Cause = Wait, kueue.WorkloadPending, TakenInCycle
	}
	r.Decisions = append(r.Decisions, d)
}

// describeBroken is what nextState says of them.
func (w *workload) describeBroken() string { return fmt.Sprintln(w.NamespacedName, w.UnhealthyNodes) }
