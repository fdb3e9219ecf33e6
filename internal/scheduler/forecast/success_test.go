package forecast_test

import (
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast/forecasttest"
)

// savingJob is a cluster in which a pod of the Job saves runs on node-1, and a pod of lower priority on node-2. What
// takes node-1 evicts the first, and a new pod of the Job the second.
func savingJob(spec batchv1.JobSpec) *forecast.Snapshot {
	saves := forecasttest.Pod("saves", "node-1", "3", 100, 0)
	saves.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "saves", UID: "saves", Controller: new(true)}}
	s := oneNode("4", saves, forecasttest.Pod("little", "node-2", "3", 50, 0))
	s.Nodes = append(s.Nodes, forecasttest.Node("node-2", "4"))
	spec.Parallelism = new(int32(1))
	s.BatchJobs = []*batchv1.Job{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "saves", UID: "saves"}, Spec: spec, Status: batchv1.JobStatus{Active: 1},
	}}
	return s
}

func TestAnEvictedPodThatSucceedsIsNotReplacedByAJobThatReplacesFailedPods(t *testing.T) {
	policy := func(action batchv1.PodFailurePolicyAction) *batchv1.PodFailurePolicy {
		return &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
			Action: action, OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}},
		}}}
	}
	failed := batchv1.Failed
	for behaviour, c := range map[string]struct {
		spec    batchv1.JobSpec
		certain bool // that its new pod evicts the other
		outcome string
	}{
		"a Job that ignores disruptions creates a pod, unless the first succeeds": {
			batchv1.JobSpec{Completions: new(int32(1)), PodFailurePolicy: policy(batchv1.PodFailurePolicyActionIgnore)},
			false,
			"recreates it, and it starts on node-2, unless it exits with code 0",
		},
		"so does one that replaces failed pods only": {
			batchv1.JobSpec{Completions: new(int32(1)), PodReplacementPolicy: &failed}, false, "unless it exits with code 0",
		},
		"a Job with further completions creates a pod in any case": {
			batchv1.JobSpec{Completions: new(int32(2)), PodFailurePolicy: policy(batchv1.PodFailurePolicyActionIgnore)}, true, "unless it exits with code 0",
		},
		"a Job without a number of completions creates no more pods after a success": {
			batchv1.JobSpec{PodFailurePolicy: policy(batchv1.PodFailurePolicyActionIgnore)}, false, "unless it exits with code 0",
		},
		"other Jobs count a deleted pod as failed": {
			batchv1.JobSpec{Completions: new(int32(1))}, true, "recreates it, and it starts on node-2",
		},
	} {
		t.Run(behaviour, func(t *testing.T) {
			answer := forecast.Run(t.Context(), savingJob(c.spec), nil, batchJob(t, `{template: {spec: {priorityClassName: high, nodeSelector: {kubernetes.io/hostname: node-1},
				containers: [{name: main, resources: {requests: {cpu: 3}}}]}}}`))
			if e := evictionOf(answer, "little"); e == nil || e.Certain != c.certain || len(answer.Approximate) > 0 {
				t.Errorf("certain %t is wanted of the other pod's eviction: %+v, approximate %v\n%s", c.certain, e, answer.Approximate, answer.Text())
			}
			if e := evictionOf(answer, "saves"); e == nil || !e.Certain || !strings.HasSuffix(e.Outcome, c.outcome) {
				t.Errorf("the pod is evicted in any case, and %q: %+v", c.outcome, e)
			}
		})
	}
}

func TestAJobFailsByItsPolicyUnlessTheEvictedPodSucceeds(t *testing.T) {
	s := savingJob(batchv1.JobSpec{Completions: new(int32(2)), PodFailurePolicy: &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
		Action:          batchv1.PodFailurePolicyActionFailJob,
		OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}},
	}}}})
	other := forecasttest.Pod("other", "node-3", "3", 100, 0)
	other.OwnerReferences = s.Pods[0].OwnerReferences
	s.Pods, s.Nodes = append(s.Pods, other), append(s.Nodes, forecasttest.Node("node-3", "4"))
	s.BatchJobs[0].Spec.Parallelism, s.BatchJobs[0].Status.Active = new(int32(2)), 2
	answer := forecast.Run(t.Context(), s, nil, batchJob(t, `{template: {spec: {priorityClassName: high, nodeSelector: {kubernetes.io/hostname: node-1},
		containers: [{name: main, resources: {requests: {cpu: 3}}}]}}}`))
	if e := evictionOf(answer, "other"); e == nil || e.Certain {
		t.Errorf("the Job's other pod stops if the Job fails: %+v\n%s", e, answer.Text())
	}
	if e := evictionOf(answer, "saves"); e == nil || !strings.HasSuffix(e.Outcome, "unless it exits with code 0") {
		t.Errorf("the evicted pod: %+v", e)
	}
}

func TestThatAPlannedPodMaySucceedWhenAnotherJobEvictsItIsAReason(t *testing.T) {
	for spec, noted := range map[string]bool{
		"podFailurePolicy: {rules: [{action: Ignore, onPodConditions: [{type: DisruptionTarget}]}]}": true,
		"podReplacementPolicy: Failed": true,
		"backoffLimit: 3":              false,
	} {
		s := oneNode("4")
		low := named(t, "low", "{"+spec+", template: {spec: {priorityClassName: low, containers: [{name: main, resources: {requests: {cpu: 3}}}]}}}")
		high := named(t, "high", "{template: {spec: {priorityClassName: high, containers: [{name: main, resources: {requests: {cpu: 3}}}]}}}")
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte("{kind: Job, spec: {"+spec+"}}"), &object.Object); err != nil {
			t.Fatal(err)
		}
		low.Object = object
		got := reasonsWith(forecast.Run(t.Context(), s, []forecast.Job{low}, high), forecast.NotModelled)
		if (len(got) > 0) != noted || noted && !strings.Contains(got[0].Text, "exits with code 0") {
			t.Errorf("%s: %+v", spec, got)
		}
	}
}
