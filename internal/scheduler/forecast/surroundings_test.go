package forecast_test

import (
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	controllerconstants "sigs.k8s.io/kueue/pkg/controller/constants"
	"sigs.k8s.io/yaml"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast/forecasttest"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/placement"
)

// batchJob reads a Job "x" of one container from what is special of its specification.
func batchJob(t *testing.T, spec string) forecast.Job {
	t.Helper()
	job := batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceDefault, Name: "x"}}
	if err := yaml.UnmarshalStrict([]byte(spec), &job.Spec); err != nil {
		t.Fatal(err)
	}
	if len(job.Spec.Template.Spec.Containers) == 0 {
		job.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: forecasttest.CPU("3")}}}
	}
	return forecast.OfBatchJob(&job)
}

// full is two nodes that low pods of 3 of their 4 CPUs fill.
func full() *forecast.Snapshot {
	s := oneNode("4", forecasttest.Pod("low-1", "node-1", "3", 1000, 0), forecasttest.Pod("low-2", "node-2", "3", 1000, 0))
	s.Nodes = append(s.Nodes, forecasttest.Node("node-2", "4"))
	return s
}

func assertText(t *testing.T, answer forecast.Answer, lines ...string) {
	t.Helper()
	text := answer.Summary() + "\n" + answer.Text()
	for _, line := range lines {
		if !strings.Contains(text, line) {
			t.Errorf("%q is missing:\n%s", line, text)
		}
	}
}

func TestWhatTheAPIServerMakesOfPodsDecides(t *testing.T) {
	const important = "{template: {spec: {priorityClassName: high}}}"
	for behaviour, c := range map[string]struct {
		given    func(s *forecast.Snapshot)
		job      string
		wantText []string
	}{
		"requests of a LimitRange make pods evict": {func(s *forecast.Snapshot) {
			s.LimitRanges = []*corev1.LimitRange{{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "limits"}, Spec: corev1.LimitRangeSpec{
				Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, DefaultRequest: forecasttest.CPU("2")}},
			}}}
		}, "{template: {spec: {priorityClassName: high, containers: [{name: main}]}}}", []string{"will preempt", "default/low-1"}},
		"a quota that is used up lets no pod be created": {func(s *forecast.Snapshot) {
			s.Quotas = []*corev1.ResourceQuota{{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "team"}, Spec: corev1.ResourceQuotaSpec{
				Hard: corev1.ResourceList{corev1.ResourceRequestsCPU: forecasttest.CPU("8")[corev1.ResourceCPU]},
			}, Status: corev1.ResourceQuotaStatus{
				Hard: corev1.ResourceList{corev1.ResourceRequestsCPU: forecasttest.CPU("8")[corev1.ResourceCPU]},
				Used: corev1.ResourceList{corev1.ResourceRequestsCPU: forecasttest.CPU("6")[corev1.ResourceCPU]},
			}}}
		}, important, []string{"will wait", "refused the pod, by the API server: exceeded quota: team, requested: requests.cpu=3, used: requests.cpu=6, limited: requests.cpu=8"}},
		"a namespace that enforces a level rejects pods for good": {func(s *forecast.Snapshot) {
			s.Namespaces = []*corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: "default", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}}}}
		}, important, []string{"can never run", `violates PodSecurity "restricted:latest"`}},
		"a namespace that is not there rejects pods for good": {func(s *forecast.Snapshot) {
			s.Namespaces = []*corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: "other"}}}
		}, important, []string{"can never run", `namespaces "default" not found`}},
		"a suspended Job makes no pods": {func(*forecast.Snapshot) {}, "{suspend: true, template: {spec: {priorityClassName: high}}}", []string{
			"will wait", "the job is made suspended",
		}},
		"a pod with a node name evicts no pod, and its kubelet rejects it where it does not fit": {func(*forecast.Snapshot) {}, "{template: {spec: {priorityClassName: high, nodeName: node-2}}}", []string{
			"will be rejected by its node", "refused the pod, by the kubelet of node-2: OutOfcpu (it requests 3 of cpu, and 1 are free)",
		}},
		"a Job without a queue goes to the default one of its namespace": {func(s *forecast.Snapshot) {
			s.Queues = forecasttest.Queues("2")
			s.Queues.LocalQueues[0].Name = string(controllerconstants.DefaultLocalQueueName)
		}, important, []string{"is never admitted by ClusterQueue team"}},
		"pods of one Job repel each other by the label of its name": {func(s *forecast.Snapshot) { s.Pods = nil }, `
parallelism: 3
completions: 3
template:
  spec:
    containers: [{name: main, resources: {requests: {cpu: 1}}}]
    affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {job-name: x}}}]}}
`, []string{"will wait", "didn't match pod anti-affinity rules"}},
		"matchLabelKeys compare pods of one value only": {func(s *forecast.Snapshot) {
			for _, pod := range s.Pods {
				pod.Labels = map[string]string{"app": "a", "run": "old"}
			}
		}, `
template:
  metadata: {labels: {app: a, run: new}}
  spec:
    containers: [{name: main, resources: {requests: {cpu: 1}}}]
    affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: a}}, matchLabelKeys: [run]}]}}
`, []string{"will start without evicting any pods"}},
		"devices of a driver are an extended resource of their node": {func(s *forecast.Snapshot) {
			s.Devices = placement.Devices{
				Classes: []*resourcev1.DeviceClass{{ObjectMeta: metav1.ObjectMeta{Name: "tpu"}, Spec: resourcev1.DeviceClassSpec{ExtendedResourceName: new("example.com/tpu")}}},
				Slices: []*resourcev1.ResourceSlice{{Spec: resourcev1.ResourceSliceSpec{
					Driver: "tpu.example.com", NodeName: new("node-2"), Pool: resourcev1.ResourcePool{Name: "node-2", ResourceSliceCount: 1}, Devices: []resourcev1.Device{{Name: "d0"}},
				}}},
			}
		}, "{template: {spec: {containers: [{name: main, resources: {limits: {example.com/tpu: 1}}}]}}}", []string{"the pod on node-2 immediately"}},
	} {
		t.Run(behaviour, func(t *testing.T) {
			s := full()
			c.given(s)
			assertText(t, forecast.Run(t.Context(), s, nil, batchJob(t, c.job)), c.wantText...)
		})
	}
}

