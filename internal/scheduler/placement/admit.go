package placement

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
)

// Rejection is the reason why a kubelet rejects a pod that names its node, and that the scheduler therefore does not
// place.
type Rejection struct {
	Reason string // of the pod's status: "OutOfcpu"
	Detail string
}

// Admits returns the reason why the kubelet of a node rejects a pod beside those on the node; nil if it admits it
// (pkg/kubelet/lifecycle, predicateAdmitHandler; scheduler.AdmissionCheck).
func (c *Cluster) Admits(pod *Pod, name string) *Rejection {
	c.preFilter(pod)
	n := c.nodes[c.mustKnow(name)]
	t := trial{node: n, requested: n.requested, count: len(n.pods)}
	if short := outOf(c.slots, pod, n); short != nil {
		return short
	}
	if !pod.preFilterState.matches(n) {
		return &Rejection{"NodeAffinity", words[unmatched]}
	}
	if t.ports(pod) != feasible {
		return &Rejection{"NodePorts", words[portsTaken]}
	}
	executes := func(taint *corev1.Taint) bool { return taint.Effect == corev1.TaintEffectNoExecute }
	if taint, untolerated := corev1helpers.FindMatchingUntoleratedTaint(
		klog.Background(), n.object.Spec.Taints, pod.preFilterState.tolerations, executes, comparisonOperators,
	); untolerated {
		return &Rejection{"TaintToleration", fmt.Sprintf("%s {%s: %s}", words[tainted], taint.Key, taint.Value)}
	}
	return nil
}

// outOf is the first resource of which a node has too little. It ignores extended resources that the node does not have
// at all, as another component may provide a cluster-wide resource.
func outOf(s *slots, pod *Pod, n *node) *Rejection {
	if count := len(n.pods); count+1 > n.podsAllowed {
		return &Rejection{"OutOfpods", fmt.Sprintf("the node has %d pods of %d", count, n.podsAllowed)}
	}
	for slot, request := range pod.requests {
		name := s.names[slot]
		if _, has := n.object.Status.Allocatable[name]; !has && strings.Contains(string(name), "/") {
			continue
		}
		if free := n.allocatable.at(slot) - n.requested.at(slot); request > 0 && request > free {
			return &Rejection{"OutOf" + string(name), fmt.Sprintf("it requests %s of %s, and %s are free", amount(slot, name, request), name, amount(slot, name, free))}
		}
	}
	return nil
}

// WantsClaims reports whether a pod has volume claims or requests devices, which the scheduler would have bound for it.
func (c *Cluster) WantsClaims(pod *Pod) bool { return pod.wants != nil || c.mounts(pod) != nil }
