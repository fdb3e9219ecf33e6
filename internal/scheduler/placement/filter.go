package placement

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
)

// filterStatus is the result of the filters for a node: that of the first filter that rejects it.
type filterStatus uint8

const (
	unknown filterStatus = iota
	feasible

	// Evicting pods cannot help (fwk.UnschedulableAndUnresolvable).
	notTried // another filter named the nodes that come into question
	cordoned
	namedOther
	tainted
	unmatched
	tooSmall
	spreadUnlabelled
	affinityUnmatched
	rejected       // for a reason that has nothing to do with nodes
	claimElsewhere // the devices of a shared claim are on another node
	devicesTaken
	volumeConflict // a bound volume is not for this node
	volumeUnmatched
	volumeZone

	// Evicting pods may help (fwk.Unschedulable).
	portsTaken
	volumeInUse // by the only pod that may have it
	driverMissing
	volumeLimit
	insufficient
	spreadUnmatched
	antiAffinityUnmatched
	othersAntiAffinity
)

// resolvable reports whether the eviction of pods may change the status.
func (v filterStatus) resolvable() bool { return v >= portsTaken }

// preFilterState is the data of a pod that matters only while the pod is pending. It is computed on first use.
type preFilterState struct {
	required    nodeaffinity.RequiredNodeAffinity
	selective   bool // required has any terms
	tolerations []corev1.Toleration
	preferred   *nodeaffinity.PreferredSchedulingTerms
	// names are the nodes that its affinity names; nil: it names none. conflicting: no node can have all the names that
	// it requires.
	names       []string
	conflicting bool
	// Topology spread constraints. spreadAll: nodes without all keys of the soft ones do not count for these.
	hard, soft []constraint
	spreadAll  bool
	// images of its containers and volumes, as nodes name them; imageCount is by how many their scores are divided.
	images      []string
	imageCount  int
	memo        memo
	searches    int // how often a pod of this shape has looked for a node
	approximate []string
}

// preFilter makes a pod ready to look for a node.
func (c *Cluster) preFilter(p *Pod) {
	if p.preFilterState != nil {
		return
	}
	spec := &p.object.Spec
	a := &preFilterState{required: nodeaffinity.GetRequiredNodeAffinity(p.object), tolerations: spec.Tolerations}
	a.selective = len(spec.NodeSelector) > 0
	if affinity := spec.Affinity; affinity != nil && affinity.NodeAffinity != nil {
		if required := affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution; required != nil {
			a.selective = true
			a.names, a.conflicting = named(required.NodeSelectorTerms)
		}
		if terms := affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution; len(terms) > 0 {
			// Validation refuses terms that cannot be parsed; such a preference counts for nothing.
			a.preferred, _ = nodeaffinity.NewPreferredSchedulingTerms(terms)
		}
	}
	a.hard = p.constraints(corev1.DoNotSchedule)
	a.soft, a.spreadAll = c.softConstraints(p)
	a.images, a.imageCount = images(spec), len(spec.InitContainers)+len(spec.Containers)
	if c.rules.imageVolumes {
		a.imageCount = len(a.images)
	}
	a.approximate = c.unmodelled(p)
	p.preFilterState = a
}

// named are the nodes that a required affinity names by metadata.name (nodeaffinity, PreFilter): nil when some term
// names none.
func named(terms []corev1.NodeSelectorTerm) (names []string, conflicting bool) {
	for _, t := range terms {
		var of []string
		found := false
		for _, field := range t.MatchFields {
			if field.Key != metav1.ObjectNameField || field.Operator != corev1.NodeSelectorOpIn {
				continue
			}
			if found {
				of = slices.DeleteFunc(of, func(name string) bool { return !slices.Contains(field.Values, name) })
				continue
			}
			of, found = slices.Clone(field.Values), true
		}
		if !found {
			return nil, false
		}
		names = append(names, of...)
	}
	return names, len(terms) > 0 && len(names) == 0
}

