package placement

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler"
)

// Never answers the one question that does not depend on running pods. It checks resources, the node selector, required
// node affinity, taints and the node's name. It ignores volumes, ports, and affinity to other pods, so that "never" is
// certain and "perhaps" is not more than that.
//
// It reports whether a pod fits on none of the nodes even when they are empty, and why, in kube-scheduler's manner: "2
// have too little cpu (it requests 8, the largest has 3920m), 1 has untolerated taint {gpu: present}". Without nodes
// nothing is known. A cordoned node counts as one that can take the pod: cordons end. Requests that the pod omits are
// its limits, as for the API server.
func Never(pod *corev1.Pod, nodes []*corev1.Node) (why string, never bool) {
	if len(nodes) == 0 {
		return "", false
	}
	requested := scheduler.PodRequests(&pod.Spec)
	requested[corev1.ResourcePods] = *resource.NewQuantity(1, resource.DecimalSI)
	affinity := nodeaffinity.GetRequiredNodeAffinity(pod)
	count := map[string]int{}
	short := shortage{requested: requested, most: corev1.ResourceList{}, nodes: map[corev1.ResourceName]int{}}
	for _, node := range nodes {
		reason := barrier(pod, affinity, node)
		if reason == "" {
			lacking := short.lacking(node)
			if len(lacking) == 0 {
				return "", false
			}
			for _, name := range lacking {
				short.add(name, node)
			}
			continue
		}
		count[reason]++
	}
	var reasons []string
	for _, name := range slices.Sorted(maps.Keys(short.nodes)) {
		reasons = append(reasons, short.text(name))
	}
	for _, reason := range slices.SortedFunc(maps.Keys(count), func(a, b string) int {
		return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a, b))
	}) {
		verb := "have"
		if count[reason] == 1 {
			verb = "has"
		}
		reasons = append(reasons, fmt.Sprintf("%d %s %s", count[reason], verb, reason))
	}
	return strings.Join(reasons, ", "), true
}

// barrier is the reason why the pod cannot use a node whatever its resources; "" if there is none.
func barrier(pod *corev1.Pod, affinity nodeaffinity.RequiredNodeAffinity, node *corev1.Node) string {
	if pod.Spec.NodeName != "" && pod.Spec.NodeName != node.Name {
		return "another name than " + pod.Spec.NodeName
	}
	if match, err := affinity.Match(node); err != nil || !match {
		return "labels that the pod's node selector or affinity does not match"
	}
	taint, untolerated := corev1helpers.FindMatchingUntoleratedTaint(klog.Background(), node.Spec.Taints, pod.Spec.Tolerations, lasting, true)
	if untolerated {
		return fmt.Sprintf("untolerated taint {%s: %s}", taint.Key, taint.Value)
	}
	return ""
}

// lasting is a taint that keeps pods off and that is no sign of a passing state: those that Kubernetes itself puts on
// nodes go away when the node is well again.
func lasting(taint *corev1.Taint) bool {
	passing := strings.HasPrefix(taint.Key, "node.kubernetes.io/") || strings.HasPrefix(taint.Key, "node.cloudprovider.kubernetes.io/")
	return !passing && (taint.Effect == corev1.TaintEffectNoSchedule || taint.Effect == corev1.TaintEffectNoExecute)
}

// shortage collects what nodes have too little of.
type shortage struct {
	requested corev1.ResourceList
	most      corev1.ResourceList         // the largest allocatable among the nodes that have too little
	nodes     map[corev1.ResourceName]int // how many have too little
}

// lacking are the resources of which an empty node has less than requested.
func (s *shortage) lacking(node *corev1.Node) []corev1.ResourceName {
	var names []corev1.ResourceName
	for name, requested := range s.requested {
		has := node.Status.Allocatable[name]
		if !requested.IsZero() && requested.Cmp(has) > 0 {
			names = append(names, name)
		}
	}
	return names
}

func (s *shortage) add(name corev1.ResourceName, node *corev1.Node) {
	s.nodes[name]++
	has, most := node.Status.Allocatable[name], s.most[name]
	if has.Cmp(most) > 0 {
		s.most[name] = has
	}
}

func (s *shortage) text(name corev1.ResourceName) string {
	requested, most := s.requested[name], s.most[name]
	if s.nodes[name] == 1 {
		return fmt.Sprintf("1 has too little %s (it requests %s, the node has %s)", name, requested.String(), most.String())
	}
	return fmt.Sprintf("%d have too little %s (it requests %s, the largest has %s)", s.nodes[name], name, requested.String(), most.String())
}

// Never is the function Never for a pod of a cluster. It ignores devices, which are not part of the nodes' objects.
func (c *Cluster) Never(pod *Pod, nodes []*corev1.Node) (why string, never bool) {
	object := pod.object
	if c.devices != nil && pod.wants != nil {
		object = object.DeepCopy()
		for slot := range c.devices.extended {
			for i := range object.Spec.Containers {
				delete(object.Spec.Containers[i].Resources.Requests, c.slots.names[slot])
				delete(object.Spec.Containers[i].Resources.Limits, c.slots.names[slot])
			}
		}
	}
	return Never(object, nodes)
}
