package provider

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	kueueconstants "sigs.k8s.io/kueue/pkg/constants"
)

func workload(name string, conditions ...metav1.Condition) *kueue.Workload {
	return &kueue.Workload{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name), CreationTimestamp: metav1.NewTime(time.Unix(1000, 0))},
		Spec:       kueue.WorkloadSpec{QueueName: "user-queue"},
		Status:     kueue.WorkloadStatus{Conditions: conditions},
	}
}

func is(kind, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: message}
}

func isNot(kind, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message}
}

func TestWhereAWorkloadStandsAndWhy(t *testing.T) {
	reserved := is(kueue.WorkloadQuotaReserved, kueue.WorkloadQuotaReserved, "Quota reserved in ClusterQueue team")
	preempted := is(kueue.WorkloadEvicted, kueue.WorkloadEvictedByPreemption, "Preempted to accommodate a workload (UID: u, JobUID: j)")
	holding := func(w *kueue.Workload) *kueue.Workload {
		w.Status.Admission = &kueue.Admission{ClusterQueue: "team"}
		return w
	}
	for name, c := range map[string]struct {
		workload *kueue.Workload
		want     workloadStatus
	}{
		"one that Kueue has not seen": {workload("w"), workloadStatus{workloadPending, "", "Kueue has not processed it yet."}},
		"one without room": {
			workload("w", isNot(kueue.WorkloadQuotaReserved, "Pending", "insufficient unused quota for cpu in flavor default, 3 more needed")),
			workloadStatus{workloadPending, "Pending", "insufficient unused quota for cpu in flavor default, 3 more needed"},
		},
		"one whose queue is missing": {
			workload("w", isNot(kueue.WorkloadQuotaReserved, "Inadmissible", "LocalQueue user-queue doesn't exist")),
			workloadStatus{workloadPending, "Inadmissible", "LocalQueue user-queue doesn't exist"},
		},
		"one that was preempted, and tried again": {
			workload("w", preempted, isNot(kueue.WorkloadQuotaReserved, "Pending", "insufficient unused quota"), is(kueue.WorkloadRequeued, "Preempted", "")),
			workloadStatus{workloadPending, "Pending", "insufficient unused quota"},
		},
		"one that is being preempted":              {holding(workload("w", reserved, is(kueue.WorkloadAdmitted, "Admitted", ""), preempted)), workloadStatus{workloadEvicting, "Preempted", preempted.Message}},
		"one that is admitted":                     {holding(workload("w", reserved, is(kueue.WorkloadAdmitted, "Admitted", "The workload is admitted"))), workloadStatus{phase: workloadAdmitted}},
		"one that was preempted and is back again": {holding(workload("w", reserved, is(kueue.WorkloadAdmitted, "Admitted", ""), isNot(kueue.WorkloadEvicted, "QuotaReserved", "Previously: …"))), workloadStatus{phase: workloadAdmitted}},
		"one that has ended":                       {holding(workload("w", reserved, is(kueue.WorkloadAdmitted, "Admitted", ""), is(kueue.WorkloadFinished, "Succeeded", "Job finished successfully"))), workloadStatus{workloadFinished, "Succeeded", "Job finished successfully"}},
		"one that waits for its pods' back-off": {
			func() *kueue.Workload {
				w := workload("w", is(kueue.WorkloadEvicted, "PodsReadyTimeout", "x"), isNot(kueue.WorkloadRequeued, "PodsReadyTimeout", "Exceeded the PodsReady timeout."))
				w.Status.RequeueState = &kueue.RequeueState{RequeueAt: new(metav1.NewTime(time.Unix(3600, 0)))}
				return w
			}(),
			workloadStatus{workloadPending, "PodsReadyTimeout", "Exceeded the PodsReady timeout. It is queued again at 1970-01-01T01:00:00Z."},
		},
		"one that is held back": {
			func() *kueue.Workload {
				w := workload("w")
				w.Annotations = map[string]string{kueueconstants.AdmissionGatedByAnnotation: "example.com/review"}
				return w
			}(),
			workloadStatus{workloadPending, kueue.WorkloadAdmissionGated, "It is held back by example.com/review."},
		},
		"one that a user has deactivated": {
			func() *kueue.Workload {
				w := workload("w")
				w.Spec.Active = new(false)
				return w
			}(),
			workloadStatus{workloadInactive, kueue.WorkloadDeactivated, "Somebody set spec.active to false; it is queued again when that is true."},
		},
		"one that took too long": {
			func() *kueue.Workload {
				w := workload("w", is(kueue.WorkloadEvicted, "DeactivatedDueToMaximumExecutionTimeExceeded", "exceeding the maximum execution time"))
				w.Spec.Active = new(false)
				return w
			}(),
			workloadStatus{workloadInactive, "DeactivatedDueToMaximumExecutionTimeExceeded", "exceeding the maximum execution time"},
		},
		"one that waits for checks": {
			func() *kueue.Workload {
				w := holding(workload("w", reserved))
				w.Status.AdmissionChecks = []kueue.AdmissionCheckState{
					{Name: "capacity", State: kueue.CheckStatePending, Message: "asking the cloud"}, {Name: "budget", State: kueue.CheckStateReady}, {Name: "review", State: kueue.CheckStateRetry},
				}
				return w
			}(),
			workloadStatus{workloadQuotaReserved, kueue.WorkloadAdmittedReasonUnsatisfiedAdmissionChecks, "Its quota is reserved; it waits for admission checks: capacity is Pending (asking the cloud), review is Retry."},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := workloadStatusOf(c.workload); got != c.want {
				t.Errorf("got %+v\nwant %+v", got, c.want)
			}
		})
	}
}

