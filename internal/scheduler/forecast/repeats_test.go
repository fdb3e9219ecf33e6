package forecast_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast/forecasttest"
)

// keepsOff keeps the pods of an app off the node of a pod.
func keepsOff(pod *corev1.Pod, app string) *corev1.Pod {
	pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
		TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
	}}}}
	return pod
}

// The scheduler does not apply the anti-affinity of a pod that waits for room to pods without affinity: the planned pods take
// its room in turns, and it evicts them again, until it comes first.
func TestPodsThatTakeReservedRoomAgainAndAgainAreFollowedToTheEnd(t *testing.T) {
	s := oneNode("5", keepsOff(forecasttest.Pod("shop", "", "1", 1000000, 0), "new"))
	answer := forecast.Run(t.Context(), s, nil, batchJob(t, `
parallelism: 2
completions: 2
template:
  metadata: {labels: {app: new}}
  spec:
    priorityClassName: low
    containers: [{name: main, resources: {requests: {cpu: 3}}}]
`))
	if answer.Outcome != forecast.Pends || len(answer.Codes()) > 0 {
		t.Errorf("%s, %v:\n%s", answer.Outcome, answer.Codes(), answer.Text())
	}
}

// The API server gives each pod a volume whose name is its own.
func TestVolumesThatEveryNodeCanGiveDoNotDistinguishPods(t *testing.T) {
	s := oneNode("4")
	s.Nodes = nil
	for i := range 3 {
		node := fmt.Sprintf("node-%d", i)
		pod := forecasttest.Pod(fmt.Sprintf("low-%d", i), node, "3", 0, 0)
		pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80}}
		pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "token-" + node, MountPath: "/var/run/secrets"}}
		pod.Spec.Volumes = []corev1.Volume{
			{Name: "token-" + node, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{}}},
			{Name: "inline-" + node, VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "csi.example.com"}}},
		}
		s.Nodes, s.Pods = append(s.Nodes, forecasttest.Node(node, "4")), append(s.Pods, pod)
	}
	answer := forecast.Run(t.Context(), s, nil, batchJob(t, "{template: {spec: {priorityClassName: high}}}"))
	if answer.Outcome != forecast.Preempts || answer.Choices != 1 || len(answer.Evicts) != 3 {
		t.Errorf("%d choices are followed for nodes that are equal, and %d pods are named:\n%s", answer.Choices, len(answer.Evicts), answer.Text())
	}
}
