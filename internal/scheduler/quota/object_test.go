package quota

import (
	"math"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	controllerconstants "sigs.k8s.io/kueue/pkg/controller/constants"
)

func TestAWorkloadObjectTellsWhatItHoldsAndWhyItIsHeld(t *testing.T) {
	at := metav1.NewTime(start)
	condition := func(kind string, status metav1.ConditionStatus, reason string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: reason, LastTransitionTime: at}
	}
	priority, inactive := int32(7), false
	o := &kueue.Workload{
		ObjectMeta: metav1.ObjectMeta{
			Name: "w", Namespace: "ns", UID: "u", Labels: map[string]string{controllerconstants.JobUIDLabel: "j"},
			Annotations: map[string]string{SliceReplacementAnnotation: "ns/old"}, CreationTimestamp: at,
		},
		Spec: kueue.WorkloadSpec{QueueName: "q", Priority: &priority, Active: &inactive, PodSets: []kueue.PodSet{{Name: "main", Count: 2}}},
		Status: kueue.WorkloadStatus{
			Admission:       &kueue.Admission{ClusterQueue: "cq"},
			ReclaimablePods: []kueue.ReclaimablePod{{Name: "main", Count: 1}},
			Conditions: []metav1.Condition{
				condition(kueue.WorkloadQuotaReserved, "True", "QuotaReserved"), condition(kueue.WorkloadAdmitted, "True", "Admitted"),
				condition(kueue.WorkloadEvicted, "True", kueue.WorkloadEvictedByPreemption), condition(kueue.WorkloadRequeued, "False", kueue.WorkloadDeactivated),
			},
		},
	}
	w := FromObject(o)
	switch {
	case w.UID != "u", w.JobUID != "j", w.Priority != 7, w.Queue != "q", !w.Inactive, !w.Created.Equal(start), w.Replaces != in("old"):
		t.Errorf("the spec is read as %+v", w)
	case w.Reservation == nil || !w.Reservation.Admitted || w.Reservation.Admission.ClusterQueue != "cq" || !w.Reservation.At.Equal(start):
		t.Errorf("the reservation is read as %+v", w.Reservation)
	case w.Evicted != kueue.WorkloadEvictedByPreemption || w.Held != kueue.WorkloadDeactivated || w.Finished:
		t.Errorf("it is read as evicted %q, held %q, finished %v", w.Evicted, w.Held, w.Finished)
	case w.PodSets[0].Reclaimable != 1:
		t.Errorf("its pod set is read as %+v", w.PodSets[0])
	}
}

func TestAnOlderWorkloadThatFailedItsChecksGoesBehind(t *testing.T) {
	w := &workload{Workload: Workload{Created: start, Evicted: kueue.WorkloadEvictedByAdmissionCheck, EvictedAt: start.Add(time.Hour)}}
	if !w.queuedAt().Equal(start.Add(time.Hour)) {
		t.Error("it keeps its place")
	}
	w.Evicted = kueue.WorkloadEvictedByPreemption
	if !w.queuedAt().Equal(start) {
		t.Error("a preempted workload loses its place")
	}
}

func TestAmountsSaturateAndUnlimitedStaysSo(t *testing.T) {
	for name, test := range map[string]struct{ got, want Amount }{
		"unlimited plus":         {Unlimited.plus(1), Unlimited},
		"unlimited minus":        {Unlimited.minus(1), Unlimited},
		"unlimited minus itself": {Unlimited.minus(Unlimited), 0},
		"minus unlimited":        {Amount(5).minus(Unlimited), math.MinInt64},
		"a sum too large":        {(Unlimited - 1).plus(Unlimited - 1), Unlimited},
		"a sum too small":        {Amount(math.MinInt64).plus(-1), math.MinInt64},
		"a difference too small": {Amount(math.MinInt64).minus(1), math.MinInt64},
		"a product too large":    {Amount(math.MaxInt64 / 2).times(3), Unlimited},
		"cpu that overflows":     {amountOf("cpu", resource.MustParse("10E")), Unlimited},
		"cpu in thousandths":     {amountOf("cpu", resource.MustParse("1.5")), 1500},
		"memory in bytes":        {amountOf("memory", resource.MustParse("1Ki")), 1024},
	} {
		t.Run(name, func(t *testing.T) {
			if test.got != test.want {
				t.Errorf("%d, not %d", test.got, test.want)
			}
		})
	}
}

func TestAmountsAreWrittenAsKueueWritesThem(t *testing.T) {
	for name, test := range map[string]struct{ got, want string }{
		"cpu":                     {Amount(1500).text("cpu"), "1500m"},
		"memory":                  {Amount(1 << 30).text("memory"), "1Gi"},
		"memory that is no power": {Amount(1000).text("memory"), "1k"},
		"pods":                    {Amount(3).text("pods"), "3"},
		"unlimited":               {Unlimited.text("cpu"), "<unlimited>"},
	} {
		t.Run(name, func(t *testing.T) {
			if test.got != test.want {
				t.Errorf("%s, not %s", test.got, test.want)
			}
		})
	}
}
