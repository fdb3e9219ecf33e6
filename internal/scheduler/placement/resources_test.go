package placement

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"
)

func TestTheShortSumOfAnOrdinaryPodIsTheLongOne(t *testing.T) {
	names := []corev1.ResourceName{"cpu", "memory", "ephemeral-storage", "nvidia.com/gpu", "hugepages-2Mi", "pods"}
	lists := rapid.Custom(func(t *rapid.T) corev1.ResourceList {
		list := corev1.ResourceList{}
		for _, name := range names {
			if rapid.Bool().Draw(t, "has") {
				list[name] = *resource.NewMilliQuantity(rapid.Int64Range(0, 5000).Draw(t, "amount"), resource.DecimalSI)
			}
		}
		return list
	})
	rapid.Check(t, func(t *rapid.T) {
		pod := &corev1.Pod{}
		for _, list := range rapid.SliceOfN(lists, 1, 4).Draw(t, "containers") {
			pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: string(rune('a' + len(pod.Spec.Containers))), Resources: corev1.ResourceRequirements{Requests: list}})
		}
		for i := range pod.Spec.Containers {
			if c := &pod.Spec.Containers[i]; rapid.Bool().Draw(t, "reported") {
				status := corev1.ContainerStatus{Name: c.Name, Resources: c.Resources.DeepCopy()}
				if rapid.Bool().Draw(t, "allocated") {
					status.AllocatedResources = c.Resources.Requests.DeepCopy()
				}
				if rapid.IntRange(0, 4).Draw(t, "resized") == 0 {
					status.Resources.Requests = lists.Draw(t, "actual")
				}
				pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, status)
			}
		}
		s := newSlots(rulesOf(""))
		short, long := s.demands(pod), s.allDemands(pod)
		if !equalQuantities(short.requests, long.requests) || !equalQuantities(short.held, long.held) || short.score != long.score || short.heldForScore != long.heldForScore {
			t.Fatalf("%+v, not %+v", short, long)
		}
	})
}

func equalQuantities(a, b quantities) bool {
	for slot := range max(len(a), len(b)) {
		if a.at(slot) != b.at(slot) {
			return false
		}
	}
	return true
}

func TestAPodWithoutRequestsCountsInScores(t *testing.T) {
	s := newSlots(rulesOf(""))
	always := corev1.ContainerRestartPolicyAlways
	with := func(change func(*corev1.Pod)) *corev1.Pod {
		p := asking(nil)
		change(p)
		return p
	}
	for name, test := range map[string]struct {
		pod                 *corev1.Pod
		requests, held      quantities
		score, heldForScore [2]int64
	}{
		"a container without requests": {asking(nil), quantities{0, 0, 0}, quantities{0, 0, 0}, defaultRequests, defaultRequests},
		"two of them": {
			with(func(p *corev1.Pod) { p.Spec.Containers = append(p.Spec.Containers, corev1.Container{}) }),
			quantities{0, 0, 0},
			quantities{0, 0, 0},
			[2]int64{200, 400 << 20},
			[2]int64{200, 400 << 20},
		},
		"an explicit zero is a request": {asking(amounts("cpu", "0")), quantities{0, 0, 0}, quantities{0, 0, 0}, [2]int64{0, 200 << 20}, [2]int64{0, 200 << 20}},
		"a sidecar": {
			with(func(p *corev1.Pod) { p.Spec.InitContainers = []corev1.Container{{RestartPolicy: &always}} }),
			quantities{0, 0, 0},
			quantities{0, 0, 0},
			[2]int64{200, 400 << 20},
			[2]int64{200, 400 << 20},
		},
		"overhead": {
			with(func(p *corev1.Pod) { p.Spec.Overhead = amounts("cpu", "250m") }),
			quantities{250, 0, 0},
			quantities{250, 0, 0},
			[2]int64{350, 200 << 20},
			[2]int64{350, 200 << 20},
		},
		"pod-level resources count in the filters, and in the scores of pods that run only": {with(func(p *corev1.Pod) {
			p.Spec.Resources = &corev1.ResourceRequirements{Requests: amounts("cpu", "2")}
		}), quantities{2000, 0, 0}, quantities{2000, 0, 0}, defaultRequests, [2]int64{2000, 200 << 20}},
		"a resize that is under way counts on the node": {with(func(p *corev1.Pod) {
			p.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: amounts("cpu", "1", "memory", "1Gi")}}}
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", Resources: &corev1.ResourceRequirements{Requests: amounts("cpu", "3", "memory", "1Gi")}}}
		}), quantities{1000, 1 << 30, 0}, quantities{3000, 1 << 30, 0}, [2]int64{1000, 1 << 30}, [2]int64{3000, 1 << 30}},
	} {
		t.Run(name, func(t *testing.T) {
			d := s.demands(test.pod)
			if !slices.Equal(d.requests, test.requests) || !slices.Equal(d.held, test.held) || d.score != test.score || d.heldForScore != test.heldForScore {
				t.Errorf("%+v; want %+v", d, test)
			}
		})
	}
}
