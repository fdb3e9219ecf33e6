package kueue

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PodSetReference is the name of a pod set.
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
type PodSetReference string

// DefaultPodSetName is the name of a workload's only pod set.
const DefaultPodSetName PodSetReference = "main"

// PodSet is a number of equal pods.
// +kubebuilder:validation:XValidation:rule="has(self.minCount) ? self.minCount <= self.count : true", message="minCount should be positive and less or equal to count"
type PodSet struct {
	// name of the pod set.
	// +kubebuilder:default=main
	// +optional
	Name PodSetReference `json:"name,omitempty"`

	// template of the pods; of its metadata only labels and annotations count.
	//
	// It is any object here: pods are validated where they are made. Kueue's own CRD repeats the schema of pods, a megabyte,
	// with which the CRDs take an embedded cluster ten seconds to install, and half a second without.
	// +required
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Template corev1.PodTemplateSpec `json:"template,omitempty"`

	// count of the pods.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +optional
	Count int32 `json:"count"`

	// minCount is how few pods the workload may be admitted with (partial admission). Only one pod set may have it.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MinCount *int32 `json:"minCount,omitempty"`

	// topologyRequest is where the pods want to be, relative to each other.
	// +optional
	TopologyRequest *PodSetTopologyRequest `json:"topologyRequest,omitempty"`
}

// Admission is the quota that a workload holds.
type Admission struct {
	// clusterQueue that the quota is from.
	// +optional
	ClusterQueue ClusterQueueReference `json:"clusterQueue"`

	// podSetAssignments is the quota of each pod set.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=18
	// +optional
	PodSetAssignments []PodSetAssignment `json:"podSetAssignments"`
}

// PodSetAssignment is the quota that one pod set holds.
type PodSetAssignment struct {
	// name of the pod set.
	// +kubebuilder:default=main
	// +optional
	Name PodSetReference `json:"name"`

	// flavors assigned, by resource.
	// +optional
	Flavors map[corev1.ResourceName]ResourceFlavorReference `json:"flavors,omitempty"`

	// resourceUsage is what all pods of the set need together, with the defaults and overheads that held at admission.
	// +optional
	ResourceUsage corev1.ResourceList `json:"resourceUsage,omitempty"`

	// count of the pods that were admitted; below the pod set's own with partial admission.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Count *int32 `json:"count,omitempty"`

	// topologyAssignment is where the pods go, with topology-aware scheduling.
	// +optional
	TopologyAssignment *TopologyAssignment `json:"topologyAssignment,omitempty"`

	// delayedTopologyRequest is Pending while the assignment waits for nodes to be provisioned, then Ready.
	// +optional
	DelayedTopologyRequest *DelayedTopologyRequestState `json:"delayedTopologyRequest,omitempty"`
}

// AdmissionCheckState is where one admission check of a workload stands.
type AdmissionCheckState struct {
	// name of the check.
	// +required
	Name AdmissionCheckReference `json:"name,omitempty"`

	// state is Pending, Ready, Retry or Rejected.
	// +required
	// +kubebuilder:validation:Enum=Pending;Ready;Retry;Rejected
	State CheckState `json:"state,omitempty"`

	// lastTransitionTime is when the state last changed.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=date-time
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty,omitzero"`

	// message says why, for people; it may be empty.
	// +required
	// +kubebuilder:validation:MaxLength=32768
	Message string `json:"message"`

	// requeueAfterSeconds is how long to wait, from lastTransitionTime, before the workload is queued again after Retry.
	// +optional
	// +kubebuilder:validation:Minimum=0
	RequeueAfterSeconds *int32 `json:"requeueAfterSeconds,omitempty"`

	// retryCount is how often the state became Retry.
	// +optional
	// +kubebuilder:validation:Minimum=0
	RetryCount *int32 `json:"retryCount,omitempty"`

	// podSetUpdates is what the check adds to the pods.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=18
	PodSetUpdates []PodSetUpdate `json:"podSetUpdates,omitempty"`
}

// PodSetUpdate is what an admission check adds to the pods of one set. It may not change what is there.
type PodSetUpdate struct {
	// name of the pod set.
	// +required
	Name PodSetReference `json:"name"`

	// labels to add.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// annotations to add.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`

	// nodeSelector to add.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// tolerations to add.
	// +optional
	// +kubebuilder:validation:MaxItems=8
	// +listType=atomic
	// +kubebuilder:validation:XValidation:rule="self.all(x, !has(x.key) ? x.operator == 'Exists' : true)", message="operator must be Exists when 'key' is empty, which means 'match all values and all keys'"
	// +kubebuilder:validation:XValidation:rule="self.all(x, has(x.tolerationSeconds) ? x.effect == 'NoExecute' : true)", message="effect must be 'NoExecute' when 'tolerationSeconds' is set"
	// +kubebuilder:validation:XValidation:rule="self.all(x, !has(x.operator) || x.operator in ['Equal', 'Exists'])", message="supported toleration values: 'Equal'(default), 'Exists'"
	// +kubebuilder:validation:XValidation:rule="self.all(x, has(x.operator) && x.operator == 'Exists' ? !has(x.value) : true)", message="a value must be empty when 'operator' is 'Exists'"
	// +kubebuilder:validation:XValidation:rule="self.all(x, !has(x.effect) || x.effect in ['NoSchedule', 'PreferNoSchedule', 'NoExecute'])", message="supported taint effect values: 'NoSchedule', 'PreferNoSchedule', 'NoExecute'"
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
}
