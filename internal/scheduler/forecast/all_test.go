package forecast_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast/forecasttest"
)

// TestJobsOfOnePlanHaveTheAnswersThatEachOfThemHasAlone draws clusters and plans: the answers from one exploration of what
// may happen are those from an exploration for each job.
func TestJobsOfOnePlanHaveTheAnswersThatEachOfThemHasAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := tutorial()
		s.Nodes, s.Pods = nil, nil
		s.Version = rapid.SampledFrom([]string{"v1.36.1", "v1.35.0"}).Draw(t, "version")
		for i := range rapid.IntRange(1, 3).Draw(t, "nodes") {
			s.Nodes = append(s.Nodes, forecasttest.Node(fmt.Sprintf("node-%d", i+1), fmt.Sprint(rapid.IntRange(2, 5).Draw(t, "CPU"))))
		}
		for i := range rapid.IntRange(0, 4).Draw(t, "pods") {
			node := s.Nodes[rapid.IntRange(0, len(s.Nodes)-1).Draw(t, "node")].Name
			pod := forecasttest.Pod(fmt.Sprintf("old-worker-%d", i), node, fmt.Sprint(rapid.IntRange(1, 2).Draw(t, "request")), int32(rapid.SampledFrom([]int{1000, 1000000}).Draw(t, "priority")), i)
			if rapid.Bool().Draw(t, "of a training job") {
				pod = forecasttest.Worker(pod, "old", i)
			}
			s.Pods = append(s.Pods, pod)
		}
		if rapid.Bool().Draw(t, "budgets cannot be read") {
			s.Unread = []forecast.Unread{{Kind: forecast.Budgets, Verb: "list poddisruptionbudgets"}}
		}
		if rapid.Bool().Draw(t, "queues") {
			s.Queues = forecasttest.Queues(fmt.Sprint(rapid.IntRange(1, 6).Draw(t, "quota")))
			for i := range rapid.IntRange(0, 2).Draw(t, "tasks") {
				running, pod := runningTask(fmt.Sprintf("task-%d", i), int32(rapid.SampledFrom([]int{100, 1000}).Draw(t, "task's priority")))
				s.Pods, s.Queues.Workloads = append(s.Pods, pod), append(s.Queues.Workloads, running)
			}
		}
		var jobs []forecast.Job
		for i := range rapid.IntRange(2, 3).Draw(t, "jobs") {
			class := rapid.SampledFrom([]string{"high", "low"}).Draw(t, "class")
			if s.Queues != nil && rapid.Bool().Draw(t, "is a task") {
				jobs = append(jobs, queuedTask(t, fmt.Sprintf("new-%d", i), class, rapid.IntRange(1, 2).Draw(t, "pods")))
				continue
			}
			minimum := rapid.IntRange(1, 2).Draw(t, "minimum")
			planned, err := forecast.OfTrainingJob(forecasttest.TrainingJob(fmt.Sprintf("new-%d", i), class, class, minimum, minimum+rapid.IntRange(0, 1).Draw(t, "burst")))
			if err != nil {
				t.Fatal(err)
			}
			jobs = append(jobs, planned)
		}
		if got, want := textOf(t, forecast.All(t.Context(), s, jobs)), textOf(t, forecast.Separately(t.Context(), s, jobs)); got != want {
			t.Fatalf("together:\n%s\nseparately:\n%s", got, want)
		}
	})
}

func queuedTask(t *rapid.T, name, class string, pods int) forecast.Job {
	planned, err := forecast.OfTask(forecasttest.Task(name, "user-queue", class, "2", pods), nil)
	if err != nil {
		t.Fatal(err)
	}
	return planned
}

func textOf(t *rapid.T, answers []forecast.Answer) string {
	text, err := json.MarshalIndent(answers, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
