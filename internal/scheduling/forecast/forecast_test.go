package forecast_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduling/forecast"
	ft "github.com/elastic-training/terraform-provider-elastic/internal/scheduling/forecast/forecasttesting"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainingjob"
)

// tutorial is ElasticDL's: three nodes, and a job of low priority with its master on node-3.
func tutorial() *forecast.Snapshot {
	return &forecast.Snapshot{
		AsOf:            ft.AsOf,
		Nodes:           []*corev1.Node{ft.Node("node-1", "3.92"), ft.Node("node-2", "3.92"), ft.Node("node-3", "3.92")},
		PriorityClasses: []*schedulingv1.PriorityClass{ft.Class("high", 1000000), ft.Class("low", 1000)},
		Pods: []*corev1.Pod{
			ft.Master(ft.Pod("low-prio-job-x", "node-3", "1", 1000000, 0), "low-prio-job"),
			ft.Worker(ft.Pod("low-prio-job-worker-0", "node-1", "3", 1000, 2), "low-prio-job", 0),
			ft.Worker(ft.Pod("low-prio-job-worker-1", "node-2", "3", 1000, 4), "low-prio-job", 1),
		},
	}
}

func planned(t *testing.T, d trainingjob.Definition) forecast.Job {
	t.Helper()
	job, err := forecast.OfTrainingJob(d)
	if err != nil {
		t.Fatal(err)
	}
	return job
}

func TestTheTutorialsVictimIsNamed(t *testing.T) {
	answer := forecast.Make(tutorial(), nil, planned(t, ft.TrainingJob("high-prio-job", "high", "high", 1, 1)))
	t.Log(answer.Summary() + "\n" + answer.Text())
}
