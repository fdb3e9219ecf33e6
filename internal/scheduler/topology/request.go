package topology

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Request is what a pod set asks for.
type Request struct {
	PodSet string
	// Group joins a leader and its workers, which are placed together; empty: none.
	Group string
	Count int32
	// PerPod is what one pod requests.
	PerPod Units
	// Topology is the pod set's own request; nil for a pod set of a queue that has only flavors with topologies, whose
	// pods go anywhere (implied).
	Topology *kueue.PodSetTopologyRequest
	// What chooses among nodes. Only topologies by host look at it.
	NodeSelector map[string]string
	NodeAffinity *corev1.NodeSelector
	Tolerations  []corev1.Toleration
}

// Explicit reports whether a pod set requests a topology itself (Kueue's IsExplicitlyRequestingTAS).
func Explicit(r *kueue.PodSetTopologyRequest) bool {
	return r != nil && (r.Unconstrained != nil || r.Required != nil || r.Preferred != nil || r.PodSetSliceRequiredTopology != nil ||
		r.PodSetSliceSize != nil || len(r.PodsetSliceRequiredTopologyConstraints) > 0)
}

// layers are the slices that a request asks for, from the outermost.
func layers(r *kueue.PodSetTopologyRequest) []kueue.PodsetSliceRequiredTopologyConstraint {
	switch {
	case r == nil:
		return nil
	case len(r.PodsetSliceRequiredTopologyConstraints) > 0:
		return r.PodsetSliceRequiredTopologyConstraints
	case r.PodSetSliceRequiredTopology == nil:
		return nil
	}
	layer := kueue.PodsetSliceRequiredTopologyConstraint{Topology: *r.PodSetSliceRequiredTopology}
	if r.PodSetSliceSize != nil {
		layer.Size = *r.PodSetSliceSize
	}
	return []kueue.PodsetSliceRequiredTopologyConstraint{layer}
}

// slicesOnly reports whether a request asks for slices and says nothing about the whole.
func slicesOnly(r *kueue.PodSetTopologyRequest) bool {
	return r != nil && r.Required == nil && r.Preferred == nil && len(layers(r)) > 0
}

func required(r *kueue.PodSetTopologyRequest) bool { return r != nil && r.Required != nil }

// levelOf is the level within one domain of which all pods must fit, or should; "" for none.
func (t *Tree) levelOf(r *kueue.PodSetTopologyRequest) string {
	switch {
	case r == nil:
		return ""
	case r.Required != nil:
		return *r.Required
	case r.Preferred != nil:
		return *r.Preferred
	case slicesOnly(r):
		return t.levels[0]
	case r.Unconstrained != nil && *r.Unconstrained:
		return t.lowest()
	}
	return ""
}

func (t *Tree) lowest() string { return t.levels[len(t.levels)-1] }

// sliceLevelOf is the level of the outermost slices; without slices the lowest.
func (t *Tree) sliceLevelOf(r *kueue.PodSetTopologyRequest) string {
	if all := layers(r); len(all) > 0 {
		return all[0].Topology
	}
	return t.lowest()
}

// Has reports whether the topology has all levels that a request names.
func (t *Tree) Has(r *kueue.PodSetTopologyRequest) bool {
	level := t.levelOf(r)
	if level == "" || !t.HasLevel(level) || !t.HasLevel(t.sliceLevelOf(r)) {
		return false
	}
	for _, layer := range layers(r) {
		if !t.HasLevel(layer.Topology) {
			return false
		}
	}
	return true
}

// sliceSize is how many pods make one of the outermost slices: 1 without slices.
func sliceSize(r *kueue.PodSetTopologyRequest) (int32, string) {
	all := layers(r)
	switch {
	case len(all) == 0:
		return 1, ""
	case all[0].Size <= 0:
		return 0, "slice topology requested, but slice size not provided"
	}
	return all[0].Size, ""
}

// plan is a request in terms of a tree.
type plan struct {
	count, leaders int32
	// size is the number of pods of a slice.
	size int32
	// level is where the whole is to be, and sliceLevel where each slice.
	level, sliceLevel int
	// inner has the sizes of inner slices by level.
	inner map[int]int32
	// layers are all slices, if there are inner ones.
	layers                  []kueue.PodsetSliceRequiredTopologyConstraint
	required, unconstrained bool
	excluded                exclusions
}

// plan translates a request, or says why that cannot be.
func (t *Tree) plan(r *Request) (*plan, string) {
	size, why := sliceSize(r.Topology)
	if why != "" {
		return nil, why
	}
	p := &plan{count: r.Count, size: size, required: required(r.Topology)}
	implied := !Explicit(r.Topology)
	p.unconstrained = implied || r.Topology.Unconstrained != nil && *r.Topology.Unconstrained || slicesOnly(r.Topology)
	level := t.levelOf(r.Topology)
	if level == "" && implied {
		level = t.lowest()
	}
	if level == "" {
		return nil, "topology level not specified"
	}
	if p.level = t.index(level); p.level < 0 {
		return nil, "no requested topology level: " + level
	}
	sliceLevel := t.sliceLevelOf(r.Topology)
	if p.sliceLevel = t.index(sliceLevel); p.sliceLevel < 0 {
		return nil, "no requested topology level for slices: " + sliceLevel
	}
	if p.level > p.sliceLevel {
		return nil, fmt.Sprintf("podset slice topology %s is above the podset topology %s", sliceLevel, level)
	}
	if p.inner, why = t.innerSlices(r, p); why != "" {
		return nil, why
	}
	if len(p.inner) > 0 {
		p.layers = layers(r.Topology)
	}
	return p, ""
}

func (t *Tree) index(level string) int {
	for i, l := range t.levels {
		if l == level {
			return i
		}
	}
	return -1
}

// innerSlices gives the sizes of slices within slices, for their own levels and for those between them and the level
// above, which are divided in the same portions.
func (t *Tree) innerSlices(r *Request, p *plan) (map[int]int32, string) {
	sizes := map[int]int32{}
	all := layers(r.Topology)
	if len(all) < 2 {
		return sizes, ""
	}
	size, level := p.size, p.sliceLevel
	for _, layer := range all[1:] {
		at := t.index(layer.Topology)
		switch {
		case at < 0:
			return nil, "no requested topology level for additional slice layer: " + layer.Topology
		case at <= level:
			return nil, fmt.Sprintf("additional slice layer topology %s must be at a lower level than %s", layer.Topology, t.levels[level])
		case size%layer.Size != 0:
			return nil, fmt.Sprintf("additional slice layer size %d must evenly divide parent layer size %d", layer.Size, size)
		}
		for l := level + 1; l <= at; l++ {
			sizes[l] = layer.Size
		}
		size, level = layer.Size, at
	}
	return sizes, ""
}
