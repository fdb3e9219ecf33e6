package kueue

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// WorkloadPriorityClass gives workloads a priority for queueing and preemption that is independent of their pods' own.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:scope=Cluster,shortName={wpc}
// +kubebuilder:printcolumn:name="Value",JSONPath=".value",type=integer,description="Value of workloadPriorityClass's Priority"
type WorkloadPriorityClass struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// value is the priority; higher goes first. Changing it leaves the workloads that exist as they are.
	// +required
	Value int32 `json:"value"`

	// description says when the class should be used, in at most 2048 characters.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Description string `json:"description,omitempty"`
}

// WorkloadPriorityClassList is a list of WorkloadPriorityClasses.
//
// +kubebuilder:object:root=true
type WorkloadPriorityClassList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []WorkloadPriorityClass `json:"items"`
}
