package forecast_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast/forecasttest"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/podadmission"
)

func TestAPlannedBudgetMakesAnEvictionApproximate(t *testing.T) {
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	for class, want := range map[string]int{"high": 1, "low": 0} { // the latter waits
		answer := forecast.Make(full().With([]runtime.Object{budget}), nil, batchJob(t, "{template: {spec: {priorityClassName: "+class+"}}}"))
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
	if answer := forecast.Make(now, nil, rejected); answer.Pods[0].State == forecast.Starts {
		t.Errorf("without the LimitRange it starts:\n%s", answer.Text())
	}
	limits := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "limits"}}
	answer := forecast.Make(now.With([]runtime.Object{limits}), nil, rejected)
	if answer.Pods[0].State != forecast.Starts || len(reasonsWith(answer, forecast.PlannedUnknown)) == 0 {
		t.Errorf("with it %v, approximate %v:\n%s", answer.Pods[0].State, answer.Approximate, answer.Text())
	}
}
