package provider

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	kueueconstants "sigs.k8s.io/kueue/pkg/constants"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue/preemption"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler"
)

// What a workload's phase may be.
const (
	workloadPending       = "Pending"
	workloadInactive      = "Inactive"
	workloadQuotaReserved = "QuotaReserved"
	workloadAdmitted      = "Admitted"
	workloadEvicting      = "Evicting"
	workloadFinished      = "Finished"
)

// workloadStatus is the phase of a workload, and the reason.
type workloadStatus struct {
	phase   string
	reason  string // a word of Kueue's; "" where there is nothing to give a reason for
	message string // in a sentence
}

// workloadStatusOf reads a workload's conditions. It ignores the eviction of a workload that was admitted again.
func workloadStatusOf(w *kueue.Workload) workloadStatus {
	condition := func(kind string) *metav1.Condition { return apimeta.FindStatusCondition(w.Status.Conditions, kind) }
	isTrue := func(kind string) bool { return apimeta.IsStatusConditionTrue(w.Status.Conditions, kind) }
	evicted := condition(kueue.WorkloadEvicted)
	switch {
	case isTrue(kueue.WorkloadFinished):
		c := condition(kueue.WorkloadFinished)
		return workloadStatus{workloadFinished, c.Reason, c.Message}
	case evicted != nil && evicted.Status == metav1.ConditionTrue && w.Status.Admission != nil:
		return workloadStatus{workloadEvicting, evicted.Reason, evicted.Message}
	case w.Spec.Active != nil && !*w.Spec.Active:
		return inactive(evicted)
	case isTrue(kueue.WorkloadAdmitted):
		return workloadStatus{phase: workloadAdmitted}
	case isTrue(kueue.WorkloadQuotaReserved):
		return awaitingChecks(w)
	default:
		return pendingWorkload(w)
	}
}

func inactive(evicted *metav1.Condition) workloadStatus {
	s := workloadStatus{workloadInactive, kueue.WorkloadDeactivated, "Somebody set spec.active to false; it is queued again when that is true."}
	if evicted != nil && evicted.Status == metav1.ConditionTrue && evicted.Message != "" {
		s.reason, s.message = evicted.Reason, evicted.Message
	}
	return s
}

func awaitingChecks(w *kueue.Workload) workloadStatus {
	var open []string
	for _, check := range w.Status.AdmissionChecks {
		if check.State == kueue.CheckStateReady {
			continue
		}
		text := fmt.Sprintf("%s is %s", check.Name, check.State)
		if check.Message != "" {
			text += " (" + check.Message + ")"
		}
		open = append(open, text)
	}
	message := "Its quota is reserved; it is admitted next."
	if len(open) > 0 {
		message = "Its quota is reserved; it waits for admission checks: " + strings.Join(open, ", ") + "."
	}
	return workloadStatus{workloadQuotaReserved, kueue.WorkloadAdmittedReasonUnsatisfiedAdmissionChecks, message}
}

func pendingWorkload(w *kueue.Workload) workloadStatus {
	if by := w.Annotations[kueueconstants.AdmissionGatedByAnnotation]; by != "" {
		return workloadStatus{workloadPending, kueue.WorkloadAdmissionGated, "It is held back by " + by + "."}
	}
	if requeued := apimeta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadRequeued); requeued != nil && requeued.Status == metav1.ConditionFalse {
		s := workloadStatus{workloadPending, requeued.Reason, requeued.Message}
		if at := w.Status.RequeueState; at != nil && at.RequeueAt != nil {
			s.message = strings.TrimSpace(s.message + fmt.Sprintf(" It is queued again at %s.", at.RequeueAt.UTC().Format(time.RFC3339)))
		}
		return s
	}
	if c := apimeta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadQuotaReserved); c != nil {
		return workloadStatus{workloadPending, c.Reason, c.Message}
	}
	return workloadStatus{workloadPending, "", "Kueue has not processed it yet."}
}

// waitsInQueue holds for a workload that stands in its ClusterQueue's order: neither finished, deactivated nor held
// back, and without quota.
func waitsInQueue(w *kueue.Workload) bool {
	if w.Status.Admission != nil || w.Annotations[kueueconstants.AdmissionGatedByAnnotation] != "" {
		return false
	}
	requeued := apimeta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadRequeued)
	return workloadStatusOf(w).phase == workloadPending && (requeued == nil || requeued.Status != metav1.ConditionFalse)
}

