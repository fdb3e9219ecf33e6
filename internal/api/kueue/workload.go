package kueue

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Workload is what Kueue queues and admits: the pods of one job, or of one group of pods. Kueue makes it for the job.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Queue",JSONPath=".spec.queueName",type="string",description="Name of the queue this workload was submitted to"
// +kubebuilder:printcolumn:name="Reserved in",JSONPath=".status.admission.clusterQueue",type="string",description="Name of the ClusterQueue where the workload is reserving quota"
// +kubebuilder:printcolumn:name="Admitted",JSONPath=".status.conditions[?(@.type=='Admitted')].status",type="string",description="Admission status"
// +kubebuilder:printcolumn:name="Finished",JSONPath=".status.conditions[?(@.type=='Finished')].status",type="string",description="Workload finished"
// +kubebuilder:printcolumn:name="Age",JSONPath=".metadata.creationTimestamp",type="date",description="Time this workload was created"
// +kubebuilder:resource:shortName={kwl,kueueworkload,kueueworkloads}
// +kubebuilder:selectablefield:JSONPath=.status.admission.clusterQueue
// +kubebuilder:validation:XValidation:rule="has(self.status) && has(self.status.conditions) && self.status.conditions.exists(c, c.type == 'QuotaReserved' && c.status == 'True') && has(self.status.admission) ? size(self.spec.podSets) == size(self.status.admission.podSetAssignments) : true", message="podSetAssignments must have the same number of podSets as the spec"
// +kubebuilder:validation:XValidation:rule="(has(oldSelf.status) && has(oldSelf.status.conditions) && oldSelf.status.conditions.exists(c, c.type == 'QuotaReserved' && c.status == 'True')) ? (!has(oldSelf.spec.priorityClassRef) && !has(self.spec.priorityClassRef)) || (has(oldSelf.spec.priorityClassRef) && has(self.spec.priorityClassRef)) : true",message="priorityClassRef is immutable while workload quota reserved"
// +kubebuilder:validation:XValidation:rule="(has(oldSelf.status) && has(oldSelf.status.conditions) && oldSelf.status.conditions.exists(c, c.type == 'QuotaReserved' && c.status == 'True') && has(oldSelf.spec.priorityClassRef) && has(self.spec.priorityClassRef)) ? oldSelf.spec.priorityClassRef.group == self.spec.priorityClassRef.group : true",message="priorityClassRef.group is immutable while workload quota reserved"
// +kubebuilder:validation:XValidation:rule="(has(oldSelf.status) && has(oldSelf.status.conditions) && oldSelf.status.conditions.exists(c, c.type == 'QuotaReserved' && c.status == 'True') && has(oldSelf.spec.priorityClassRef) && has(self.spec.priorityClassRef)) ? oldSelf.spec.priorityClassRef.kind == self.spec.priorityClassRef.kind : true",message="priorityClassRef.kind is immutable while workload quota reserved"
// +kubebuilder:validation:XValidation:rule="(has(oldSelf.status) && has(oldSelf.status.conditions) && oldSelf.status.conditions.exists(c, c.type == 'QuotaReserved' && c.status == 'True') && has(oldSelf.spec.priorityClassRef) && has(self.spec.priorityClassRef) && self.spec.priorityClassRef.group == 'scheduling.k8s.io' && self.spec.priorityClassRef.kind == 'PriorityClass') ? oldSelf.spec.priorityClassRef.name == self.spec.priorityClassRef.name : true",message="priorityClassRef.name is immutable for scheduling.k8s.io/priorityclass while workload quota reserved"
// +kubebuilder:validation:XValidation:rule="((has(oldSelf.status) && has(oldSelf.status.conditions) && oldSelf.status.conditions.exists(c, c.type == 'QuotaReserved' && c.status == 'True')) && (has(self.status) && has(self.status.conditions) && self.status.conditions.exists(c, c.type == 'QuotaReserved' && c.status == 'True'))) ? ((has(oldSelf.spec.queueName) == has(self.spec.queueName)) && (!has(oldSelf.spec.queueName) || oldSelf.spec.queueName == self.spec.queueName)) : true", message="queueName is immutable while workload quota reserved"
// +kubebuilder:validation:XValidation:rule="((has(oldSelf.status) && has(oldSelf.status.conditions) && oldSelf.status.conditions.exists(c, c.type == 'Admitted' && c.status == 'True')) && (has(self.status) && has(self.status.conditions) && self.status.conditions.exists(c, c.type == 'Admitted' && c.status == 'True')))?((has(oldSelf.spec.maximumExecutionTimeSeconds)?oldSelf.spec.maximumExecutionTimeSeconds:0) ==  (has(self.spec.maximumExecutionTimeSeconds)?self.spec.maximumExecutionTimeSeconds:0)):true", message="maximumExecutionTimeSeconds is immutable while workload quota reserved"
type Workload struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the workload asks for.
	// +optional
	Spec WorkloadSpec `json:"spec"`
	// status is where it stands.
	// +optional
	Status WorkloadStatus `json:"status,omitempty"`
}

