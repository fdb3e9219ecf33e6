package workload

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue"
)

// maxMessage is the largest length of a condition's message (metav1.Condition).
const maxMessage = 32 * 1024

// set sets a condition and reports a change.
func set(w *kueue.Workload, now time.Time, kind string, status metav1.ConditionStatus, reason, message string) bool {
	if len(message) > maxMessage {
		message = message[:maxMessage-3] + "..."
	}
	return meta.SetStatusCondition(&w.Status.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: message,
		ObservedGeneration: w.Generation, LastTransitionTime: metav1.NewTime(now),
	})
}

// Reserve gives w quota. Where no check is awaited it is admitted at once; checks are those that its flavors need.
func Reserve(w *kueue.Workload, admission *kueue.Admission, checks []kueue.AdmissionCheckReference, now time.Time) {
	w.Status.Admission = admission
	w.Status.ResourceRequests = nil // the admission says it from now on
	set(w, now, kueue.WorkloadQuotaReserved, metav1.ConditionTrue, kueue.WorkloadQuotaReservedReason, fmt.Sprintf("Quota reserved in ClusterQueue %s", admission.ClusterQueue))
	for _, kind := range []string{kueue.WorkloadEvicted, kueue.WorkloadPreempted} {
		if c := meta.FindStatusCondition(w.Status.Conditions, kind); c != nil && c.Status == metav1.ConditionTrue {
			set(w, now, kind, metav1.ConditionFalse, kueue.WorkloadQuotaReservedReason, "Previously: "+c.Message)
		}
	}
	if !slices.ContainsFunc(checks, func(name kueue.AdmissionCheckReference) bool { return findCheck(w, name) == nil }) {
		SyncAdmitted(w, now)
	}
}

// SyncAdmitted keeps the condition Admitted and reports a change: quota and all checks ready. It sums up the time that
// w was admitted.
func SyncAdmitted(w *kueue.Workload, now time.Time) bool {
	admitted, quota, ready := IsAdmitted(w), HasQuota(w), checksReady(w)
	if admitted == (quota && ready) {
		return false
	}
	status, reason, message := metav1.ConditionFalse, "", ""
	switch {
	case !quota && !ready:
		reason, message = "NoReservationUnsatisfiedChecks", "The workload has no reservation and not all checks ready"
	case !quota:
		reason, message = kueue.WorkloadAdmittedReasonNoReservation, "The workload has no reservation"
	case !ready:
		reason, message = "UnsatisfiedChecks", "The workload has not all checks ready"
	default:
		status, reason, message = metav1.ConditionTrue, kueue.WorkloadAdmittedReason, "The workload is admitted"
	}
	if admitted {
		since := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadAdmitted).LastTransitionTime
		seconds := ptr.Deref(w.Status.AccumulatedPastExecutionTimeSeconds, 0) + int32(now.Sub(since.Time).Seconds())
		w.Status.AccumulatedPastExecutionTimeSeconds = &seconds
	}
	return set(w, now, kueue.WorkloadAdmitted, status, reason, message)
}

// Wait records why w does not hold quota, takes from it what it held, and reports a change.
func Wait(w *kueue.Workload, reason, message string, now time.Time) bool {
	changed := set(w, now, kueue.WorkloadQuotaReserved, metav1.ConditionFalse, reason, message)
	if w.Status.Admission != nil {
		w.Status.Admission, changed = nil, true
	}
	return SyncAdmitted(w, now) || changed
}

// Evict begins to take w's quota away: its job is stopped next, and Release follows when that has happened. cause says
// more about a deactivation, or is empty.
func Evict(w *kueue.Workload, reason, message string, cause kueue.EvictionUnderlyingCause, now time.Time) {
	full := reason
	if reason == kueue.WorkloadDeactivated && cause != "" {
		full += "DueTo" + string(cause)
	}
	set(w, now, kueue.WorkloadEvicted, metav1.ConditionTrue, full, message)
	resetChecks(w, now)
	w.Status.UnhealthyNodes = nil
	countEviction(w, reason, cause)
}

