package forecast_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/task"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast/forecasttest"
)

// team is a node of 8 CPU and a queue with quota of 4.
func team(workloads []*kueue.Workload, pods ...*corev1.Pod) *forecast.Snapshot {
	s := oneNode("8", pods...)
	s.Queues = forecasttest.Queues("4", workloads...)
	return s
}

// runningTask is a task of one pod of 4 CPU that holds quota.
func runningTask(name string, priority int32) (*kueue.Workload, *corev1.Pod) {
	pod := forecasttest.OfJob(forecasttest.Pod(name+"-pod", "node-1", "4", 0, 10), name)
	pod.Labels[task.LabelTask] = name
	return forecasttest.Workload("Job", name, "job-"+pod.OwnerReferences[0].UID[4:], pod, priority, 10), pod
}

// sharing is a cohort of 12 CPU of which team has 4 and uses them, and another queue has none and borrows 8. Kueue
// writes shares where it shares fairly.
func sharing(fair bool) *forecast.Snapshot {
	own, ownPod := runningTask("own", 1000)
	first, firstPod := runningTask("first", 1000)
	second, secondPod := runningTask("second", 1000)
	first.Status.Admission.ClusterQueue, second.Status.Admission.ClusterQueue = "borrower", "borrower"
	s := oneNode("16", ownPod, firstPod, secondPod)
	s.Queues = forecasttest.Queues("4", own, first, second)
	for name, cpus := range map[string]string{"borrower": "0", "lender": "8"} {
		other := forecasttest.Queues(cpus).ClusterQueues[0]
		other.Name = name
		s.Queues.ClusterQueues = append(s.Queues.ClusterQueues, other)
	}
	for _, queue := range s.Queues.ClusterQueues {
		queue.Spec.CohortName, queue.Spec.Preemption.ReclaimWithinCohort = "all", kueue.PreemptionPolicyAny
		if fair {
			queue.Status.FairSharing = &kueue.FairSharingStatus{}
		}
	}
	return s
}

func byUsage(s *forecast.Snapshot) *forecast.Snapshot {
	s.Queues.ClusterQueues[0].Spec.AdmissionScope = &kueue.AdmissionScope{AdmissionMode: kueue.UsageBasedAdmissionFairSharing}
	return s
}

func taskJob(t *testing.T, of task.Task) forecast.Job {
	t.Helper()
	planned, err := forecast.OfTask(of, nil)
	if err != nil {
		t.Fatal(err)
	}
	return planned
}

