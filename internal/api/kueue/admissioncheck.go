package kueue

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// AdmissionCheckReference is the name of an AdmissionCheck.
// +kubebuilder:validation:MaxLength=316
// +kubebuilder:validation:MinLength=1
type AdmissionCheckReference string

// CheckState is where one admission check of one workload stands.
type CheckState string

// The states of an admission check.
const (
	// CheckStatePending means not decided yet; the workload waits with its quota reserved.
	CheckStatePending CheckState = "Pending"
	// CheckStateReady means passed.
	CheckStateReady CheckState = "Ready"
	// CheckStateRetry means not now: the workload gives its quota back and is queued again.
	CheckStateRetry CheckState = "Retry"
	// CheckStateRejected means never: the workload is deactivated.
	CheckStateRejected CheckState = "Rejected"
)

// AdmissionCheck is a condition, decided by a controller, that workloads must meet besides quota.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName={ac}
type AdmissionCheck struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec defines who decides.
	// +optional
	Spec AdmissionCheckSpec `json:"spec"`
	// status is what the controller reports.
	// +optional
	Status AdmissionCheckStatus `json:"status,omitempty"`
}

// AdmissionCheckSpec defines who decides a check.
type AdmissionCheckSpec struct {
	// controllerName names the controller that decides the check. It is immutable.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf", message="field is immutable"
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:MinLength=1
	ControllerName string `json:"controllerName"`

	// parameters is an object with the controller's settings for this check.
	// +optional
	Parameters *AdmissionCheckParametersReference `json:"parameters,omitempty"`
}

// AdmissionCheckParametersReference names the object with a check's settings.
type AdmissionCheckParametersReference struct {
	// apiGroup is the object's API group.
	// +required
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:Pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
	APIGroup string `json:"apiGroup,omitempty"`
	// kind is the object's kind.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:Pattern="^(?i)[a-z]([-a-z0-9]*[a-z0-9])?$"
	Kind string `json:"kind,omitempty"`
	// name is the object's name.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:Pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
	Name string `json:"name,omitempty"`
}

// AdmissionCheckStatus is what a check's controller reports.
type AdmissionCheckStatus struct {
	// conditions of the check; Active means that its controller can decide it.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// AdmissionCheckList is a list of AdmissionChecks.
//
// +kubebuilder:object:root=true
type AdmissionCheckList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AdmissionCheck `json:"items"`
}
