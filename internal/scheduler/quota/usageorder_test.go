package quota

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue/configuration"
)

func TestVictimsOfLocalQueuesOfOneNameAreNotOrderedByUsage(t *testing.T) {
	q := usedQueue(t)
	mine, namesake, other := heldBy(q, "a", "x"), heldBy(q, "b", "x"), heldBy(q, "a", "y")
	if c := moreUsed(mine, namesake); c != 0 {
		t.Errorf("LocalQueues of one name in two namespaces are ordered: %d", c)
	}
	if c := moreUsed(mine, other); c != -1 {
		t.Errorf("the one that has used more does not come first: %d", c)
	}
}

// usedQueue is a queue in which LocalQueue x of namespace a has used most.
func usedQueue(t *testing.T) *queue {
	t.Helper()
	e := New(Config{AdmissionFairSharing: &configuration.AdmissionFairSharing{UsageSamplingInterval: metav1.Duration{Duration: time.Minute}}})
	spec := kueue.ClusterQueueSpec{AdmissionScope: &kueue.AdmissionScope{AdmissionMode: kueue.UsageBasedAdmissionFairSharing}}
	if err := e.SetClusterQueue("q", spec); err != nil {
		t.Fatal(err)
	}
	e.usages.update(types.NamespacedName{Namespace: "a", Name: "x"}, func(l *ledger) {
		l.consumed = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3")}
	})
	return e.queues["q"]
}

func heldBy(q *queue, namespace, local string) *workload {
	return &workload{Workload: Workload{NamespacedName: types.NamespacedName{Namespace: namespace, Name: "w"}, Queue: local}, heldIn: q}
}

func TestWhatACloneUsesIsNotChargedToTheOriginal(t *testing.T) {
	q := usedQueue(t)
	usages := q.usages.clone()
	x := types.NamespacedName{Namespace: "a", Name: "x"}
	before := q.usages.of[x].usage
	usages.update(x, func(l *ledger) { l.consumed = sum(l.consumed, l.consumed) })
	if after := q.usages.of[x].usage; after != before || usages.of[x].usage != 2*before {
		t.Errorf("the clone has used %v, the original %v, before %v", usages.of[x].usage, after, before)
	}
}

func TestWhatWasUsedFadesByHalfInAHalfLifeHoweverOftenItIsLookedAt(t *testing.T) {
	used := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")}
	once, often := ledger{consumed: used, asOf: start}, ledger{consumed: used, asOf: start}
	once.fade(nil, start.Add(time.Hour), time.Hour)
	for minute := range 60 {
		often.fade(nil, start.Add(time.Duration(minute+1)*time.Minute), time.Hour)
	}
	if cpu := once.consumed[corev1.ResourceCPU]; cpu.AsApproximateFloat64() != 2 {
		t.Errorf("of 4 CPUs %s are left", &cpu)
	}
	if cpu := often.consumed[corev1.ResourceCPU]; cpu.AsApproximateFloat64() < 1.9999999 || cpu.AsApproximateFloat64() > 2 {
		t.Errorf("of 4 CPUs %s are left", &cpu)
	}
}
