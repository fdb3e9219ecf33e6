package forecast_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	controllerconstants "sigs.k8s.io/kueue/pkg/controller/constants"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue/configuration"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast/forecasttest"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/quota"
)

func configured(t *testing.T, s *forecast.Snapshot, text string) *forecast.Snapshot {
	t.Helper()
	c, err := configuration.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	s.Queues.Configuration = c
	return s
}

// TestWhatIsNotKnownOfKueueIsAReason plans a task of 4 CPU in a queue with quota of 4 that is free, or taken by a task of
// lower priority.
func TestWhatIsNotKnownOfKueueIsAReason(t *testing.T) {
	running := func() *forecast.Snapshot {
		w, pod := runningTask("running", 100)
		w.Annotations = map[string]string{controllerconstants.PriorityBoostAnnotationKey: "5"}
		s := team([]*kueue.Workload{w}, pod)
		s.Nodes = append(s.Nodes, forecasttest.Node("node-2", "8"))
		return s
	}
	grows := func(s *forecast.Snapshot) *forecast.Snapshot {
		slice := forecasttest.Workload("Job", "grows", "job-grows", forecasttest.Pod("grows", "", "4", 0, 0), 100, -20)
		slice.Annotations = map[string]string{quota.SliceReplacementAnnotation: "default/job-running"}
		s.Queues.Workloads = append(s.Queues.Workloads, slice)
		return s
	}
	growsInRacks := func(s *forecast.Snapshot) *forecast.Snapshot {
		s = grows(s)
		s.Queues.Workloads[len(s.Queues.Workloads)-1].Spec.PodSets[0].TopologyRequest = &kueue.PodSetTopologyRequest{Unconstrained: new(true)}
		return s
	}
	unread := func(s *forecast.Snapshot) *forecast.Snapshot {
		s.Queues.ConfigurationUnread = "getting it is not allowed"
		return s
	}
	claims := func(job forecast.Job) forecast.Job {
		job.Stages[0][0].Pods[0].Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: new("gpu")}}
		return job
	}
	for behaviour, c := range map[string]struct {
		on       *forecast.Snapshot
		job      func(forecast.Job) forecast.Job
		code     forecast.ReasonCode
		expected bool
	}{
		"the configuration is the default":      {configured(t, team(nil), ""), nil, forecast.KueueSettings, false},
		"the configuration could not be read":   {unread(team(nil)), nil, forecast.KueueSettings, true},
		"a gate that the engine does not model": {configured(t, team(nil), "featureGates: {TASBalancedPlacement: true}"), nil, forecast.KueueSettings, true},
		"a gate that decides nothing":           {configured(t, team(nil), "featureGates: {LocalQueueMetrics: true}"), nil, forecast.KueueSettings, false},
		"boosts, and their gate is not known":   {running(), nil, forecast.PriorityBoost, true},
		"boosts, and their gate is off":         {configured(t, running(), ""), nil, forecast.PriorityBoost, false},
		"boosts that count":                     {configured(t, running(), "featureGates: {PriorityBoost: true}"), nil, forecast.PriorityBoost, false},
		"usage, and the feature is not configured": {
			configured(t, byUsage(running()), ""), nil, forecast.UsageBasedOrder, false,
		},
		"a larger slice of a job waits":        {configured(t, grows(running()), ""), nil, forecast.WorkloadSlices, false},
		"its pods are placed by a topology":    {configured(t, growsInRacks(running()), ""), nil, forecast.WorkloadSlices, true},
		"no slice waits":                       {configured(t, running(), ""), nil, forecast.WorkloadSlices, false},
		"claims of devices":                    {configured(t, team(nil), ""), claims, forecast.DeviceQuota, true},
		"admission blocks while pods start":    {configured(t, runningBeside(), "waitForPodsReady: {blockAdmission: true}"), nil, forecast.ReadyTimeout, true},
		"admission does not block":             {configured(t, runningBeside(), ""), nil, forecast.ReadyTimeout, false},
		"jobs without a queue are managed too": {configured(t, team(nil), "manageJobsWithoutQueueName: true"), unqueued, forecast.KueueSettings, true},
	} {
		t.Run(behaviour, func(t *testing.T) {
			job := taskJob(t, forecasttest.Task("urgent", "user-queue", "high", "4", 1))
			if c.job != nil {
				job = c.job(job)
			}
			answer := forecast.Run(t.Context(), c.on, nil, job)
			if got := reasonsWith(answer, c.code); (len(got) > 0) != c.expected {
				t.Errorf("%s: %+v\n%s", c.code, got, answer.Text())
			}
		})
	}
}

// runningBeside is a queue of 8 CPU of which a task uses 4; Kueue does not know yet that its pods are ready.
func runningBeside() *forecast.Snapshot {
	w, pod := runningTask("running", 100)
	s := team(nil, pod)
	s.Queues = forecasttest.Queues("8", w)
	return s
}

