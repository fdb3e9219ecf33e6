package kueue

import "k8s.io/apimachinery/pkg/api/resource"

// FairSharing is how a queue or cohort competes for unused quota.
type FairSharing struct {
	// weight divides the share that a queue or cohort has taken: the higher, the more it gets. 0 puts it behind all others.
	// Otherwise it must be above 10^-9.
	// +kubebuilder:default=1
	// +optional
	Weight *resource.Quantity `json:"weight,omitempty"`
}

// FairSharingStatus is how a queue or cohort stands.
type FairSharingStatus struct {
	// weightedShare is the largest ratio, over all resources, of what is used above nominal quota to what the cohort can lend,
	// in thousandths, divided by the weight. It is 0 within nominal quota, and 9223372036854775807 when something with
	// weight 0 borrows.
	// +required
	WeightedShare int64 `json:"weightedShare"`
}

// AdmissionScope says whether a ClusterQueue takes its LocalQueues' past use into account.
type AdmissionScope struct {
	// admissionMode is UsageBasedAdmissionFairSharing or NoAdmissionFairSharing.
	// +kubebuilder:validation:Enum=UsageBasedAdmissionFairSharing;NoAdmissionFairSharing
	// +required
	AdmissionMode AdmissionMode `json:"admissionMode,omitempty"`
}

// AdmissionMode is a ClusterQueue's way to order its LocalQueues.
type AdmissionMode string

// The admission modes.
const (
	UsageBasedAdmissionFairSharing AdmissionMode = "UsageBasedAdmissionFairSharing"
	NoAdmissionFairSharing         AdmissionMode = "NoAdmissionFairSharing"
)
