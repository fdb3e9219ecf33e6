package forecast_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast/forecasttest"
)

// tutorial is ElasticDL's: three nodes of a little less than 4 CPU, and a job of low priority with its master on
// node-3, whose workers started two seconds after one another.
func tutorial() *forecast.Snapshot {
	return &forecast.Snapshot{
		AsOf:            forecasttest.AsOf,
		Nodes:           []*corev1.Node{forecasttest.Node("node-1", "3.92"), forecasttest.Node("node-2", "3.92"), forecasttest.Node("node-3", "3.92")},
		PriorityClasses: []*schedulingv1.PriorityClass{forecasttest.Class("high", 1000000), forecasttest.Class("low", 1000)},
		Pods: []*corev1.Pod{
			forecasttest.Master(forecasttest.Pod("low-prio-job-x", "node-3", "1", 1000000, 0), "low-prio-job"),
			forecasttest.Worker(forecasttest.Pod("low-prio-job-worker-0", "node-1", "3", 1000, 2), "low-prio-job", 0),
			forecasttest.Worker(forecasttest.Pod("low-prio-job-worker-1", "node-2", "3", 1000, 4), "low-prio-job", 1),
		},
	}
}

// oneNode has the given pods on it.
func oneNode(cpu string, pods ...*corev1.Pod) *forecast.Snapshot {
	s := tutorial()
	s.Nodes, s.Pods = []*corev1.Node{forecasttest.Node("node-1", cpu)}, pods
	return s
}

func job(t *testing.T, d trainingjob.Definition) forecast.Job {
	t.Helper()
	planned, err := forecast.OfTrainingJob(d)
	if err != nil {
		t.Fatal(err)
	}
	return planned
}

// high is the tutorial's second job: a master and one worker, both important.
func high(t *testing.T) forecast.Job {
	t.Helper()
	return job(t, forecasttest.TrainingJob("high-prio-job", "high", "high", 1, 1))
}

func TestTheMinimumOfAQueuedJobHasItsOwnClass(t *testing.T) {
	for _, c := range []struct{ minimum, above, want string }{{"high", "low", "high"}, {"", "low", "low"}} {
		d := forecasttest.TrainingJob("elastic", "", "", 1, 2)
		d.Queue = &trainingjob.Queue{Name: "user-queue", PriorityClass: c.above, MinPriorityClass: c.minimum}
		stages := job(t, d).Stages
		if first, burst := stages[0][0], stages[1][0]; first.Class != c.want || burst.Class != c.above || first.Queue != "user-queue" || burst.Queue != "user-queue" {
			t.Errorf("minimum %q, above it %q: the master and the minimum have %+v, the others %+v", c.minimum, c.above, first, burst)
		}
	}
}

func TestAJobThatWaitsHasAnEstimateIfRunningJobsHaveKnownEnds(t *testing.T) {
	running := forecasttest.Master(forecasttest.Pod("running-x", "node-1", "2", 1000000, 0), "running")
	worker := forecasttest.Worker(forecasttest.Pod("running-worker-0", "node-1", "1", 1000000, 0), "running", 0)
	s := oneNode("4", running, worker)
	answer := forecast.Run(t.Context(), s, nil, high(t))
	name := types.NamespacedName{Namespace: "default", Name: "running"}
	if answer.Outcome != forecast.Pends || answer.Estimate != nil || !slices.Equal(answer.NeedsConfigMaps, []types.NamespacedName{name}) {
		t.Fatalf("got %s, %v, needs ConfigMaps of %v", answer.Outcome, answer.Estimate, answer.NeedsConfigMaps)
	}
	began := forecasttest.AsOf.Add(-10 * time.Minute)
	running.Status.StartTime.Time = began
	s.Jobs = map[types.NamespacedName]forecast.TrainingJob{name: {Status: trainingjob.Status{Phase: trainingjob.PhaseRunning, StepsDone: 100, StepsTotal: 300}}}
	answer = forecast.Run(t.Context(), s, nil, high(t))
	if want := "expects to start at about 2026-11-21 10:24Z (in 20m0s; with a probability of 80 % between 10:20Z and 10:27Z): job running is at step 100 of 300, and ends then at its pace so far"; !strings.Contains(answer.Text(), want) {
		t.Errorf("%q is missing:\n%s", want, answer.Text())
	}
	status := s.Jobs[name]
	status.Status.Generation = 2 // the master was started again, and has not done all of these steps
	s.Jobs[name] = status
	if answer = forecast.Run(t.Context(), s, nil, high(t)); answer.Estimate != nil {
		t.Errorf("got %v", answer.Estimate)
	}
	running.Spec.ActiveDeadlineSeconds = new(int64(60))
	running.Labels, worker.Labels = nil, nil // two pods of which one has a deadline, which is too little
	if answer = forecast.Run(t.Context(), s, nil, high(t)); answer.Estimate != nil {
		t.Errorf("got %v", answer.Estimate)
	}
	worker.Spec.ActiveDeadlineSeconds = new(int64(90))
	if answer = forecast.Run(t.Context(), s, nil, high(t)); answer.Estimate == nil || !strings.Contains(answer.Estimate.From, "pod default/") {
		t.Errorf("got %v", answer.Estimate)
	}
}

