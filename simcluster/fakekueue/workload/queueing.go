package workload

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue"
)

// Queues are the queues of a workload, as far as they exist.
type Queues struct {
	Local   *kueue.LocalQueue
	Cluster *kueue.ClusterQueue
	// ClusterActive reports whether the ClusterQueue admits workloads.
	ClusterActive bool
}

func (q Queues) localStops() kueue.StopPolicy {
	return ptr.Deref(q.Local.Spec.StopPolicy, kueue.None)
}

func (q Queues) clusterStops() kueue.StopPolicy {
	return ptr.Deref(q.Cluster.Spec.StopPolicy, kueue.None)
}

// Follow brings a workload's status in line with its spec, its queues and its checks, as far as that takes no decision
// about quota, and reports a change. The steps are those of Kueue's workload controller
// (pkg/controller/core/workload_controller.go), which takes one of them at a time; so does Follow.
func Follow(w *kueue.Workload, q Queues, now time.Time) bool {
	if at := RetryAt(w); at.After(now) && (w.Status.RequeueState == nil || w.Status.RequeueState.RequeueAt == nil || w.Status.RequeueState.RequeueAt.Time.Before(at)) {
		if w.Status.RequeueState == nil {
			w.Status.RequeueState = &kueue.RequeueState{}
		}
		w.Status.RequeueState.RequeueAt = ptr.To(metav1.NewTime(at))
		return true
	}
	if !IsActive(w) {
		return followInactive(w, now)
	}
	if meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadDeactivationTarget) {
		return false // its spec follows first
	}
	return followHolds(w, q, now) || followGate(w, now) || followQueues(w, q, now)
}

// followInactive evicts a deactivated workload that holds no quota; one that does is the engine's to evict.
func followInactive(w *kueue.Workload, now time.Time) bool {
	changed := false
	if w.Status.RequeueState != nil {
		w.Status.RequeueState, changed = nil, true
	}
	if !HasQuota(w) && !IsEvicted(w) {
		cause, message := Deactivation(w)
		meta.RemoveStatusCondition(&w.Status.Conditions, kueue.WorkloadDeactivationTarget)
		Evict(w, kueue.WorkloadDeactivated, message, cause, now)
		changed = true
	}
	return changed
}

// Deactivation reports why a workload was deactivated: cause is empty where somebody set its spec.active.
func Deactivation(w *kueue.Workload) (cause kueue.EvictionUnderlyingCause, message string) {
	message = "The workload is deactivated"
	if target := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadDeactivationTarget); target != nil {
		return kueue.EvictionUnderlyingCause(target.Reason), message + " due to " + target.Message
	}
	return "", message
}

// followHolds lets a workload queue again once that for which it was evicted has passed.
func followHolds(w *kueue.Workload, q Queues, now time.Time) bool {
	switch HeldFor(w) {
	case kueue.WorkloadDeactivated:
		return Requeue(w, kueue.WorkloadReactivated, "The workload was reactivated", true, now)
	case kueue.WorkloadEvictedByPodsReadyTimeout, kueue.WorkloadEvictedByAdmissionCheck:
		if state := w.Status.RequeueState; state != nil && state.RequeueAt != nil {
			if state.RequeueAt.After(now) {
				return false
			}
			state.RequeueAt = nil
			if state.Count == nil {
				w.Status.RequeueState = nil
			}
		}
		return Requeue(w, kueue.WorkloadBackoffFinished, "The workload backoff was finished", true, now)
	case kueue.WorkloadEvictedByLocalQueueStopped:
		return q.Local != nil && q.localStops() == kueue.None &&
			Requeue(w, kueue.WorkloadLocalQueueRestarted, "The LocalQueue was restarted after being stopped", true, now)
	case kueue.WorkloadEvictedByClusterQueueStopped:
		return q.Cluster != nil && q.clusterStops() == kueue.None &&
			Requeue(w, kueue.WorkloadClusterQueueRestarted, "The ClusterQueue was restarted after being stopped", true, now)
	}
	return false
}

