package main

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	utiltas "sigs.k8s.io/kueue/pkg/util/tas"
	"sigs.k8s.io/kueue/pkg/workload"
	workloadevict "sigs.k8s.io/kueue/pkg/workload/evict"
	workloadfinish "sigs.k8s.io/kueue/pkg/workload/finish"
)

type outcome struct {
	At            int64                    `json:"at"`
	Settled       bool                     `json:"settled"`
	Events        []recordedEvent          `json:"events"`
	Workloads     map[string]workloadState `json:"workloads"`
	ClusterQueues map[string]queueState    `json:"clusterQueues"`
}

type recordedEvent struct {
	Event            string `json:"event"`
	Workload         string `json:"workload"`
	Reason           string `json:"reason,omitempty"`
	PreemptionReason string `json:"preemptionReason,omitempty"`
	By               string `json:"by,omitempty"`
}

type workloadState struct {
	State        string            `json:"state"`
	Priority     int32             `json:"priority"`
	CreatedAt    int64             `json:"createdAt"`
	UID          string            `json:"uid"`
	ClusterQueue string            `json:"clusterQueue,omitempty"`
	Count        *int32            `json:"count,omitempty"`
	Flavors      map[string]string `json:"flavors,omitempty"`
	Topology     *placement        `json:"topology,omitempty"`
	PodSets      []podSetState     `json:"podSets,omitempty"`
	ReservedAt   *int64            `json:"reservedAt,omitempty"`
	Evictions    map[string]int32  `json:"evictions,omitempty"`
	Why          *why              `json:"why,omitempty"`
}

type podSetState struct {
	Name     string            `json:"name"`
	Count    int32             `json:"count"`
	Flavors  map[string]string `json:"flavors,omitempty"`
	Topology *placement        `json:"topology,omitempty"`
}

type placement struct {
	Levels  []string `json:"levels"`
	Domains []domain `json:"domains"`
}

type domain struct {
	Values []string `json:"values"`
	Count  int32    `json:"count"`
}

type why struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

type queueState struct {
	Reserved map[string]map[string]held `json:"reserved"`
	Pending  int                        `json:"pending"`
	Admitted int                        `json:"admitted"`
}

type held struct {
	Total    string `json:"total"`
	Borrowed string `json:"borrowed"`
}

// compared is what must be the same whenever the scenario is played: all but the messages, which depend on the order of
// maps in places.
func (o outcome) compared() string {
	o.Workloads = maps.Clone(o.Workloads)
	for name, w := range o.Workloads {
		w.Why = nil
		o.Workloads[name] = w
	}
	text, err := json.Marshal(o)
	if err != nil {
		panic(err) // it is plain data
	}
	return string(text)
}

// outcome is how things stand.
func (r *run) outcome(at int64, settled bool) (outcome, error) {
	o := outcome{At: at, Settled: settled, Events: r.events, Workloads: map[string]workloadState{}, ClusterQueues: map[string]queueState{}}
	rank := map[string]int{"Evicted": 0, "Admitted": 1, "Finished": 2}
	slices.SortStableFunc(o.Events, func(a, b recordedEvent) int {
		return cmp.Or(cmp.Compare(rank[a.Event], rank[b.Event]), strings.Compare(a.Workload, b.Workload))
	})
	for name, q := range r.queues {
		usage, err := r.cache.Usage(q)
		if err != nil {
			return o, err
		}
		state := queueState{Reserved: map[string]map[string]held{}, Admitted: usage.AdmittedWorkloads}
		for _, f := range usage.ReservedResources {
			state.Reserved[string(f.Name)] = map[string]held{}
			for _, u := range f.Resources {
				state.Reserved[string(f.Name)][string(u.Name)] = held{u.Total.String(), u.Borrowed.String()}
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

func (r *run) state(wl *kueue.Workload) workloadState {
	s := workloadState{State: "Pending", Priority: *wl.Spec.Priority, CreatedAt: r.seconds(wl.CreationTimestamp), UID: string(wl.UID)}
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
		s.Why = &why{reserved.Reason, reserved.Message}
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
		set := podSetState{Name: string(a.Name), Count: *a.Count, Flavors: map[string]string{}}
		for resource, flavor := range a.Flavors {
			set.Flavors[string(resource)] = string(flavor)
		}
		if a.TopologyAssignment != nil {
			internal := utiltas.InternalFrom(a.TopologyAssignment)
			set.Topology = &placement{Levels: internal.Levels, Domains: []domain{}}
			for _, d := range internal.Domains {
				set.Topology.Domains = append(set.Topology.Domains, domain{d.Values, d.Count})
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
		e := recordedEvent{Event: "Evicted", Workload: wl.Name, Reason: c.Reason}
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
		r.events = append(r.events, recordedEvent{Event: "Admitted", Workload: wl.Name})
	}
	if workloadfinish.IsFinished(wl) && !workloadfinish.IsFinished(old) {
		c := apimeta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadFinished)
		r.events = append(r.events, recordedEvent{Event: "Finished", Workload: wl.Name, Reason: c.Reason})
	}
}
