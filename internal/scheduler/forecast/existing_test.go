package forecast_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast/forecasttest"
)

// takesNode1 evicts what runs on node-1.
func takesNode1(t *testing.T) forecast.Job {
	t.Helper()
	job := batchJob(t, `{template: {spec: {priorityClassName: high, nodeSelector: {kubernetes.io/hostname: node-1},
		containers: [{name: main, resources: {requests: {cpu: 3}}}]}}}`)
	job.Namespace = "other"
	for _, pod := range job.Stages[0][0].Pods {
		pod.Namespace = "other"
	}
	return job
}

func TestAPodThatALimitRangeRejectsIsNotCreatedInThePlaceOfAVictim(t *testing.T) {
	s := savingJob(batchv1.JobSpec{Completions: new(int32(1))})
	s.RuntimeClasses = []*nodev1.RuntimeClass{}
	if e := evictionOf(forecast.Run(t.Context(), s, nil, takesNode1(t)), "little"); e == nil || !e.Certain {
		t.Fatalf("without limits the pod in the victim's place evicts another: %+v", e)
	}
	s.LimitRanges = []*corev1.LimitRange{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "small"},
		Spec:       corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, Max: forecasttest.CPU("2")}}},
	}}
	answer := forecast.Run(t.Context(), s, nil, takesNode1(t))
	if e := evictionOf(answer, "little"); e != nil || evictionOf(answer, "saves") == nil || len(answer.Approximate) > 0 {
		t.Errorf("only the first pod is to be evicted, and for certain: %+v %v\n%s", e, answer.Approximate, answer.Text())
	}
}

func TestAQuotaThatIsExceededRejectsThePodInThePlaceOfAVictim(t *testing.T) {
	few := func(used string) *corev1.ResourceQuota {
		return &corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "few"},
			Status: corev1.ResourceQuotaStatus{
				Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1")},
				Used: corev1.ResourceList{corev1.ResourcePods: resource.MustParse(used)},
			},
		}
	}
	for used, c := range map[string]struct {
		replaced    bool
		approximate bool
	}{
		"1": {true, false},
		"2": {false, false}, // also without the victim
	} {
		s := savingJob(batchv1.JobSpec{Completions: new(int32(1))})
		s.Quotas = []*corev1.ResourceQuota{few(used)}
		answer := forecast.Run(t.Context(), s, nil, takesNode1(t))
		if found := reasonsWith(answer, forecast.QuotaMayFree); len(found) > 0 != c.approximate || (evictionOf(answer, "little") != nil) != c.replaced {
			t.Errorf("with %s of 1 used: %v\n%s", used, answer.Approximate, answer.Text())
		}
	}
	s := savingJob(batchv1.JobSpec{Completions: new(int32(1))})
	s.Quotas = []*corev1.ResourceQuota{few("2")}
	s.Pods[1].OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "little", UID: "little", Controller: new(true)}}
	both := batchJob(t, "{parallelism: 2, completions: 2, template: {spec: {priorityClassName: high}}}")
	both.Namespace = "other"
	for _, pod := range both.Stages[0][0].Pods {
		pod.Namespace = "other"
	}
	if answer := forecast.Run(t.Context(), s, nil, both); len(reasonsWith(answer, forecast.QuotaMayFree)) == 0 {
		t.Errorf("one of two pods is created again: %s", answer.Text())
	}
}

func TestWhatIsThereAlreadyMakesAForecastApproximate(t *testing.T) {
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	of := func(noun, name string) forecast.Job {
		pod := forecasttest.Pod(name, "", "1", 1000, 0)
		pod.Labels = map[string]string{"app": "web"}
		pod.OwnerReferences = []metav1.OwnerReference{{Kind: noun, Name: "web", UID: "planned", Controller: new(true)}}
		job := forecast.Job{Noun: noun, Namespace: "default", Name: "web", Stages: []forecast.Stage{{{Pods: []forecast.Pod{{Role: "the pod", Pod: pod}}}}}}
		if noun == "ReplicaSet" {
			job.ReplicaSets = []*appsv1.ReplicaSet{{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Spec: appsv1.ReplicaSetSpec{Selector: selector}}}
		}
		return job
	}
	pod := func(name, controller string) *corev1.Pod {
		pod := forecasttest.Pod(name, "node-1", "1", 1000, 0)
		pod.Labels = map[string]string{"app": "web"}
		if controller != "" {
			pod.OwnerReferences = []metav1.OwnerReference{{Kind: controller, Name: "web", UID: "there", Controller: new(true)}}
		}
		return pod
	}
	for what, c := range map[string]struct {
		there *corev1.Pod
		job   forecast.Job
		want  string
	}{
		"a pod without a controller becomes one of a DaemonSet's": {pod("orphan", ""), selecting(t, of("DaemonSet", "web-node-1")), "it becomes one of its pods"},
		"one with a controller does not":                          {pod("other", "Job"), of("ReplicaSet", "web-x"), ""},
		"a pod has the name of a StatefulSet's":                   {pod("web-0", ""), of("StatefulSet", "web-0"), "a pod has the name web-0 already"},
		"one with another name is no obstacle":                    {pod("web-9", ""), of("StatefulSet", "web-0"), ""},
		"the StatefulSet exists":                                  {pod("web-0", "StatefulSet"), of("StatefulSet", "web-0"), "is there already"},
		"the DaemonSet exists":                                    {pod("web-abc", "DaemonSet"), of("DaemonSet", "web-node-1"), "is there already"},
	} {
		t.Run(what, func(t *testing.T) {
			answer := forecast.Run(t.Context(), oneNode("8", c.there), nil, c.job)
			text := strings.Join(forecast.Texts(answer.Approximate), "; ")
			if (text == "") != (c.want == "") || !strings.Contains(text, c.want) {
				t.Errorf("%q is wanted among the reasons: %q", c.want, text)
			}
		})
	}
}