// followGate shows that somebody holds the workload's admission back, or does so no longer.
func followGate(w *kueue.Workload, now time.Time) bool {
	gates := w.Annotations[kueue.AdmissionGatedByAnnotation]
	condition := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadQuotaReserved)
	shown := condition != nil && condition.Reason == kueue.WorkloadAdmissionGated
	switch {
	case gates != "" && !shown:
		return Wait(w, kueue.WorkloadAdmissionGated, "Admission is gated by: "+gates, now)
	case gates == "" && shown:
		return Wait(w, kueue.WorkloadPending, "AdmissionGatedBy cleared, waiting for quota reservation", now)
	}
	return false
}

// followQueues records what is wrong with a workload's queues, takes mere reservations back where they are stopped, and
// keeps checks and the condition Admitted.
func followQueues(w *kueue.Workload, q Queues, now time.Time) bool {
	if q.Cluster != nil && SyncChecks(w, RequiredChecks(w, q.Cluster), now) {
		return true
	}
	if IsAdmitted(w) {
		return false
	}
	if !HasQuota(w) {
		changed := false
		if message := queueProblem(w, q); message != "" {
			changed = set(w, now, kueue.WorkloadQuotaReserved, metav1.ConditionFalse, kueue.WorkloadInadmissible, message)
		}
		return SyncAdmitted(w, now) || changed
	}
	if SyncAdmitted(w, now) {
		return true
	}
	if IsEvicted(w) {
		return false // its job gives the quota back
	}
	if message := reservationProblem(w, q); message != "" {
		return Wait(w, kueue.WorkloadInadmissible, message, now)
	}
	return false
}

// queueProblem is why a workload that waits is not even considered.
func queueProblem(w *kueue.Workload, q Queues) string {
	switch {
	case q.Local == nil:
		return fmt.Sprintf("LocalQueue %s doesn't exist", w.Spec.QueueName)
	case q.localStops() != kueue.None:
		return fmt.Sprintf("LocalQueue %s is inactive", w.Spec.QueueName)
	case q.Cluster == nil:
		return fmt.Sprintf("ClusterQueue %s doesn't exist", q.Local.Spec.ClusterQueue)
	case !q.ClusterActive:
		return fmt.Sprintf("ClusterQueue %s is inactive", q.Cluster.Name)
	}
	return ""
}

// reservationProblem is why a workload that waits for its checks may not keep its quota.
func reservationProblem(w *kueue.Workload, q Queues) string {
	switch {
	case q.Local == nil || q.Local.DeletionTimestamp != nil:
		return fmt.Sprintf("LocalQueue %s is terminating or missing", w.Spec.QueueName)
	case q.localStops() != kueue.None:
		return fmt.Sprintf("LocalQueue %s is stopped", w.Spec.QueueName)
	case q.Cluster == nil || q.Cluster.DeletionTimestamp != nil:
		return fmt.Sprintf("ClusterQueue %s is terminating or missing", w.Status.Admission.ClusterQueue)
	case q.clusterStops() != kueue.None:
		return fmt.Sprintf("ClusterQueue %s is stopped", q.Cluster.Name)
	}
	return ""
}

// ExecutionTimeLeft is how long an admitted workload may still run; ok is false where there is no limit.
func ExecutionTimeLeft(w *kueue.Workload, now time.Time) (left time.Duration, ok bool) {
	if w.Spec.MaximumExecutionTimeSeconds == nil || !IsAdmitted(w) || IsFinished(w) {
		return 0, false
	}
	admitted := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadAdmitted).LastTransitionTime
	seconds := *w.Spec.MaximumExecutionTimeSeconds - ptr.Deref(w.Status.AccumulatedPastExecutionTimeSeconds, 0)
	return time.Duration(seconds)*time.Second - now.Sub(admitted.Time), true
}

// Queued reports whether a workload waits for quota.
func Queued(w *kueue.Workload, now time.Time) bool {
	if state := w.Status.RequeueState; state != nil && state.RequeueAt != nil && state.RequeueAt.After(now) {
		return false
	}
	condition := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadQuotaReserved)
	onHold := condition != nil && condition.Reason == kueue.WorkloadOnHold
	return !HasQuota(w) && !IsFinished(w) && IsActive(w) && !AwaitsPods(w) && !onHold && HeldFor(w) == "" && w.DeletionTimestamp == nil &&
		w.Annotations[kueue.AdmissionGatedByAnnotation] == ""
}