// positions are the places of waiting workloads in the order of their ClusterQueue: 1 is tried first. clusterQueues has
// the ClusterQueue of every LocalQueue; workloads of other queues have no place. It needs the workloads of all
// namespaces that share the ClusterQueues. (Kueue v0.19: priority, then time, then UID.)
func positions(workloads []*kueue.Workload, clusterQueues map[types.NamespacedName]string) map[types.UID]int64 {
	waiting := map[string][]*kueue.Workload{}
	for _, w := range workloads {
		queue := clusterQueues[types.NamespacedName{Namespace: w.Namespace, Name: string(w.Spec.QueueName)}]
		if queue != "" && waitsInQueue(w) {
			waiting[queue] = append(waiting[queue], w)
		}
	}
	places := map[types.UID]int64{}
	for _, line := range waiting {
		slices.SortFunc(line, func(a, b *kueue.Workload) int {
			return cmp.Or(
				cmp.Compare(priorityOf(b), priorityOf(a)),
				queueTime(a).Compare(queueTime(b)),
				cmp.Compare(a.UID, b.UID),
			)
		})
		for i, w := range line {
			places[w.UID] = int64(i + 1)
		}
	}
	return places
}

func priorityOf(w *kueue.Workload) int32 {
	if w.Spec.Priority == nil {
		return 0
	}
	return *w.Spec.Priority
}

// queueTime is since when a workload counts as waiting: since it was made, also after a preemption; but since the
// eviction when its pods did not become ready in time, or an admission check sent it back.
func queueTime(w *kueue.Workload) time.Time {
	evicted := apimeta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadEvicted)
	if evicted != nil && evicted.Status == metav1.ConditionTrue &&
		(evicted.Reason == kueue.WorkloadEvictedByPodsReadyTimeout || evicted.Reason == kueue.WorkloadEvictedByAdmissionCheck) {
		return evicted.LastTransitionTime.Time
	}
	return w.CreationTimestamp.Time
}

// requestsOf is the sum of the requests of all pods of a workload: from its admission, else from Kueue's last
// calculation, else from its templates.
func requestsOf(w *kueue.Workload) corev1.ResourceList {
	total := corev1.ResourceList{}
	add := func(list corev1.ResourceList) {
		for name, amount := range list {
			addTo(total, name, amount)
		}
	}
	switch {
	case w.Status.Admission != nil:
		for _, set := range w.Status.Admission.PodSetAssignments {
			add(set.ResourceUsage)
		}
	case len(w.Status.ResourceRequests) > 0:
		for _, set := range w.Status.ResourceRequests {
			add(set.Resources)
		}
	default:
		for i := range w.Spec.PodSets {
			set := &w.Spec.PodSets[i]
			one := scheduler.PodRequests(&set.Template.Spec)
			for range set.Count {
				add(one)
			}
		}
	}
	return total
}

// flavorsOf are the flavors that a workload's quota is of, without repetition, in order of name.
func flavorsOf(w *kueue.Workload) []string {
	flavors := []string{}
	if w.Status.Admission != nil {
		for _, set := range w.Status.Admission.PodSetAssignments {
			for _, flavor := range set.Flavors {
				flavors = append(flavors, string(flavor))
			}
		}
	}
	slices.Sort(flavors)
	return slices.Compact(flavors)
}

// evictionsOf counts evictions by reason.
func evictionsOf(w *kueue.Workload) map[string]int64 {
	counts := map[string]int64{}
	if w.Status.SchedulingStats != nil {
		for _, e := range w.Status.SchedulingStats.Evictions {
			counts[e.Reason] += int64(e.Count)
		}
	}
	return counts
}

// preemptorOf is the UID of the workload that this one was evicted for and waits for since; "" when there is none.
func preemptorOf(w *kueue.Workload) types.UID {
	c := apimeta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadPreempted)
	if c == nil || c.Status != metav1.ConditionTrue {
		return ""
	}
	uid, _, _ := preemption.ParseMessage(c.Message)
	return types.UID(uid)
}
