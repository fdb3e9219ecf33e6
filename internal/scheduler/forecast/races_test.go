package forecast_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast/forecasttest"
)

// named is a Job of one important pod of 3 CPUs, unless spec changes it.
func named(t *testing.T, name, spec string) forecast.Job {
	t.Helper()
	job := batchJob(t, spec)
	job.Name = name
	return job
}

func TestAPodOfTheSameSecondMayBeAsYoungAsAPlannedOne(t *testing.T) {
	low := named(t, "low", "{template: {spec: {priorityClassName: low}}}")
	for age, eligible := range map[time.Duration]bool{0: true, time.Minute: false} {
		s := full()
		s.Pods = s.Pods[:1] // low-1 on node-1; the planned pod goes to node-2
		s.Pods[0].Status.StartTime = new(metav1.NewTime(forecasttest.AsOf.Add(-age)))
		answer := forecast.Run(t.Context(), s, []forecast.Job{low}, named(t, "high", "{template: {spec: {priorityClassName: high}}}"))
		if text := answer.Text(); strings.Contains(text, "default/low-1") != eligible || !strings.Contains(text, "the pod of low") {
			t.Errorf("beside a pod that started %s before:\n%s", age, text)
		}
	}
}

// inOneDomain is two nodes of one topology domain, the second of which an unimportant pod fills.
func inOneDomain() *forecast.Snapshot {
	s := full()
	s.Pods = s.Pods[1:]
	s.Pods[0].Labels = map[string]string{"spread": "a"}
	for _, node := range s.Nodes {
		node.Labels["domain"] = "all"
	}
	return s
}

// The scheduler evicts low-2 for one pod, and decides about the other before or after its cache has that low-2 is
// stopping.
func TestAVictimMayCountUntilTheSchedulerHasNoticedItsEnd(t *testing.T) {
	answer := forecast.Run(t.Context(), inOneDomain(), nil, batchJob(t, `
parallelism: 2
completions: 2
template:
  metadata: {labels: {spread: a}}
  spec:
    priorityClassName: high
    containers: [{name: main, resources: {requests: {cpu: 3}}}]
    topologySpreadConstraints: [{topologyKey: domain, maxSkew: 1, minDomains: 2, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {spread: a}}}]
`))
	for _, node := range []string{"node-1", "node-2"} {
		if !strings.Contains(answer.Text(), "on "+node) && !strings.Contains(answer.Text(), "or "+node) {
			t.Errorf("the answer does not name %s for a pod:\n%s", node, answer.Text())
		}
	}
}

func TestAWorkloadThatIsAdmittedAfterwardsIsNamed(t *testing.T) {
	low, lowPod := runningTask("low", 100)
	small := forecasttest.Workload("Job", "small", "job-small", forecasttest.Pod("small", "", "1", 0, 0), 100, -20)
	answer := forecast.Run(t.Context(), team([]*kueue.Workload{low, small}, lowPod), nil, taskJob(t, forecasttest.Task("high", "user-queue", "high", "3", 1)))
	assertText(t, answer, "evicts  workload default/job-low", "workload job-small is admitted afterwards, with quota that is left over")
}

func TestAPodThatTheSchedulerHasEvictedIsNotEvictedByItsQueueToo(t *testing.T) {
	low, lowPod := runningTask("low", 100)
	s := team([]*kueue.Workload{low}, lowPod)
	first := named(t, "first", "{template: {spec: {priorityClassName: high, containers: [{name: main, resources: {requests: {cpu: 5}}}]}}}")
	assertText(t, forecast.Run(t.Context(), s, []forecast.Job{first}, taskJob(t, forecasttest.Task("second", "user-queue", "high", "3", 1))),
		"evicts  workload default/job-low")
}

func TestWhatIsPlannedWithAJobDecidesThoughADryRunHasNotMetIt(t *testing.T) {
	for behaviour, c := range map[string]struct {
		planned  runtime.Object
		wantText string
	}{
		"a LimitRange whose default limit is below the request": {
			&corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "limits"}, Spec: corev1.LimitRangeSpec{
				Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, Default: forecasttest.CPU("2")}},
			}},
			`requests: Invalid value: "3": must be less than or equal to cpu limit of 2`,
		},
		"a class for all pods, which never preempt": {
			&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "patient"}, Value: 2000, GlobalDefault: true, PreemptionPolicy: new(corev1.PreemptNever)},
			"will wait",
		},
	} {
		t.Run(behaviour, func(t *testing.T) {
			answered := forecast.MapPods([]forecast.Job{batchJob(t, "{template: {spec: {}}}")}, func(pod forecast.Pod) forecast.Pod {
				pod.Answered, pod.Spec.Priority, pod.Spec.PreemptionPolicy = true, new(int32), new(corev1.PreemptLowerPriority)
				return pod
			})
			answer := forecast.Run(t.Context(), full().With([]runtime.Object{c.planned}), nil, answered[0])
			assertText(t, answer, c.wantText)
			if len(answer.Evicts) > 0 {
				t.Errorf("it evicts %+v", answer.Evicts)
			}
		})
	}
}

// Without anything planned with it, the API server's answer counts: it knows more than is computed.
func TestWhatADryRunAcceptedIsAccepted(t *testing.T) {
	s := full()
	s.Namespaces = []*corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: "default", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}}}}
	answered := forecast.MapPods([]forecast.Job{batchJob(t, "{template: {spec: {priorityClassName: high}}}")}, func(pod forecast.Pod) forecast.Pod {
		pod.Answered = true // the namespace may be exempt
		return pod
	})
	if text := forecast.Run(t.Context(), s, nil, answered[0]).Text(); strings.Contains(text, "PodSecurity") {
		t.Errorf("it is rejected:\n%s", text)
	}
}