func TestAJobBeyondItsBackoffLimitFailsWithAllItsPods(t *testing.T) {
	s := full()
	forecasttest.OfJob(s.Pods[0], "frail")
	forecasttest.OfJob(s.Pods[1], "frail")
	s.BatchJobs = []*batchv1.Job{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "frail", UID: types.UID("job-frail")},
		Spec:       batchv1.JobSpec{BackoffLimit: new(int32(0))},
	}}
	answer := forecast.Run(t.Context(), s, nil, batchJob(t, "{template: {spec: {priorityClassName: high}}}"))
	assertText(t, answer, "Job frail fails: its backoffLimit of 0 is exceeded")
	if len(answer.Evicts) != 2 {
		t.Errorf("both of its pods stop: %+v", answer.Evicts)
	}
	s.BatchJobs[0].Spec.BackoffLimit = new(int32(1))
	assertText(t, forecast.Run(t.Context(), s, nil, batchJob(t, "{template: {spec: {priorityClassName: high}}}")), "Job frail recreates it")
	both := batchJob(t, "{parallelism: 2, completions: 2, template: {spec: {priorityClassName: high}}}")
	assertText(t, forecast.Run(t.Context(), s, nil, both), "Job frail fails: its backoffLimit of 1 is exceeded")
	s.BatchJobs[0].Spec.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
		Action: batchv1.PodFailurePolicyActionIgnore, OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: corev1.DisruptionTarget}},
	}}}
	assertText(t, forecast.Run(t.Context(), s, nil, batchJob(t, "{template: {spec: {priorityClassName: high}}}")), "Job frail recreates it")
}

func TestAPodWaitsForTheVictimThatTakesLongestToStop(t *testing.T) {
	for _, graces := range [][2]int64{{60, 10}, {10, 60}} {
		s := oneNode("4", forecasttest.Pod("low-1", "node-1", "2", 1000, 0), forecasttest.Pod("low-2", "node-1", "2", 1000, 1))
		for i := range graces {
			s.Pods[i].Spec.TerminationGracePeriodSeconds = &graces[i]
		}
		assertText(t, forecast.Run(t.Context(), s, nil, batchJob(t, "{template: {spec: {priorityClassName: high}}}")), "(grace period 1m0s)")
	}
}

