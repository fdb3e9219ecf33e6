package scheduler

import (
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func list(cpu, memory string) corev1.ResourceList {
	l := corev1.ResourceList{}
	if cpu != "" {
		l["cpu"] = resource.MustParse(cpu)
	}
	if memory != "" {
		l["memory"] = resource.MustParse(memory)
	}
	return l
}

func TestAPodAsksForItsContainersTogetherOrItsGreatestInitContainer(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	container := func(cpu, memory string) corev1.Container {
		return corev1.Container{Resources: corev1.ResourceRequirements{Requests: list(cpu, memory)}}
	}
	sidecar := container("100m", "1Gi")
	sidecar.RestartPolicy = &always
	for name, test := range map[string]struct {
		pod         corev1.PodSpec
		cpu, memory string
	}{
		"two containers":            {corev1.PodSpec{Containers: []corev1.Container{container("1", "1Gi"), container("500m", "1Gi")}}, "1500m", "2Gi"},
		"a greater init container":  {corev1.PodSpec{InitContainers: []corev1.Container{container("4", "1Mi")}, Containers: []corev1.Container{container("1", "1Gi")}}, "4", "1Gi"},
		"a sidecar":                 {corev1.PodSpec{InitContainers: []corev1.Container{sidecar}, Containers: []corev1.Container{container("1", "1Gi")}}, "1100m", "2Gi"},
		"overhead":                  {corev1.PodSpec{Overhead: list("250m", ""), Containers: []corev1.Container{container("1", "1Gi")}}, "1250m", "1Gi"},
		"limits stand for requests": {corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: list("1", ""), Limits: list("2", "3Gi")}}}}, "1", "3Gi"},
	} {
		t.Run(name, func(t *testing.T) {
			got := PodRequests(&test.pod)
			want := list(test.cpu, test.memory)
			for _, name := range slices.Sorted(maps.Keys(want)) {
				a, b := got[name], want[name]
				if a.Cmp(b) != 0 {
					t.Errorf("%s: %s, not %s", name, &a, &b)
				}
			}
		})
	}
}
