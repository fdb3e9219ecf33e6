package podadmission

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcehelpers "k8s.io/component-helpers/resource"
)

// podLevelDefaults completes the resources of a pod as a whole, if it has some, from those of its containers
// (DefaultPodLevelResources in pkg/api/pod/util.go of Kubernetes 1.37, which runs after the mutating plugins. Kubernetes
// 1.36 does it before them, and adds no limits but those of huge pages.)
func podLevelDefaults(pod *corev1.Pod) {
	whole := pod.Spec.Resources
	if whole == nil || len(whole.Requests) == 0 && len(whole.Limits) == 0 {
		return
	}
	containers := &corev1.Pod{Spec: corev1.PodSpec{InitContainers: pod.Spec.InitContainers, Containers: pod.Spec.Containers}}
	requests := resourcehelpers.AggregateContainerRequests(containers, resourcehelpers.PodResourcesOptions{})
	limits := resourcehelpers.AggregateContainerLimits(containers, resourcehelpers.PodResourcesOptions{})

	for name, limit := range limits {
		if _, requested := whole.Requests[name]; isHugePages(name) && !requested {
			whole.Limits = missing(whole.Limits, corev1.ResourceList{name: limit})
		}
	}
	for name, request := range requests {
		if resourcehelpers.IsSupportedPodLevelResource(name) && !isHugePages(name) {
			whole.Requests = missing(whole.Requests, corev1.ResourceList{name: request})
		}
	}
	for name, limit := range whole.Limits {
		if resourcehelpers.IsSupportedPodLevelResource(name) {
			whole.Requests = missing(whole.Requests, corev1.ResourceList{name: limit})
		}
	}
	for name, request := range whole.Requests {
		if !resourcehelpers.IsSupportedPodLevelResource(name) || !everyContainerHasLimit(&pod.Spec, name) {
			continue
		}
		limit := limits[name]
		if request.Cmp(limit) > 0 {
			limit = request
		}
		whole.Limits = missing(whole.Limits, corev1.ResourceList{name: limit})
	}
}

func isHugePages(name corev1.ResourceName) bool {
	return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

func everyContainerHasLimit(spec *corev1.PodSpec, name corev1.ResourceName) bool {
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			if _, has := containers[i].Resources.Limits[name]; !has {
				return false
			}
		}
	}
	return true
}
