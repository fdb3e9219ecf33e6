package conformance

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Outcome is how things stand after a step, and what happened in it.
type Outcome struct {
	// At is the time of the step in seconds.
	At      int64 `json:"at"`
	Settled bool  `json:"settled"`
	// Error is there when the API refused what the step wanted; it did nothing then.
	Error *Refusal `json:"error,omitempty"`
	// Events are a set: their order means nothing.
	Events        []Event                  `json:"events"`
	Workloads     map[string]WorkloadState `json:"workloads"`
	ClusterQueues map[string]QueueState    `json:"clusterQueues"`
}

// Refusal is an API server's.
type Refusal struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// Event is something that happened to a workload: Evicted (Reason; if Preempted also PreemptionReason and By, the
// preemptor), Admitted or Finished (Reason).
type Event struct {
	Event            string `json:"event"`
	Workload         string `json:"workload"`
	Reason           string `json:"reason,omitempty"`
	PreemptionReason string `json:"preemptionReason,omitempty"`
	By               string `json:"by,omitempty"`
}

func (e Event) String() string {
	text := e.Event + " " + e.Workload
	if e.Reason != "" {
		text += ": " + e.Reason
	}
	if e.PreemptionReason != "" {
		text += " " + e.PreemptionReason
	}
	if e.By != "" {
		text += " by " + e.By
	}
	return text
}

// WorkloadState is how a workload stands.
type WorkloadState struct {
	// State is Pending, QuotaReserved, Admitted, Finished or Deactivated.
	State    string `json:"state"`
	Priority int32  `json:"priority"`
	// CreatedAt is in seconds, UID the one that Kueue broke ties with.
	CreatedAt int64  `json:"createdAt"`
	UID       string `json:"uid"`
	// The rest down to ReservedAt is there while it holds quota: Count and Flavors with one pod set, PodSets with several.
	ClusterQueue string            `json:"clusterQueue,omitempty"`
	Count        *int32            `json:"count,omitempty"`
	Flavors      map[string]string `json:"flavors,omitempty"`
	Topology     *Placement        `json:"topology,omitempty"`
	PodSets      []PodSetState     `json:"podSets,omitempty"`
	ReservedAt   *int64            `json:"reservedAt,omitempty"`
	// Evictions counts by reason (or reason/cause).
	Evictions map[string]int32 `json:"evictions,omitempty"`
	// Why is the condition QuotaReserved=False.
	Why *Why `json:"why,omitempty"`
}

// PodSetState is what a pod set got.
type PodSetState struct {
	Name    string            `json:"name"`
	Count   int32             `json:"count"`
	Flavors map[string]string `json:"flavors,omitempty"`
	// Topology is where its pods go, if Kueue says so.
	Topology *Placement `json:"topology,omitempty"`
}

// Placement is the domains that pods go to.
type Placement struct {
	Levels  []string `json:"levels"`
	Domains []Domain `json:"domains"`
}

// Domain is one of them, with the number of its pods.
type Domain struct {
	Values []string `json:"values"`
	Count  int32    `json:"count"`
}

func (p *Placement) equal(other *Placement) bool {
	if p == nil || other == nil {
		return p == other
	}
	return slices.Equal(p.Levels, other.Levels) && slices.EqualFunc(p.Domains, other.Domains, func(a, b Domain) bool {
		return a.Count == b.Count && slices.Equal(a.Values, b.Values)
	})
}

func (p *Placement) String() string {
	if p == nil {
		return "anywhere"
	}
	return fmt.Sprint(p.Domains)
}

// Why is a condition's reason and message.
type Why struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// QueueState is what a ClusterQueue's workloads hold, by flavor and resource, and how many there are.
type QueueState struct {
	Reserved map[string]map[string]Held `json:"reserved"`
	Pending  int                        `json:"pending"`
	Admitted int                        `json:"admitted"`
}

// Held is quota that is held, and the part of it that is borrowed. What is left out is 0.
type Held struct {
	Total    resource.Quantity `json:"total"`
	Borrowed resource.Quantity `json:"borrowed"`
}

