package quota

import (
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	kueueconstants "sigs.k8s.io/kueue/pkg/constants"
	controllerconstants "sigs.k8s.io/kueue/pkg/controller/constants"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler"
)

// SliceReplacementAnnotation names the workload whose quota a workload takes over: an elastic job has grown. Kueue's own
// constant is in pkg/workloadslicing, which links much of Kueue.
const SliceReplacementAnnotation = "kueue.x-k8s.io/workload-slice-replacement-for"

// FromObject takes what the engine must know from a Workload object.
func FromObject(o *kueue.Workload) Workload {
	w := Workload{
		NamespacedName: types.NamespacedName{Namespace: o.Namespace, Name: o.Name},
		UID:            string(o.UID),
		JobUID:         o.Labels[controllerconstants.JobUIDLabel],
		Created:        o.CreationTimestamp.Time,
		Queue:          string(o.Spec.QueueName),
		Inactive:       o.Spec.Active != nil && !*o.Spec.Active,
		Gated:          o.Annotations[kueueconstants.AdmissionGatedByAnnotation],
		Finished:       meta.IsStatusConditionTrue(o.Status.Conditions, kueue.WorkloadFinished),
	}
	for _, n := range o.Status.UnhealthyNodes {
		w.UnhealthyNodes = append(w.UnhealthyNodes, n.Name)
	}
	if namespace, name, found := strings.Cut(o.Annotations[SliceReplacementAnnotation], "/"); found {
		w.Replaces = types.NamespacedName{Namespace: namespace, Name: name}
	}
	if o.Spec.Priority != nil {
		w.Priority = *o.Spec.Priority
	}
	if boost, err := strconv.ParseInt(o.Annotations[controllerconstants.PriorityBoostAnnotationKey], 10, 32); err == nil {
		w.Boost = int32(boost)
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
		Name: string(o.Name), Count: o.Count, MinCount: o.MinCount, Requests: scheduler.PodRequests(pod),
		NodeSelector: pod.NodeSelector, NodeAffinity: scheduler.RequiredNodeAffinity(pod.Affinity), Tolerations: pod.Tolerations,
	}
	if r := o.TopologyRequest; r != nil {
		if r.PodSetGroupName != nil {
			s.Group = *r.PodSetGroupName
		}
		s.Topology = r
	}
	for _, r := range reclaimable {
		if r.Name == o.Name {
			s.Reclaimable = r.Count
		}
	}
	return s
}
