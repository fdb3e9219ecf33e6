package workload_test

import (
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/fakekueue/workload"
)

// noon is when everything here happens.
var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func podSpec() corev1.PodSpec {
	return corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever,
		Containers: []corev1.Container{{
			Name: "main", Image: "busybox",
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1500m"), corev1.ResourceMemory: resource.MustParse("1Gi")}},
		}},
	}
}

func aJob(change ...func(*batchv1.Job)) *batchv1.Job {
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "low", UID: "5d4d0c5a", Labels: map[string]string{kueue.QueueLabel: "queue"}},
		Spec: batchv1.JobSpec{
			Suspend: ptr.To(true), Parallelism: ptr.To[int32](3), Completions: ptr.To[int32](3),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "train", "controller-uid": "5d4d0c5a", batchv1.JobNameLabel: "low"}},
				Spec:       podSpec(),
			},
		},
	}
	for _, c := range change {
		c(job)
	}
	return job
}

func aPod(name string, change ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "team", Name: name, UID: types.UID("uid-of-" + name), Labels: map[string]string{kueue.QueueLabel: "queue", kueue.ManagedLabel: "true"},
			Finalizers: []string{kueue.PodFinalizer}, CreationTimestamp: metav1.NewTime(noon),
		},
		Spec: podSpec(),
	}
	for _, c := range change {
		c(pod)
	}
	return pod
}

// inGroup makes a pod one of so many of group g.
func inGroup(total int) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Labels[kueue.PodGroupNameLabel] = "g"
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, kueue.PodGroupTotalCountAnnotation, fmt.Sprint(total))
	}
}

func phase(phase corev1.PodPhase) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Status.Phase = phase }
}

func gated(pod *corev1.Pod) {
	pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: kueue.AdmissionGate}, {Name: kueue.TopologyGate}}
}

func older(by time.Duration) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.CreationTimestamp = metav1.NewTime(noon.Add(-by)) }
}

func deleted(graceSeconds int64) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = ptr.To(metav1.NewTime(noon)), &graceSeconds
	}
}

func aGroup(pods ...*corev1.Pod) workload.Group {
	return workload.Group{Namespace: "team", Name: "g", Pods: pods}
}

// flavors looks a flavor up in a list.
func flavors(all ...kueue.ResourceFlavor) workload.FlavorReader {
	return func(name kueue.ResourceFlavorReference) *kueue.ResourceFlavor {
		for i := range all {
			if all[i].Name == string(name) {
				return &all[i]
			}
		}
		return nil
	}
}

// admission gives the only pod set of w its count, in one flavor.
func admission(w *kueue.Workload, flavor kueue.ResourceFlavorReference, count int32) *kueue.Admission {
	return &kueue.Admission{ClusterQueue: "cq", PodSetAssignments: []kueue.PodSetAssignment{{
		Name: w.Spec.PodSets[0].Name, Count: &count,
		Flavors:       map[corev1.ResourceName]kueue.ResourceFlavorReference{corev1.ResourceCPU: flavor, corev1.ResourceMemory: flavor},
		ResourceUsage: corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(1500*int64(count), resource.DecimalSI), corev1.ResourceMemory: *resource.NewQuantity(int64(count)<<30, resource.BinarySI)},
	}}}
}

func names(pods []*corev1.Pod) []string {
	all := []string{}
	for _, pod := range pods {
		all = append(all, pod.Name)
	}
	return all
}
