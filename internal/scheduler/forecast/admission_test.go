package forecast_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	controllerconstants "sigs.k8s.io/kueue/pkg/controller/constants"

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
	other := *s.Queues.LocalQueues[0]
	other.Name = "other-queue"
	s.Queues.LocalQueues = append(s.Queues.LocalQueues, &other)
	s.Queues.ClusterQueues[0].Spec.AdmissionScope = &kueue.AdmissionScope{AdmissionMode: kueue.UsageBasedAdmissionFairSharing}
	return s
}

func taskJob(t testing.TB, of task.Task) forecast.Job {
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
	elsewhere := waiting.DeepCopy()
	elsewhere.Spec.QueueName = "other-queue"
	for behaviour, c := range map[string]struct {
		on       *forecast.Snapshot
		before   []forecast.Job
		job      forecast.Job
		wantText string
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
second may wait
  queue   admitted by ClusterQueue team with quota of any; or waits, first in line, if other planned jobs reach their queues first: couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor any, 4 more needed
  perhaps the pod on node-1 immediately, or it waits for quota
          counting first, planned before it`,
		},

		"after one that is planned, and is less important: it is evicted before it has begun": {
			team(nil), []forecast.Job{taskJob(t, forecasttest.Task("first", "user-queue", "low", "4", 1))}, taskJob(t, forecasttest.Task("second", "user-queue", "high", "4", 1)), `
second may preempt
  queue   admitted by ClusterQueue team with quota of any
  evicts  workload first (planned) (priority 100): task first is queued again, first in line (perhaps: the order in which the planned jobs reach their queues decides)
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

		"that orders by past usage, with others of another LocalQueue in it": {
			byUsage(team([]*kueue.Workload{low, elsewhere}, lowPod)), nil, taskJob(t, forecasttest.Task("low-too", "user-queue", "low", "4", 1)), `
low-too will wait
  queue   waits in ClusterQueue team, behind 1: task low: those before it find no quota either
          approximate: workload job-waiting is ahead and about to be admitted; the places of its pods are not known
          approximate: ClusterQueue team orders workloads by what their LocalQueues have used, which the forecast does not compute`,
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
			answer := forecast.Run(t.Context(), c.on, c.before, c.job)
			want := strings.TrimPrefix(c.wantText, "\n") + "\nBased on the cluster state at 10:04:07Z; nothing is reserved."
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
			running.Annotations = map[string]string{controllerconstants.PriorityBoostAnnotationKey: c.boost}
		}
		s := team([]*kueue.Workload{running}, pod)
		s.Nodes = append(s.Nodes, forecasttest.Node("node-2", "8"))
		s.Queues = forecasttest.Queues(c.quota, running)
		planned, err := forecast.OfTask(forecasttest.Task("urgent", "user-queue", "high", "4", 1), nil)
		if err != nil {
			t.Fatal(err)
		}
		answer := forecast.Run(t.Context(), s, nil, planned)
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
		wantText string
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
		answer := forecast.Run(t.Context(), s, nil, job)
		if text := answer.Text(); !strings.Contains(text, c.wantText) {
			t.Errorf("%s: %q is not in\n%s", name, c.wantText, text)
		}
		if noted := len(reasonsWith(answer, forecast.QueueTopology)) > 0; noted != c.noted {
			t.Errorf("%s: noted %t: %v", name, noted, answer.Approximate)
		}
	}
}

// TestAnInitContainerThatKueueDoesNotCountNeedsNoQuota has a queue with quota of CPUs only. KubeRay adds an init container
// with a request of memory to a RayCluster's workers, which is in no Workload.
func TestAnInitContainerThatKueueDoesNotCountNeedsNoQuota(t *testing.T) {
	const added = "wait-gcs-ready"
	for uncounted, outcome := range map[string]forecast.Outcome{added: forecast.Fits, "": forecast.Never} {
		job := forecast.MapPods([]forecast.Job{taskJob(t, forecasttest.Task("ray", "user-queue", "high", "4", 1))}, func(pod forecast.Pod) forecast.Pod {
			pod.Pod = pod.DeepCopy()
			pod.Uncounted = uncounted
			pod.Spec.InitContainers = append(pod.Spec.InitContainers, corev1.Container{Name: added, Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("256Mi")},
			}})
			return pod
		})[0]
		if answer := forecast.Run(t.Context(), team(nil), nil, job); answer.Outcome != outcome {
			t.Errorf("not counted %q: outcome %s, expected %s\n%s", uncounted, answer.Outcome, outcome, answer.Text())
		}
	}
}

