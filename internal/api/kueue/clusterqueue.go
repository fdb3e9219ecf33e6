package kueue

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterQueueReference is the name of a ClusterQueue.
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:Pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
type ClusterQueueReference string

// ClusterQueue is a pool of quota and the rules by which workloads get it.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:scope=Cluster,shortName={cq}
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Cohort",JSONPath=".spec.cohortName",type=string,description="Cohort that this ClusterQueue belongs to"
// +kubebuilder:printcolumn:name="Strategy",JSONPath=".spec.queueingStrategy",type=string,description="The queueing strategy used to prioritize workloads",priority=1
// +kubebuilder:printcolumn:name="Pending Workloads",JSONPath=".status.pendingWorkloads",type=integer,description="Number of pending workloads"
// +kubebuilder:printcolumn:name="Admitted Workloads",JSONPath=".status.admittedWorkloads",type=integer,description="Number of admitted workloads that haven't finished yet",priority=1
type ClusterQueue struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the quota and the rules.
	// +optional
	Spec ClusterQueueSpec `json:"spec,omitempty"`
	// status is how the queue stands.
	// +optional
	Status ClusterQueueStatus `json:"status,omitempty"`
}

// ClusterQueueSpec is the quota of a ClusterQueue and the rules by which workloads get it.
// +kubebuilder:validation:XValidation:rule="!has(self.cohortName) && has(self.resourceGroups) ? self.resourceGroups.all(rg, rg.flavors.all(f, f.resources.all(r, !has(r.borrowingLimit)))) : true", message="borrowingLimit must be nil when cohort is empty"
type ClusterQueueSpec struct {
	// resourceGroups is the quota, in at most 16 groups of resources that are given from one flavor together. A resource or
	// flavor is in one group only; all groups together have at most 256 flavors.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +optional
	ResourceGroups []ResourceGroup `json:"resourceGroups,omitempty"`

	// cohortName is the cohort whose members lend this queue unused quota, and get its own. It need not exist as an object.
	// +optional
	CohortName CohortReference `json:"cohortName,omitempty"`

	// queueingStrategy is StrictFIFO (the oldest workload of the highest priority blocks all behind it) or BestEffortFIFO (others
	// that fit may go first).
	// +optional
	// +kubebuilder:default=BestEffortFIFO
	// +kubebuilder:validation:Enum=StrictFIFO;BestEffortFIFO
	QueueingStrategy QueueingStrategy `json:"queueingStrategy,omitempty"`

	// namespaceSelector selects the namespaces whose workloads are admitted: none when absent, all when empty.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`

	// flavorFungibility says when the next flavor is tried.
	// +optional
	// +kubebuilder:default={}
	FlavorFungibility *FlavorFungibility `json:"flavorFungibility,omitempty"`

	// preemption says who may be evicted for a workload of this queue.
	// +kubebuilder:default={}
	// +optional
	Preemption *ClusterQueuePreemption `json:"preemption,omitempty"`

	// admissionChecksStrategy lists the checks that a workload must pass besides quota.
	// +optional
	AdmissionChecksStrategy *AdmissionChecksStrategy `json:"admissionChecksStrategy,omitempty"`

	// stopPolicy is None, Hold (nothing new is admitted, reservations are cancelled) or HoldAndDrain (what runs is evicted too).
	// +kubebuilder:validation:Enum=None;Hold;HoldAndDrain
	// +kubebuilder:default="None"
	// +optional
	StopPolicy *StopPolicy `json:"stopPolicy,omitempty"`

	// fairSharing is how the queue competes in its cohort, when Kueue is configured for fair sharing.
	// +optional
	FairSharing *FairSharing `json:"fairSharing,omitempty"`

	// admissionScope says whether the LocalQueues' past use counts.
	// +optional
	AdmissionScope *AdmissionScope `json:"admissionScope,omitempty"`
}

// QueueingStrategy is the order in which a queue's workloads are considered.
type QueueingStrategy string

// The queueing strategies.
const (
	StrictFIFO     QueueingStrategy = "StrictFIFO"
	BestEffortFIFO QueueingStrategy = "BestEffortFIFO"
)

