package inprocess

import (
	"cmp"
	"slices"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	utiltas "sigs.k8s.io/kueue/pkg/util/tas"
	"sigs.k8s.io/kueue/pkg/workload"
	workloadevict "sigs.k8s.io/kueue/pkg/workload/evict"
	workloadfinish "sigs.k8s.io/kueue/pkg/workload/finish"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/conformance"
)

// outcome is how things stand.
func (r *run) outcome(at int64) (conformance.Outcome, error) {
	o := conformance.Outcome{
		At: at, Settled: true, Events: r.events,
		Workloads: map[string]conformance.WorkloadState{}, ClusterQueues: map[string]conformance.QueueState{},
	}
	rank := map[string]int{"Evicted": 0, "Admitted": 1, "Finished": 2}
	slices.SortStableFunc(o.Events, func(a, b conformance.Event) int {
		return cmp.Or(cmp.Compare(rank[a.Event], rank[b.Event]), strings.Compare(a.Workload, b.Workload))
	})
	for name, q := range r.queues {
		usage, err := r.cache.Usage(q)
		if err != nil {
			return o, err
		}
		state := conformance.QueueState{Reserved: map[string]map[string]conformance.Held{}, Admitted: usage.AdmittedWorkloads}
		for _, f := range usage.ReservedResources {
			state.Reserved[string(f.Name)] = map[string]conformance.Held{}
			for _, u := range f.Resources {
				state.Reserved[string(f.Name)][string(u.Name)] = conformance.Held{Total: u.Total, Borrowed: u.Borrowed}
			}
		}
		o.ClusterQueues[name] = state
	}
	for _, wl := range r.workloads {
		state := r.state(wl)
		o.Workloads[wl.Name] = state
		if state.State == "Pending" {
			if l := r.local[string(wl.Spec.QueueName)]; l != nil {
				q := o.ClusterQueues[string(l.Spec.ClusterQueue)]
				q.Pending++
				o.ClusterQueues[string(l.Spec.ClusterQueue)] = q
			}
		}
	}
	return o, nil
}

func (r *run) state(wl *kueue.Workload) conformance.WorkloadState {
	s := conformance.WorkloadState{State: "Pending", Priority: *wl.Spec.Priority, CreatedAt: r.seconds(wl.CreationTimestamp), UID: string(wl.UID)}
	if stats := wl.Status.SchedulingStats; stats != nil {
		for _, e := range stats.Evictions {
			reason := e.Reason
			if e.UnderlyingCause != "" {
				reason += "/" + string(e.UnderlyingCause)
			}
			if s.Evictions == nil {
				s.Evictions = map[string]int32{}
			}
			s.Evictions[reason] += e.Count
		}
	}
	reserved := apimeta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadQuotaReserved)
	if reserved != nil && reserved.Status == metav1.ConditionFalse {
		s.Why = &conformance.Why{Reason: reserved.Reason, Message: reserved.Message}
	}
	switch {
	case workloadfinish.IsFinished(wl):
		s.State, s.Why = "Finished", nil
		return s
	case !workload.IsActive(wl) && !workload.HasQuotaReservation(wl):
		s.State = "Deactivated"
		return s
	case !workload.HasQuotaReservation(wl):
		return s
	}
	s.State = "QuotaReserved"
	if workload.IsAdmitted(wl) {
		s.State = "Admitted"
	}
	at := r.seconds(reserved.LastTransitionTime)
	s.ReservedAt, s.ClusterQueue = &at, string(wl.Status.Admission.ClusterQueue)
	for _, a := range wl.Status.Admission.PodSetAssignments {
		set := conformance.PodSetState{Name: string(a.Name), Count: *a.Count, Flavors: map[string]string{}}
		for resource, flavor := range a.Flavors {
			set.Flavors[string(resource)] = string(flavor)
		}
		if a.TopologyAssignment != nil {
			internal := utiltas.InternalFrom(a.TopologyAssignment)
			set.Topology = &conformance.Placement{Levels: internal.Levels, Domains: []conformance.Domain{}}
			for _, d := range internal.Domains {
				set.Topology.Domains = append(set.Topology.Domains, conformance.Domain{Values: d.Values, Count: d.Count})
			}
		}
		s.PodSets = append(s.PodSets, set)
	}
	if len(s.PodSets) == 1 {
		one := &s.PodSets[0]
		s.Count, s.Flavors, s.Topology, s.PodSets = &one.Count, one.Flavors, one.Topology, nil
	}
	return s
}

// happened notes what an update of a workload means.
func (r *run) happened(old, wl *kueue.Workload) {
	if workloadevict.IsEvicted(wl) && !workloadevict.IsEvicted(old) {
		c := apimeta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadEvicted)
		e := conformance.Event{Event: "Evicted", Workload: wl.Name, Reason: c.Reason}
		if c.Reason == kueue.WorkloadEvictedByPreemption {
			e.PreemptionReason = apimeta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadPreempted).Reason
			_, after, _ := strings.Cut(c.Message, "(UID: ")
			uid, _, _ := strings.Cut(after, ",")
			for _, other := range r.workloads {
				if string(other.UID) == uid {
					e.By = other.Name
				}
			}
		}
		r.events = append(r.events, e)
	}
	if workload.IsAdmitted(wl) && !workload.IsAdmitted(old) {
		r.events = append(r.events, conformance.Event{Event: "Admitted", Workload: wl.Name})
	}
	if workloadfinish.IsFinished(wl) && !workloadfinish.IsFinished(old) {
		c := apimeta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadFinished)
		r.events = append(r.events, conformance.Event{Event: "Finished", Workload: wl.Name, Reason: c.Reason})
	}
}