func TestPlacesInTheQueue(t *testing.T) {
	waiting := func(name string, priority int32, second int64) *kueue.Workload {
		w := workload(name, isNot(kueue.WorkloadQuotaReserved, "Pending", ""))
		w.Spec.Priority, w.CreationTimestamp = &priority, metav1.NewTime(time.Unix(second, 0))
		return w
	}
	timedOut := waiting("timed-out", 10, 1)
	timedOut.Status.Conditions = append(timedOut.Status.Conditions,
		metav1.Condition{Type: kueue.WorkloadEvicted, Status: metav1.ConditionTrue, Reason: kueue.WorkloadEvictedByPodsReadyTimeout, LastTransitionTime: metav1.NewTime(time.Unix(50, 0))})
	preempted := waiting("preempted", 10, 2)
	preempted.Status.Conditions = append(preempted.Status.Conditions,
		metav1.Condition{Type: kueue.WorkloadEvicted, Status: metav1.ConditionTrue, Reason: kueue.WorkloadEvictedByPreemption, LastTransitionTime: metav1.NewTime(time.Unix(60, 0))})
	admitted := waiting("admitted", 99, 1)
	admitted.Status.Admission = &kueue.Admission{ClusterQueue: "team"}
	backingOff := waiting("backing-off", 99, 1)
	backingOff.Status.Conditions = append(backingOff.Status.Conditions, isNot(kueue.WorkloadRequeued, "PodsReadyTimeout", ""))
	elsewhere := waiting("elsewhere", 10, 1)
	elsewhere.Spec.QueueName = "other-queue"
	nowhere := waiting("nowhere", 10, 1)
	nowhere.Spec.QueueName = "missing"
	neighbour := waiting("neighbour", 10, 3)
	neighbour.Namespace = "another"
	all := []*kueue.Workload{
		waiting("low", 1, 1), waiting("high", 100, 9), waiting("b-twin", 10, 4), waiting("a-twin", 10, 4),
		timedOut, preempted, admitted, backingOff, elsewhere, nowhere, neighbour,
	}
	queues := map[types.NamespacedName]string{
		{Namespace: "default", Name: "user-queue"}: "team", {Namespace: "another", Name: "user-queue"}: "team", {Namespace: "default", Name: "other-queue"}: "other",
	}
	want := map[types.UID]int64{
		"uid-high": 1, "uid-preempted": 2, "uid-neighbour": 3, "uid-a-twin": 4, "uid-b-twin": 5, "uid-timed-out": 6, "uid-low": 7, "uid-elsewhere": 1,
	}
	if diff := cmp.Diff(want, positions(all, queues)); diff != "" {
		t.Error(diff)
	}
	rapid.Check(t, func(t *rapid.T) {
		if shuffled := rapid.Permutation(all).Draw(t, "order"); !maps.Equal(positions(shuffled, queues), want) {
			t.Error("the places depend on the order of the list")
		}
	})
}

