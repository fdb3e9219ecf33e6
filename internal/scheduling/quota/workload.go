package quota

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Workload is what the engine must know of a Kueue Workload. SetWorkload takes the whole of it each time.
type Workload struct {
	types.NamespacedName
	// UID breaks ties, smaller first, and identifies the workload in messages.
	UID string
	// JobUID is the value of the label kueue.x-k8s.io/job-uid; it only appears in messages.
	JobUID string
	// Created is the creation time of the object: older workloads of a priority come first. A preempted workload keeps it.
	Created time.Time
	// Priority is spec.priority; a higher one comes first.
	Priority int32
	// Queue names the LocalQueue, in the workload's own namespace.
	Queue   string
	PodSets []PodSet
	// Inactive is !spec.active: it is evicted if it holds quota, and not queued.
	Inactive bool
	// Gated is true while the annotation kueue.x-k8s.io/admission-gated-by is not empty: it is not queued.
	Gated bool

	// What follows is read only when the engine does not know the workload yet: it is how an engine is rebuilt from the objects of an API server.

	// Reservation is the quota it holds; nil when it holds none.
	Reservation *Reservation
	// EvictedFor is the reason of the condition Evicted=True; empty when there is none. Together with Reservation: an eviction that is under way.
	EvictedFor string
	// EvictedAt is the time of that condition.
	EvictedAt time.Time
	// Held is the reason of the condition Requeued=False; empty when there is none.
	Held string
}

// PodSet is a group of equal pods of a workload.
type PodSet struct {
	Name  string
	Count int32
	// MinCount allows partial admission down to this number of pods; nil: all or none.
	MinCount *int32
	// Requests are those of one pod, after limits, overhead and init containers were accounted for (see PodRequests).
	Requests corev1.ResourceList
	// What chooses among flavors: only terms over a flavor's own label keys count.
	NodeSelector map[string]string
	NodeAffinity *corev1.NodeSelector
	Tolerations  []corev1.Toleration
	// Group joins pod sets that must get the same flavors (topologyRequest.podSetGroupName); empty: a group of its own.
	Group string
}

// Reservation is quota that a workload holds: status.admission and the time of QuotaReserved=True.
type Reservation struct {
	ClusterQueue string
	PodSets      []PodSetAssignment
	At           time.Time
	// Admitted is false while admission checks are not ready.
	Admitted bool
}

// PodSetAssignment is what a pod set got.
type PodSetAssignment struct {
	Name string
	// Count is smaller than the pod set's under partial admission.
	Count int32
	// Flavors gives the flavor of each resource. A resource that was not asked for (a zero request that the queue does not cover) is not in it.
	Flavors map[corev1.ResourceName]string
	// Usage is for all Count pods together.
	Usage corev1.ResourceList
}
