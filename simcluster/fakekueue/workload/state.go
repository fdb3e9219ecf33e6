package workload

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue"
)

// HasQuota reports whether w holds quota.
func HasQuota(w *kueue.Workload) bool {
	return meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadQuotaReserved) && w.Status.Admission != nil
}

// IsAdmitted reports whether w holds quota and its checks have passed, so that its pods may run.
func IsAdmitted(w *kueue.Workload) bool {
	return meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadAdmitted)
}

// IsEvicted reports whether w was evicted since it was last admitted.
func IsEvicted(w *kueue.Workload) bool {
	return meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadEvicted)
}

// IsFinished reports whether w's job has ended.
func IsFinished(w *kueue.Workload) bool {
	return meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadFinished)
}

// IsActive reports whether w may be admitted: nobody has deactivated it.
func IsActive(w *kueue.Workload) bool { return ptr.Deref(w.Spec.Active, true) }

// AwaitsPods reports whether pods of w's group are missing, for which it does not queue.
func AwaitsPods(w *kueue.Workload) bool {
	return meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadWaitingForReplacementPods)
}

// HeldFor is the reason for which w does not queue since its last eviction; "" for one that may.
func HeldFor(w *kueue.Workload) string {
	if c := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadRequeued); c != nil && c.Status == metav1.ConditionFalse {
		return c.Reason
	}
	return ""
}

// OfGroup reports whether w stands for a group of pods.
func OfGroup(w *kueue.Workload) bool { return w.Annotations[kueue.IsGroupWorkloadAnnotation] == "true" }

// OfSinglePod reports whether w stands for one pod, with which it dies.
func OfSinglePod(w *kueue.Workload) bool {
	return len(w.OwnerReferences) == 1 && !OfGroup(w) && w.OwnerReferences[0].Kind == "Pod" && w.OwnerReferences[0].APIVersion == "v1"
}

// reclaimed is how many pods of a set need their quota no longer.
func reclaimed(w *kueue.Workload, name kueue.PodSetReference) int32 {
	for _, r := range w.Status.ReclaimablePods {
		if r.Name == name {
			return r.Count
		}
	}
	return 0
}