// Difference names the first thing in which got does not match want; empty if it matches. Times, UIDs, texts and counts
// of workloads are not compared.
func (want *Outcome) Difference(got *Outcome) string {
	if d := differentEvents(want.Events, got.Events); d != "" {
		return d
	}
	if d := differentKeys("workload", want.Workloads, got.Workloads); d != "" {
		return d
	}
	for _, name := range slices.Sorted(maps.Keys(want.Workloads)) {
		a, b := want.Workloads[name], got.Workloads[name]
		if d := a.difference(&b); d != "" {
			return fmt.Sprintf("workload %s: %s", name, d)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want.ClusterQueues)) {
		if d := differentHeld(want.ClusterQueues[name].Reserved, got.ClusterQueues[name].Reserved); d != "" {
			return fmt.Sprintf("queue %s: %s", name, d)
		}
	}
	return ""
}

func differentEvents(want, got []Event) string {
	wanted, seen := map[Event]bool{}, map[Event]bool{}
	for _, e := range want {
		wanted[e] = true
	}
	for _, e := range got {
		seen[e] = true
	}
	var parts []string
	for _, e := range want {
		if !seen[e] {
			parts = append(parts, fmt.Sprintf("expected %q", e))
			seen[e] = true
		}
	}
	for _, e := range got {
		if !wanted[e] {
			parts = append(parts, fmt.Sprintf("got %q", e))
			wanted[e] = true
		}
	}
	return strings.Join(parts, ", ")
}

func differentKeys[V any](kind string, want, got map[string]V) string {
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if _, there := got[name]; !there {
			return fmt.Sprintf("%s %s: expected, but there is none", kind, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if _, there := want[name]; !there {
			return fmt.Sprintf("%s %s: not expected", kind, name)
		}
	}
	return ""
}

func (want *WorkloadState) difference(got *WorkloadState) string {
	if want.State != got.State {
		text := fmt.Sprintf("expected state %s, got %s", want.State, got.State)
		if got.Why != nil {
			text += fmt.Sprintf(" (%s)", got.Why.Message)
		}
		return text
	}
	switch {
	case want.ClusterQueue != got.ClusterQueue:
		return fmt.Sprintf("expected quota of %q, got %q", want.ClusterQueue, got.ClusterQueue)
	case number(want.Count) != number(got.Count):
		return fmt.Sprintf("expected count %d, got %d", number(want.Count), number(got.Count))
	case !maps.Equal(want.Flavors, got.Flavors):
		return fmt.Sprintf("expected flavors %v, got %v", want.Flavors, got.Flavors)
	case !want.Topology.equal(got.Topology):
		return fmt.Sprintf("expected its pods at %v, got %v", want.Topology, got.Topology)
	case want.Priority != got.Priority:
		return fmt.Sprintf("expected priority %d, got %d", want.Priority, got.Priority)
	case !maps.Equal(want.Evictions, got.Evictions):
		return fmt.Sprintf("expected evictions %v, got %v", want.Evictions, got.Evictions)
	case !slices.EqualFunc(want.PodSets, got.PodSets, PodSetState.equal):
		return fmt.Sprintf("expected pod sets %v, got %v", want.PodSets, got.PodSets)
	}
	return ""
}

func (s PodSetState) equal(other PodSetState) bool {
	return s.Name == other.Name && s.Count == other.Count && maps.Equal(s.Flavors, other.Flavors) &&
		s.Topology.equal(other.Topology)
}

func number(n *int32) int32 {
	if n == nil {
		return 0
	}
	return *n
}

func differentHeld(want, got map[string]map[string]Held) string {
	check := func(from map[string]map[string]Held) string {
		for _, flavor := range slices.Sorted(maps.Keys(from)) {
			for _, name := range slices.Sorted(maps.Keys(from[flavor])) {
				a, b := want[flavor][name], got[flavor][name]
				if a.Total.Cmp(b.Total) != 0 || a.Borrowed.Cmp(b.Borrowed) != 0 {
					return fmt.Sprintf("expected %s of %s in %s reserved (%s borrowed), got %s (%s borrowed)",
						&a.Total, name, flavor, &a.Borrowed, &b.Total, &b.Borrowed)
				}
			}
		}
		return ""
	}
	if d := check(want); d != "" {
		return d
	}
	return check(got)
}
