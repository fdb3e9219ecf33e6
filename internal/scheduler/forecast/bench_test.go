package forecast_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast/forecasttest"
)

// crowded is a cluster with ten pods on each node, which leave less than a worker needs on any of them.
func crowded(nodes int) *forecast.Snapshot {
	random := rand.New(rand.NewPCG(1, 0)) //nolint:gosec // it has to be the same every time
	s := &forecast.Snapshot{AsOf: forecasttest.AsOf, PriorityClasses: []*schedulingv1.PriorityClass{forecasttest.Class("high", 1000000)}}
	for i := range nodes {
		name := fmt.Sprintf("node-%d", i)
		node := forecasttest.Node(name, "64")
		node.Labels[corev1.LabelTopologyZone] = fmt.Sprintf("zone-%d", i%3)
		s.Nodes = append(s.Nodes, node)
		for j := range 10 {
			priority := int32(random.IntN(1000))
			pod := forecasttest.OfJob(forecasttest.Pod(fmt.Sprintf("pod-%d-%d", i, j), name, fmt.Sprintf("%dm", 6200+random.IntN(100)), priority, random.IntN(80_000)), fmt.Sprintf("job-%d-%d", i, j/2))
			s.Pods = append(s.Pods, pod)
		}
	}
	s.Namespaces = []*corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: corev1.NamespaceDefault}}}
	return s
}

// BenchmarkMake forecasts a training job of a master and eight workers, each of which evicts a pod.
func BenchmarkMake(b *testing.B) {
	for _, nodes := range []int{500, 5000} {
		b.Run(fmt.Sprintf("%d_nodes_%d_pods", nodes, 10*nodes), func(b *testing.B) {
			s := crowded(nodes)
			job, err := forecast.OfTrainingJob(forecasttest.TrainingJob("high-prio-job", "high", "high", 1, 8))
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if answer := forecast.Run(b.Context(), s, nil, job); answer.Outcome != forecast.Preempts {
					b.Fatal(answer.Text())
				}
			}
		})
	}
}

// BenchmarkAPlanOfTenJobs forecasts ten jobs of four workers on 100 nodes, in one exploration and in one for each.
func BenchmarkAPlanOfTenJobs(b *testing.B) {
	s := tutorial()
	s.Nodes = nil
	for i := range 100 {
		s.Nodes = append(s.Nodes, forecasttest.Node(fmt.Sprintf("node-%d", i), "4"))
	}
	var jobs []forecast.Job
	for i := range 10 {
		job, err := forecast.OfTrainingJob(forecasttest.TrainingJob(fmt.Sprintf("new-%d", i), "high", "low", 2, 4))
		if err != nil {
			b.Fatal(err)
		}
		jobs = append(jobs, job)
	}
	for name, all := range map[string]func(context.Context, *forecast.Snapshot, []forecast.Job) []forecast.Answer{"together": forecast.All, "separately": forecast.Separately} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				all(b.Context(), s, jobs)
			}
		})
	}
}
