package trainingjob

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Topology is where the pods of one workload run, relative to each other: a request to Kueue's topology-aware
// scheduling. Levels are keys of node labels, as in a Topology of Kueue's. One of Required, Preferred and Unconstrained
// is set, or the slice alone, which Required and Preferred may have besides.
type Topology struct {
	Required      string `json:"required,omitempty"`      // the level whose one domain must hold all pods
	Preferred     string `json:"preferred,omitempty"`     // the level whose one domain should hold them
	Unconstrained bool   `json:"unconstrained,omitempty"` // any nodes with room
	SliceSize     int    `json:"slice_size,omitempty"`    // pods of a slice, in the order of their numbers
	SliceRequired string `json:"slice_required,omitempty"`
}

// anyPlace is the request of a pod that no other one has to be near: it is placed, and counted, with the others, and
// can use the same flavors.
var anyPlace = Topology{Unconstrained: true}

// coreGroup joins the pod sets of the master and of the minimum workers, which Kueue places in one domain then.
const coreGroup = "core"

// Kueue's annotations that request a topology, which its package v1beta2 has too; a test compares them.
const (
	requiredTopology      = queueLabelPrefix + "podset-required-topology"
	preferredTopology     = queueLabelPrefix + "podset-preferred-topology"
	unconstrainedTopology = queueLabelPrefix + "podset-unconstrained-topology"
	sliceConstraints      = queueLabelPrefix + "podset-slice-required-topology-constraints"
	sliceRequiredTopology = queueLabelPrefix + "podset-slice-required-topology"
	sliceSize             = queueLabelPrefix + "podset-slice-size"
	podSetGroup           = queueLabelPrefix + "podset-group-name"
	podIndexLabel         = queueLabelPrefix + "pod-group-pod-index-label"
)

// Annotations request the topology for the pods of a template; none for nil.
func (t *Topology) Annotations() map[string]string {
	if t == nil {
		return nil
	}
	annotations := map[string]string{}
	switch {
	case t.Required != "":
		annotations[requiredTopology] = t.Required
	case t.Preferred != "":
		annotations[preferredTopology] = t.Preferred
	case t.Unconstrained:
		annotations[unconstrainedTopology] = "true"
	}
	if t.SliceRequired != "" {
		annotations[sliceRequiredTopology] = t.SliceRequired
		annotations[sliceSize] = strconv.Itoa(t.SliceSize)
	}
	return annotations
}

// joinsMaster reports whether the master is placed in the domain of the minimum workers. Kueue joins no pod sets of which
// one has slices.
func (t *Topology) joinsMaster() bool {
	return t != nil && t.SliceRequired == "" && cmp.Or(t.Required, t.Preferred) != ""
}

// OfCore are the annotations of the pods that the queue admits together: the master, which is a pod set of its own, and
// the minimum workers.
func (t *Topology) OfCore(role string) map[string]string {
	switch {
	case t.joinsMaster():
		return Merge(t.Annotations(), map[string]string{podSetGroup: coreGroup})
	case t != nil && role == RoleMaster:
		return anyPlace.Annotations()
	case t != nil && t.SliceRequired != "": // workers of successive numbers are one slice
		return Merge(t.Annotations(), map[string]string{podIndexLabel: completionIndex})
	default:
		return t.Annotations()
	}
}

// OfBurst are the annotations of a worker above the minimum. It is a workload of one pod, which any domain holds.
func (t *Topology) OfBurst() map[string]string {
	if t == nil {
		return nil
	}
	return anyPlace.Annotations()
}

// withRequest are annotations with those of a request, and as they are without one.
func withRequest(annotations, request map[string]string) map[string]string {
	if len(request) == 0 {
		return annotations
	}
	return Merge(annotations, request)
}

// topologyAnnotations are all that make a request.
var topologyAnnotations = []string{
	requiredTopology, preferredTopology, unconstrainedTopology,
	sliceRequiredTopology, sliceSize, sliceConstraints,
	podSetGroup,
}