// TestKueueDoesNotKnowWhatARuntimeClassAddsToAPodsSelector has a RuntimeClass for other nodes than those of the queue's
// flavor. Kueue admits the Job, whose template does not show it, and the API server rejects the pods.
func TestKueueDoesNotKnowWhatARuntimeClassAddsToAPodsSelector(t *testing.T) {
	s := team(nil)
	for _, flavor := range s.Queues.Flavors {
		flavor.Spec.NodeLabels = map[string]string{"pool": "a"}
	}
	s.RuntimeClasses = []*nodev1.RuntimeClass{{
		ObjectMeta: metav1.ObjectMeta{Name: "sandboxed"}, Handler: "kata",
		Scheduling: &nodev1.Scheduling{NodeSelector: map[string]string{"pool": "b"}},
	}}
	job := forecast.MapPods([]forecast.Job{taskJob(t, forecasttest.Task("urgent", "user-queue", "high", "4", 1))}, func(pod forecast.Pod) forecast.Pod {
		pod.Pod = pod.DeepCopy()
		pod.Spec.RuntimeClassName = new("sandboxed")
		return pod
	})[0]
	text := forecast.Run(t.Context(), s, nil, job).Text()
	if want := "conflict: runtimeClass.scheduling.nodeSelector[pool] = b; pod.spec.nodeSelector[pool] = a"; !strings.Contains(text, want) {
		t.Errorf("%q is not in\n%s", want, text)
	}
}

// TestAPlannedJobIsPerhapsAdmittedIfAnotherOneMayTakeTheQuotaFirst plans two tasks in a queue with quota of 4 CPU.
func TestAPlannedJobIsPerhapsAdmittedIfAnotherOneMayTakeTheQuotaFirst(t *testing.T) {
	for cpus, perhaps := range map[string]bool{"2": false, "4": true, "9": false} {
		first, second := forecasttest.Task("first", "user-queue", "high", cpus, 1), forecasttest.Task("second", "user-queue", "high", cpus, 1)
		for _, answer := range forecast.All(t.Context(), team(nil), []forecast.Job{taskJob(t, first), taskJob(t, second)}) {
			if got := answer.Queues[0].Perhaps; got != perhaps || len(answer.Approximate) > 0 {
				t.Errorf("%s CPU each: perhaps %t: %v\n%s", cpus, got, answer.Approximate, answer.Text())
			}
		}
	}
}

// TestManyPlannedJobsInQueuesAreApproximateIfTheirOrderMatters plans more tasks than are followed in all orders.
func TestManyPlannedJobsInQueuesAreApproximateIfTheirOrderMatters(t *testing.T) {
	for tasks, approximate := range map[int]bool{3: false, 4: true} {
		var jobs []forecast.Job
		for i := range tasks {
			jobs = append(jobs, taskJob(t, forecasttest.Task(fmt.Sprint("task-", i), "user-queue", "high", "2", 1)))
		}
		for _, answer := range forecast.All(t.Context(), team(nil), jobs) {
			if noted := len(reasonsWith(answer, forecast.CreationOrder)) > 0; noted != approximate {
				t.Errorf("%d tasks: noted %t\n%s", tasks, noted, answer.Text())
			}
		}
	}
}

