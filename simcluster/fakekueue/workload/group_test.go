package workload_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/fakekueue/workload"
)

func larger(pod *corev1.Pod) {
	pod.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("3")
}

func TestTheWorkloadOfAGroup(t *testing.T) {
	t.Run("has a pod set for each role", func(t *testing.T) {
		c := aGroup(aPod("a", inGroup(3)), aPod("b", inGroup(3), larger), aPod("c", inGroup(3))).Compose()
		if c.Err != nil || len(c.Workload.Spec.PodSets) != 2 || c.Workload.Name != "g" || !workload.OfGroup(c.Workload) || len(c.Workload.OwnerReferences) != 3 ||
			metav1.GetControllerOf(c.Workload) != nil || c.Workload.Spec.PodSets[0].Name > c.Workload.Spec.PodSets[1].Name {
			t.Fatalf("%+v", c)
		}
		for _, set := range c.Workload.Spec.PodSets {
			want := int32(2)
			if set.Template.Spec.Containers[0].Resources.Requests.Cpu().Value() == 3 {
				want = 1
			}
			if set.Count != want {
				t.Errorf("%s has %d pods", set.Name, set.Count)
			}
		}
	})
	t.Run("does not exist before all pods do, and says so", func(t *testing.T) {
		var group *workload.GroupError
		c := aGroup(aPod("a", inGroup(2)), aPod("b", inGroup(2), phase(corev1.PodFailed))).Compose()
		if !errors.As(c.Err, &group) || !group.Event || group.Message != "'g' group has fewer runnable pods than expected" || !slices.Equal(names(c.Finalized), []string{"b"}) {
			t.Errorf("%+v", c)
		}
	})
	t.Run("leaves the youngest out where there are too many", func(t *testing.T) {
		c := aGroup(aPod("a", inGroup(2)), aPod("b", inGroup(2), older(time.Minute)), aPod("c", inGroup(2), older(time.Second))).Compose()
		if c.Err != nil || !slices.Equal(names(c.Excess), []string{"a"}) || c.Workload.Spec.PodSets[0].Count != 2 {
			t.Errorf("%+v", c)
		}
	})
	for name, change := range map[string]func(*corev1.Pod){
		"another queue": func(pod *corev1.Pod) { pod.Labels[kueue.QueueLabel] = "other" },
		"another total": inGroup(3),
	} {
		t.Run("does not exist where a pod has "+name, func(t *testing.T) {
			var group *workload.GroupError
			if c := aGroup(aPod("a", inGroup(2)), aPod("b", inGroup(2), change)).Compose(); !errors.As(c.Err, &group) || group.Event {
				t.Errorf("%+v", c)
			}
		})
	}
	t.Run("may be made of one pod, for all", func(t *testing.T) {
		fast := func(pod *corev1.Pod) {
			metav1.SetMetaDataAnnotation(&pod.ObjectMeta, kueue.PodGroupFastAdmissionAnnotation, "true")
		}
		if c := aGroup(aPod("a", inGroup(4), fast)).Compose(); c.Err != nil || c.Workload.Spec.PodSets[0].Count != 4 {
			t.Errorf("%+v", c)
		}
	})
}

func TestAGroupAndItsWorkload(t *testing.T) {
	w := aGroup(aPod("a", inGroup(2)), aPod("b", inGroup(2))).Compose().Workload
	ended := func(name string, change ...func(*corev1.Pod)) *corev1.Pod {
		return aPod(name, append([]func(*corev1.Pod){inGroup(2), phase(corev1.PodFailed)}, change...)...)
	}
	for name, c := range map[string]struct {
		pods             []*corev1.Pod
		fits             bool
		excess, replaced []string
		absent           int
	}{
		"as it was made":                                     {pods: []*corev1.Pod{aPod("a", inGroup(2)), aPod("b", inGroup(2))}, fits: true},
		"a pod failed and keeps its finalizer":               {pods: []*corev1.Pod{aPod("a", inGroup(2)), ended("b")}, fits: true, absent: 1},
		"its successor lets it go":                           {pods: []*corev1.Pod{aPod("a", inGroup(2)), ended("b"), aPod("c", inGroup(2), gated)}, fits: true, replaced: []string{"b"}},
		"all failed":                                         {pods: []*corev1.Pod{ended("a"), ended("b")}, fits: true, absent: 2},
		"a gated pod that is deleted counts as missing":      {pods: []*corev1.Pod{aPod("a", inGroup(2)), aPod("b", inGroup(2), gated, deleted(0))}, fits: true, absent: 1},
		"one too many: the gated one goes, though older":     {pods: []*corev1.Pod{aPod("a", inGroup(2)), aPod("b", inGroup(2)), aPod("c", inGroup(2), gated, older(time.Hour))}, fits: true, excess: []string{"c"}},
		"a pod of a role that the workload does not know":    {pods: []*corev1.Pod{aPod("a", inGroup(2), larger)}, fits: false, absent: 2},
		"a pod ran out of time: the workload's is not its's": {pods: []*corev1.Pod{aPod("a", inGroup(2), func(pod *corev1.Pod) { pod.Labels[kueue.MaxExecTimeSecondsLabel] = "9" })}, fits: false},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := aGroup(c.pods...).Match(w, noon)
			if err != nil || m.Fits != c.fits || !slices.Equal(names(m.Excess), append([]string{}, c.excess...)) || !slices.Equal(names(m.Replaced), append([]string{}, c.replaced...)) || m.Absent != c.absent {
				t.Errorf("fits %v, excess %v, replaced %v, absent %d, %v", m.Fits, names(m.Excess), names(m.Replaced), m.Absent, err)
			}
		})
	}
}

func TestTheEndOfAGroup(t *testing.T) {
	final := func(pod *corev1.Pod) {
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, kueue.RetriableInGroupAnnotation, "false")
	}
	succeeded, failed, running := phase(corev1.PodSucceeded), phase(corev1.PodFailed), phase(corev1.PodRunning)
	for name, c := range map[string]struct {
		pods     []*corev1.Pod
		finished bool
		message  string
	}{
		"all succeeded":                             {[]*corev1.Pod{aPod("a", inGroup(2), succeeded), aPod("b", inGroup(2), succeeded)}, true, "Pods succeeded: 2/2."},
		"one failed: it may be replaced":            {[]*corev1.Pod{aPod("a", inGroup(2), succeeded), aPod("b", inGroup(2), failed)}, false, ""},
		"one failed that is not to be replaced":     {[]*corev1.Pod{aPod("a", inGroup(2), succeeded), aPod("b", inGroup(2), failed, final)}, true, "Pods succeeded: 1/2."},
		"one failed for good while another runs on": {[]*corev1.Pod{aPod("a", inGroup(2), running), aPod("b", inGroup(2), failed, final)}, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if message, finished := aGroup(c.pods...).Finished(); finished != c.finished || message != c.message {
				t.Errorf("%v, %q", finished, message)
			}
		})
	}
	t.Run("its quota is free when no pod runs, or the grace period of those that hang has passed", func(t *testing.T) {
		group := aGroup(aPod("a", inGroup(2), running, deleted(30)), aPod("b", inGroup(2), failed))
		if !group.Running(noon.Add(29*time.Second)) || group.Running(noon.Add(31*time.Second)) {
			t.Error("it is not")
		}
	})
}
