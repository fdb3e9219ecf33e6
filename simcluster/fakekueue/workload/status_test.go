package workload_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/fakekueue/workload"
)

// conditionsOf is a workload's conditions as a line each, in the order of types.
func conditionsOf(w *kueue.Workload) string {
	var lines []string
	for _, kind := range []string{
		kueue.WorkloadQuotaReserved, kueue.WorkloadAdmitted, kueue.WorkloadPodsReady, kueue.WorkloadPreempted, kueue.WorkloadEvicted,
		kueue.WorkloadRequeued, kueue.WorkloadDeactivationTarget, kueue.WorkloadWaitingForReplacementPods, kueue.WorkloadFinished,
	} {
		if c := meta.FindStatusCondition(w.Status.Conditions, kind); c != nil {
			lines = append(lines, fmt.Sprintf("%s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message))
		}
	}
	return strings.Join(lines, "\n")
}

func wants(t *testing.T, w *kueue.Workload, lines ...string) {
	t.Helper()
	if got := conditionsOf(w); got != strings.Join(lines, "\n") {
		t.Errorf("conditions are\n%s\nwant\n%s", got, strings.Join(lines, "\n"))
	}
}

func TestTheLifeOfAWorkload(t *testing.T) {
	w := workload.ForJob(aJob())
	workload.Wait(w, kueue.WorkloadPending, "insufficient quota", noon)
	wants(t, w, "QuotaReserved=False Pending: insufficient quota")

	workload.Reserve(w, admission(w, "default", 3), nil, noon)
	reserved := []string{"QuotaReserved=True QuotaReserved: Quota reserved in ClusterQueue cq", "Admitted=True Admitted: The workload is admitted"}
	wants(t, w, reserved...)

	workload.Preempt(w, kueue.InClusterQueueReason, "for another", noon.Add(10*time.Second))
	wants(t, w, append(reserved, "Preempted=True InClusterQueue: for another", "Evicted=True Preempted: for another")...)
	if !workload.HasQuota(w) {
		t.Error("it gave its quota back before its Job stopped")
	}

	workload.Release(w, noon.Add(12*time.Second))
	wants(
		t, w,
		"QuotaReserved=False Pending: for another", "Admitted=False NoReservation: The workload has no reservation",
		"Preempted=True InClusterQueue: for another", "Evicted=True Preempted: for another", "Requeued=True Preempted: for another",
	)
	if w.Status.Admission != nil || *w.Status.AccumulatedPastExecutionTimeSeconds != 12 || !workload.Queued(w, noon) {
		t.Errorf("status %+v", w.Status)
	}

	workload.Reserve(w, admission(w, "default", 3), nil, noon.Add(20*time.Second))
	wants(t, w, append(reserved, "Preempted=False QuotaReserved: Previously: for another", "Evicted=False QuotaReserved: Previously: for another", "Requeued=True Preempted: for another")...)
	workload.Preempt(w, kueue.InCohortReclamationReason, "again", noon.Add(30*time.Second))
	if stats := w.Status.SchedulingStats.Evictions; len(stats) != 1 || stats[0].Count != 2 {
		t.Errorf("evictions %+v", stats)
	}
	workload.Release(w, noon.Add(31*time.Second))
	if past := *w.Status.AccumulatedPastExecutionTimeSeconds; past != 12+11 {
		t.Errorf("it ran for %d seconds, want those of both times", past)
	}
	if !workload.Finish(w, kueue.WorkloadFinishedReasonSucceeded, "done", noon) || workload.Finish(w, kueue.WorkloadFinishedReasonFailed, "again", noon) {
		t.Error("a workload finishes once")
	}
}

func TestASinglePodsWorkloadNeverQueuesAgain(t *testing.T) {
	w := workload.ForPod(aPod("worker"))
	workload.Reserve(w, admission(w, "default", 1), nil, noon)
	workload.Preempt(w, kueue.InClusterQueueReason, "for another", noon)
	workload.Release(w, noon)
	if c := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadRequeued); c.Status != metav1.ConditionFalse || workload.Queued(w, noon) {
		t.Errorf("%+v", c)
	}
}

func aClusterQueue(change ...func(*kueue.ClusterQueue)) *kueue.ClusterQueue {
	q := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: "cq"}, Spec: kueue.ClusterQueueSpec{ResourceGroups: []kueue.ResourceGroup{{
		CoveredResources: []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory},
		Flavors: []kueue.FlavorQuotas{
			{Name: "default", Resources: []kueue.ResourceQuota{{Name: corev1.ResourceCPU, NominalQuota: resource.MustParse("4")}, {Name: corev1.ResourceMemory, NominalQuota: resource.MustParse("8Gi")}}},
			{Name: "spot", Resources: []kueue.ResourceQuota{{Name: corev1.ResourceCPU, NominalQuota: resource.MustParse("4")}, {Name: corev1.ResourceMemory, NominalQuota: resource.MustParse("8Gi")}}},
		},
	}}}}
	for _, c := range change {
		c(q)
	}
	return q
}