// OwnTopologyAnnotation is the first of a pod's annotations, in order, that says what attribute topology says too; ""
// for none. Kueue refuses a pod with two requests.
func OwnTopologyAnnotation(annotations map[string]string) string {
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		if slices.Contains(topologyAnnotations, key) {
			return key
		}
	}
	return ""
}

// Problems are what Kueue would refuse, or never admit, of a request for a number of pods, which an attribute counts.
func (t *Topology) Problems(pods int, counted string) []Problem {
	if t == nil {
		return nil
	}
	var p problems
	for _, level := range []struct{ attribute, key string }{
		{"topology.required", t.Required}, {"topology.preferred", t.Preferred}, {"topology.slice_required", t.SliceRequired},
	} {
		if level.key != "" && len(validation.IsQualifiedName(level.key)) > 0 {
			p.add(level.attribute, "is %q, which is not the key of a node label; name a level of the Topology, such as %q", level.key, "cloud.provider.com/topology-rack")
		}
	}
	places := 0
	for _, set := range []bool{t.Required != "", t.Preferred != "", t.Unconstrained} {
		if set {
			places++
		}
	}
	sliced := t.SliceSize != 0 || t.SliceRequired != ""
	switch {
	case places == 0 && !sliced:
		p.add("topology", "requests nothing; set required or preferred to a level of the Topology, or unconstrained = true, or slice_size and slice_required")
	case places > 1:
		p.add("topology", "sets %d of required, preferred and unconstrained; set one", places)
	case t.Unconstrained && sliced:
		p.add("topology.unconstrained", "is set with slices, which are to be near each other; leave it out: slices alone may be anywhere")
	}
	switch {
	case !sliced:
	case t.SliceRequired == "":
		p.add("topology.slice_size", "is set, and topology.slice_required is not; name the level whose domains hold a slice each")
	case t.SliceSize == 0:
		p.add("topology.slice_required", "is set, and topology.slice_size is not; give the number of pods in a slice")
	case t.SliceSize < 1 || t.SliceSize > math.MaxInt32:
		p.add("topology.slice_size", "is %d; give the number of pods in a slice, at least 1", t.SliceSize)
	case pods > 0 && pods%t.SliceSize != 0:
		p.add("topology.slice_size", "is %d, and %s is %d; Kueue places whole slices: make %s a multiple of slice_size", t.SliceSize, counted, pods, counted)
	}
	return p
}

func (p *problems) topology(d Definition) {
	if d.Queue.Place() == nil {
		return
	}
	*p = append(*p, d.Queue.Topology.Problems(d.Min, "workers.min")...)
	for attribute, s := range d.pods() {
		if key := OwnTopologyAnnotation(s.Annotations); key != "" {
			p.add(attribute+".annotations", "sets %q, which attribute topology sets; remove one of the two", key)
		}
	}
}

// overridesTopology refuses pod_overrides that say something that attribute topology says.
func (p *problems) overridesTopology(d Definition, attribute string, t corev1.PodTemplateSpec) {
	if d.Queue.Place() == nil {
		return
	}
	own := maps.Clone(t.Annotations)
	if attribute == "master" { // whose template has ours
		ours := d.Queue.Topology.OfCore(RoleMaster)
		maps.DeleteFunc(own, func(key, value string) bool { return ours[key] == value })
	}
	if key := OwnTopologyAnnotation(own); key != "" {
		p.add(attribute+".pod_overrides", "set annotation %q, which attribute topology sets; remove one of the two", key)
	}
}

// topologyWarning is about workers that are not where the others must be.
func (p *problems) topologyWarning(d Definition) {
	if d.Queue.Place() == nil || d.Max <= d.Min {
		return
	}
	attribute, level := "topology.required", d.Queue.Topology.Required
	if level == "" {
		attribute, level = "topology.slice_required", d.Queue.Topology.SliceRequired
	}
	if level != "" {
		p.add(attribute, "is %q, which is about the minimum workers (workers.min = %d): Kueue queues each worker above them by itself, and places it in any domain; if all workers must be near each other, set workers.min to workers.max", level, d.Min)
	}
}
