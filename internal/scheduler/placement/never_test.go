package placement

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

func amounts(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

func machine(name string, allocatable corev1.ResourceList) *corev1.Node {
	allocatable[corev1.ResourcePods] = resource.MustParse("110")
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kubernetes.io/hostname": name}},
		Status:     corev1.NodeStatus{Allocatable: allocatable},
	}
}

func asking(requests corev1.ResourceList) *corev1.Pod {
	return &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: requests}}}}}
}

func TestAPodThatFitsNowhereGetsTheReasons(t *testing.T) {
	small := func() []*corev1.Node {
		return []*corev1.Node{machine("a", amounts("cpu", "3920m", "memory", "15Gi")), machine("b", amounts("cpu", "2", "memory", "15Gi"))}
	}
	tainted := machine("gpu", amounts("cpu", "16", "memory", "60Gi", "nvidia.com/gpu", "4"))
	tainted.Spec.Taints = []corev1.Taint{{Key: "nvidia.com/gpu", Value: "present", Effect: corev1.TaintEffectNoSchedule}}
	broken := machine("broken", amounts("cpu", "16", "memory", "60Gi"))
	broken.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}}
	broken.Spec.Unschedulable = true

	selecting := asking(amounts("cpu", "1"))
	selecting.Spec.NodeSelector = map[string]string{"accelerator": "t4"}
	byLimits := asking(nil)
	byLimits.Spec.Containers[0].Resources.Limits = amounts("nvidia.com/gpu", "8")
	byLimits.Spec.Tolerations = []corev1.Toleration{{Key: "nvidia.com/gpu", Operator: corev1.TolerationOpExists}}
	initialised := asking(amounts("cpu", "1"))
	initialised.Spec.InitContainers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: amounts("cpu", "5")}}}

	for name, test := range map[string]struct {
		pod   *corev1.Pod
		nodes []*corev1.Node
		want  string // "" when it may fit
	}{
		"one of the nodes is large enough":        {asking(amounts("cpu", "3")), small(), ""},
		"exactly what a node has is enough":       {asking(amounts("cpu", "3920m")), small(), ""},
		"no node is known":                        {asking(amounts("cpu", "300")), nil, ""},
		"the largest node is too small":           {asking(amounts("cpu", "4")), small(), "2 have too little cpu (it requests 4, the largest has 3920m)"},
		"a resource that no node has":             {asking(amounts("nvidia.com/gpu", "1")), small(), "2 have too little nvidia.com/gpu (it requests 1, the largest has 0)"},
		"a limit without a request is a request":  {byLimits, []*corev1.Node{tainted}, "1 has too little nvidia.com/gpu (it requests 8, the node has 4)"},
		"an init container requests more":         {initialised, small(), "2 have too little cpu (it requests 5, the largest has 3920m)"},
		"a taint that is not tolerated":           {asking(amounts("cpu", "8")), append(small(), tainted), "2 have too little cpu (it requests 8, the largest has 3920m), 1 has untolerated taint {nvidia.com/gpu: present}"},
		"a label that no node has":                {selecting, small(), "2 have labels that the pod's node selector or affinity does not match"},
		"a node that is cordoned and not ready":   {asking(amounts("cpu", "8")), append(small(), broken), ""},
		"a pod without requests fits on any node": {asking(nil), small(), ""},
	} {
		t.Run(name, func(t *testing.T) {
			why, never := Never(test.pod, test.nodes)
			if why != test.want || never != (test.want != "") {
				t.Errorf("never %v, because %q; want %q", never, why, test.want)
			}
		})
	}
}

func TestAnotherNodeNeverMakesAPodFitLess(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cpu := rapid.IntRange(0, 8)
		nodes := []*corev1.Node{}
		for range rapid.IntRange(1, 5).Draw(t, "nodes") {
			nodes = append(nodes, machine("n", corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(int64(cpu.Draw(t, "has")), resource.DecimalSI)}))
		}
		requests := cpu.Draw(t, "asks")
		p := asking(corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(int64(requests), resource.DecimalSI)})
		_, before := Never(p, nodes[:1])
		why, after := Never(p, nodes)
		if after && !before {
			t.Fatalf("with more nodes it fits less: %s", why)
		}
		fits := false
		for _, n := range nodes {
			fits = fits || n.Status.Allocatable.Cpu().Value() >= int64(requests)
		}
		if fits == after {
			t.Fatalf("it requests %d; never %v: %s", requests, after, why)
		}
	})
}