func checked(q *kueue.ClusterQueue) {
	q.Spec.AdmissionChecksStrategy = &kueue.AdmissionChecksStrategy{AdmissionChecks: []kueue.AdmissionCheckStrategyRule{
		{Name: "budget"}, {Name: "spot-only", OnFlavors: []kueue.ResourceFlavorReference{"spot"}},
	}}
}

func queues(cluster *kueue.ClusterQueue) workload.Queues {
	return workload.Queues{Local: &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Name: "queue"}, Spec: kueue.LocalQueueSpec{ClusterQueue: "cq"}}, Cluster: cluster, ClusterActive: cluster != nil}
}

// follow takes all steps that are due.
func follow(w *kueue.Workload, q workload.Queues, now time.Time) {
	for workload.Follow(w, q, now) {
		continue
	}
}

func TestAdmissionChecks(t *testing.T) {
	q := queues(aClusterQueue(checked))
	start := func(flavor kueue.ResourceFlavorReference) *kueue.Workload {
		w := workload.ForJob(aJob())
		follow(w, q, noon)
		workload.Reserve(w, admission(w, flavor, 3), workload.RequiredChecks(w, q.Cluster), noon)
		follow(w, q, noon)
		return w
	}
	t.Run("those of the flavors that were given are awaited", func(t *testing.T) {
		for flavor, count := range map[kueue.ResourceFlavorReference]int{"default": 1, "spot": 2} {
			if w := start(flavor); workload.IsAdmitted(w) || !workload.HasQuota(w) || len(w.Status.AdmissionChecks) != count {
				t.Errorf("%s: %+v", flavor, w.Status)
			}
		}
	})
	t.Run("when all are ready the workload is admitted", func(t *testing.T) {
		w := start("default")
		w.Status.AdmissionChecks[0].State = kueue.CheckStateReady
		follow(w, q, noon)
		if !workload.IsAdmitted(w) {
			t.Errorf("%+v", w.Status)
		}
	})
	t.Run("one that says Retry evicts, and is pending again", func(t *testing.T) {
		w := start("spot")
		w.Status.AdmissionChecks[0].State, w.Status.AdmissionChecks[0].Message = kueue.CheckStateRetry, "no money"
		retry, rejected := workload.Failed(w)
		if retry != `Evicted due to AdmissionCheck in Retry state: "budget" (no money)` || rejected != "" {
			t.Errorf("%q, %q", retry, rejected)
		}
		workload.Evict(w, kueue.WorkloadEvictedByAdmissionCheck, retry, "", noon)
		if c := w.Status.AdmissionChecks[0]; c.State != kueue.CheckStatePending || *c.RetryCount != 1 || c.Message != "Reset to Pending after eviction. Previously: Retry" {
			t.Errorf("%+v", c)
		}
	})
	t.Run("one that says Rejected outweighs those that say Retry", func(t *testing.T) {
		w := start("spot")
		w.Status.AdmissionChecks[0].State, w.Status.AdmissionChecks[1].State = kueue.CheckStateRetry, kueue.CheckStateRejected
		if retry, rejected := workload.Failed(w); retry != "" || rejected != `AdmissionCheck in Rejected state: "spot-only"` {
			t.Errorf("%q, %q", retry, rejected)
		}
	})
}

