package forecast_test

import (
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast/forecasttest"
)

// program is a pod that runs an image.
func program(image string) *corev1.Pod {
	pod := forecasttest.Pod("program", "node-1", "1", 2_000_000, 0)
	pod.Spec.Containers[0].Image = image
	return pod
}

func reasonsWith(a forecast.Answer, code forecast.ReasonCode) (found []forecast.Reason) {
	for _, reason := range a.Approximate {
		if reason.Code == code {
			found = append(found, reason)
		}
	}
	return found
}

func TestAnAutoscalerIsAReasonWhereAPodWaits(t *testing.T) {
	for behaviour, c := range map[string]struct {
		image string
		cpus  string // that the pod requests of a node with 4, of which 1 is used
		want  []forecast.Reason
	}{
		"cluster-autoscaler may add a node of the group": {"registry.k8s.io/autoscaling/cluster-autoscaler:v1.36.0", "4", []forecast.Reason{
			forecast.NewReason(forecast.MayGrow, "cluster-autoscaler", "cluster-autoscaler may add a node for what waits (pod), to pool-a"),
		}},
		"so may Karpenter": {"public.ecr.aws/karpenter/controller:1.9.0@sha256:0", "4", []forecast.Reason{
			forecast.NewReason(forecast.MayGrow, "karpenter", "karpenter may add a node for what waits (pod), to pool-a"),
		}},
		"it adds none for a pod that starts":        {"registry.k8s.io/autoscaling/cluster-autoscaler:v1.36.0", "3", nil},
		"a controller of something else is no such": {"example.com/other/controller:1", "4", nil},
	} {
		t.Run(behaviour, func(t *testing.T) {
			s := oneNode("4", program(c.image))
			s.Nodes[0].Labels["cloud.google.com/gke-nodepool"] = "pool-a"
			job := batchJob(t, "{template: {spec: {containers: [{name: main, resources: {requests: {cpu: "+c.cpus+"}}}]}}}")
			answer := forecast.Run(t.Context(), s, nil, job)
			if got := reasonsWith(answer, forecast.MayGrow); !slices.Equal(got, c.want) {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

// checkedBy is a queue with quota, whose admission check a controller decides.
func checkedBy(controller string) *forecast.Snapshot {
	s := team(nil)
	s.Queues.ClusterQueues[0].Spec.AdmissionChecksStrategy = &kueue.AdmissionChecksStrategy{
		AdmissionChecks: []kueue.AdmissionCheckStrategyRule{{Name: "check"}},
	}
	s.Queues.AdmissionChecks = []*kueue.AdmissionCheck{{
		ObjectMeta: metav1.ObjectMeta{Name: "check"}, Spec: kueue.AdmissionCheckSpec{ControllerName: controller},
		Status: kueue.AdmissionCheckStatus{Conditions: []metav1.Condition{{Type: kueue.AdmissionCheckActive, Status: metav1.ConditionTrue}}},
	}}
	return s
}

func TestAControllerThatDecidesMoreThanWhetherAJobStartsIsAReason(t *testing.T) {
	codes := []forecast.ReasonCode{forecast.OtherClusters, forecast.NodesRequested}
	for controller, want := range map[string]forecast.ReasonCode{
		"kueue.x-k8s.io/multikueue":           forecast.OtherClusters,
		"kueue.x-k8s.io/provisioning-request": forecast.NodesRequested,
		"example.com/approval":                "",
	} {
		t.Run(controller, func(t *testing.T) {
			answer := forecast.Run(t.Context(), checkedBy(controller), nil, taskJob(t, forecasttest.Task("x", "user-queue", "high", "3", 1)))
			for _, code := range codes {
				got := reasonsWith(answer, code)
				if (len(got) == 1) != (code == want) {
					t.Errorf("%s: %+v\n%s", code, got, answer.Text())
				}
				if len(got) == 1 && got[0].Object != "AdmissionCheck check" {
					t.Errorf("%s is about %q", code, got[0].Object)
				}
			}
		})
	}
}

func TestATimeoutOfKueueIsAReasonWherePodsDoNotStartImmediately(t *testing.T) {
	late := forecasttest.Workload("Job", "late", "job-late", forecasttest.Pod("late", "", "9", 0, 0), 100, -20)
	late.Status.Conditions = append(late.Status.Conditions, metav1.Condition{
		Type: kueue.WorkloadEvicted, Status: metav1.ConditionTrue, Reason: kueue.WorkloadEvictedByPodsReadyTimeout,
	})
	for behaviour, c := range map[string]struct {
		workloads []*kueue.Workload
		blocked   bool
		want      int
	}{
		"Kueue has evicted a workload whose pods were late, and the pod waits": {[]*kueue.Workload{late}, true, 1},
		"the pod starts immediately": {[]*kueue.Workload{late}, false, 0},
		"Kueue has evicted none":     {nil, true, 0},
	} {
		t.Run(behaviour, func(t *testing.T) {
			s := team(c.workloads)
			if c.blocked {
				s.Pods = append(s.Pods, forecasttest.Pod("blocks", "node-1", "6", 2_000_000, 0))
			}
			answer := forecast.Run(t.Context(), s, nil, taskJob(t, forecasttest.Task("x", "user-queue", "high", "3", 1)))
			got := reasonsWith(answer, forecast.ReadyTimeout)
			if len(got) != c.want || c.want == 1 && got[0].Object != "ClusterQueue team" {
				t.Errorf("got %+v, approximate %v\n%s", got, answer.Approximate, answer.Text())
			}
		})
	}
}

func TestARuleForExitCodesIsAReasonIfItWouldChangeWhatAnEvictionDoes(t *testing.T) {
	ofCodes := func(action batchv1.PodFailurePolicyAction) batchv1.PodFailurePolicyRule {
		return batchv1.PodFailurePolicyRule{Action: action, OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{
			Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: []int32{143},
		}}
	}
	ofDisruption := batchv1.PodFailurePolicyRule{
		Action: batchv1.PodFailurePolicyActionIgnore, OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: corev1.DisruptionTarget}},
	}
	for rules, c := range map[string]struct {
		rules []batchv1.PodFailurePolicyRule
		noted bool
	}{
		"before the rule for disruptions":                  {[]batchv1.PodFailurePolicyRule{ofCodes(batchv1.PodFailurePolicyActionFailJob), ofDisruption}, true},
		"with no rule for disruptions":                     {[]batchv1.PodFailurePolicyRule{ofCodes(batchv1.PodFailurePolicyActionFailJob)}, true},
		"behind the rule for disruptions":                  {[]batchv1.PodFailurePolicyRule{ofDisruption, ofCodes(batchv1.PodFailurePolicyActionFailJob)}, false},
		"with the same action as the rule for disruptions": {[]batchv1.PodFailurePolicyRule{ofCodes(batchv1.PodFailurePolicyActionIgnore), ofDisruption}, false},
		"with the default action":                          {[]batchv1.PodFailurePolicyRule{ofCodes(batchv1.PodFailurePolicyActionCount)}, false},
	} {
		t.Run(rules, func(t *testing.T) {
			s := full()
			forecasttest.OfJob(s.Pods[0], "coded")
			forecasttest.OfJob(s.Pods[1], "coded")
			s.BatchJobs = []*batchv1.Job{{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "coded", UID: "job-coded"},
				Spec:       batchv1.JobSpec{PodFailurePolicy: &batchv1.PodFailurePolicy{Rules: c.rules}},
			}}
			answer := forecast.Run(t.Context(), s, nil, batchJob(t, "{template: {spec: {priorityClassName: high}}}"))
			got := reasonsWith(answer, forecast.NotModelled)
			if (len(got) > 0) != c.noted || c.noted && got[0].Object != "Job coded" {
				t.Errorf("approximate %+v", answer.Approximate)
			}
		})
	}
}

// TestAForecastForAnUntestedVersionOfKubernetesSaysSo checks that the reason names both versions, and that a gate can
// accept it.
func TestAForecastForAnUntestedVersionOfKubernetesSaysSo(t *testing.T) {
	for version, want := range map[string]string{
		"v1.36.2":         "",
		"v1.37.0":         "",
		"v1.34.1-gke.100": "the forecast was compared with Kubernetes 1.36 and 1.37, and this cluster is of version 1.34",
		"unknown":         "the forecast was compared with Kubernetes 1.36 and 1.37, and this cluster is of an unknown version",
	} {
		s := tutorial()
		s.Version = version
		answer := forecast.Run(t.Context(), s, nil, high(t))
		got := strings.Join(forecast.Texts(reasonsWith(answer, forecast.UntestedVersion)), "; ")
		if got != want {
			t.Errorf("%s: %q", version, got)
		}
		if left := answer.Unaccepted(forecast.UntestedVersion); len(left) > 0 {
			t.Errorf("%s: not accepted: %v", version, left)
		}
	}
}
