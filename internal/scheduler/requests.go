// Package scheduler has what its parts share. Package quota decides who gets quota, by Kueue's rules; package placement
// says where pods can go, by kube-scheduler's; package forecast joins the two; package conformance holds the former to
// recordings of a real Kueue. All are pure.
package scheduler

import (
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelpers "k8s.io/component-helpers/resource"
)

// PodRequests is what one pod asks for, to Kueue and to kube-scheduler: its containers and sidecars together or its
// greatest init container, with overhead. Limits stand in for requests that are missing, as the API server has it for
// pods, and Kueue for templates (pkg/workload/resources.go). Defaults of LimitRanges and RuntimeClasses must be in the
// pod already.
func PodRequests(pod *corev1.PodSpec) corev1.ResourceList {
	return resourcehelpers.PodRequests(&corev1.Pod{Spec: *WithRequests(pod)}, resourcehelpers.PodResourcesOptions{})
}

// WithRequests is the pod with the requests that the API server gives it: limits stand in for those that are missing.
// The pod itself is not changed; where nothing is missing it is the answer.
func WithRequests(pod *corev1.PodSpec) *corev1.PodSpec {
	missing := pod.Resources != nil && lacksRequests(pod.Resources)
	for _, containers := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
		for i := range containers {
			missing = missing || lacksRequests(&containers[i].Resources)
		}
	}
	if !missing {
		return pod
	}
	pod = pod.DeepCopy()
	for _, containers := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
		for i := range containers {
			limitsAsRequests(&containers[i].Resources)
		}
	}
	if pod.Resources != nil {
		limitsAsRequests(pod.Resources)
	}
	return pod
}

func lacksRequests(r *corev1.ResourceRequirements) bool {
	for name := range r.Limits {
		if _, there := r.Requests[name]; !there {
			return true
		}
	}
	return false
}

func limitsAsRequests(r *corev1.ResourceRequirements) {
	for name, limit := range r.Limits {
		if _, there := r.Requests[name]; !there {
			if r.Requests == nil {
				r.Requests = corev1.ResourceList{}
			}
			r.Requests[name] = limit
		}
	}
}

// RequiredNodeAffinity is the node selector of an affinity that must match; nil: there is none.
func RequiredNodeAffinity(a *corev1.Affinity) *corev1.NodeSelector {
	if a == nil || a.NodeAffinity == nil {
		return nil
	}
	return a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}

// NodeReady reports whether a node's kubelet reports that it can run pods.
func NodeReady(node *corev1.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// Unit is a quantity as Kueue counts it: thousandths for cpu, whole units for everything else. One that does not fit is
// the largest number.
func Unit(name corev1.ResourceName, q resource.Quantity) int64 {
	if name != corev1.ResourceCPU {
		if q.CmpInt64(math.MaxInt64) >= 0 {
			return math.MaxInt64
		}
		return q.Value()
	}
	if q.CmpInt64(math.MaxInt64/1000) >= 0 {
		return math.MaxInt64
	}
	return q.MilliValue()
}

// Units are quantities as Kueue counts them.
func Units(l corev1.ResourceList) map[corev1.ResourceName]int64 {
	all := make(map[corev1.ResourceName]int64, len(l))
	for name, q := range l {
		all[name] = Unit(name, q)
	}
	return all
}