func TestQueuesOfAWorkload(t *testing.T) {
	stop := func(policy kueue.StopPolicy) func(*kueue.ClusterQueue) {
		return func(q *kueue.ClusterQueue) { q.Spec.StopPolicy = &policy }
	}
	for name, c := range map[string]struct {
		queues  workload.Queues
		message string
	}{
		"no LocalQueue":      {workload.Queues{}, "LocalQueue queue doesn't exist"},
		"no ClusterQueue":    {queues(nil), "ClusterQueue cq doesn't exist"},
		"inactive":           {workload.Queues{Local: queues(nil).Local, Cluster: aClusterQueue(stop(kueue.Hold))}, "ClusterQueue cq is inactive"},
		"all is well":        {queues(aClusterQueue()), ""},
		"stopped LocalQueue": {workload.Queues{Local: &kueue.LocalQueue{Spec: kueue.LocalQueueSpec{StopPolicy: ptr.To(kueue.Hold)}}}, "LocalQueue queue is inactive"},
	} {
		t.Run(name, func(t *testing.T) {
			w := workload.ForJob(aJob())
			follow(w, c.queues, noon)
			if c.message == "" {
				wants(t, w, "")
				return
			}
			wants(t, w, "QuotaReserved=False Inadmissible: "+c.message)
		})
	}
	t.Run("Hold takes a mere reservation back", func(t *testing.T) {
		w := workload.ForJob(aJob())
		running := queues(aClusterQueue(checked))
		follow(w, running, noon)
		workload.Reserve(w, admission(w, "default", 3), []kueue.AdmissionCheckReference{"budget"}, noon)
		follow(w, queues(aClusterQueue(checked, stop(kueue.Hold))), noon)
		wants(t, w, "QuotaReserved=False Inadmissible: ClusterQueue cq is stopped")
	})
}

func TestEvictionsThatHoldAWorkloadBackUntilTheyHavePassed(t *testing.T) {
	stopped := aClusterQueue(func(q *kueue.ClusterQueue) { q.Spec.StopPolicy = ptr.To(kueue.HoldAndDrain) })
	evicted := func(reason string) *kueue.Workload {
		w := workload.ForJob(aJob())
		workload.Reserve(w, admission(w, "default", 3), nil, noon)
		workload.Evict(w, reason, "because", "", noon)
		workload.Release(w, noon)
		return w
	}
	for reason, c := range map[string]struct {
		during, after workload.Queues
		want          string
	}{
		kueue.WorkloadEvictedByClusterQueueStopped: {workload.Queues{Local: queues(nil).Local, Cluster: stopped}, queues(aClusterQueue()), "ClusterQueueRestarted"},
		kueue.WorkloadEvictedByLocalQueueStopped:   {workload.Queues{Cluster: aClusterQueue()}, queues(aClusterQueue()), "LocalQueueRestarted"},
	} {
		w := evicted(reason)
		follow(w, c.during, noon)
		if workload.HeldFor(w) != reason || workload.Queued(w, noon) {
			t.Errorf("%s: %s", reason, conditionsOf(w))
		}
		follow(w, c.after, noon)
		if got := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadRequeued); got.Reason != c.want || !workload.Queued(w, noon) {
			t.Errorf("%s: %s", reason, conditionsOf(w))
		}
	}
	t.Run("a backoff", func(t *testing.T) {
		w := evicted(kueue.WorkloadEvictedByAdmissionCheck)
		w.Status.RequeueState = &kueue.RequeueState{RequeueAt: ptr.To(metav1.NewTime(noon.Add(time.Minute)))}
		follow(w, queues(aClusterQueue()), noon)
		if workload.Queued(w, noon) {
			t.Error("it queues during its backoff")
		}
		follow(w, queues(aClusterQueue()), noon.Add(time.Minute))
		if got := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadRequeued); got.Reason != kueue.WorkloadBackoffFinished || w.Status.RequeueState != nil {
			t.Errorf("%s, %+v", conditionsOf(w), w.Status.RequeueState)
		}
	})
	t.Run("a deactivation", func(t *testing.T) {
		w := workload.ForJob(aJob())
		workload.Deactivate(w, kueue.WorkloadMaximumExecutionTimeExceeded, "exceeding the maximum execution time", noon)
		w.Spec.Active = ptr.To(false)
		follow(w, queues(aClusterQueue()), noon)
		wants(t, w, "Evicted=True DeactivatedDueToMaximumExecutionTimeExceeded: The workload is deactivated due to exceeding the maximum execution time")
		if stats := w.Status.SchedulingStats.Evictions[0]; stats.Reason != kueue.WorkloadDeactivated || stats.UnderlyingCause != "MaximumExecutionTimeExceeded" {
			t.Errorf("%+v", stats)
		}
	})
	t.Run("a gate", func(t *testing.T) {
		w := workload.ForJob(aJob())
		w.Annotations = map[string]string{kueue.AdmissionGatedByAnnotation: "example.com/a"}
		follow(w, queues(aClusterQueue()), noon)
		wants(t, w, "QuotaReserved=False AdmissionGated: Admission is gated by: example.com/a")
		w.Annotations = nil
		follow(w, queues(aClusterQueue()), noon)
		wants(t, w, "QuotaReserved=False Pending: AdmissionGatedBy cleared, waiting for quota reservation")
	})
}

