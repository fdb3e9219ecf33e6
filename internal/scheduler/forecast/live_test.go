package forecast_test

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast/forecasttest"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/podadmission"
)

// fields are those of an object, as a dry run answers.
func fields(t *testing.T, object runtime.Object) *unstructured.Unstructured {
	t.Helper()
	of, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: of}
}

func TestAnObjectThatTheAPIServerRefusesHasNoPods(t *testing.T) {
	job := batchJob(t, "{template: {spec: {priorityClassName: high}}}")
	job.Stored = &forecast.Stored{Refusal: &podadmission.Refusal{Message: "spec.template.spec.restartPolicy: Required value"}}
	answer := forecast.Run(t.Context(), full(), nil, job)
	assertText(t, answer, "x can never run", "refused the pod, by the API server: spec.template.spec.restartPolicy: Required value")
	if len(answer.Evicts) > 0 || len(answer.Approximate) > 0 {
		t.Errorf("it evicts %v, approximate %v", answer.Evicts, answer.Approximate)
	}
	job.Stored.Exists = true
	assertText(t, forecast.Run(t.Context(), full(), nil, job), "x exists, and its changes are rejected")
}

func TestAJobThatIsAppliedAgainCreatesOnlyThePodsThatItLacks(t *testing.T) {
	indexed := new(batchv1.IndexedCompletion)
	live := func(parallelism, completions int32, mode *batchv1.CompletionMode, status batchv1.JobStatus) *batchv1.Job {
		return &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "x", UID: "there"},
			Spec:       batchv1.JobSpec{Parallelism: &parallelism, Completions: &completions, CompletionMode: mode}, Status: status,
		}
	}
	pod := func(index string) *corev1.Pod {
		pod := forecasttest.Pod("x-"+index, "node-1", "1", 1000, 0)
		pod.Annotations = map[string]string{batchv1.JobCompletionIndexAnnotation: index}
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "x", UID: "there", Controller: new(true)}}
		return pod
	}
	finished := batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}}
	for what, c := range map[string]struct {
		before, after *batchv1.Job
		want          []string // roles
		approximate   bool
	}{
		"unchanged":               {live(1, 1, nil, batchv1.JobStatus{Active: 1}), live(1, 1, nil, batchv1.JobStatus{Active: 1}), nil, false},
		"one that has ended":      {live(1, 1, nil, finished), live(1, 1, nil, finished), nil, false},
		"more pods":               {live(1, 3, nil, batchv1.JobStatus{Active: 1}), live(2, 3, nil, batchv1.JobStatus{Active: 1}), []string{"pod 1"}, false},
		"more indexes":            {live(1, 4, indexed, batchv1.JobStatus{Active: 1, CompletedIndexes: "1-2", Succeeded: 2}), live(2, 4, indexed, batchv1.JobStatus{Active: 1, CompletedIndexes: "1-2", Succeeded: 2}), []string{"pod 3"}, false},
		"fewer pods":              {live(2, 3, nil, batchv1.JobStatus{Active: 2}), live(1, 3, nil, batchv1.JobStatus{Active: 2}), []string{"pod 0", "pod 1"}, true},
		"one that is backing off": {live(1, 3, nil, batchv1.JobStatus{}), live(2, 3, nil, batchv1.JobStatus{}), []string{"pod 0", "pod 1"}, true},
	} {
		t.Run(what, func(t *testing.T) {
			s := oneNode("8", pod("0"))
			s.BatchJobs = []*batchv1.Job{c.before}
			job := batchJob(t, "{parallelism: 2, completions: 4, completionMode: Indexed}")
			job.Object, job.Stored = fields(t, c.after), &forecast.Stored{Exists: true, Live: fields(t, c.after)}
			answer := forecast.Run(t.Context(), s, nil, job)
			if roles := rolesOf(answer); !slices.Equal(roles, c.want) || (len(answer.Approximate) > 0) != c.approximate {
				t.Errorf("pods %q, want %q; approximate %v", roles, c.want, answer.Approximate)
			}
			if len(c.want) == 0 {
				assertText(t, answer, "x exists, and gets no new pods")
			}
		})
	}
}

func rolesOf(a forecast.Answer) (roles []string) {
	for _, pod := range a.Pods {
		roles = append(roles, pod.Role)
	}
	return roles
}

// web is an object of a kind with that many replicas, which it has.
func web(kind string, replicas int, template corev1.PodTemplateSpec) *unstructured.Unstructured {
	of, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: kind},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "web", Generation: 2},
		Spec:       appsv1.DeploymentSpec{Replicas: new(int32(replicas)), Template: template}, //nolint:gosec // a small number
		Status:     appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 1},
	})
	if err != nil {
		panic(err)
	}
	return &unstructured.Unstructured{Object: of}
}

