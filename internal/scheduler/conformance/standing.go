package conformance

import (
	"maps"
	"slices"
	"strings"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue/tas"
)

// outcome is how things stand.
func (r *replay) outcome(at int64) Outcome {
	o := Outcome{At: at, Settled: true, Events: r.events, Workloads: map[string]WorkloadState{}, ClusterQueues: map[string]QueueState{}}
	rank := map[string]int{"Evicted": 0, "Admitted": 1}
	slices.SortStableFunc(o.Events, func(a, b Event) int {
		ra, known := rank[a.Event]
		if !known {
			ra = len(rank)
		}
		rb, known := rank[b.Event]
		if !known {
			rb = len(rank)
		}
		if ra != rb {
			return ra - rb
		}
		return strings.Compare(a.Workload, b.Workload)
	})
	for name := range r.queues {
		o.ClusterQueues[name] = QueueState{Reserved: r.reserved(name), Pending: len(r.engine.Pending(name))}
	}
	for _, name := range r.order {
		state := r.state(name)
		o.Workloads[name] = state
		if state.State == "Admitted" {
			q := o.ClusterQueues[state.ClusterQueue]
			q.Admitted++
			o.ClusterQueues[state.ClusterQueue] = q
		}
	}
	return o
}

func (r *replay) reserved(queue string) map[string]map[string]Held {
	all := map[string]map[string]Held{}
	for _, u := range r.engine.Usage(queue) {
		if u.Reserved.IsZero() {
			continue
		}
		if all[u.Flavor] == nil {
			all[u.Flavor] = map[string]Held{}
		}
		all[u.Flavor][string(u.Resource)] = Held{Total: u.Reserved, Borrowed: u.Borrowed}
	}
	return all
}

func (r *replay) state(name string) WorkloadState {
	t := r.tracked[name]
	w, _ := r.engine.Workload(r.name(name))
	state := WorkloadState{State: "Pending", Priority: w.Priority, CreatedAt: r.seconds(w.Created), UID: w.UID}
	if len(t.evictions) > 0 {
		state.Evictions = maps.Clone(t.evictions)
	}
	switch {
	case w.Finished:
		state.State = "Finished"
	case w.Inactive:
		state.State, state.Why = "Deactivated", t.why
	case w.Reservation == nil:
		state.Why = t.why
	default:
		state.State = "QuotaReserved"
		if w.Reservation.Admitted {
			state.State = "Admitted"
		}
		at := r.seconds(w.Reservation.At)
		state.ReservedAt = &at
		state.ClusterQueue = string(w.Reservation.Admission.ClusterQueue)
		for _, a := range w.Reservation.Admission.PodSetAssignments {
			set := PodSetState{Name: string(a.Name), Count: number(a.Count), Flavors: map[string]string{}}
			for resource, flavor := range a.Flavors {
				set.Flavors[string(resource)] = string(flavor)
			}
			if t := a.TopologyAssignment; t != nil {
				set.Topology = &Placement{Levels: t.Levels, Domains: []Domain{}}
				for _, d := range tas.Domains(t) {
					set.Topology.Domains = append(set.Topology.Domains, Domain(d))
				}
			}
			state.PodSets = append(state.PodSets, set)
		}
		if len(state.PodSets) == 1 {
			one := &state.PodSets[0]
			state.Count, state.Flavors, state.Topology, state.PodSets = &one.Count, one.Flavors, one.Topology, nil
		}
	}
	return state
}