func TestTheForecastForAJob(t *testing.T) {
	for behaviour, c := range map[string]struct {
		on       func() *forecast.Snapshot
		before   []forecast.Job
		job      forecast.Job
		wantText string // summary and text without the last line, which is always the same
	}{
		"of the tutorial: it takes the worker that started last": {tutorial, nil, high(t), `
high-prio-job will preempt
  evicts  default/low-prio-job-worker-1 (priority 1000) on node-2: job low-prio-job continues with 1 of 2 workers
  starts  master on node-3 immediately; worker 0 on node-2 after its victim has terminated (grace period 30s)`},

		"whose victim is one of two that are equal: both are named": {func() *forecast.Snapshot {
			s := tutorial()
			s.Pods[2].Status.StartTime = s.Pods[1].Status.StartTime
			return s
		}, nil, high(t), `
high-prio-job will preempt
  evicts  default/low-prio-job-worker-0 (priority 1000) on node-1: job low-prio-job continues with 1 of 2 workers
          or default/low-prio-job-worker-1 (priority 1000) on node-2: job low-prio-job continues with 1 of 2 workers (tie)
  starts  master on node-3 immediately; worker 0 on node-1 or node-2 (tie) after its victim there has terminated (grace period 30s)`},

		"whose victim is a job's last worker: that job waits": {func() *forecast.Snapshot {
			s := tutorial()
			s.Jobs = map[types.NamespacedName]forecast.TrainingJob{
				{Namespace: "default", Name: "low-prio-job"}: {Workers: trainingjob.Workers{Min: 2, Max: 4}},
			}
			return s
		}, nil, high(t), `
high-prio-job will preempt
  evicts  default/low-prio-job-worker-1 (priority 1000) on node-2: job low-prio-job waits with 1 of 4 workers, below its minimum of 2
  starts  master on node-3 immediately; worker 0 on node-2 after its victim has terminated (grace period 30s)`},

		"on as many nodes as there are pods: no pod is evicted": {func() *forecast.Snapshot {
			s := tutorial()
			s.Nodes = append(s.Nodes, forecasttest.Node("node-4", "3.92"), forecasttest.Node("node-5", "3.92"))
			return s
		}, nil, high(t), `
high-prio-job will start without evicting any pods
  starts  master and worker 0 on node-4 or node-5 (tie) immediately`},

		"that gets its master a node that a worker needs: a worker is evicted, though there is room enough": {func() *forecast.Snapshot {
			s := tutorial()
			s.Nodes = append(s.Nodes, forecasttest.Node("node-4", "3.92"))
			return s
		}, nil, high(t), `
high-prio-job will preempt
  evicts  default/low-prio-job-worker-1 (priority 1000) on node-2: job low-prio-job continues with 1 of 2 workers
  starts  master on node-4 immediately; worker 0 on node-2 after its victim has terminated (grace period 30s)`},

		"without pods of lower priority: it waits, with the reason": {func() *forecast.Snapshot {
			return oneNode("4", forecasttest.Pod("busy", "node-1", "2", 1000000, 0))
		}, nil, high(t), `
high-prio-job will wait
  starts  master on node-1 immediately
  waits   worker 0: node-1: Insufficient cpu (requested 3, free 1)`},

		"whose pods fit on no node: they never run": {func() *forecast.Snapshot { return oneNode("2") }, nil, high(t), `
high-prio-job can never run
  starts  master on node-1 immediately
  never   worker 0 fits on no node, even an empty one: 1 has too little cpu (it requests 3, the node has 2)`},

		"whose master waits: its workers are not made": {func() *forecast.Snapshot {
			return oneNode("4", forecasttest.Pod("busy", "node-1", "4", 1000000, 0))
		}, nil, high(t), `
high-prio-job will wait
  waits   master: node-1: Insufficient cpu (requested 1, free 0)
  then    worker 0, made when what comes before runs`},

		"after another one that is planned, or beside it: then the masters leave no room for workers": {func() *forecast.Snapshot {
			s := tutorial()
			s.Pods = nil
			s.Nodes[2] = forecasttest.Node("node-3", "1.92") // the masters'
			return s
		}, []forecast.Job{job(t, forecasttest.TrainingJob("low-prio-job", "high", "low", 1, 2))}, high(t), `
high-prio-job will preempt, and still wait
  evicts  worker 0 of low-prio-job (priority 1000) on node-2: job low-prio-job waits with 0 of 2 workers, below its minimum of 1 (perhaps: a tie may spare it)
  starts  master on node-1 or node-2 (tie) immediately
  perhaps worker 0 on node-2 or node-1 (tie) after its victim has terminated (grace period 30s), or it waits: the scheduler breaks a tie
  waits   worker 0: node-1: Insufficient cpu (requested 3, free 2.92); node-2: Insufficient cpu (requested 3, free 2.92); node-3: Insufficient cpu (requested 3, free 1.92)
          counting low-prio-job, planned before it`},

		"in the place of the one of its name: the old pods are gone": {func() *forecast.Snapshot {
			return oneNode("4", forecasttest.Worker(forecasttest.Pod("high-prio-job-worker-0", "node-1", "3", 1000000, 0), "high-prio-job", 0))
		}, nil, high(t), `
high-prio-job will start without evicting any pods
  starts  master and worker 0 on node-1 immediately`},

		"that takes a pod of its own: it is gone": {func() *forecast.Snapshot {
			return oneNode("4", forecasttest.Pod("busy", "node-1", "4", 5, 0))
		}, nil, high(t), `
high-prio-job will preempt
  evicts  default/busy (priority 5) on node-1: it is lost: nothing recreates it
  starts  master on node-1 after its victim has terminated (grace period 30s); worker 0 on node-1 after default/busy has terminated (grace period 30s)`},

		"whose victim is made again, and finds another node": {func() *forecast.Snapshot {
			s := oneNode("4", forecasttest.OfJob(forecasttest.Pod("cheap", "node-1", "4", 5, 0), "cheap"))
			s.Nodes[0].Labels["fast"] = "true"
			s.Nodes = append(s.Nodes, forecasttest.Node("node-2", "4"))
			return s
		}, nil, onlyOn(high(t), "fast"), `
high-prio-job will preempt
  evicts  default/cheap (priority 5) on node-1: Job cheap recreates it, and it starts on node-2
  starts  master on node-1 after its victim has terminated (grace period 30s); worker 0 on node-1 after default/cheap has terminated (grace period 30s)`},

		"with an eviction that causes another: both are named": {func() *forecast.Snapshot {
			s := oneNode("4", forecasttest.OfJob(forecasttest.Pod("middle", "node-1", "4", 500, 0), "middle"))
			s.Nodes[0].Labels["fast"] = "true"
			s.Nodes = append(s.Nodes, forecasttest.Node("node-2", "4"))
			s.Pods = append(s.Pods, forecasttest.Pod("cheap", "node-2", "4", 5, 0))
			return s
		}, nil, onlyOn(high(t), "fast"), `
high-prio-job will preempt
  evicts  default/middle (priority 500) on node-1: Job middle recreates it, and it starts on node-2
  evicts  default/cheap (priority 5) on node-2: it is lost: nothing recreates it
  starts  master on node-1 after its victim has terminated (grace period 30s); worker 0 on node-1 after default/middle has terminated (grace period 30s)`},

		"while a pod stops: it starts when that has stopped": {func() *forecast.Snapshot {
			going := forecasttest.Pod("going", "node-1", "3", 1000000, 0)
			going.DeletionTimestamp, going.DeletionGracePeriodSeconds = &going.CreationTimestamp, new(int64(5))
			return oneNode("4", going)
		}, nil, high(t), `
high-prio-job will start without evicting any pods
  starts  master on node-1 immediately; worker 0 on node-1 after default/going has terminated (grace period 5s)`},

		"beside a pod that stops: it does not wait for that": {func() *forecast.Snapshot {
			going := forecasttest.Pod("going", "node-1", "1", 1000000, 0)
			going.DeletionTimestamp, going.DeletionGracePeriodSeconds = &going.CreationTimestamp, new(int64(300))
			return oneNode("5", going)
		}, nil, high(t), `
high-prio-job will start without evicting any pods
  starts  master and worker 0 on node-1 immediately`},

		"with a victim beside a pod that stops: it waits for its victim": {func() *forecast.Snapshot {
			going := forecasttest.Pod("going", "node-1", "1", 1000000, 0)
			going.DeletionTimestamp, going.DeletionGracePeriodSeconds = &going.CreationTimestamp, new(int64(300))
			return oneNode("5", going, forecasttest.Pod("cheap", "node-1", "3", 5, 0))
		}, nil, high(t), `
high-prio-job will preempt
  evicts  default/cheap (priority 5) on node-1: it is lost: nothing recreates it
  starts  master on node-1 immediately; worker 0 on node-1 after its victim has terminated (grace period 30s)`},

		"while two pods stop: it starts when the first has": {func() *forecast.Snapshot {
			soon, late := forecasttest.Pod("soon", "node-1", "2", 1000000, 0), forecasttest.Pod("late", "node-1", "2", 1000000, 0)
			soon.DeletionTimestamp, soon.DeletionGracePeriodSeconds = &soon.CreationTimestamp, new(int64(5))
			late.DeletionTimestamp, late.DeletionGracePeriodSeconds = &late.CreationTimestamp, new(int64(300))
			return oneNode("6", late, soon)
		}, nil, high(t), `
high-prio-job will start without evicting any pods
  starts  master on node-1 immediately; worker 0 on node-1 after default/soon has terminated (grace period 5s)`},

		"while another, as important, waits longer: that one may come first": {func() *forecast.Snapshot {
			going := forecasttest.Pod("going", "node-1", "3", 1000000, 0)
			going.DeletionTimestamp = &going.CreationTimestamp
			return oneNode("4", going, forecasttest.Pod("longer", "", "2", 1000000, 0))
		}, nil, high(t), `
high-prio-job will wait
  starts  master on node-1 immediately
  perhaps worker 0 on node-1 after default/going has terminated (grace period 30s), or it waits: the scheduler breaks a tie
  waits   worker 0: node-1: Insufficient cpu (requested 3, free 1)`},

		"with a worker that is being deleted already: it is none of the workers": {func() *forecast.Snapshot {
			s := tutorial()
			going := forecasttest.Worker(forecasttest.Pod("low-prio-job-worker-2", "node-1", "0", 1000, 0), "low-prio-job", 2)
			going.DeletionTimestamp = &going.CreationTimestamp
			s.Pods = append(s.Pods, going)
			return s
		}, nil, high(t), `
high-prio-job will preempt
  evicts  default/low-prio-job-worker-1 (priority 1000) on node-2: job low-prio-job continues with 1 of 2 workers
  starts  master on node-3 immediately; worker 0 on node-2 after its victim has terminated (grace period 30s)`},

		"without permission to read budgets: the answer has the consequence": {func() *forecast.Snapshot {
			s := tutorial()
			s.Unread = []forecast.Unread{{Kind: forecast.Budgets, Verb: "list poddisruptionbudgets.policy"}}
			return s
		}, nil, high(t), `
high-prio-job will preempt
  evicts  default/low-prio-job-worker-1 (priority 1000) on node-2: job low-prio-job continues with 1 of 2 workers
  starts  master on node-3 immediately; worker 0 on node-2 after its victim has terminated (grace period 30s)
          approximate: PodDisruptionBudgets could not be read (list poddisruptionbudgets.policy), and may spare some of the victims`},
	} {
		t.Run(behaviour, func(t *testing.T) {
			answer := forecast.Run(t.Context(), c.on(), c.before, c.job)
			want := strings.TrimPrefix(c.wantText, "\n") + "\nBased on the cluster state at 10:04:07Z; nothing is reserved."
			if diff := cmp.Diff(want, answer.Summary()+"\n"+answer.Text()); diff != "" {
				t.Errorf("(-want +got):\n%s\n%s", diff, answer.Text())
			}
		})
	}
}

// onlyOn makes a job's pods choose nodes with a label.
func onlyOn(of forecast.Job, label string) forecast.Job {
	for _, stage := range of.Stages {
		for _, part := range stage {
			for _, pod := range part.Pods {
				pod.Spec.NodeSelector = map[string]string{label: "true"}
			}
		}
	}
	return of
}
