package forecast_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast/forecasttest"
)

// gangOf is a Job of so many important pods of three CPUs.
func gangOf(pods int32) *batchv1.Job {
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceDefault, Name: "x"},
		Spec: batchv1.JobSpec{Parallelism: &pods, Completions: &pods, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			PriorityClassName: "high", RestartPolicy: corev1.RestartPolicyNever,
			Containers: []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: forecasttest.CPU("3")}}},
		}}},
	}
}

// dense is so many nodes, each with as many pods of different priorities, that choices cannot all be followed.
func dense(nodes int) *forecast.Snapshot {
	s := ofGPUs(1, nodes)
	s.PriorityClasses = []*schedulingv1.PriorityClass{forecasttest.Class("high", 1000)}
	for _, node := range s.Nodes {
		node.Status.Allocatable[corev1.ResourceCPU] = forecasttest.CPU("32")[corev1.ResourceCPU]
	}
	return s
}

func TestWhatIsCertainOfAGangWhoseChoicesAreNotAllFollowed(t *testing.T) {
	shared := func(s *forecast.Snapshot, _ *batchv1.Job) {
		important := forecasttest.Pod("important", s.Nodes[0].Name, "0", 2000, 0)
		important.OwnerReferences = s.Pods[0].OwnerReferences
		s.Pods = append(s.Pods, important)
	}
	waits := func(s *forecast.Snapshot, _ *batchv1.Job) {
		s.Queues = forecasttest.Queues("1")
		s.Queues.Workloads = []*kueue.Workload{forecasttest.Workload("Job", "waits", "waits", forecasttest.Pod("waits", "", "4", 0, 0), 100, -20)}
	}
	pending := func(s *forecast.Snapshot, _ *batchv1.Job) {
		s.Pods = append(s.Pods, forecasttest.Pod("pending", "", "16", 0, 0))
	}
	deadline := func(_ *forecast.Snapshot, job *batchv1.Job) { job.Spec.ActiveDeadlineSeconds = new(int64(3600)) }
	late, cancel := context.WithCancel(t.Context())
	cancel() // one run is followed
	for name, c := range map[string]struct {
		pods    int32
		change  func(*forecast.Snapshot, *batchv1.Job)
		outcome forecast.Outcome
		certain bool
		counted bool // how many of whom it evicts is certain
	}{
		"all of them fit without the others":          {pods: 20, outcome: forecast.Preempts, certain: true, counted: true},
		"a pending pod may come in between":           {pods: 20, change: pending, outcome: forecast.Preempts, certain: true},
		"there is too little for all of them":         {pods: 100, outcome: forecast.Pends, certain: true, counted: true},
		"a Job has victims and more important pods":   {pods: 20, change: shared, outcome: forecast.Preempts},
		"a workload waits for the quota of others":    {pods: 20, change: waits, outcome: forecast.Preempts},
		"it may fail before its victims have stopped": {pods: 20, change: deadline, outcome: forecast.Preempts},
	} {
		s, job := dense(8), gangOf(c.pods)
		if c.change != nil {
			c.change(s, job)
		}
		read := forecast.OfBatchJob(job)
		read.Object = job
		answer := forecast.Run(late, s, nil, read)
		claims := answer.Claims()
		if answer.Outcome != c.outcome || claims.Outcome.Certain != c.certain || claims.Evictions.Certain != c.counted {
			t.Errorf("%s: %s, %+v", name, answer.Outcome, claims)
		}
		counts := fmt.Sprintf("(%d to %d of these %d)", claims.Evictions.Pods.Min, claims.Evictions.Pods.Max, len(answer.Evicts))
		if c.counted && !strings.Contains(answer.Text(), counts) {
			t.Errorf("%s: the text does not say how many pods are evicted:\n%s", name, answer.Text())
		}
	}
}
