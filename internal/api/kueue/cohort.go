package kueue

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// CohortReference is the name of a cohort.
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:Pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
type CohortReference string

// Cohort is a group of ClusterQueues and cohorts that lend each other unused quota. A cohort that is only named by its
// members works without an object; the object gives it quota of its own, limits and a parent.
//
// +kubebuilder:storageversion
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName={co}
// +kubebuilder:subresource:status
type Cohort struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the cohort's place in the tree, and its quota.
	// +optional
	Spec CohortSpec `json:"spec"`
	// status is how the cohort stands.
	// +optional
	Status CohortStatus `json:"status,omitempty"`
}

// CohortSpec is a cohort's place in the tree, and its quota.
type CohortSpec struct {
	// parentName is the cohort above this one. Without it this cohort is the root of its tree. A parent without an object is a
	// cohort without quota and limits. A cycle stops every queue in it.
	// +optional
	ParentName CohortReference `json:"parentName,omitempty"`

	// resourceGroups is quota that all members share, on top of their own, in at most 16 groups; a resource or flavor is in one
	// group only. Borrowing and lending limits hold between this cohort and its parent, and need one.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +optional
	ResourceGroups []ResourceGroup `json:"resourceGroups,omitempty"`

	// fairSharing is how the cohort competes, when Kueue is configured for fair sharing.
	// +optional
	FairSharing *FairSharing `json:"fairSharing,omitempty"`
}

// CohortStatus is how a cohort stands.
type CohortStatus struct {
	// fairSharing is there when Kueue is configured for fair sharing.
	// +optional
	FairSharing *FairSharingStatus `json:"fairSharing,omitempty"`
}

// CohortList is a list of Cohorts.
//
// +kubebuilder:object:root=true
type CohortList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Cohort `json:"items"`
}