func TestTheRequestsOfAWorkload(t *testing.T) {
	cpu := func(amount string) corev1.ResourceList { return corev1.ResourceList{"cpu": resource.MustParse(amount)} }
	w := workload("w")
	w.Spec.PodSets = []kueue.PodSet{{Name: "main", Count: 3, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		InitContainers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: cpu("2")}}},
		Containers:     []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: cpu("500m")}}, {Resources: corev1.ResourceRequirements{Requests: cpu("1")}}},
	}}}}
	expect := func(of, amount string) {
		t.Helper()
		if got := requestsOf(w); !equality.Semantic.DeepEqual(got, cpu(amount)) {
			t.Errorf("%s: %v", of, got)
		}
	}
	expect("of its templates, the larger of init containers and containers", "6")
	w.Status.ResourceRequests = []kueue.PodSetRequest{{Name: "main", Resources: cpu("5")}, {Name: "more", Resources: cpu("2")}}
	expect("as Kueue reckoned", "7")
	w.Status.Admission = &kueue.Admission{ClusterQueue: "team", PodSetAssignments: []kueue.PodSetAssignment{
		{Name: "main", ResourceUsage: cpu("4"), Flavors: map[corev1.ResourceName]kueue.ResourceFlavorReference{"cpu": "spot", "memory": "spot"}},
		{Name: "more", ResourceUsage: cpu("1"), Flavors: map[corev1.ResourceName]kueue.ResourceFlavorReference{"cpu": "on-demand"}},
	}}
	expect("as it holds", "5")
	if got := flavorsOf(w); !slices.Equal(got, []string{"on-demand", "spot"}) {
		t.Errorf("flavors %v", got)
	}
}

func TestThePreemptorOfAWorkload(t *testing.T) {
	const message = "Preempted to accommodate a workload (UID: 5c023c28-8533-4927-b266-56bca5e310c1, JobUID: 4548c8bd) due to prioritization in the ClusterQueue; preemptor path: /team; preemptee path: /team"
	for name, c := range map[string]struct {
		workload *kueue.Workload
		want     types.UID
	}{
		"a workload that waits since":         {workload("w", is(kueue.WorkloadPreempted, kueue.InClusterQueueReason, message)), "5c023c28-8533-4927-b266-56bca5e310c1"},
		"a workload that was admitted again":  {workload("w", isNot(kueue.WorkloadPreempted, kueue.InClusterQueueReason, "Previously: "+message)), ""},
		"by an unknown workload":              {workload("w", is(kueue.WorkloadPreempted, kueue.InClusterQueueReason, "Preempted to accommodate a workload (UID: UNKNOWN, JobUID: UNKNOWN) due to x")), ""},
		"a workload that was never preempted": {workload("w"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := preemptorOf(c.workload); got != c.want {
				t.Errorf("got %q", got)
			}
		})
	}
	w := workload("w")
	w.Status.SchedulingStats = &kueue.SchedulingStats{Evictions: []kueue.WorkloadSchedulingStatsEviction{
		{Reason: "Preempted", Count: 2}, {Reason: "Deactivated", UnderlyingCause: "a", Count: 1}, {Reason: "Deactivated", UnderlyingCause: "b", Count: 1},
	}}
	if diff := cmp.Diff(map[string]int64{"Preempted": 2, "Deactivated": 2}, evictionsOf(w)); diff != "" {
		t.Error(diff)
	}
}