func TestAVictimOfSeveralBudgetsMakesAForecastApproximate(t *testing.T) {
	budget := func(name string) *policyv1.PodDisruptionBudget {
		return &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
			Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{}},
			Status:     policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: 5},
		}
	}
	for _, budgets := range [][]*policyv1.PodDisruptionBudget{{budget("one")}, {budget("one"), budget("two")}} {
		s := savingJob(batchv1.JobSpec{Completions: new(int32(1))})
		s.Budgets = budgets
		answer := forecast.Run(t.Context(), s, nil, takesNode1(t))
		if found := reasonsWith(answer, forecast.NotModelled); (len(found) > 0) != (len(budgets) > 1) {
			t.Errorf("with %d budgets: %v", len(budgets), answer.Approximate)
		}
	}
}

func TestAQuotaForTheNumberOfObjectsRejectsTheObjectsOfControllers(t *testing.T) {
	for noun, resourceName := range map[string]string{
		"StatefulSet": "statefulsets.apps", "Deployment": "replicasets.apps", "DaemonSet": "daemonsets.apps", "ReplicaSet": "replicasets.apps",
	} {
		s := oneNode("8")
		s.Quotas = []*corev1.ResourceQuota{{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "none"},
			Status:     corev1.ResourceQuotaStatus{Hard: corev1.ResourceList{corev1.ResourceName("count/" + resourceName): resource.MustParse("0")}},
		}}
		pods := []forecast.Pod{{Role: "the pod", Pod: forecasttest.Pod("web-0", "", "1", 1000, 0)}}
		job := forecast.Job{Noun: noun, Namespace: "default", Name: "web", Stages: []forecast.Stage{{{Pods: pods}}}}
		if got := states(forecast.Run(t.Context(), s, nil, job)); got != string(forecast.Rejected) {
			t.Errorf("%s: got %s", noun, got)
		}
	}
}

// TestAJobThatIsAppliedAgainKeepsItsPods has a Job whose pod runs. To apply its file again creates no pod, unless the plan
// deletes it before.
func TestAJobThatIsAppliedAgainKeepsItsPods(t *testing.T) {
	again := batchJob(t, "{template: {}}")
	again.Name, again.Object = "saves", &batchv1.Job{}
	s := savingJob(batchv1.JobSpec{})
	if reasons := reasonsWith(forecast.Run(t.Context(), s, nil, again), forecast.NotModelled); len(reasons) != 1 || !strings.Contains(reasons[0].Object, "saves") {
		t.Errorf("the Job is there, and the reasons are %v", reasons)
	}
	s.Deletions = []forecast.Deletion{{Kind: "Job", Namespace: "default", Name: "saves"}}
	if answer := forecast.Run(t.Context(), s, nil, again); len(answer.Approximate) > 0 {
		t.Errorf("it is replaced, and the reasons are %v", answer.Approximate)
	}
	again.Object, s.Deletions = nil, nil
	if answer := forecast.Run(t.Context(), s, nil, again); len(answer.Approximate) > 0 {
		t.Errorf("a resource of the provider replaces it, and the reasons are %v", answer.Approximate)
	}
}

// selecting gives a job an object that selects pods of web.
func selecting(t *testing.T, job forecast.Job) forecast.Job {
	t.Helper()
	job.Object = &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"app": "web"}}}}}
	return job
}

