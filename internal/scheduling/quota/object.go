package quota

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	resourcehelpers "k8s.io/component-helpers/resource"

	"github.com/elastic-training/terraform-provider-elastic/internal/kueue"
)

// FromObject takes what the engine must know from a Workload object.
func FromObject(o *kueue.Workload) Workload {
	w := Workload{
		NamespacedName: types.NamespacedName{Namespace: o.Namespace, Name: o.Name},
		UID:            string(o.UID),
		JobUID:         o.Labels[kueue.JobUIDLabel],
		Created:        o.CreationTimestamp.Time,
		Queue:          string(o.Spec.QueueName),
		Inactive:       o.Spec.Active != nil && !*o.Spec.Active,
		Gated:          o.Annotations[kueue.AdmissionGatedByAnnotation],
		Finished:       meta.IsStatusConditionTrue(o.Status.Conditions, kueue.WorkloadFinished),
	}
	if o.Spec.Priority != nil {
		w.Priority = *o.Spec.Priority
	}
	for i := range o.Spec.PodSets {
		w.PodSets = append(w.PodSets, podSetOf(&o.Spec.PodSets[i], o.Status.ReclaimablePods))
	}
	if reserved := meta.FindStatusCondition(o.Status.Conditions, kueue.WorkloadQuotaReserved); reserved != nil && reserved.Status == "True" && o.Status.Admission != nil {
		w.Reservation = &Reservation{
			Admission: *o.Status.Admission,
			At:        reserved.LastTransitionTime.Time,
			Admitted:  meta.IsStatusConditionTrue(o.Status.Conditions, kueue.WorkloadAdmitted),
		}
	}
	if evicted := meta.FindStatusCondition(o.Status.Conditions, kueue.WorkloadEvicted); evicted != nil && evicted.Status == "True" {
		w.Evicted, w.EvictedAt = evicted.Reason, evicted.LastTransitionTime.Time
	}
	if requeued := meta.FindStatusCondition(o.Status.Conditions, kueue.WorkloadRequeued); requeued != nil && requeued.Status == "False" {
		w.Held = requeued.Reason
	}
	return w
}

func podSetOf(o *kueue.PodSet, reclaimable []kueue.ReclaimablePod) PodSet {
	pod := &o.Template.Spec
	s := PodSet{
		Name: string(o.Name), Count: o.Count, MinCount: o.MinCount, Requests: PodRequests(pod),
		NodeSelector: pod.NodeSelector, Tolerations: pod.Tolerations,
	}
	if a := pod.Affinity; a != nil && a.NodeAffinity != nil {
		s.NodeAffinity = a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	if o.TopologyRequest != nil && o.TopologyRequest.PodSetGroupName != nil {
		s.Group = *o.TopologyRequest.PodSetGroupName
	}
	for _, r := range reclaimable {
		if r.Name == o.Name {
			s.Reclaimable = r.Count
		}
	}
	return s
}

// PodRequests is what one pod asks for: its containers and sidecars together or its greatest init container, with overhead; limits stand in for
// requests that are missing (Kueue's pkg/workload/resources.go). Defaults of LimitRanges and RuntimeClasses must be in the pod already.
func PodRequests(pod *corev1.PodSpec) corev1.ResourceList {
	pod = pod.DeepCopy()
	for _, containers := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
		for i := range containers {
			limitsAsRequests(&containers[i].Resources)
		}
	}
	if pod.Resources != nil {
		limitsAsRequests(pod.Resources)
	}
	return resourcehelpers.PodRequests(&corev1.Pod{Spec: *pod}, resourcehelpers.PodResourcesOptions{})
}

func limitsAsRequests(r *corev1.ResourceRequirements) {
	for name, limit := range r.Limits {
		if _, there := r.Requests[name]; !there {
			if r.Requests == nil {
				r.Requests = corev1.ResourceList{}
			}
			r.Requests[name] = limit
		}
	}
}
