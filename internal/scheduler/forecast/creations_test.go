package forecast_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast/forecasttest"
)

// counted is a quota whose controller has counted what is used.
func counted(name corev1.ResourceName, hard, used string) []*corev1.ResourceQuota {
	limits := corev1.ResourceList{name: resource.MustParse(hard)}
	return []*corev1.ResourceQuota{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "few"}, Spec: corev1.ResourceQuotaSpec{Hard: limits},
		Status: corev1.ResourceQuotaStatus{Hard: limits, Used: corev1.ResourceList{name: resource.MustParse(used)}},
	}}
}

// jobNamed is a Job of as many pods of 3 CPUs each.
func jobNamed(t *testing.T, name, pods string) forecast.Job {
	job := batchJob(t, "{parallelism: "+pods+", completions: "+pods+", template: {spec: {priorityClassName: high}}}")
	job.Name = name
	return job
}

// TestPlannedJobsForWhatIsLeftOfAQuotaAreForecastInAllOrders checks the states of the pods of two jobs: a pod that only
// some orders reject may start.
func TestPlannedJobsForWhatIsLeftOfAQuotaAreForecastInAllOrders(t *testing.T) {
	for behaviour, c := range map[string]struct {
		quotas     []*corev1.ResourceQuota
		one, other string // the numbers of pods
		want       []forecast.State
		mayStart   int // of the rejected ones
	}{
		"one of two Jobs is created":            {counted("count/jobs.batch", "1", "0"), "1", "1", []forecast.State{forecast.Rejected, forecast.Rejected}, 2},
		"no Job is created":                     {counted("count/jobs.batch", "1", "1"), "1", "1", []forecast.State{forecast.Rejected, forecast.Rejected}, 0},
		"both Jobs are created":                 {counted("count/jobs.batch", "2", "0"), "1", "1", []forecast.State{forecast.Starts, forecast.Starts}, 0},
		"one of three pods is not created":      {counted("pods", "2", "0"), "2", "1", []forecast.State{forecast.Starts, forecast.Rejected, forecast.Rejected}, 2},
		"a quota of processors counts the same": {counted("requests.cpu", "7", "0"), "2", "1", []forecast.State{forecast.Starts, forecast.Rejected, forecast.Rejected}, 2},
	} {
		t.Run(behaviour, func(t *testing.T) {
			s := oneNode("32")
			s.Quotas = c.quotas
			var states []forecast.State
			mayStart := 0
			for _, answer := range forecast.All(t.Context(), s, []forecast.Job{jobNamed(t, "one", c.one), jobNamed(t, "other", c.other)}) {
				if len(answer.Approximate) > 0 {
					t.Errorf("approximate: %v", answer.Approximate)
				}
				for _, pod := range answer.Pods {
					states = append(states, pod.State)
					if pod.State == forecast.Rejected && len(pod.Nodes) > 0 {
						mayStart++
					}
				}
			}
			if !slices.Equal(states, c.want) || mayStart != c.mayStart {
				t.Errorf("the pods are %v, of which %d may start; want %v and %d", states, mayStart, c.want, c.mayStart)
			}
		})
	}
}

// TestTooManyOrdersOfCreationAreApproximate has more pods than are followed in all orders.
func TestTooManyOrdersOfCreationAreApproximate(t *testing.T) {
	s := oneNode("4096")
	s.Quotas = counted("pods", "100", "0")
	answers := forecast.All(t.Context(), s, []forecast.Job{jobNamed(t, "one", "80"), jobNamed(t, "other", "80")})
	if len(reasonsWith(answers[0], forecast.QuotaOrder)) == 0 {
		t.Errorf("approximate: %v", answers[0].Approximate)
	}
}

// TestAQuotaThatVictimsFreeIsApproximate has a pod that is rejected until the victim of another one has stopped.
func TestAQuotaThatVictimsFreeIsApproximate(t *testing.T) {
	for used, want := range map[string]int{"2": 1, "9": 0} { // of the latter too much is used even then
		s := oneNode("4", forecasttest.Pod("low-1", "node-1", "3", 1000, 0))
		s.Quotas = counted("pods", "3", used)
		s.Pods[0].Namespace = "default"
		answer := forecast.Run(t.Context(), s, []forecast.Job{jobNamed(t, "one", "1")}, jobNamed(t, "other", "1"))
		if noted := len(reasonsWith(answer, forecast.QuotaMayFree)); noted != want {
			t.Errorf("%s are used: noted %d times: %v\n%s", used, noted, answer.Approximate, answer.Text())
		}
	}
}
