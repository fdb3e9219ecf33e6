package forecast_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast/forecasttest"
)

// inWaves is a job of an initializer and then two nodes, 4 CPU each, admitted as one Workload.
func inWaves(queue string, ends bool) forecast.Job {
	pod := func(role, set string, wave int) forecast.Pod {
		return forecast.Pod{Role: role, Set: set, Wave: wave, Ends: ends && wave == 0, Pod: forecasttest.Pod(role, "", "4", 0, 0)}
	}
	pods := []forecast.Pod{pod("initializer", "z-initializer", 0), pod("node 0", "a-node", 1), pod("node 1", "a-node", 1)}
	return forecast.Job{Noun: "JobSet", Namespace: "default", Name: "train", Stages: []forecast.Stage{{{Pods: pods, Queue: queue}}}}
}

func states(a forecast.Answer) string {
	var all []string
	for _, pod := range a.Pods {
		all = append(all, string(pod.State))
	}
	return strings.Join(all, " ")
}

func TestLaterWavesArePlacedWhenTheEarlierOnesRun(t *testing.T) {
	for behaviour, c := range map[string]struct {
		on   *forecast.Snapshot
		job  forecast.Job
		want string
	}{
		"an initializer that ends makes room":           {oneNode("8"), inWaves("", true), "starts starts starts"},
		"one that only has to run keeps its room":       {oneNode("8"), inWaves("", false), "starts starts waits"},
		"without room for the first none is created":    {oneNode("3"), inWaves("", true), "never not_created not_created"},
		"the quota counts all waves at once":            {team(nil), inWaves("user-queue", true), "queued queued queued"},
		"and a queue with enough of it admits them all": {wide("12"), inWaves("user-queue", true), "starts starts starts"},
	} {
		t.Run(behaviour, func(t *testing.T) {
			if answer := forecast.Run(t.Context(), c.on, nil, c.job); states(answer) != c.want {
				t.Errorf("got %q, want %q:\n%s", states(answer), c.want, answer.Text())
			}
		})
	}
}

// wide is a node of 8 CPU and a queue with more quota than that.
func wide(cpu string) *forecast.Snapshot {
	s := oneNode("8")
	s.Queues = forecasttest.Queues(cpu)
	return s
}

func TestPodSetsTakeFlavorsInTheOrderOfTheWorkload(t *testing.T) {
	// The first pod set of the job gets the first flavor, although its name sorts after the other's.
	s := wide("4")
	spare := *s.Queues.Flavors[0]
	spare.Name = "spare"
	s.Queues.Flavors = append(s.Queues.Flavors, &spare)
	group := &s.Queues.ClusterQueues[0].Spec.ResourceGroups[0]
	more := *group.Flavors[0].DeepCopy()
	more.Name = "spare"
	more.Resources[0].NominalQuota.Set(100)
	group.Flavors = append(group.Flavors, more)
	spare.Spec.NodeLabels = map[string]string{"pool": "other"}
	answer := forecast.Run(t.Context(), s, nil, inWaves("user-queue", false))
	if got := states(answer); got != "starts never never" {
		t.Errorf("got %q, want the initializer on the first flavor and the nodes on the other:\n%s", got, answer.Text())
	}
}

func TestWhatAPlanDeletesIsGone(t *testing.T) {
	web := func(name string) *corev1.Pod {
		pod := forecasttest.OfJob(forecasttest.Pod(name, "node-1", "4", 1000000, 10), "x")
		pod.Labels["jobset.sigs.k8s.io/jobset-name"] = "old"
		return pod
	}
	s := oneNode("8", web("old-a-0"), web("old-a-1"))
	job := inWaves("", true)
	if answer := forecast.Run(t.Context(), s, nil, job); states(answer) != "waits not_created not_created" {
		t.Errorf("before: %q", states(answer))
	}
	s.Deletions = []forecast.Deletion{{Kind: "JobSet", Namespace: "default", Name: "old"}}
	if answer := forecast.Run(t.Context(), s, nil, job); states(answer) != "starts starts starts" {
		t.Errorf("after: %q", states(answer))
	}
	s.Deletions = nil
	job.Name = "old" // a job that takes the place of the one which is there
	if answer := forecast.Run(t.Context(), s, nil, job); states(answer) != "starts starts starts" {
		t.Errorf("replaced: %q", states(answer))
	}
}