func TestPodsReadyChangesAtTheStartAtALossAndAtTheRecovery(t *testing.T) {
	w := workload.ForJob(aJob())
	steps := []struct {
		ready bool
		want  string
	}{
		{false, "PodsReady=False WaitForStart: Not all pods are ready or succeeded"},
		{true, "PodsReady=True Started: All pods reached readiness and the workload is running"},
		{false, "PodsReady=False WaitForRecovery: At least one pod has failed, waiting for recovery"},
		{true, "PodsReady=True Recovered: All pods reached readiness and the workload is running"},
	}
	workload.Reserve(w, admission(w, "default", 3), nil, noon)
	for _, step := range steps {
		if !workload.NotePodsReady(w, step.ready, noon) || workload.NotePodsReady(w, step.ready, noon) || !strings.Contains(conditionsOf(w), step.want) {
			t.Errorf("%s; want %s", conditionsOf(w), step.want)
		}
	}
}

func TestAQueueCountsNeitherReclaimedPodsNorFinishedWorkloads(t *testing.T) {
	q := aClusterQueue(func(q *kueue.ClusterQueue) { q.Spec.CohortName = "c" })
	holding := func(count int32) *kueue.Workload {
		w := workload.ForJob(aJob())
		workload.Reserve(w, admission(w, "default", count), nil, noon)
		return w
	}
	reclaimed := holding(3)
	reclaimed.Status.ReclaimablePods = []kueue.ReclaimablePod{{Name: "main", Count: 2}}
	finished := holding(3)
	workload.Finish(finished, "Succeeded", "", noon)
	var status kueue.ClusterQueueStatus
	workload.CountQueue(&status, q, []*kueue.Workload{holding(2), reclaimed, finished}, 5)
	cpu, memory := status.FlavorsUsage[0].Resources[0], status.FlavorsUsage[0].Resources[1]
	if status.PendingWorkloads != 5 || status.ReservingWorkloads != 2 || status.AdmittedWorkloads != 2 || cpu.Total.String() != "4500m" || cpu.Borrowed.String() != "500m" ||
		memory.Total.String() != "3Gi" || memory.Borrowed.String() != "0" || status.FlavorsUsage[1].Resources[0].Total.String() != "0" {
		t.Errorf("%+v", status)
	}
	var local kueue.LocalQueueStatus
	elsewhere := holding(2)
	elsewhere.Status.Admission.ClusterQueue = "another"
	workload.CountLocalQueue(&local, q, []*kueue.Workload{holding(2), elsewhere}, 1)
	if local.AdmittedWorkloads != 1 || local.FlavorsReservation[0].Resources[0].Total.String() != "3" {
		t.Errorf("%+v", local)
	}
}

func TestDefaultsOfNamespaceAndCluster(t *testing.T) {
	w := workload.ForJob(aJob())
	if workload.WithDefaults(w, workload.Defaults{}) != w {
		t.Error("a workload is copied though nothing is added")
	}
	pod := &w.Spec.PodSets[0].Template.Spec
	pod.RuntimeClassName = ptr.To("sandbox")
	delete(pod.Containers[0].Resources.Requests, corev1.ResourceCPU)
	got := workload.WithDefaults(w, workload.Defaults{
		LimitRanges: []*corev1.LimitRange{{Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
			Type:           corev1.LimitTypeContainer,
			DefaultRequest: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m"), corev1.ResourceMemory: resource.MustParse("5Gi")},
		}}}}},
		RuntimeClass: func(string) *nodev1.RuntimeClass {
			return &nodev1.RuntimeClass{Overhead: &nodev1.Overhead{PodFixed: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("50m")}}}
		},
	})
	requests := got.Spec.PodSets[0].Template.Spec.Containers[0].Resources.Requests
	if requests.Cpu().String() != "250m" || requests.Memory().String() != "1Gi" || got.Spec.PodSets[0].Template.Spec.Overhead.Cpu().String() != "50m" {
		t.Errorf("%+v", got.Spec.PodSets[0].Template.Spec)
	}
	if _, changed := pod.Containers[0].Resources.Requests[corev1.ResourceCPU]; changed {
		t.Error("the workload itself was changed")
	}
}
