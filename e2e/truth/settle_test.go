package truth

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

func TestAnEvictedWorkloadMovesUntilItHasNeitherPodsNorQuota(t *testing.T) {
	v := &view{pods: kept[*corev1.Pod]{Store: cache.NewStore(cache.MetaNamespaceKeyFunc)}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: "head", Annotations: map[string]string{kueue.WorkloadAnnotation: "held"},
	}}
	w := &kueue.Workload{
		ObjectMeta: metav1.ObjectMeta{Name: "held"},
		Status: kueue.WorkloadStatus{
			Admission:  &kueue.Admission{PodSetAssignments: []kueue.PodSetAssignment{{Count: new(int32(1))}}},
			Conditions: []metav1.Condition{{Type: kueue.WorkloadAdmitted, Status: metav1.ConditionTrue}},
		},
	}
	moves := func(when string, expected bool) {
		if err := v.workloadMoves(w); (err != nil) != expected {
			t.Errorf("%s: %v", when, err)
		}
	}
	moves("it is admitted, and has no pod yet", true)
	if err := v.pods.Add(pod); err != nil {
		t.Fatal(err)
	}
	moves("it is admitted, and has its pod", false)
	evicted := metav1.Condition{Type: kueue.WorkloadEvicted, Status: metav1.ConditionTrue}
	w.Status.Conditions = append(w.Status.Conditions, evicted)
	moves("it is evicted", true)
	w.Status.Admission, w.Status.Conditions[0].Status = nil, metav1.ConditionFalse
	moves("its quota is free, and its pod still runs", true)
	if err := v.pods.Delete(pod); err != nil {
		t.Fatal(err)
	}
	moves("its pod is gone", false)
	w.Status.Conditions = []metav1.Condition{{
		Type: kueue.WorkloadQuotaReserved, Status: metav1.ConditionFalse,
		Message: "insufficient unused quota for cpu in flavor a, 1 more needed. Pending the preemption of 1 workload(s)",
	}}
	moves("it waits for another one's quota", true)
}

func TestAViewMovesUntilItHasSeenWhatWasApplied(t *testing.T) {
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	v := &view{stores: map[string]cache.Store{"Pod": store}, expected: map[string]string{}}
	sees := func(version string) {
		if err := store.Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pod", ResourceVersion: version}}); err != nil {
			t.Fatal(err)
		}
	}
	lags := func(expected bool) {
		t.Helper()
		if err := v.unseen(); (err != nil) != expected {
			t.Errorf("got %v", err)
		}
	}
	sees("9")
	v.expect("LimitRange", "12") // which the view does not keep
	lags(false)
	v.expect("Pod", "10")
	v.expect("Pod", "8") // an apply that changed nothing
	lags(true)
	sees("11")
	lags(false)
}

func TestAPolicyTakesTheTimeOfControllersThatNothingTellsOf(t *testing.T) {
	v := &view{expected: map[string]string{}}
	v.expect(policyBinding, "10")
	if !v.othersAct() {
		t.Error("the view is calm before the API server can have read the policy")
	}
	if enough, moves := v.empties(); enough != longCalm || moves == nil {
		t.Errorf("the stage is empty before the API server can have read that the policy is gone: %v, %v", enough, moves)
	}
	v.forget()
	if enough, moves := v.empties(); enough != 0 || moves != nil {
		t.Errorf("the stage is not empty: %v, %v", enough, moves)
	}
	if len(v.expected) > 0 {
		t.Error("the policy is not forgotten with the situation")
	}
}

func TestARefusalIsFinalUnlessAWebhookLags(t *testing.T) {
	v := &view{events: kept[*corev1.Event]{Store: cache.NewStore(cache.MetaNamespaceKeyFunc)}}
	refuse := func(name, message string) {
		event := &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Name: name}, InvolvedObject: corev1.ObjectReference{UID: "job"},
			Reason: failedCreate, Message: message,
		}
		if err := v.events.Add(event); err != nil {
			t.Fatal(err)
		}
	}
	refuse("1", `Error creating: admission webhook "mpod.kb.io" denied the request: Job.batch "job-3" not found`)
	if v.refused("job") {
		t.Error("a refusal by a webhook that has not seen the Job counts")
	}
	refuse("2", `Error creating: pods "a" is forbidden: error looking up service account default/a: serviceaccount "a" not found`)
	if !v.refused("job") {
		t.Error("a refusal by the API server does not count")
	}
}
