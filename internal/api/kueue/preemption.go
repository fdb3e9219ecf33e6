package kueue

// ClusterQueuePreemption says who may be evicted for a workload of a ClusterQueue.
// +kubebuilder:validation:XValidation:rule="!(self.reclaimWithinCohort == 'Never' && has(self.borrowWithinCohort) &&  self.borrowWithinCohort.policy != 'Never')", message="reclaimWithinCohort=Never and borrowWithinCohort.Policy!=Never"
type ClusterQueuePreemption struct {
	// reclaimWithinCohort says whether a workload that fits the queue's own quota may evict workloads of other queues that
	// borrow: Never, LowerPriority or Any.
	// +optional
	// +kubebuilder:default=Never
	// +kubebuilder:validation:Enum=Never;LowerPriority;Any
	ReclaimWithinCohort PreemptionPolicy `json:"reclaimWithinCohort,omitempty"`

	// borrowWithinCohort says whether a workload that has to borrow may evict workloads of other queues. Not with fair sharing.
	// +kubebuilder:default={}
	// +optional
	BorrowWithinCohort *BorrowWithinCohort `json:"borrowWithinCohort,omitempty"`

	// withinClusterQueue says whether a workload may evict others of its own queue: Never, LowerPriority, or
	// LowerOrNewerEqualPriority (lower, or equal and newer).
	// +kubebuilder:default=Never
	// +kubebuilder:validation:Enum=Never;LowerPriority;LowerOrNewerEqualPriority
	// +optional
	WithinClusterQueue PreemptionPolicy `json:"withinClusterQueue,omitempty"`
}

// PreemptionPolicy is whom a workload may evict.
type PreemptionPolicy string

// The preemption policies.
const (
	PreemptionPolicyNever                     PreemptionPolicy = "Never"
	PreemptionPolicyAny                       PreemptionPolicy = "Any"
	PreemptionPolicyLowerPriority             PreemptionPolicy = "LowerPriority"
	PreemptionPolicyLowerOrNewerEqualPriority PreemptionPolicy = "LowerOrNewerEqualPriority"
)

// BorrowWithinCohort says whether a workload that has to borrow may evict workloads of other queues.
type BorrowWithinCohort struct {
	// policy is Never or LowerPriority.
	// +kubebuilder:default=Never
	// +kubebuilder:validation:Enum=Never;LowerPriority
	// +optional
	Policy BorrowWithinCohortPolicy `json:"policy,omitempty"`

	// maxPriorityThreshold spares workloads with a higher priority than this.
	// +optional
	MaxPriorityThreshold *int32 `json:"maxPriorityThreshold,omitempty"`
}

// BorrowWithinCohortPolicy is whom a borrowing workload may evict.
type BorrowWithinCohortPolicy string

// The policies for a borrowing workload.
const (
	BorrowWithinCohortPolicyNever         BorrowWithinCohortPolicy = "Never"
	BorrowWithinCohortPolicyLowerPriority BorrowWithinCohortPolicy = "LowerPriority"
)

// FlavorFungibility says when the next flavor is tried.
// +kubebuilder:validation:XValidation:rule="!has(self.preference) || (self.whenCanBorrow == 'TryNextFlavor' && self.whenCanPreempt == 'TryNextFlavor')",message="preference can only be set when both whenCanBorrow and whenCanPreempt are TryNextFlavor"
type FlavorFungibility struct {
	// whenCanBorrow is MayStopSearch (a flavor that fits by borrowing is taken) or TryNextFlavor.
	// +kubebuilder:validation:Enum={MayStopSearch,TryNextFlavor}
	// +kubebuilder:default="MayStopSearch"
	// +optional
	WhenCanBorrow FlavorFungibilityPolicy `json:"whenCanBorrow,omitempty"`

	// whenCanPreempt is TryNextFlavor or MayStopSearch (a flavor that fits by evicting others is taken).
	// +kubebuilder:validation:Enum={MayStopSearch,TryNextFlavor}
	// +kubebuilder:default="TryNextFlavor"
	// +optional
	WhenCanPreempt FlavorFungibilityPolicy `json:"whenCanPreempt,omitempty"`

	// preference decides between flavors that all need borrowing or preemption: BorrowingOverPreemption, which is what is done
	// without it, or PreemptionOverBorrowing. It needs TryNextFlavor for both of the others.
	// +kubebuilder:validation:Enum={BorrowingOverPreemption,PreemptionOverBorrowing}
	// +optional
	Preference *FlavorFungibilityPreference `json:"preference,omitempty"`
}

// FlavorFungibilityPolicy says whether the search ends at a flavor.
type FlavorFungibilityPolicy string

// The policies of the search.
const (
	MayStopSearch FlavorFungibilityPolicy = "MayStopSearch"
	TryNextFlavor FlavorFungibilityPolicy = "TryNextFlavor"
)

// FlavorFungibilityPreference decides between flavors that need borrowing or preemption.
type FlavorFungibilityPreference string

// The preferences.
const (
	BorrowingOverPreemption FlavorFungibilityPreference = "BorrowingOverPreemption"
	PreemptionOverBorrowing FlavorFungibilityPreference = "PreemptionOverBorrowing"
)
