package workload

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue"
)

// StandsForJob reports whether w is the Workload of this Job as it is now.
func StandsForJob(w *kueue.Workload, job *batchv1.Job, flavor FlavorReader) bool {
	return standsFor(w, job, JobPodSet(job), JobSuspended(job), flavor)
}

// StandsForPod reports whether w is the Workload of this pod.
func StandsForPod(w *kueue.Workload, pod *corev1.Pod, flavor FlavorReader) bool {
	return standsFor(w, pod, podSet(kueue.DefaultPodSetName, pod), PodSuspended(pod), flavor)
}

// standsFor compares what decides about admission: the number of pods, their containers and tolerations. The owner of a
// workload that holds quota looks like its spec with the admission's additions, or like its spec while it is suspended.
func standsFor(w *kueue.Workload, owner metav1.Object, set kueue.PodSet, suspended bool, flavor FlavorReader) bool {
	controller := metav1.GetControllerOfNoCopy(w)
	if controller == nil || controller.UID != owner.GetUID() ||
		ptr.Deref(w.Spec.MaximumExecutionTimeSeconds, -1) != ptr.Deref(maximumExecutionTime(owner), -1) ||
		len(w.Spec.PodSets) != 1 {
		return false
	}
	tolerations := !IsAdmitted(w)
	asQueued := samePods(&set, &w.Spec.PodSets[0], tolerations)
	running, ok := runningPodSet(w, flavor)
	if !ok {
		return asQueued
	}
	return samePods(&set, running, tolerations) || suspended && asQueued
}

// runningPodSet is what the pod set of a workload that holds quota looks like while it runs.
func runningPodSet(w *kueue.Workload, flavor FlavorReader) (*kueue.PodSet, bool) {
	if !HasQuota(w) {
		return nil, false
	}
	additions, err := AdditionsOf(w, flavor)
	if err != nil || len(additions) != 1 {
		return nil, false
	}
	running := w.Spec.PodSets[0].DeepCopy()
	if err := additions[0].apply(&running.Template.ObjectMeta, &running.Template.Spec); err != nil {
		return nil, false
	}
	if running.MinCount != nil && *running.MinCount < running.Count {
		running.Count = additions[0].Count
	}
	return running, true
}

func samePods(a, b *kueue.PodSet, tolerations bool) bool {
	x, y := &a.Template.Spec, &b.Template.Spec
	return a.Count == b.Count &&
		ptr.Deref(a.MinCount, -1) == ptr.Deref(b.MinCount, -1) &&
		(!tolerations || equality.Semantic.DeepEqual(x.Tolerations, y.Tolerations)) &&
		equality.Semantic.DeepEqual(x.InitContainers, y.InitContainers) &&
		equality.Semantic.DeepEqual(x.Containers, y.Containers)
}