func TestAControllerThatOnlyGrowsKeepsItsPods(t *testing.T) {
	template := corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: forecasttest.CPU("1")}}}}}
	other := *template.DeepCopy()
	other.Spec.Containers[0].Image = "new"
	there := func(noun string) *forecast.Snapshot {
		s := oneNode("8", forecasttest.Pod("web-0", "node-1", "1", 1000, 0))
		s.Pods[0].OwnerReferences = []metav1.OwnerReference{{Kind: noun, Name: "web", UID: "web", Controller: new(true)}}
		meta := metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "web"}
		switch noun {
		case "Deployment":
			s.Pods[0].OwnerReferences[0].Kind, s.Pods[0].OwnerReferences[0].Name = "ReplicaSet", "web-1"
			s.Pods[0].Labels = map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: "1"}
			s.ReplicaSets = []*appsv1.ReplicaSet{{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-1", UID: "set", Labels: s.Pods[0].Labels, OwnerReferences: []metav1.OwnerReference{{Kind: noun, Name: "web", UID: "web", Controller: new(true)}}},
				Spec:       appsv1.ReplicaSetSpec{Replicas: new(int32(1)), Template: template}, Status: appsv1.ReplicaSetStatus{Replicas: 1},
			}}
		case "StatefulSet":
			s.StatefulSets = []*appsv1.StatefulSet{{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Replicas: new(int32(1)), Template: template}, Status: appsv1.StatefulSetStatus{ReadyReplicas: 1, UpdatedReplicas: 1}}}
		}
		return s
	}
	for what, c := range map[string]struct {
		noun        string
		live        *unstructured.Unstructured
		pods        int
		approximate bool
	}{
		"a Deployment of more replicas":    {"Deployment", web("Deployment", 3, template), 2, false},
		"a Deployment of another template": {"Deployment", web("Deployment", 3, other), 3, true},
		"a StatefulSet of more replicas":   {"StatefulSet", web("StatefulSet", 3, template), 2, false},
		"another template":                 {"StatefulSet", web("StatefulSet", 3, other), 3, true},
		"a ReplicaSet":                     {"ReplicaSet", web("ReplicaSet", 2, other), 1, false},
		"fewer than there are":             {"ReplicaSet", web("ReplicaSet", 0, template), 3, true},
		"a DaemonSet that changes":         {"DaemonSet", web("DaemonSet", 0, template), 3, true},
	} {
		t.Run(what, func(t *testing.T) {
			job := forecast.Job{Noun: c.noun, Namespace: "default", Name: "web", Stored: &forecast.Stored{Exists: true, Live: c.live}}
			part := forecast.Part{}
			for _, number := range []string{"0", "1", "2"} {
				pod := forecasttest.Pod("web-"+number, "", "1", 1000, 0)
				pod.UID, pod.Labels = types.UID("planned-"+number), map[string]string{}
				part.Pods = append(part.Pods, forecast.Pod{Role: "pod " + number, Pod: pod})
			}
			job.Stages = []forecast.Stage{{part}}
			answer := forecast.Run(t.Context(), there(c.noun), nil, job)
			if len(answer.Pods) != c.pods || (len(answer.Approximate) > 0) != c.approximate {
				t.Errorf("pods %q, want %d; approximate %v", rolesOf(answer), c.pods, answer.Approximate)
			}
		})
	}
	unchanged := web("DaemonSet", 0, template)
	unchanged.SetGeneration(1)
	job := forecast.Job{Noun: "DaemonSet", Namespace: "default", Name: "web", Stored: &forecast.Stored{Exists: true, Live: unchanged}}
	assertText(t, forecast.Run(t.Context(), there("DaemonSet"), nil, job), "web exists, and gets no new pods")
}

func TestAPodOfAMissingServiceAccountIsRefusedUnlessThatIsPlanned(t *testing.T) {
	job := forecast.MapPods([]forecast.Job{batchJob(t, "{template: {spec: {priorityClassName: high}}}")}, func(pod forecast.Pod) forecast.Pod {
		pod.Pod = pod.DeepCopy()
		pod.Spec.ServiceAccountName = "trainer"
		pod.NoAccount = `error looking up service account default/trainer: serviceaccount "trainer" not found`
		return pod
	})[0]
	if answer := forecast.Run(t.Context(), full(), nil, job); answer.Pods[0].State != forecast.Rejected || len(answer.Evicts) > 0 {
		t.Errorf("without the ServiceAccount: %s", answer.Text())
	}
	planned := full().With([]runtime.Object{&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "trainer"}}})
	if answer := forecast.Run(t.Context(), planned, nil, job); answer.Pods[0].State != forecast.Starts || len(answer.Approximate) > 0 {
		t.Errorf("with it: %v %s", answer.Approximate, answer.Text())
	}
	open := full()
	open.Open = true
	if answer := forecast.Run(t.Context(), open, nil, job); answer.Pods[0].State != forecast.Starts || len(reasonsWith(answer, forecast.PlannedUnknown)) != 1 {
		t.Errorf("where others may create it: %v %s", answer.Approximate, answer.Text())
	}
}
