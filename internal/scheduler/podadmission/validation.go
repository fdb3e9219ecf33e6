package podadmission

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// validResources holds the requests of a pod to its limits, as the API server does after admission has added what is
// missing (ValidateContainerResourceRequirements in pkg/apis/core/validation): a LimitRange's default limit may be
// below a request.
func validResources(pod *corev1.Pod) *Refusal {
	var violations []string
	for _, list := range []struct {
		field      string
		containers []corev1.Container
	}{{"containers", pod.Spec.Containers}, {"initContainers", pod.Spec.InitContainers}} {
		for i := range list.containers {
			field := fmt.Sprintf("spec.%s[%d].resources.requests", list.field, i)
			violations = append(violations, beyondLimits(field, list.containers[i].Resources)...)
		}
	}
	return joined(violations)
}

func beyondLimits(field string, resources corev1.ResourceRequirements) []string {
	var violations []string
	for _, name := range slices.Sorted(maps.Keys(resources.Requests)) {
		request := resources.Requests[name]
		limit, limited := resources.Limits[name]
		switch {
		case !limited:
		case request.Cmp(limit) > 0:
			violations = append(violations, fmt.Sprintf("%s: Invalid value: %q: must be less than or equal to %s limit of %s",
				field, request.String(), name, limit.String()))
		case request.Cmp(limit) != 0 && !overcommits(name):
			violations = append(violations, fmt.Sprintf("%s: Invalid value: %q: must be equal to %s limit of %s",
				field, request.String(), name, limit.String()))
		}
	}
	return violations
}

// overcommits reports whether requests of a resource may be below its limits (IsOvercommitAllowed).
func overcommits(name corev1.ResourceName) bool {
	native := !strings.Contains(string(name), "/") || strings.Contains(string(name), corev1.ResourceDefaultNamespacePrefix)
	return native && !strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}
