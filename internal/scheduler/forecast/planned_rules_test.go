package forecast_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast/forecasttest"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/podadmission"
)

func TestAPlannedBudgetMakesAnEvictionApproximate(t *testing.T) {
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	for class, want := range map[string]int{"high": 1, "low": 0} { // the latter waits
		answer := forecast.Run(t.Context(), full().With([]runtime.Object{budget}), nil, batchJob(t, "{template: {spec: {priorityClassName: "+class+"}}}"))
		if noted := len(reasonsWith(answer, forecast.PlannedUnknown)); noted != want {
			t.Errorf("%s: noted %d times: %v\n%s", class, noted, answer.Approximate, answer.Text())
		}
	}
}

// TestAPlannedLimitRangeMayAdmitWhatIsRejectedNow has a pod that a dry run rejects because it has no limits, which a
// planned LimitRange gives it.
func TestAPlannedLimitRangeMayAdmitWhatIsRejectedNow(t *testing.T) {
	rejected := forecast.MapPods([]forecast.Job{taskJob(t, forecasttest.Task("planned", "", "high", "4", 1))}, func(pod forecast.Pod) forecast.Pod {
		pod.Answered, pod.Refusal = true, &podadmission.Refusal{Message: "failed quota: limits: must specify limits.cpu for: main"}
		return pod
	})[0]
	now := oneNode("8")
	if answer := forecast.Run(t.Context(), now, nil, rejected); answer.Pods[0].State == forecast.Starts {
		t.Errorf("without the LimitRange it starts:\n%s", answer.Text())
	}
	limits := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "limits"}}
	answer := forecast.Run(t.Context(), now.With([]runtime.Object{limits}), nil, rejected)
	if answer.Pods[0].State != forecast.Starts || len(reasonsWith(answer, forecast.PlannedUnknown)) == 0 {
		t.Errorf("with it %v, approximate %v:\n%s", answer.Pods[0].State, answer.Approximate, answer.Text())
	}
}

// TestAPlannedQuotaMayCountBeforeOrAfterThePods has a quota of the plan, which rejects nothing before it is counted.
func TestAPlannedQuotaMayCountBeforeOrAfterThePods(t *testing.T) {
	for hard, want := range map[string]forecast.State{"1": forecast.Rejected, "5": forecast.Starts} { // two pods are there
		quota := &corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "few"},
			Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse(hard)}},
		}
		answer := forecast.Run(t.Context(), full().With([]runtime.Object{quota}), nil, batchJob(t, "{template: {spec: {priorityClassName: high}}}"))
		if pod := answer.Pods[0]; pod.State != want || len(pod.Nodes) != 2 || len(answer.Approximate) > 0 || answer.MaySpareAll != (want == forecast.Rejected) {
			t.Errorf("%s pods: %s on %v, approximate: %v\n%s", hard, pod.State, pod.Nodes, answer.Approximate, answer.Text())
		}
		if want == forecast.Rejected {
			assertText(t, answer, "may preempt, and may be rejected", "depending on the order of creation: exceeded quota: few")
		}
	}
}