func TestAGangMayEvictMoreThanABudgetAllowsWhenItsControllerIsLate(t *testing.T) {
	s := full()
	for _, pod := range s.Pods {
		pod.Labels = map[string]string{"app": "web"}
	}
	s.Nodes = append(s.Nodes, forecasttest.Node("node-3", "4"))
	s.Pods = append(s.Pods, forecasttest.Pod("mid", "node-3", "3", 5000, 0))
	s.Budgets = []*policyv1.PodDisruptionBudget{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
		Status:     policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: 1},
	}}
	answer := forecast.Run(t.Context(), s, nil, batchJob(t, "{parallelism: 2, completions: 2, template: {spec: {priorityClassName: high}}}"))
	var named []string
	for _, e := range answer.Evicts {
		if e.Certain {
			t.Errorf("%s is not certain: the budget may be up to date, or not", e.Name)
		}
		named = append(named, e.Name)
	}
	slices.Sort(named)
	if !slices.Equal(named, []string{"low-1", "low-2", "mid"}) || len(answer.Approximate) > 0 {
		t.Errorf("got %v, approximate %v", named, answer.Approximate)
	}
}

func TestAGangOnManyEqualNodesIsFollowedToTheEnd(t *testing.T) {
	s := oneNode("4")
	s.Nodes = nil
	for i := range 60 {
		name := "node-" + string(rune('a'+i/26)) + string(rune('a'+i%26))
		s.Nodes = append(s.Nodes, forecasttest.Node(name, "4"))
		s.Pods = append(s.Pods, forecasttest.Pod("low-"+name, name, "3", 1000, 0))
	}
	answer := forecast.Run(t.Context(), s, nil, batchJob(t, "{parallelism: 8, completions: 8, template: {spec: {priorityClassName: high}}}"))
	if answer.Outcome != forecast.Preempts || len(answer.Approximate) > 0 {
		t.Fatalf("got %s, approximate %v", answer.Outcome, answer.Approximate)
	}
	if n := len(answer.Pods[0].Nodes) + answer.Pods[0].Others; n != 60 {
		t.Errorf("the first pod may go to any of 60 nodes, not %d", n)
	}
}

func TestAWorkloadsPodsAreFoundByTheAnnotationOfKueue(t *testing.T) {
	s := oneNode("4", forecasttest.Pod("set-0", "node-1", "3", 0, 0))
	s.Pods[0].Annotations = map[string]string{kueue.WorkloadAnnotation: "jobset-jobs"}
	w := forecasttest.Workload("JobSet", "jobs", "set-uid", s.Pods[0], 100, 1)
	s.Queues = forecasttest.Queues("3", w)
	answer := forecast.Run(t.Context(), s, nil, taskJob(t, forecasttest.Task("x", "user-queue", "high", "3", 1)))
	if answer.Outcome != forecast.Preempts || len(answer.Evicts) != 1 || !slices.Equal(answer.Evicts[0].Pods, []string{"default/set-0"}) {
		t.Errorf("got %s: %+v\n%s", answer.Outcome, answer.Evicts, answer.Text())
	}
	s.Pods[0].Annotations = nil
	answer = forecast.Run(t.Context(), s, nil, taskJob(t, forecasttest.Task("x", "user-queue", "high", "3", 1)))
	if !slices.ContainsFunc(answer.Approximate, func(r forecast.Reason) bool { return r.Code == forecast.PodsNotFound }) {
		t.Errorf("pods that are not found are a reason: %v", answer.Approximate)
	}
}

func TestForecastsOfOneFileNameTheirOwnVictimsOnly(t *testing.T) {
	s := oneNode("4")
	s.Nodes = nil
	for _, name := range []string{"a-1", "a-2", "b-1", "b-2"} {
		node := forecasttest.Node(name, "4")
		node.Labels["group"] = name[:1]
		s.Nodes = append(s.Nodes, node)
		s.Pods = append(s.Pods, forecasttest.Pod("low-"+name, name, "3", 1000, 0))
	}
	for _, pod := range s.Pods[:3] {
		pod.Labels = map[string]string{"app": "web"}
	}
	s.Pods[3].Spec.Priority = new(int32(2000)) // it is evicted only where the budget spares the other
	// Its controller may be late, so that jobs which start together find another budget than jobs which follow one
	// another.
	s.Budgets = []*policyv1.PodDisruptionBudget{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
		Status:     policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: 1},
	}}
	one := batchJob(t, "{template: {spec: {priorityClassName: high, nodeSelector: {group: a}}}}")
	two := batchJob(t, "{template: {spec: {priorityClassName: high, nodeSelector: {group: b}}}}")
	two.Name = "y"
	for i, answer := range forecast.All(t.Context(), s, []forecast.Job{one, two}) {
		for _, e := range answer.Evicts {
			if group := string("ab"[i]); !strings.HasPrefix(e.Node, group) {
				t.Errorf("%s is for %s: %+v", e.Name, answer.Name, e)
			}
		}
		if len(answer.Evicts) != 2 || answer.MaySpareAll {
			t.Errorf("one of two pods is evicted for %s: %+v", answer.Name, answer.Evicts)
		}
	}
}