// ResourceGroup is a set of resources that a workload is given from one flavor together.
// +kubebuilder:validation:XValidation:rule="self.flavors.all(x, size(x.resources) == size(self.coveredResources))", message="flavors must have the same number of resources as the coveredResources"
type ResourceGroup struct {
	// coveredResources are the names of the resources, such as cpu, memory, nvidia.com/gpu: 1 to 64, and at most 256 in all
	// groups.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +required
	CoveredResources []corev1.ResourceName `json:"coveredResources,omitempty"`

	// flavors are tried in this order, 1 to 64. Each lists the covered resources, all of them and in the same order.
	// +listType=map
	// +required
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Flavors []FlavorQuotas `json:"flavors,omitempty"`
}

// FlavorQuotas is the quota of one flavor.
type FlavorQuotas struct {
	// name of the ResourceFlavor. The queue is inactive while there is none of that name.
	// +required
	Name ResourceFlavorReference `json:"name"`

	// resources is the quota of each resource, 1 to 64.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +required
	Resources []ResourceQuota `json:"resources,omitempty"`
}

// ResourceQuota is the quota of one resource of one flavor.
type ResourceQuota struct {
	// name of the resource.
	// +required
	Name corev1.ResourceName `json:"name,omitempty"`

	// nominalQuota is what the queue has of its own; not negative.
	// +required
	NominalQuota resource.Quantity `json:"nominalQuota,omitempty"`

	// borrowingLimit is how much more the queue may take from its cohort; absent: no limit. It needs a cohort and is not
	// negative.
	// +optional
	BorrowingLimit *resource.Quantity `json:"borrowingLimit,omitempty"`

	// lendingLimit is how much of the nominal quota others may use; absent: all of it. It needs a cohort and is not negative.
	// +optional
	LendingLimit *resource.Quantity `json:"lendingLimit,omitempty"`
}

// AdmissionChecksStrategy lists admission checks.
type AdmissionChecksStrategy struct {
	// admissionChecks are the checks, 1 to 64.
	// +listType=map
	// +listMapKey=name
	// +required
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	AdmissionChecks []AdmissionCheckStrategyRule `json:"admissionChecks,omitempty"`
}

// AdmissionCheckStrategyRule is one admission check.
type AdmissionCheckStrategyRule struct {
	// name of the AdmissionCheck.
	// +required
	Name AdmissionCheckReference `json:"name,omitempty"`

	// onFlavors are the flavors of this queue for which the check runs; none: for all.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	OnFlavors []ResourceFlavorReference `json:"onFlavors,omitempty"`
}

// ClusterQueueStatus is how a ClusterQueue stands.
type ClusterQueueStatus struct {
	// conditions of the queue; Active means that it admits workloads and lends quota.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// flavorsReservation is the quota that workloads hold, by flavor.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	// +optional
	FlavorsReservation []FlavorUsage `json:"flavorsReservation,omitempty"`

	// flavorsUsage is the quota that admitted workloads use, by flavor.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	// +optional
	FlavorsUsage []FlavorUsage `json:"flavorsUsage,omitempty"`

	// pendingWorkloads counts the workloads that wait for admission.
	// +optional
	PendingWorkloads int32 `json:"pendingWorkloads"`

	// reservingWorkloads counts the workloads that hold quota.
	// +optional
	ReservingWorkloads int32 `json:"reservingWorkloads"`

	// admittedWorkloads counts the workloads that are admitted and have not finished.
	// +optional
	AdmittedWorkloads int32 `json:"admittedWorkloads"`

	// fairSharing is there when Kueue is configured for fair sharing.
	// +optional
	FairSharing *FairSharingStatus `json:"fairSharing,omitempty"`
}

// FlavorUsage is what is used of one flavor.
type FlavorUsage struct {
	// name of the flavor.
	// +required
	Name ResourceFlavorReference `json:"name,omitempty"`

	// resources is what is used of each resource.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	// +required
	Resources []ResourceUsage `json:"resources,omitempty"`
}

// ResourceUsage is what is used of one resource.
type ResourceUsage struct {
	// name of the resource.
	// +required
	Name corev1.ResourceName `json:"name,omitempty"`

	// total is what is used, borrowed quota included.
	// +optional
	Total resource.Quantity `json:"total,omitempty"`

	// borrowed is what is used above the nominal quota.
	// +optional
	Borrowed resource.Quantity `json:"borrowed,omitempty"`
}

// ClusterQueueList is a list of ClusterQueues.
//
// +kubebuilder:object:root=true
type ClusterQueueList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterQueue `json:"items"`
}