// WorkloadSpec is what a workload asks for.
// +kubebuilder:validation:XValidation:rule="!has(self.priorityClassRef) || has(self.priority)", message="priority should not be nil when priorityClassRef is set"
type WorkloadSpec struct {
	// podSets are sets of equal pods, 1 to 18. They cannot be changed while quota is reserved.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=18
	// +kubebuilder:validation:MinItems=1
	// +optional
	PodSets []PodSet `json:"podSets"`

	// queueName is the LocalQueue. It cannot be changed while quota is reserved.
	// +optional
	QueueName LocalQueueName `json:"queueName,omitempty"`

	// priorityClassRef is where the priority comes from.
	// +optional
	PriorityClassRef *PriorityClassRef `json:"priorityClassRef,omitempty"`

	// priority orders workloads; higher goes first. It must be there with priorityClassRef.
	// +optional
	Priority *int32 `json:"priority,omitempty"`

	// active is false for a workload that must not be admitted; setting it to false evicts.
	// +kubebuilder:default=true
	Active *bool `json:"active,omitempty"`

	// maximumExecutionTimeSeconds is how long the workload may be admitted before it is deactivated.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaximumExecutionTimeSeconds *int32 `json:"maximumExecutionTimeSeconds,omitempty"`
}

// PriorityClassRef names a class of priority, of one of two kinds.
//
// +kubebuilder:validation:XValidation:rule="(self.group == 'scheduling.k8s.io') ? self.kind == 'PriorityClass' : true", message="only the PriorityClass kind is allowed for the scheduling.k8s.io group"
// +kubebuilder:validation:XValidation:rule="(self.group == 'kueue.x-k8s.io') ? self.kind == 'WorkloadPriorityClass' : true", message="only the WorkloadPriorityClass kind is allowed for the kueue.x-k8s.io group"
type PriorityClassRef struct {
	// group is kueue.x-k8s.io for a WorkloadPriorityClass and scheduling.k8s.io for a PriorityClass.
	// +required
	Group PriorityClassGroup `json:"group,omitempty"`

	// kind is WorkloadPriorityClass or PriorityClass.
	// +required
	Kind PriorityClassKind `json:"kind,omitempty"`

	// name of the class.
	// +required
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:Pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
	Name string `json:"name,omitempty"`
}

// PriorityClassGroup is the API group of a class of priority.
// +kubebuilder:validation:Enum=kueue.x-k8s.io;scheduling.k8s.io
type PriorityClassGroup string

// PriorityClassKind is the kind of a class of priority.
// +kubebuilder:validation:Enum=WorkloadPriorityClass;PriorityClass
type PriorityClassKind string

// The two kinds of classes, and their groups.
const (
	PodPriorityClassGroup      PriorityClassGroup = "scheduling.k8s.io"
	PodPriorityClassKind       PriorityClassKind  = "PriorityClass"
	WorkloadPriorityClassGroup PriorityClassGroup = GroupName
	WorkloadPriorityClassKind  PriorityClassKind  = "WorkloadPriorityClass"
)

