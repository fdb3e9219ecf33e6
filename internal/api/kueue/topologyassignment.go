package kueue

// PodSetTopologyRequest is where the pods of a set want to be, relative to each other.
type PodSetTopologyRequest struct {
	// required is the level whose one domain must hold all pods.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Required *string `json:"required,omitempty"`

	// preferred is the level whose one domain should hold all pods, if that can be.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Preferred *string `json:"preferred,omitempty"`

	// unconstrained is true when any place will do.
	// +optional
	// +kubebuilder:validation:Type=boolean
	Unconstrained *bool `json:"unconstrained,omitempty"`

	// podIndexLabel is the label with the pod's index, such as kubernetes.io/job-completion-index.
	// +kubebuilder:validation:MaxLength=317
	// +optional
	PodIndexLabel *string `json:"podIndexLabel,omitempty"`

	// subGroupIndexLabel is the label with the index of the replicated job within the set.
	// +kubebuilder:validation:MaxLength=317
	// +optional
	SubGroupIndexLabel *string `json:"subGroupIndexLabel,omitempty"`

	// subGroupCount is how many replicated jobs the set has.
	// +optional
	SubGroupCount *int32 `json:"subGroupCount,omitempty"`

	// podSetGroupName joins pod sets that must get the same flavor.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	PodSetGroupName *string `json:"podSetGroupName,omitempty"`

	// podSetSliceRequiredTopology is the level whose one domain must hold each slice of the set.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	PodSetSliceRequiredTopology *string `json:"podSetSliceRequiredTopology,omitempty"`

	// podSetSliceSize is the number of pods in a slice.
	// +optional
	PodSetSliceSize *int32 `json:"podSetSliceSize,omitempty"`

	// podsetSliceRequiredTopologyConstraints are slices within slices, from the outermost, at most 3. It stands instead of the
	// two fields above.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=3
	PodsetSliceRequiredTopologyConstraints []PodsetSliceRequiredTopologyConstraint `json:"podsetSliceRequiredTopologyConstraints,omitempty"`
}

// PodsetSliceRequiredTopologyConstraint is one layer of slices.
type PodsetSliceRequiredTopologyConstraint struct {
	// topology is the level whose one domain must hold each slice.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Topology string `json:"topology,omitempty"`

	// size is the number of pods in a slice.
	// +required
	// +kubebuilder:validation:Minimum=1
	Size int32 `json:"size,omitempty"`
}

// DelayedTopologyRequestState is whether a delayed topology assignment is there.
// +kubebuilder:validation:Enum=Pending;Ready
// +kubebuilder:validation:MaxLength=7
type DelayedTopologyRequestState string

// The states of a delayed topology assignment.
const (
	DelayedTopologyRequestStatePending DelayedTopologyRequestState = "Pending"
	DelayedTopologyRequestStateReady   DelayedTopologyRequestState = "Ready"
)

// TopologyAssignment is where the pods of a set go: so many to each domain, where a domain is one value for each level.
// The values are stored by level, and parts that they share once.
// +kubebuilder:validation:XValidation:rule="self.slices.all(x, size(x.valuesPerLevel) == size(self.levels))", message="valuesPerLevel must have the same length as the number of levels in this TopologyAssignment"
type TopologyAssignment struct {
	// levels are the keys of the node labels, from the widest level to the narrowest.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=317
	Levels []string `json:"levels,omitempty"`

	// slices are parts of the assignment; all of them together are the whole.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1000
	Slices []TopologyAssignmentSlice `json:"slices,omitempty"`
}

// TopologyAssignmentSlice is a part of an assignment.
// +kubebuilder:validation:XValidation:rule="!has(self.podCounts.individual) || size(self.podCounts.individual) == self.domainCount", message="podCounts.individual must have length equal to domainCount"
// +kubebuilder:validation:XValidation:rule="self.valuesPerLevel.all(x, !has(x.individual) || size(x.individual.roots) == self.domainCount)", message="valuesPerLevel.individual, if set, must have roots of length equal to domainCount of this TopologyAssignmentSlice"
type TopologyAssignmentSlice struct {
	// domainCount is the number of domains in this part.
	// +required
	// +kubebuilder:validation:Minimum=1
	DomainCount int32 `json:"domainCount,omitempty"`

	// valuesPerLevel are the domains' values of each level.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	ValuesPerLevel []TopologyAssignmentSliceLevelValues `json:"valuesPerLevel,omitempty"`

	// podCounts are the numbers of pods in each domain.
	// +required
	PodCounts TopologyAssignmentSlicePodCounts `json:"podCounts,omitempty"`
}

// TopologyAssignmentSliceLevelValues are the values of one level: one for all domains, or one for each.
// +kubebuilder:validation:XValidation:rule="has(self.universal) != has(self.individual)", message="exactly one of the fields in [universal individual] must be set"
type TopologyAssignmentSliceLevelValues struct {
	// universal is the value for all domains.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Universal *string `json:"universal,omitempty"`

	// individual has a value for each domain.
	// +optional
	Individual *TopologyAssignmentSliceLevelIndividualValues `json:"individual,omitempty"`
}

// TopologyAssignmentSliceLevelIndividualValues has a value for each domain: prefix, root and suffix joined.
type TopologyAssignmentSliceLevelIndividualValues struct {
	// prefix of all values.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Prefix *string `json:"prefix,omitempty"`

	// suffix of all values.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Suffix *string `json:"suffix,omitempty"`

	// roots are what is between, one for each domain.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100000
	// +kubebuilder:validation:items:MaxLength=63
	Roots []string `json:"roots,omitempty"`
}

// TopologyAssignmentSlicePodCounts are numbers of pods: one for all domains, or one for each.
// +kubebuilder:validation:XValidation:rule="[has(self.universal),has(self.individual)].filter(x,x==true).size() == 1", message="exactly one of the fields in [universal individual] must be set"
type TopologyAssignmentSlicePodCounts struct {
	// universal is the number of pods in every domain.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Universal *int32 `json:"universal,omitempty"`

	// individual has the number of pods of each domain.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100000
	// +kubebuilder:validation:items:Minimum=1
	Individual []int32 `json:"individual,omitempty"`
}
