package workload

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue"
)

// HasGate reports whether a pod has a scheduling gate.
func HasGate(pod *corev1.Pod, name string) bool {
	return slices.ContainsFunc(pod.Spec.SchedulingGates, func(g corev1.PodSchedulingGate) bool { return g.Name == name })
}

// Gated reports whether a pod waits for its workload's admission.
func Gated(pod *corev1.Pod) bool { return HasGate(pod, kueue.AdmissionGate) }

// Terminated reports whether a pod has succeeded or failed.
func Terminated(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

// PodSuspended reports whether a pod does not run: not yet, or no longer.
func PodSuspended(pod *corev1.Pod) bool { return Terminated(pod) || Gated(pod) }

// Retriable reports whether another pod may take this one's place in its group when it fails.
func Retriable(pod *corev1.Pod) bool {
	return pod.Annotations[kueue.RetriableInGroupAnnotation] != "false"
}

// GroupTotal is the number of pods that a pod's group has, by its annotation.
func GroupTotal(pod *corev1.Pod) (int, error) {
	text, given := pod.Annotations[kueue.PodGroupTotalCountAnnotation]
	if !given {
		return 0, fmt.Errorf("failed to extract '%s' annotation", kueue.PodGroupTotalCountAnnotation)
	}
	total, err := strconv.Atoi(text)
	if err != nil {
		return 0, err
	}
	if total < 1 {
		return 0, fmt.Errorf("incorrect annotation value '%s=%s': group total count should be greater than zero", kueue.PodGroupTotalCountAnnotation, text)
	}
	return total, nil
}

// Role is the name of the pod set of a group to which a pod belongs: pods of one role are interchangeable. The webhook
// computes it once; later it is the pod's annotation, because the scheduler and others change the spec.
func Role(pod *corev1.Pod) (string, error) {
	if role := pod.Annotations[kueue.RoleHashAnnotation]; role != "" {
		return role, nil
	}
	spec := pod.Spec
	shape := map[string]any{
		"affinity":                  spec.Affinity,
		"containers":                containerShapes(spec.Containers),
		"initContainers":            containerShapes(spec.InitContainers),
		"nodeSelector":              spec.NodeSelector,
		"overhead":                  spec.Overhead,
		"priority":                  spec.Priority,
		"resourceClaims":            spec.ResourceClaims,
		"runtimeClassName":          spec.RuntimeClassName,
		"tolerations":               spec.Tolerations,
		"topologySpreadConstraints": spec.TopologySpreadConstraints,
	}
	if spec.Resources != nil {
		shape["resources"] = spec.Resources.Requests
	}
	text, err := json.Marshal(map[string]any{"spec": shape})
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%x", sha256.Sum256(text))[:8], nil
}

func containerShapes(containers []corev1.Container) []map[string]any {
	var shapes []map[string]any
	for _, c := range containers {
		shapes = append(shapes, map[string]any{"ports": c.Ports, "resources": map[string]any{"requests": c.Resources.Requests}})
	}
	return shapes
}

// podReady reports whether a pod says that it is ready.
func podReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// errNoRunnablePod: a group of fast admission has no pod from which its workload could be made.
var errNoRunnablePod = errors.New("failed to find a runnable pod in the group")