// WorkloadStatus is where a workload stands.
type WorkloadStatus struct {
	// conditions of the workload: QuotaReserved, Admitted, PodsReady, Evicted, Preempted, Requeued, Finished, ...
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// admission is the quota that the workload holds. It is set and removed as a whole, never changed.
	// +optional
	Admission *Admission `json:"admission,omitempty"`

	// requeueState is there when the workload was put back because its pods did not become ready in time.
	// +optional
	RequeueState *RequeueState `json:"requeueState,omitempty"`

	// reclaimablePods counts, by pod set, the pods that need their quota no longer.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=18
	ReclaimablePods []ReclaimablePod `json:"reclaimablePods,omitempty"`

	// admissionChecks are the checks of the workload and where they stand.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	AdmissionChecks []AdmissionCheckState `json:"admissionChecks,omitempty"`

	// resourceRequests is what a workload that holds no quota asked for when it was last considered.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=18
	ResourceRequests []PodSetRequest `json:"resourceRequests,omitempty"`

	// accumulatedPastExecutionTimeSeconds is how long the workload was admitted before its last eviction.
	// +optional
	AccumulatedPastExecutionTimeSeconds *int32 `json:"accumulatedPastExecutionTimeSeconds,omitempty"`

	// schedulingStats counts evictions.
	// +optional
	SchedulingStats *SchedulingStats `json:"schedulingStats,omitempty"`

	// unhealthyNodes are failed nodes that run pods of this workload, with topology-aware scheduling.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	UnhealthyNodes []UnhealthyNode `json:"unhealthyNodes,omitempty"`
}

// RequeueState is how often and when a workload is put back.
type RequeueState struct {
	// count is how often it was put back since it was last activated.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Count *int32 `json:"count,omitempty"`

	// requeueAt is when it will be.
	// +optional
	RequeueAt *metav1.Time `json:"requeueAt,omitempty"`
}

// ReclaimablePod counts the pods of a pod set that need their quota no longer.
type ReclaimablePod struct {
	// name of the pod set.
	// +required
	Name PodSetReference `json:"name"`

	// count of the pods.
	// +kubebuilder:validation:Minimum=0
	// +required
	Count int32 `json:"count"`
}

// PodSetRequest is what one pod set asks for.
type PodSetRequest struct {
	// name of the pod set.
	// +required
	Name PodSetReference `json:"name"`

	// resources that all its pods ask for, with the defaults and overheads that hold in the cluster.
	// +optional
	Resources corev1.ResourceList `json:"resources,omitempty"`
}

// SchedulingStats counts what happened to a workload.
type SchedulingStats struct {
	// evictions by reason and underlying cause.
	// +optional
	// +listType=map
	// +listMapKey=reason
	// +listMapKey=underlyingCause
	// +kubebuilder:validation:MaxItems=256
	Evictions []WorkloadSchedulingStatsEviction `json:"evictions,omitempty"`
}

// WorkloadSchedulingStatsEviction counts the evictions for one reason.
type WorkloadSchedulingStatsEviction struct {
	// reason of the condition Evicted.
	// +required
	// +kubebuilder:validation:MaxLength=316
	Reason string `json:"reason"`

	// underlyingCause says more, where there is more to say.
	// +required
	UnderlyingCause EvictionUnderlyingCause `json:"underlyingCause"`

	// count of the evictions.
	// +required
	// +kubebuilder:validation:Minimum=0
	Count int32 `json:"count"`
}

// EvictionUnderlyingCause says more about the reason of an eviction; it may be empty.
// +kubebuilder:validation:MaxLength=316
type EvictionUnderlyingCause string

// UnhealthyNode is a failed node.
type UnhealthyNode struct {
	// name of the node.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
}

// WorkloadList is a list of Workloads.
//
// +kubebuilder:object:root=true
type WorkloadList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Workload `json:"items"`
}
