package kueue

import (
	"encoding/json"
	"fmt"
	"strconv"
)

const (
	// PodSetSliceRequiredTopologyConstraintsAnnotation holds slices within slices, as JSON.
	PodSetSliceRequiredTopologyConstraintsAnnotation = "kueue.x-k8s.io/podset-slice-required-topology-constraints"
	// PodSetGroupNameAnnotation joins pod sets that are placed together.
	PodSetGroupNameAnnotation = "kueue.x-k8s.io/podset-group-name"
)

// PlacedByTopology reports whether Kueue counts a pod with these annotations where its Workload's topology assignment has
// it, and not by its node (pkg/util/tas, IsTAS).
func PlacedByTopology(annotations map[string]string) bool {
	for _, name := range []string{
		PodSetRequiredTopologyAnnotation, PodSetPreferredTopologyAnnotation, PodSetUnconstrainedTopologyAnnotation,
		PodSetSliceRequiredTopologyAnnotation, PodSetSliceRequiredTopologyConstraintsAnnotation,
	} {
		if _, has := annotations[name]; has {
			return true
		}
	}
	return false
}

// TopologyRequestOf is the topology request that Kueue makes of a pod template's annotations
// (pkg/controller/jobframework/tas.go); nil if they request nothing. Kueue makes no Workload of malformed ones.
func TopologyRequestOf(annotations map[string]string) (*PodSetTopologyRequest, error) {
	r := &PodSetTopologyRequest{}
	required, isRequired := annotations[PodSetRequiredTopologyAnnotation]
	preferred, isPreferred := annotations[PodSetPreferredTopologyAnnotation]
	anywhere, isAnywhere := annotations[PodSetUnconstrainedTopologyAnnotation]
	level, hasLevel := annotations[PodSetSliceRequiredTopologyAnnotation]
	sizeText, hasSize := annotations[PodSetSliceSizeAnnotation]
	layers, hasLayers := annotations[PodSetSliceRequiredTopologyConstraintsAnnotation]
	switch {
	case isRequired:
		r.Required = &required
	case isPreferred:
		r.Preferred = &preferred
	case isAnywhere:
		yes, err := strconv.ParseBool(anywhere)
		if err != nil {
			return nil, fmt.Errorf("annotation %s: %w", PodSetUnconstrainedTopologyAnnotation, err)
		}
		r.Unconstrained = &yes
	case !hasLayers && (!hasLevel || !hasSize):
		return nil, nil
	}
	switch {
	case hasLayers:
		if err := json.Unmarshal([]byte(layers), &r.PodsetSliceRequiredTopologyConstraints); err != nil {
			return nil, fmt.Errorf("annotation %s: %w", PodSetSliceRequiredTopologyConstraintsAnnotation, err)
		}
		if n := len(r.PodsetSliceRequiredTopologyConstraints); n < 1 || n > 3 {
			return nil, fmt.Errorf("annotation %s: it must have 1 to 3 entries, and has %d", PodSetSliceRequiredTopologyConstraintsAnnotation, n)
		}
	case hasLevel && hasSize:
		size, err := strconv.ParseInt(sizeText, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("annotation %s: %w", PodSetSliceSizeAnnotation, err)
		}
		r.PodSetSliceRequiredTopology, r.PodSetSliceSize = &level, new(int32(size))
	}
	if group, named := annotations[PodSetGroupNameAnnotation]; named && (isRequired || isPreferred) {
		r.PodSetGroupName = &group
	}
	return r, nil
}