// TestTheOrderOfTheTasksOfAPlanDecidesNothing draws tasks in a queue: what is forecast for each of them is the same in every
// order of the plan, on nodes that have room for all.
func TestTheOrderOfTheTasksOfAPlanDecidesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var workloads []*kueue.Workload
		var pods []*corev1.Pod
		for i := range rapid.IntRange(0, 2).Draw(t, "running") {
			running, pod := runningTask(fmt.Sprint("old-", i), int32(rapid.SampledFrom([]int{100, 1000}).Draw(t, "priority"))) //nolint:gosec // small
			workloads, pods = append(workloads, running), append(pods, pod)
		}
		s := team(workloads, pods...)
		s.Queues = forecasttest.Queues(fmt.Sprint(rapid.IntRange(4, 9).Draw(t, "quota")), workloads...)
		s.Nodes = []*corev1.Node{forecasttest.Node("node-1", "64")}
		var jobs []forecast.Job
		for i := range rapid.IntRange(2, 3).Draw(t, "tasks") {
			of := forecasttest.Task(fmt.Sprint("new-", i), "user-queue", rapid.SampledFrom([]string{"low", "high"}).Draw(t, "class"), fmt.Sprint(rapid.IntRange(1, 4).Draw(t, "CPU")), 1)
			planned, err := forecast.OfTask(of, nil)
			if err != nil {
				t.Fatal(err)
			}
			jobs = append(jobs, planned)
		}
		said := func(jobs []forecast.Job) map[string]string {
			texts := map[string]string{}
			for _, a := range forecast.All(t.Context(), s, jobs) {
				var evicts []string
				for _, e := range a.Evicts {
					evicts = append(evicts, fmt.Sprint(e.Name, e.Certain))
				}
				slices.Sort(evicts)
				texts[a.Name] = fmt.Sprint(a.Outcome, a.MaySpareAll, a.Queues[0].Admitted, a.Queues[0].Perhaps, a.Queues[0].Never, a.Pods[0].State, a.Pods[0].Nodes, evicts)
			}
			return texts
		}
		if diff := cmp.Diff(said(jobs), said(rapid.Permutation(jobs).Draw(t, "order"))); diff != "" {
			t.Fatal(diff)
		}
	})
}

// TestAJobWhoseClassIsMissingWaitsWithoutAWorkload has what Kueue 0.19.2 does: it creates no Workload before the class is
// there, and the pods of the Job stay suspended.
func TestAJobWhoseClassIsMissingWaitsWithoutAWorkload(t *testing.T) {
	planned, err := forecast.OfTask(forecasttest.Task("new", "user-queue", "nope", "1", 1), nil)
	if err != nil {
		t.Fatal(err)
	}
	s := team(nil)
	answer := forecast.Run(t.Context(), s, nil, planned)
	assertText(t, answer, "new will wait", "waits outside LocalQueue user-queue: WorkloadPriorityClass nope does not exist")
	if answer.Outcome != forecast.Pends || len(answer.Approximate) > 0 {
		t.Errorf("got %s, %v", answer.Outcome, answer.Approximate)
	}
	s.Open = true
	if answer := forecast.Run(t.Context(), s, nil, planned); len(reasonsWith(answer, forecast.MissingClass)) != 1 {
		t.Errorf("others may create the class first: %v", answer.Approximate)
	}
}

func TestAClassThatCouldNotBeReadMayExist(t *testing.T) {
	task, err := forecast.OfTask(forecasttest.Task("new", "user-queue", "nope", "1", 1), nil)
	if err != nil {
		t.Fatal(err)
	}
	classed := jobNamed(t, "new", "1")
	classed.Stages[0][0].Pods[0].Spec.PriorityClassName = "nope"
	for kind, c := range map[forecast.Kind]struct {
		on  *forecast.Snapshot
		job forecast.Job
	}{
		forecast.QueueClasses:    {team(nil), task},
		forecast.PriorityClasses: {oneNode("4"), classed},
	} {
		if answer := forecast.Run(t.Context(), c.on, nil, c.job); answer.Outcome == forecast.Fits {
			t.Errorf("%s: where it could be read, the class does not exist:\n%s", kind, answer.Text())
		}
		c.on.Unread = []forecast.Unread{{Kind: kind, Verb: "list it"}}
		answer := forecast.Run(t.Context(), c.on, nil, c.job)
		if answer.Outcome != forecast.Fits || answer.Claims().Outcome.Certain || len(reasonsWith(answer, forecast.MissingClass)) != 1 {
			t.Errorf("%s: where it could not be read:\n%s", kind, answer.Text())
		}
	}
}