// Preempt is Evict for another workload; how says how the other came to be allowed to.
func Preempt(w *kueue.Workload, how, message string, now time.Time) {
	Evict(w, kueue.WorkloadEvictedByPreemption, message, "", now)
	// Without ObservedGeneration, as Kueue has it.
	meta.SetStatusCondition(&w.Status.Conditions, metav1.Condition{
		Type: kueue.WorkloadPreempted, Status: metav1.ConditionTrue, Reason: how, Message: message, LastTransitionTime: metav1.NewTime(now),
	})
}

func countEviction(w *kueue.Workload, reason string, cause kueue.EvictionUnderlyingCause) {
	if w.Status.SchedulingStats == nil {
		w.Status.SchedulingStats = &kueue.SchedulingStats{}
	}
	stats := w.Status.SchedulingStats
	i := slices.IndexFunc(stats.Evictions, func(e kueue.WorkloadSchedulingStatsEviction) bool {
		return e.Reason == reason && e.UnderlyingCause == cause
	})
	if i < 0 {
		stats.Evictions = append(stats.Evictions, kueue.WorkloadSchedulingStatsEviction{Reason: reason, UnderlyingCause: cause})
		i = len(stats.Evictions) - 1
	}
	stats.Evictions[i].Count++
}

// Release ends an eviction: the job has stopped, the quota is free. A preempted workload queues again at once; others
// when what they were evicted for has passed, and a single pod's never, because it dies with the pod.
func Release(w *kueue.Workload, now time.Time) {
	evicted := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadEvicted)
	again := evicted.Reason == kueue.WorkloadEvictedByPreemption || evicted.Reason == kueue.WorkloadEvictedDueToNodeFailures
	Requeue(w, evicted.Reason, evicted.Message, again && !OfSinglePod(w), now)
	Wait(w, kueue.WorkloadPending, evicted.Message, now)
}

// Requeue sets whether w queues after an eviction, and reports a change.
func Requeue(w *kueue.Workload, reason, message string, queues bool, now time.Time) bool {
	status := metav1.ConditionFalse
	if queues {
		status = metav1.ConditionTrue
	}
	return set(w, now, kueue.WorkloadRequeued, status, reason, message)
}

// Finish records that w's job has ended, and reports a change.
func Finish(w *kueue.Workload, reason, message string, now time.Time) bool {
	return !IsFinished(w) && set(w, now, kueue.WorkloadFinished, metav1.ConditionTrue, reason, message)
}

// Deactivate records that w is to be deactivated, and reports a change. Its spec.active follows.
func Deactivate(w *kueue.Workload, reason, message string, now time.Time) bool {
	return set(w, now, kueue.WorkloadDeactivationTarget, metav1.ConditionTrue, reason, message)
}

// NotePodsReady keeps the condition PodsReady and reports a change.
func NotePodsReady(w *kueue.Workload, ready bool, now time.Time) bool {
	before := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadPodsReady)
	status, reason, message := metav1.ConditionFalse, kueue.WorkloadWaitForStart, "Not all pods are ready or succeeded"
	recovering := before != nil && (before.Status == metav1.ConditionTrue || before.Reason == kueue.WorkloadWaitForRecovery)
	switch {
	case !IsAdmitted(w):
	case ready:
		status, reason, message = metav1.ConditionTrue, kueue.WorkloadStarted, "All pods reached readiness and the workload is running"
		if before != nil && (before.Reason == kueue.WorkloadWaitForRecovery || before.Reason == kueue.WorkloadRecovered) {
			reason = kueue.WorkloadRecovered
		}
	case recovering:
		reason, message = kueue.WorkloadWaitForRecovery, "At least one pod has failed, waiting for recovery"
	}
	if before != nil && before.Status == status && before.Reason == reason {
		return false
	}
	return set(w, now, kueue.WorkloadPodsReady, status, reason, message)
}