func TestAReplicaSetTakesOverPodsInTheStateThatTheyAreIn(t *testing.T) {
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	set := forecast.Job{Noun: "ReplicaSet", Namespace: "default", Name: "web", ReplicaSets: []*appsv1.ReplicaSet{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Spec: appsv1.ReplicaSetSpec{Selector: selector},
	}}}
	part := forecast.Part{}
	for _, number := range []string{"0", "1"} {
		part.Pods = append(part.Pods, forecast.Pod{Role: "pod " + number, Pod: forecasttest.Pod("web-"+number, "", "3", 1000, 0)})
	}
	set.Stages = []forecast.Stage{{part}}
	orphan := func(name string, priority int32) *corev1.Pod {
		pod := forecasttest.Pod(name, "node-1", "3", priority, 0)
		pod.Labels = selector.MatchLabels
		return pod
	}
	answer := forecast.Run(t.Context(), oneNode("8", orphan("mine", 1000)), nil, set)
	assertText(t, answer, "web takes over default/mine", "pod 1 on node-1")
	if len(answer.Pods) != 1 || len(answer.Approximate) > 0 {
		t.Errorf("pods %q, approximate %v", rolesOf(answer), answer.Approximate)
	}
	if answer := forecast.Run(t.Context(), oneNode("4", orphan("mine", -5)), nil, set); len(reasonsWith(answer, forecast.NotModelled)) != 1 {
		t.Errorf("the pod that it takes over is evicted, and another is created in its place: %v", answer.Approximate)
	}
	if answer := forecast.Run(t.Context(), oneNode("12", orphan("a", 1000), orphan("b", 1000), orphan("c", 1000)), nil, set); len(answer.Approximate) == 0 {
		t.Error("one of three pods is deleted, and which one is not known")
	}
}

func TestAPodThatPoliciesRejectIsNotCreatedInThePlaceOfAVictim(t *testing.T) {
	s := savingJob(batchv1.JobSpec{Completions: new(int32(1))})
	answer := forecast.Run(t.Context(), s, nil, takesNode1(t))
	if len(answer.Replacements) == 0 || metav1.GetControllerOf(answer.Replacements[0]).UID != "saves" || evictionOf(answer, "little") == nil {
		t.Fatalf("the Job creates a pod in the victim's place: %v\n%s", answer.Replacements, answer.Text())
	}
	s.Barred = map[types.UID]bool{"saves": true}
	if answer := forecast.Run(t.Context(), s, nil, takesNode1(t)); evictionOf(answer, "little") != nil || len(answer.Replacements) > 0 {
		t.Errorf("that pod is rejected:\n%s", answer.Text())
	}
}

func TestADeadlineMayComeBeforeTheVictimsHaveStopped(t *testing.T) {
	for seconds, want := range map[int64]forecast.State{20: forecast.Waits, 3600: forecast.Starts} { // the victims have 30 seconds
		job := batchJob(t, "{template: {spec: {priorityClassName: high}}}")
		job.Object = &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"activeDeadlineSeconds": seconds}}}
		answer := forecast.Run(t.Context(), full(), nil, job)
		if pod := answer.Pods[0]; pod.State != want || len(pod.Nodes) != 2 || len(answer.Evicts) != 2 || len(answer.Approximate) > 0 {
			t.Errorf("%d seconds: %s, approximate: %v\n%s", seconds, pod.State, answer.Approximate, answer.Text())
		}
		if want == forecast.Waits {
			assertText(t, answer, "will preempt, and may reach its deadline before it starts", "or its job fails before: its activeDeadlineSeconds of 20")
		}
		// What another planned job does when the deadline is over is not followed.
		other := batchJob(t, "{template: {spec: {priorityClassName: high}}}")
		other.Name = "other"
		answer = forecast.Run(t.Context(), full(), []forecast.Job{other}, job)
		if noted := len(reasonsWith(answer, forecast.NotModelled)) > 0; noted != (want == forecast.Waits) {
			t.Errorf("%d seconds, two jobs: %v", seconds, answer.Approximate)
		}
	}
}

// TestAChangedObjectIsApproximateEvenIfItHasOrGetsNoPods has a DaemonSet whose new template fits no node: it deletes the pods
// that it has. A Deployment whose pods were rejected has none, and keeps fields that the new manifest does not have.
func TestAChangedObjectIsApproximateEvenIfItHasOrGetsNoPods(t *testing.T) {
	for _, job := range []forecast.Job{
		{Noun: "DaemonSet", Namespace: "default", Name: "x", Stored: &forecast.Stored{Exists: true}},
		{Noun: "Deployment", Namespace: "default", Name: "x", Stored: &forecast.Stored{Exists: true}, Stages: batchJob(t, "{}").Stages},
	} {
		if answer := forecast.Run(t.Context(), full(), nil, job); len(reasonsWith(answer, forecast.NotModelled)) == 0 {
			t.Errorf("%s: approximate: %v\n%s", job.Noun, answer.Approximate, answer.Text())
		}
	}
}
