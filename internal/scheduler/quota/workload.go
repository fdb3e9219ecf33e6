package quota

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Workload is what the engine must know of a Kueue Workload; FromObject makes it of one. SetWorkload takes the whole of
// it each time.
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
	// Boost is added to it if Config.PriorityBoost is set (annotation kueue.x-k8s.io/priority-boost).
	Boost int32
	// Queue names the LocalQueue, in the workload's own namespace.
	Queue   string
	PodSets []PodSet
	// Replaces is the workload whose quota it takes over (annotation kueue.x-k8s.io/workload-slice-replacement-for); empty:
	// none. It must ask for the same pod sets, and is charged only what it has more.
	Replaces types.NamespacedName
	// Inactive is !spec.active: it is evicted if it holds quota, and not queued.
	Inactive bool
	// Gated names who holds it back (annotation kueue.x-k8s.io/admission-gated-by); it is queued only when this is empty.
	Gated string
	// UnhealthyNodes are failed nodes that its pods are on (status.unhealthyNodes); the engine finds others for them, or
	// evicts it. It forgets them then.
	UnhealthyNodes []string

	// What follows is read only when the engine does not know the workload yet: it is how an engine is rebuilt from the
	// objects of an API server.

	// Reservation is the quota it holds; nil when it holds none.
	Reservation *Reservation
	// Evicted is the reason of the condition Evicted=True; empty when there is none. With a Reservation, the eviction is
	// still under way.
	Evicted string
	// EvictedAt is the time of that condition.
	EvictedAt time.Time
	// Held is the reason of the condition Requeued=False; empty when there is none. See Resume.
	Held string
	// Finished is true for one that is only remembered.
	Finished bool
}

// PodSet is a group of equal pods of a workload.
type PodSet struct {
	Name  string
	Count int32
	// MinCount allows partial admission down to this number of pods; nil: all or none.
	MinCount *int32
	// Reclaimable is the number of pods that need their quota no longer (status.reclaimablePods).
	Reclaimable int32
	// Requests are those of one pod.
	Requests corev1.ResourceList
	// What chooses among flavors: only terms over a flavor's own label keys count.
	NodeSelector map[string]string
	NodeAffinity *corev1.NodeSelector
	Tolerations  []corev1.Toleration
	// Group joins pod sets that must get the same flavors (topologyRequest.podSetGroupName); empty: a group of its own.
	Group string
	// Topology is where the pods want to be, relative to each other (topologyRequest); nil: they do not say.
	Topology *kueue.PodSetTopologyRequest
}

// Reservation is quota that a workload holds.
type Reservation struct {
	// Admission is status.admission.
	Admission kueue.Admission
	// At is the time of the condition QuotaReserved=True; among workloads of a priority the latest is preempted first.
	// Whole seconds count.
	At time.Time
	// Admitted is false while admission checks are not ready.
	Admitted bool
}
