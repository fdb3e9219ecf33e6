package workload_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/fakekueue/workload"
)

func TestGatedPodsGetTheDomainsThatAreLeft(t *testing.T) {
	const rack = "example.com/rack"
	pod := func(name, index, at string) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
		if index != "" {
			p.Labels[batchv1.JobCompletionIndexAnnotation] = index
		}
		if at != "" {
			p.Spec.NodeSelector = map[string]string{rack: at}
		} else {
			p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: kueue.TopologyGate}}
		}
		return p
	}
	ended := pod("ended", "0", "r0")
	ended.Status.Phase = corev1.PodFailed
	unadmitted := pod("unadmitted", "", "")
	unadmitted.Spec.SchedulingGates = append(unadmitted.Spec.SchedulingGates, corev1.PodSchedulingGate{Name: kueue.AdmissionGate})
	for name, c := range map[string]struct {
		pods []*corev1.Pod
		want string
	}{
		"by index, in whatever order they come": {[]*corev1.Pod{pod("c", "2", ""), pod("a", "0", ""), pod("b", "1", "")}, "a=r0 b=r0 c=r1"},
		"the replacement of one that ended":     {[]*corev1.Pod{ended, pod("a", "0", ""), pod("b", "1", "r0"), pod("c", "2", "r1")}, "a=r0"},
		"without indexes, as they come":         {[]*corev1.Pod{pod("x", "", ""), pod("y", "", "r0"), pod("z", "", "")}, "x=r0 z=r1"},
		"an index twice":                        {[]*corev1.Pod{pod("a", "1", ""), pod("b", "1", ""), pod("c", "2", "")}, "a=r0 b=r0 c=r1"},
		"one that is elsewhere than its index":  {[]*corev1.Pod{pod("a", "0", "r1"), pod("b", "1", ""), pod("c", "2", "")}, "b=r0 c=r0"},
		"more pods than there are places":       {[]*corev1.Pod{pod("a", "0", ""), pod("b", "1", ""), pod("c", "2", ""), pod("d", "3", "")}, "a=r0 b=r0 c=r1"},
		"one that is not admitted":              {[]*corev1.Pod{unadmitted, pod("x", "", "")}, "x=r0"},
	} {
		assignment := &kueue.PodSetAssignment{TopologyAssignment: kueue.NewTopologyAssignment([]string{rack}, []kueue.TopologyDomain{
			{Values: []string{"r0"}, Count: 2}, {Values: []string{"r1"}, Count: 1},
		})}
		var got []string
		for _, placed := range workload.Place(assignment, &kueue.PodSetTopologyRequest{PodIndexLabel: new(string(batchv1.JobCompletionIndexAnnotation))}, c.pods) {
			changed := placed.Pod.DeepCopy()
			placed.Put(changed)
			if workload.HasGate(changed, kueue.TopologyGate) {
				t.Errorf("%s: %s is gated still", name, changed.Name)
			}
			got = append(got, fmt.Sprintf("%s=%s", changed.Name, changed.Spec.NodeSelector[rack]))
		}
		slices.Sort(got)
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%s: %q, not %q", name, text, c.want)
		}
	}
}
