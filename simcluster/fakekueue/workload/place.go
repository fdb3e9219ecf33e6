package workload

import (
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue"
)

// Placed is a pod and the node labels of the domain that it must go to.
type Placed struct {
	Pod    *corev1.Pod
	Labels map[string]string
}

// AwaitsPlace reports whether a pod waits for its domain.
func AwaitsPlace(pod *corev1.Pod) bool {
	return HasGate(pod, kueue.TopologyGate) && !Gated(pod) && !Terminated(pod)
}

// IsOn reports whether pods of an admitted workload are assigned to a host. Only topologies whose last level is the host
// say that.
func IsOn(w *kueue.Workload, host string) bool {
	return w.Status.Admission != nil && slices.ContainsFunc(w.Status.Admission.PodSetAssignments, func(a kueue.PodSetAssignment) bool {
		return assignedTo(a.TopologyAssignment, host)
	})
}

func assignedTo(t *kueue.TopologyAssignment, host string) bool {
	return t != nil && len(t.Levels) > 0 && t.Levels[len(t.Levels)-1] == corev1.LabelHostname &&
		slices.ContainsFunc(t.Domains(), func(d kueue.TopologyDomain) bool { return d.Values[len(d.Values)-1] == host })
}

// ToleratesForEver reports whether the pods of w that are assigned to a host tolerate its taints without a limit of time:
// by their templates, or by what their admission adds.
func ToleratesForEver(w *kueue.Workload, additions []Additions, host string, taints []corev1.Taint) bool {
	for _, taint := range taints {
		if taint.Effect == corev1.TaintEffectPreferNoSchedule {
			continue
		}
		for i, assignment := range w.Status.Admission.PodSetAssignments {
			if !assignedTo(assignment.TopologyAssignment, host) {
				continue
			}
			tolerations := slices.Concat(w.Spec.PodSets[i].Template.Spec.Tolerations, additions[i].Tolerations)
			forEver := slices.DeleteFunc(tolerations, func(t corev1.Toleration) bool { return t.TolerationSeconds != nil })
			if !corev1helpers.TolerationsTolerateTaint(klog.Background(), forEver, &taint, false) {
				return false
			}
		}
	}
	return true
}

// Place gives the pods of a pod set that wait for it their domains (Kueue's pkg/controller/tas/topology_ungater.go): by
// their index if all have one, otherwise as they come. pods are all pods of the set; those that have ended are replaced by
// others and do not count.
func Place(assignment *kueue.PodSetAssignment, request *kueue.PodSetTopologyRequest, pods []*corev1.Pod) []Placed {
	pods = slices.DeleteFunc(slices.Clone(pods), Terminated)
	domains := assignment.TopologyAssignment.Domains()
	levels := assignment.TopologyAssignment.Levels
	if placed, indexed := placeByIndex(domains, levels, request, pods); indexed {
		return placed
	}
	there := map[string]int32{}
	var waiting []*corev1.Pod
	for _, pod := range pods {
		if AwaitsPlace(pod) {
			waiting = append(waiting, pod)
		} else {
			there[placeOf(pod, levels)]++
		}
	}
	var placed []Placed
	for _, d := range domains {
		labels := labelsOf(levels, d)
		for room := d.Count - there[domainKey(d.Values)]; room > 0 && len(waiting) > 0; room-- {
			placed = append(placed, Placed{waiting[0], labels})
			waiting = waiting[1:]
		}
	}
	return placed
}

// placeByIndex places by index; indexed is false if that cannot be, because a pod has no index, two have the same, or one
// is somewhere else already.
func placeByIndex(domains []kueue.TopologyDomain, levels []string, request *kueue.PodSetTopologyRequest, pods []*corev1.Pod) (placed []Placed, indexed bool) {
	if request == nil || request.PodIndexLabel == nil {
		return nil, false
	}
	var byIndex []kueue.TopologyDomain
	for _, d := range domains {
		for range d.Count {
			byIndex = append(byIndex, d)
		}
	}
	seen := map[int]bool{}
	for _, pod := range pods {
		index, err := strconv.Atoi(pod.Labels[*request.PodIndexLabel])
		if err != nil || index < 0 || index >= len(byIndex) || seen[index] {
			return nil, false
		}
		seen[index] = true
		switch d := byIndex[index]; {
		case AwaitsPlace(pod):
			placed = append(placed, Placed{pod, labelsOf(levels, d)})
		case placeOf(pod, levels) != domainKey(d.Values):
			return nil, false
		}
	}
	return placed, true
}

func labelsOf(levels []string, d kueue.TopologyDomain) map[string]string {
	labels := make(map[string]string, len(levels))
	for i, level := range levels {
		labels[level] = d.Values[i]
	}
	return labels
}

// placeOf is the domain that a pod was given.
func placeOf(pod *corev1.Pod, levels []string) string {
	values := make([]string, len(levels))
	for i, level := range levels {
		values[i] = pod.Spec.NodeSelector[level]
	}
	return domainKey(values)
}

func domainKey(values []string) string {
	key := ""
	for _, value := range values {
		key += value + ","
	}
	return key
}

// Put un-gates a pod for its domain.
func (p Placed) Put(pod *corev1.Pod) {
	pod.Spec.SchedulingGates = slices.DeleteFunc(slices.Clone(pod.Spec.SchedulingGates), func(g corev1.PodSchedulingGate) bool {
		return g.Name == kueue.TopologyGate
	})
	selector := maps.Clone(pod.Spec.NodeSelector)
	if selector == nil {
		selector = map[string]string{}
	}
	maps.Copy(selector, p.Labels)
	pod.Spec.NodeSelector = selector
}