func TestTheForecastForAJobInAQueue(t *testing.T) {
	low, lowPod := runningTask("low", 100)
	waiting := forecasttest.Workload("Job", "waiting", "job-waiting", forecasttest.Pod("waiting", "", "4", 0, 0), 1000, -20)
	for behaviour, c := range map[string]struct {
		on     *forecast.Snapshot
		before []forecast.Job
		job    forecast.Job
		says   string
	}{
		"that has quota: it is admitted, and starts": {team(nil), nil, taskJob(t, forecasttest.Task("high", "user-queue", "high", "4", 1)), `
high will start without evicting any pods
  queue   admitted by ClusterQueue team with quota of any
  starts  the pod on node-1 immediately`},

		"that preempts: the workload is named, and where it stands then": {
			team([]*kueue.Workload{low}, lowPod), nil, taskJob(t, forecasttest.Task("high", "user-queue", "high", "4", 1)), `
high will preempt
  queue   admitted by ClusterQueue team with quota of any
  evicts  workload default/job-low (priority 100): task low is queued again, first in line
  starts  the pod on node-1 after default/low-pod has terminated (grace period 30s)`,
		},

		"of equal priorities: it waits behind earlier workloads": {
			team([]*kueue.Workload{low, waiting}, lowPod), nil, taskJob(t, forecasttest.Task("low-too", "user-queue", "low", "4", 1)), `
low-too will wait
  queue   waits in ClusterQueue team, behind 1: task low: those before it find no quota either
          approximate: workload job-waiting is ahead and about to be admitted; the places of its pods are not known`,
		},

		"with less quota than it requests: it is never admitted": {team(nil), nil, taskJob(t, forecasttest.Task("high", "user-queue", "high", "5", 1)), `
high can never run
  queue   is never admitted by ClusterQueue team, even if it were the only one: couldn't assign flavors to pod set main: insufficient quota for cpu in flavor any, previously considered podsets requests (0) + current podset request (5) > maximum capacity (4)`},

		"that is not there: it waits for it": {team(nil), nil, taskJob(t, forecasttest.Task("high", "nobodys", "high", "4", 1)), `
high will wait
  queue   waits in LocalQueue nobodys, first in line: LocalQueue nobodys doesn't exist`},

		"after one that is planned, and takes the quota": {
			team(nil), []forecast.Job{taskJob(t, forecasttest.Task("first", "user-queue", "high", "4", 1))}, taskJob(t, forecasttest.Task("second", "user-queue", "high", "4", 1)), `
second will wait
  queue   waits in ClusterQueue team, first in line: couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor any, 4 more needed
          counting first, planned before it`,
		},

		"after one that is planned, and is less important: it is evicted before it has begun": {
			team(nil), []forecast.Job{taskJob(t, forecasttest.Task("first", "user-queue", "low", "4", 1))}, taskJob(t, forecasttest.Task("second", "user-queue", "high", "4", 1)), `
second will preempt
  queue   admitted by ClusterQueue team with quota of any
  evicts  workload first (planned) (priority 100): task first is queued again, first in line
  starts  the pod on node-1 after the pod of first has terminated (grace period 30s)
          counting first, planned before it`,
		},

		"of a cohort in which another borrows more: without fair sharing it waits": {
			sharing(false), nil, taskJob(t, forecasttest.Task("high", "user-queue", "high", "4", 1)), `
high will wait
  queue   waits in ClusterQueue team, first in line: couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor any, 4 more needed`,
		},

		"of a cohort in which another borrows more, and Kueue shares fairly: it takes a part of that": {
			sharing(true), nil, taskJob(t, forecasttest.Task("high", "user-queue", "high", "4", 1)), `
high will preempt
  queue   admitted by ClusterQueue team with quota of any, borrowed from its cohort
  evicts  workload default/job-first (priority 1000): task first is queued again, first in line
  starts  the pod on node-1 after default/first-pod has terminated (grace period 30s)
          approximate: Kueue shares fairly here, and is taken to preempt by its default strategies`,
		},

		"that orders by past usage, with others in it: that is not looked at": {
			byUsage(team([]*kueue.Workload{low, waiting}, lowPod)), nil, taskJob(t, forecasttest.Task("low-too", "user-queue", "low", "4", 1)), `
low-too will wait
  queue   waits in ClusterQueue team, behind 1: task low: those before it find no quota either
          approximate: workload job-waiting is ahead and about to be admitted; the places of its pods are not known
          approximate: ClusterQueue team may order workloads by what their LocalQueues have used, which is not looked at`,
		},

		"that is elastic: its minimum is one workload, and every other worker another": {
			team(nil), nil, job(t, elastic("elastic", 1, 2)), `
elastic will start without evicting any pods
  queue   master and worker 0 admitted by ClusterQueue team with quota of any
  queue   worker 1 waits in ClusterQueue team, first in line: couldn't assign flavors to pod set worker: insufficient unused quota for cpu in flavor any, 3 more needed
  starts  master and worker 0 on node-1 immediately`,
		},
	} {
		t.Run(behaviour, func(t *testing.T) {
			answer := forecast.Make(c.on, c.before, c.job)
			want := strings.TrimPrefix(c.says, "\n") + "\nBased on the cluster state at 10:04:07Z; nothing is reserved."
			if diff := cmp.Diff(want, answer.Summary()+"\n"+answer.Text()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// elastic is a training job in the queue: a master of one CPU, and workers of one.
func elastic(name string, least, most int) trainingjob.Definition {
	d := forecasttest.TrainingJob(name, "", "", least, most)
	d.Queue = &trainingjob.Queue{Name: "user-queue", PriorityClass: "low", MinPriorityClass: "high"}
	return d
}

// TestABoostedWorkloadMakesAForecastApproximateWhereItMayMatter has a running task of 4 CPU in a queue of 4, with and
// without a boost: a job that evicts it, and one that fits beside it in a larger queue.
func TestABoostedWorkloadMakesAForecastApproximateWhereItMayMatter(t *testing.T) {
	for name, c := range map[string]struct {
		boost, quota string
		noted        bool
	}{
		"a boost of what is evicted":        {"3", "4", true},
		"no boost":                          {"", "4", false},
		"a boost of nothing":                {"0", "4", false},
		"a boost beside a job that fits in": {"3", "8", false},
	} {
		running, pod := runningTask("running", 100)
		if c.boost != "" {
			running.Annotations = map[string]string{kueue.PriorityBoostAnnotation: c.boost}
		}
		s := team([]*kueue.Workload{running}, pod)
		s.Nodes = append(s.Nodes, forecasttest.Node("node-2", "8"))
		s.Queues = forecasttest.Queues(c.quota, running)
		planned, err := forecast.OfTask(forecasttest.Task("urgent", "user-queue", "high", "4", 1), nil)
		if err != nil {
			t.Fatal(err)
		}
		answer := forecast.Make(s, nil, planned)
		if noted := len(reasonsWith(answer, forecast.PriorityBoost)) > 0; noted != c.noted {
			t.Errorf("%s: noted %t: %v", name, noted, answer.Approximate)
		}
	}
}

// TestTopologiesOfFlavorsDecideWhichFlavorAJobGets has a queue with quota of 8 CPU in each of its flavors, of which "rack"
// has a topology that could not be read: then the forecast is approximate.
func TestTopologiesOfFlavorsDecideWhichFlavorAJobGets(t *testing.T) {
	const rack, plain = "rack", "any"
	for name, c := range map[string]struct {
		flavors  []string
		requests bool
		waits    bool // another workload waits in the queue
		says     string
		noted    bool
	}{
		"a request, and no flavor has a topology":           {[]string{plain}, true, false, `"any" does not support TopologyAwareScheduling`, false},
		"a request, and a flavor with a topology":           {[]string{plain, rack}, true, false, "with quota of rack", true},
		"no request passes over the flavor with a topology": {[]string{rack, plain}, false, false, "with quota of any", false},
		"no request, and every flavor has a topology":       {[]string{rack}, false, false, "with quota of rack", true},
		"somebody else may get the flavor with a topology":  {[]string{rack, plain}, false, true, "quota of any", true},
	} {
		var others []*kueue.Workload
		if c.waits {
			others = append(others, forecasttest.Workload("Job", "waiting", "job-waiting", forecasttest.Pod("waiting", "", "12", 0, 0), 100, -20))
		}
		s := team(others)
		s.Queues.TopologiesUnread = "list topologies.kueue.x-k8s.io"
		s.Queues.Flavors = append(s.Queues.Flavors, &kueue.ResourceFlavor{
			ObjectMeta: metav1.ObjectMeta{Name: rack}, Spec: kueue.ResourceFlavorSpec{TopologyName: new(kueue.TopologyReference("racks"))},
		})
		group := &s.Queues.ClusterQueues[0].Spec.ResourceGroups[0]
		quotas := group.Flavors[0].Resources
		group.Flavors = nil
		for _, flavor := range c.flavors {
			group.Flavors = append(group.Flavors, kueue.FlavorQuotas{Name: kueue.ResourceFlavorReference(flavor), Resources: quotas})
		}
		job := taskJob(t, forecasttest.Task("urgent", "user-queue", "high", "4", 1))
		if c.requests {
			job = forecast.MapPods([]forecast.Job{job}, func(pod forecast.Pod) forecast.Pod {
				pod.Pod = pod.DeepCopy()
				pod.Annotations = map[string]string{kueue.PodSetRequiredTopologyAnnotation: "example.com/rack"}
				return pod
			})[0]
		}
		answer := forecast.Make(s, nil, job)
		if text := answer.Text(); !strings.Contains(text, c.says) {
			t.Errorf("%s: %q is not in\n%s", name, c.says, text)
		}
		if noted := len(reasonsWith(answer, forecast.QueueTopology)) > 0; noted != c.noted {
			t.Errorf("%s: noted %t: %v", name, noted, answer.Approximate)
		}
	}
}
