package fakekubelet

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func podOf(cpu string) *corev1.Pod {
	return &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}},
	}}}}
}

func TestAPodIsRejectedForTheReasonThatAKubeletGives(t *testing.T) {
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "node", Labels: map[string]string{"disk": "ssd"}},
		Status:     corev1.NodeStatus{Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourcePods: resource.MustParse("2")}},
	}
	selecting := podOf("1")
	selecting.Spec.NodeSelector = map[string]string{"disk": "none"}
	for behaviour, test := range map[string]struct {
		pod    *corev1.Pod
		others []*corev1.Pod
		want   string
	}{
		"one that fits is admitted":      {podOf("2"), []*corev1.Pod{podOf("2")}, ""},
		"too little cpu is left":         {podOf("3"), []*corev1.Pod{podOf("2")}, "OutOfcpu"},
		"the node has its pods":          {podOf("1"), []*corev1.Pod{podOf("1"), podOf("1")}, "OutOfpods"},
		"it selects other nodes":         {selecting, nil, "NodeAffinity"},
		"a taint that forbids execution": {podOf("1"), nil, "TaintToleration"},
	} {
		t.Run(behaviour, func(t *testing.T) {
			node := node.DeepCopy()
			if test.want == "TaintToleration" {
				node.Spec.Taints = []corev1.Taint{{Key: "gone", Effect: corev1.TaintEffectNoExecute}}
			}
			if reason, message := rejection(node, test.pod, test.others); reason != test.want {
				t.Errorf("%q (%s); want %q", reason, message, test.want)
			}
		})
	}
}
