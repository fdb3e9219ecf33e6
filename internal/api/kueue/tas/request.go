// Package tas reads and writes what Kueue's topology-aware scheduling stores in objects: the requests in the annotations
// of pod templates, and the assignments in the status of Workloads. Kueue's own functions (pkg/util/tas) link
// controller-runtime and Kueue's feature gates; these do the same without them.
package tas

import (
	"encoding/json"
	"fmt"
	"strconv"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// PlacesPods reports whether Kueue counts a pod with these annotations where its Workload's topology assignment has
// it, and not by its node (pkg/util/tas, IsTAS).
func PlacesPods(annotations map[string]string) bool {
	for _, name := range []string{
		kueue.PodSetRequiredTopologyAnnotation, kueue.PodSetPreferredTopologyAnnotation, kueue.PodSetUnconstrainedTopologyAnnotation,
		kueue.PodSetSliceRequiredTopologyAnnotation, kueue.PodSetSliceRequiredTopologyConstraintsAnnotation,
	} {
		if _, has := annotations[name]; has {
			return true
		}
	}
	return false
}

// RequestOf is the topology request that Kueue makes of a pod template's annotations
// (pkg/controller/jobframework/tas.go); nil if they request nothing. Kueue makes no Workload of malformed ones.
func RequestOf(annotations map[string]string) (*kueue.PodSetTopologyRequest, error) {
	r := &kueue.PodSetTopologyRequest{}
	required, isRequired := annotations[kueue.PodSetRequiredTopologyAnnotation]
	preferred, isPreferred := annotations[kueue.PodSetPreferredTopologyAnnotation]
	anywhere, isAnywhere := annotations[kueue.PodSetUnconstrainedTopologyAnnotation]
	level, hasLevel := annotations[kueue.PodSetSliceRequiredTopologyAnnotation]
	sizeText, hasSize := annotations[kueue.PodSetSliceSizeAnnotation]
	layers, hasLayers := annotations[kueue.PodSetSliceRequiredTopologyConstraintsAnnotation]
	switch {
	case isRequired:
		r.Required = &required
	case isPreferred:
		r.Preferred = &preferred
	case isAnywhere:
		yes, err := strconv.ParseBool(anywhere)
		if err != nil {
			return nil, fmt.Errorf("annotation %s: %w", kueue.PodSetUnconstrainedTopologyAnnotation, err)
		}
		r.Unconstrained = &yes
	case !hasLayers && (!hasLevel || !hasSize):
		return nil, nil
	}
	switch {
	case hasLayers:
		if err := json.Unmarshal([]byte(layers), &r.PodsetSliceRequiredTopologyConstraints); err != nil {
			return nil, fmt.Errorf("annotation %s: %w", kueue.PodSetSliceRequiredTopologyConstraintsAnnotation, err)
		}
		if n := len(r.PodsetSliceRequiredTopologyConstraints); n < 1 || n > 3 {
			return nil, fmt.Errorf("annotation %s: it must have 1 to 3 entries, and has %d", kueue.PodSetSliceRequiredTopologyConstraintsAnnotation, n)
		}
	case hasLevel && hasSize:
		size, err := strconv.ParseInt(sizeText, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("annotation %s: %w", kueue.PodSetSliceSizeAnnotation, err)
		}
		r.PodSetSliceRequiredTopology, r.PodSetSliceSize = &level, new(int32(size))
	}
	if group, named := annotations[kueue.PodSetGroupName]; named && (isRequired || isPreferred) {
		r.PodSetGroupName = &group
	}
	return r, nil
}