func unqueued(job forecast.Job) forecast.Job {
	job.QueueIn("")
	return job
}

// TestKueuesConfigurationDecidesWhatCounts has a queue with quota of 4 CPU.
func TestKueuesConfigurationDecidesWhatCounts(t *testing.T) {
	withGPU := func(job forecast.Job) forecast.Job {
		job.Stages[0][0].Pods[0].Spec.Containers[0].Resources.Requests["example.com/gpu"] = resource.MustParse("1")
		return job
	}
	for behaviour, c := range map[string]struct {
		configuration string
		admitted      bool
	}{
		"a resource that the queue does not cover": {"", false},
		"its prefix is excluded":                   {"resources: {excludeResourcePrefixes: [example.com/]}", true},
		"it may be undeclared":                     {"resources: {quotaCheckStrategy: IgnoreUndeclared}", true},
		"it is replaced by CPU that is there":      {"resources: {transformations: [{input: example.com/gpu, strategy: Replace, outputs: {cpu: 2}}]}", true},
		"it is replaced by too much CPU":           {"resources: {transformations: [{input: example.com/gpu, strategy: Replace, outputs: {cpu: 3}}]}", false},
	} {
		t.Run(behaviour, func(t *testing.T) {
			s := configured(t, team(nil), c.configuration)
			s.Nodes[0].Status.Allocatable["example.com/gpu"] = resource.MustParse("1")
			answer := forecast.Run(t.Context(), s, nil, withGPU(taskJob(t, forecasttest.Task("x", "user-queue", "high", "2", 1))))
			if got := answer.Queues[0].Admitted; got != c.admitted {
				t.Errorf("admitted %t\n%s", got, answer.Text())
			}
			if len(answer.Approximate) > 0 {
				t.Errorf("approximate: %v", answer.Approximate)
			}
		})
	}
}

// TestABoostCountsWhereItsGateIsOn has a running task of priority 100 and a planned one of 1000 that needs its quota.
func TestABoostCountsWhereItsGateIsOn(t *testing.T) {
	for gate, evicts := range map[string]bool{"": true, "featureGates: {PriorityBoost: true}": false} {
		w, pod := runningTask("running", 100)
		w.Annotations = map[string]string{controllerconstants.PriorityBoostAnnotationKey: "900"}
		answer := forecast.Run(t.Context(), configured(t, team([]*kueue.Workload{w}, pod), gate), nil, taskJob(t, forecasttest.Task("urgent", "user-queue", "high", "4", 1)))
		if answer.Queues[0].Admitted != evicts {
			t.Errorf("with %q: %s", gate, answer.Text())
		}
	}
}

func TestAJobThatIsHeldBackIsNotAdmitted(t *testing.T) {
	job := taskJob(t, forecasttest.Task("held", "user-queue", "high", "4", 1))
	job.Stages[0][0].GatedBy = "example.com/budget"
	answer := forecast.Run(t.Context(), configured(t, team(nil), ""), nil, job)
	if answer.Queues[0].Admitted || answer.Queues[0].Why != "Admission is gated by: example.com/budget" {
		t.Errorf("%+v\n%s", answer.Queues[0], answer.Text())
	}
}

// TestATimeoutOfAKnownConfigurationIsReportedForWorkloadsWhosePodsWait has a task of priority 0 on a node that another pod
// fills.
func TestATimeoutOfAKnownConfigurationIsReportedForWorkloadsWhosePodsWait(t *testing.T) {
	const late = "; evicted and queued again %s after its admission if not all of its pods are ready"
	for behaviour, c := range map[string]struct {
		configuration string
		priority      int32 // of the other pod; 0 if there is none
		timeout       string
	}{
		"the default, and the pod waits":       {"", 2_000_000, "30m0s"},
		"five minutes, and the pod waits":      {"waitForPodsReady: {timeout: 5m}", 2_000_000, "5m0s"},
		"the feature is off":                   {"featureGates: {DisableWaitForPodsReady: true}", 2_000_000, ""},
		"the pod starts immediately":           {"", 0, ""},
		"the pod starts when a victim stops":   {"", -1, ""},
		"its victim takes longer than allowed": {"waitForPodsReady: {timeout: 30s}", -1, "30s"},
	} {
		t.Run(behaviour, func(t *testing.T) {
			s := configured(t, team(nil), c.configuration)
			if c.priority != 0 {
				s.Pods = append(s.Pods, forecasttest.Pod("blocks", "node-1", "6", c.priority, 0))
			}
			answer := forecast.Run(t.Context(), s, nil, taskJob(t, forecasttest.Task("x", "user-queue", "high", "3", 1)))
			want := ""
			if c.timeout != "" {
				want = fmt.Sprintf(late, c.timeout)
			}
			text := answer.Text()
			if strings.Contains(text, "after its admission") != (want != "") || !strings.Contains(text, want) || len(answer.Approximate) > 0 {
				t.Errorf("approximate %v\n%s", answer.Approximate, text)
			}
		})
	}
}