func (a *preFilterState) matches(n *node) bool {
	if !a.selective {
		return true
	}
	match, err := a.required.Match(n.object)
	return err == nil && match
}

func (a *preFilterState) tolerates(n *node) bool {
	_, untolerated := a.untolerated(n)
	return !untolerated
}

func (a *preFilterState) untolerated(n *node) (corev1.Taint, bool) {
	if len(n.object.Spec.Taints) == 0 {
		return corev1.Taint{}, false
	}
	return corev1helpers.FindMatchingUntoleratedTaint(klog.Background(), n.object.Spec.Taints, a.tolerations, repels, comparisonOperators)
}

// repels reports whether a taint keeps pods off that do not tolerate it (helper.DoNotScheduleTaintsFilterFunc).
func repels(taint *corev1.Taint) bool {
	return taint.Effect == corev1.TaintEffectNoSchedule || taint.Effect == corev1.TaintEffectNoExecute
}

// Tolerations that compare numbers are an alpha feature, off by default.
const comparisonOperators = false

// fixed is the status by the filters that look at the node object alone, in kube-scheduler's order: NodeUnschedulable,
// NodeName, TaintToleration, NodeAffinity.
func (p *Pod) fixed(n *node) filterStatus {
	switch {
	case n.object.Spec.Unschedulable && !corev1helpers.TolerationsTolerateTaint(klog.Background(), p.preFilterState.tolerations,
		&corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}, comparisonOperators):
		return cordoned
	case p.object.Spec.NodeName != "" && p.object.Spec.NodeName != n.name:
		return namedOther
	case !p.preFilterState.tolerates(n):
		return tainted
	case !p.preFilterState.matches(n):
		return unmatched
	}
	return feasible
}

// trial is a node as it would be: without some of its pods, or with pods that are nominated to it.
type trial struct {
	*node
	requested     quantities
	count         int
	nominatedPods []*Pod
	gone          []*Pod
	// freed are the ports of pods that are gone. As in the original a port that two pods share (which no kubelet
	// allows) is free when either ends: framework.HostPortInfo is a set.
	freed []hostPort
}

// move takes a pod away (-1) or puts it back (1).
func (t *trial) move(pod *Pod, by int) {
	t.requested = t.requested.add(pod.held, int64(by))
	t.count += by
	if by < 0 {
		t.gone = append(t.gone, pod)
	} else {
		t.gone = slices.DeleteFunc(t.gone, func(other *Pod) bool { return other == pod })
	}
	for _, port := range pod.ports {
		if by < 0 {
			t.freed = append(t.freed, port)
		} else {
			t.freed = slices.DeleteFunc(t.freed, func(other hostPort) bool { return other == port })
		}
	}
}

// ports is the filter of the plugin NodePorts.
func (t *trial) ports(pod *Pod) filterStatus {
	if len(pod.ports) == 0 {
		return feasible
	}
	conflicts := func(theirs hostPort) bool { return slices.ContainsFunc(pod.ports, theirs.conflicts) }
	for _, nominated := range t.nominatedPods {
		if slices.ContainsFunc(nominated.ports, conflicts) {
			return portsTaken
		}
	}
	if t.withPorts == 0 {
		return feasible
	}
	for _, o := range t.pods {
		for _, port := range o.pod.ports {
			if conflicts(port) && !slices.Contains(t.freed, port) {
				return portsTaken
			}
		}
	}
	return feasible
}

// resources is the filter of the plugin NodeResourcesFit (fitsRequest) on a node that holds so many pods with so many
// requests.
func (n *node) resources(pod *Pod, requested quantities, count int) filterStatus {
	v := feasible
	if count+1 > n.podsAllowed {
		v = insufficient
	}
	for slot, request := range pod.requests {
		if request <= 0 || n.byDevices[slot] != nil {
			continue
		}
		has := n.allocatable.at(slot)
		if request > has-requested.at(slot) {
			if request > has {
				return tooSmall
			}
			v = insufficient
		}
	}
	return v
}
