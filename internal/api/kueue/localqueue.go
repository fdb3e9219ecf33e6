package kueue

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// LocalQueueName is the name of a LocalQueue.
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:Pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
type LocalQueueName string

// DefaultLocalQueueName is the LocalQueue that jobs without a queue are put into, where it exists.
const DefaultLocalQueueName LocalQueueName = "default"

// StopPolicy says whether a queue is stopped, and how.
type StopPolicy string

// The stop policies.
const (
	// None admits workloads.
	None StopPolicy = "None"
	// Hold admits no new workload; what is admitted runs to its end, mere reservations are cancelled.
	Hold StopPolicy = "Hold"
	// HoldAndDrain evicts what is admitted too.
	HoldAndDrain StopPolicy = "HoldAndDrain"
)

// LocalQueue is a namespace's door to a ClusterQueue; jobs name it in their label kueue.x-k8s.io/queue-name.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="ClusterQueue",JSONPath=".spec.clusterQueue",type=string,description="Backing ClusterQueue"
// +kubebuilder:printcolumn:name="Pending Workloads",JSONPath=".status.pendingWorkloads",type=integer,description="Number of pending workloads"
// +kubebuilder:printcolumn:name="Admitted Workloads",JSONPath=".status.admittedWorkloads",type=integer,description="Number of admitted workloads that haven't finished yet."
// +kubebuilder:resource:shortName={queue,queues,lq}
type LocalQueue struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says where the queue leads.
	// +optional
	Spec LocalQueueSpec `json:"spec"`
	// status is how the queue stands.
	// +optional
	Status LocalQueueStatus `json:"status,omitempty"`
}

// LocalQueueSpec says where a queue leads.
type LocalQueueSpec struct {
	// clusterQueue is the ClusterQueue behind this queue. It is immutable once set.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf", message="field is immutable"
	// +optional
	ClusterQueue ClusterQueueReference `json:"clusterQueue,omitempty"`

	// stopPolicy is None, Hold (nothing new is admitted, reservations are cancelled) or HoldAndDrain (what runs is evicted too).
	// +optional
	// +kubebuilder:validation:Enum=None;Hold;HoldAndDrain
	// +kubebuilder:default="None"
	StopPolicy *StopPolicy `json:"stopPolicy,omitempty"`

	// fairSharing is how the queue competes with the others of its ClusterQueue, when Kueue is configured for admission fair
	// sharing.
	// +optional
	FairSharing *FairSharing `json:"fairSharing,omitempty"`
}

// LocalQueueStatus is how a queue stands.
type LocalQueueStatus struct {
	// conditions of the queue; Active means that workloads sent to it can be admitted.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// pendingWorkloads counts the workloads that are not admitted yet.
	// +optional
	PendingWorkloads int32 `json:"pendingWorkloads"`

	// reservingWorkloads counts the workloads that hold quota and have not finished.
	// +optional
	ReservingWorkloads int32 `json:"reservingWorkloads"`

	// admittedWorkloads counts the workloads that are admitted and have not finished.
	// +optional
	AdmittedWorkloads int32 `json:"admittedWorkloads"`

	// flavorsReservation is the quota that workloads of this queue hold, by flavor.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	// +optional
	FlavorsReservation []LocalQueueFlavorUsage `json:"flavorsReservation,omitempty"`

	// flavorsUsage is the quota that admitted workloads of this queue use, by flavor.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	// +optional
	FlavorsUsage []LocalQueueFlavorUsage `json:"flavorsUsage,omitempty"`

	// fairSharing is there when Kueue is configured for it.
	// +optional
	FairSharing *LocalQueueFairSharingStatus `json:"fairSharing,omitempty"`
}

// LocalQueueFlavorUsage is what is used of one flavor.
type LocalQueueFlavorUsage struct {
	// name of the flavor.
	// +required
	Name ResourceFlavorReference `json:"name"`

	// resources is what is used of each resource.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	// +required
	Resources []LocalQueueResourceUsage `json:"resources,omitempty"`
}

// LocalQueueResourceUsage is what is used of one resource.
type LocalQueueResourceUsage struct {
	// name of the resource.
	// +required
	Name corev1.ResourceName `json:"name,omitempty"`

	// total is what is used.
	// +optional
	Total resource.Quantity `json:"total,omitempty"`
}

// LocalQueueFairSharingStatus is how a queue stands in fair sharing.
type LocalQueueFairSharingStatus struct {
	// weightedShare is as in a ClusterQueue's status.
	// +required
	WeightedShare int64 `json:"weightedShare"`

	// admissionFairSharingStatus is there with admission fair sharing.
	// +optional
	AdmissionFairSharingStatus *LocalQueueAdmissionFairSharingStatus `json:"admissionFairSharingStatus,omitempty"`
}

// LocalQueueAdmissionFairSharingStatus is what a queue has used in the past.
type LocalQueueAdmissionFairSharingStatus struct {
	// consumedResources is the past use, decaying over time.
	// +required
	ConsumedResources corev1.ResourceList `json:"consumedResources"`

	// lastUpdate is when it was computed.
	// +required
	LastUpdate metav1.Time `json:"lastUpdate"`
}

// LocalQueueList is a list of LocalQueues.
//
// +kubebuilder:object:root=true
type LocalQueueList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []LocalQueue `json:"items"`
}
