package forecast_test

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast/forecasttest"
)

// inZones is a cluster of nodes with 4 CPUs each, the name of each followed by its zone.
func inZones(nodes map[string]string, pods ...*corev1.Pod) *forecast.Snapshot {
	s := oneNode("4", pods...)
	s.Nodes = nil
	for name, zone := range nodes {
		node := forecasttest.Node(name, "4")
		node.Labels["zone"] = zone
		s.Nodes = append(s.Nodes, node)
	}
	slices.SortFunc(s.Nodes, func(a, b *corev1.Node) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return s
}

// awayFrom is the pair of important pods that may share no zone with pods that have the label app=noisy.
const awayFrom = `
parallelism: 2
completions: 2
template:
  spec:
    priorityClassName: high
    containers: [{name: main, resources: {requests: {cpu: 3}}}]
    affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone, labelSelector: {matchLabels: {app: noisy}}}]}}
`

func noisy(pod *corev1.Pod) *corev1.Pod {
	pod.Labels = map[string]string{"app": "noisy"}
	return pod
}

func evictionOf(a forecast.Answer, name string) *forecast.Eviction {
	at := slices.IndexFunc(a.Evicts, func(e forecast.Eviction) bool { return e.Name == name })
	if at < 0 {
		return nil
	}
	return &a.Evicts[at]
}

// The first pod evicts the noisy one. If that has stopped before the second pod is tried, node-2 is open to it.
// Otherwise the second pod evicts the pod on node-3.
func TestAVictimOfAnEarlierPodMayBeGoneBeforeTheNextIsTried(t *testing.T) {
	s := inZones(map[string]string{"node-1": "a", "node-2": "a", "node-3": "b"},
		noisy(forecasttest.Pod("noisy", "node-1", "3", 100, 0)), forecasttest.Pod("other", "node-3", "3", 1000, 0))
	answer := forecast.Run(t.Context(), s, nil, batchJob(t, awayFrom))
	if e := evictionOf(answer, "other"); e == nil || e.Certain {
		t.Errorf("the other pod may be evicted, or not: %+v\n%s", e, answer.Text())
	}
	if e := evictionOf(answer, "noisy"); e == nil || !e.Certain || len(answer.Approximate) > 0 {
		t.Errorf("the noisy pod is evicted in any case: %+v, approximate %v", e, answer.Approximate)
	}
	assertText(t, answer, "node-2")
}

// When the noisy pod has stopped, a pending pod may take node-2 before the second planned pod, which then evicts it.
func TestEveryPendingPodOfLowerPriorityMayTakeFreedRoom(t *testing.T) {
	for _, before := range []int{0, 6, 210} { // pods that fit nowhere and come before it in the queue
		t.Run(fmt.Sprint(before, " others"), func(t *testing.T) {
			s := inZones(map[string]string{"node-1": "a", "node-2": "a"}, noisy(forecasttest.Pod("noisy", "node-1", "3", 100, 0)))
			for i := range before {
				s.Pods = append(s.Pods, forecasttest.Pod(fmt.Sprint("large-", i), "", fmt.Sprint(5+i), 500, i))
			}
			waits := forecasttest.Pod("waits", "", "3", 500, 86_000)
			waits.Spec.Affinity = batchJob(t, awayFrom).Stages[0][0].Pods[0].Spec.Affinity
			s.Pods = append(s.Pods, waits)
			answer := forecast.Run(t.Context(), s, nil, batchJob(t, awayFrom))
			isReason := func(r forecast.Reason) bool { return r.Code == forecast.TooManyChoices }
			if e := evictionOf(answer, "waits"); (e == nil || e.Certain) && !slices.ContainsFunc(answer.Approximate, isReason) {
				t.Errorf("the pending pod may be evicted after it has taken node-2, or not: %+v\n%s", e, answer.Text())
			}
		})
	}
}

func TestPendingPodsThatNoVictimMakesRoomForAreNoReason(t *testing.T) {
	s := oneNode("4")
	for i := range 300 {
		s.Pods = append(s.Pods, forecasttest.Pod(fmt.Sprint("large-", i), "", "5", 500, i))
	}
	if answer := forecast.Run(t.Context(), s, nil, batchJob(t, "{template: {spec: {priorityClassName: high}}}")); len(answer.Approximate) > 0 {
		t.Errorf("approximate: %v", answer.Approximate)
	}
}

// When the noisy pod has stopped, a pending pod may take any of three equal nodes, also the one for which the second
// job asks.
func TestAllNodesThatAPendingPodMayTakeAreFollowed(t *testing.T) {
	away := batchJob(t, awayFrom).Stages[0][0].Pods[0].Spec.Affinity
	urgent := forecasttest.Pod("urgent", "", "3", 2_000_000, 0)
	urgent.Spec.PreemptionPolicy, urgent.Spec.Affinity = new(corev1.PreemptNever), away
	s := inZones(map[string]string{"node-1": "a", "node-2": "a", "node-3": "a"}, noisy(forecasttest.Pod("noisy", "node-1", "3", 100, 0)), urgent)
	var jobs []forecast.Job
	for _, node := range []string{"node-1", "node-2"} {
		job := named(t, "on-"+node, "{template: {spec: {priorityClassName: high, nodeSelector: {kubernetes.io/hostname: "+node+"}}}}")
		jobs = append(jobs, job)
	}
	jobs[1].Stages[0][0].Pods[0].Spec.Affinity = away
	for _, answer := range forecast.All(t.Context(), s, jobs) {
		if pod := answer.Pods[0]; pod.State != forecast.Waits || len(pod.Nodes) == 0 {
			t.Errorf("%s may start, or not: %+v", answer.Name, pod)
		}
	}
}

func TestAPendingPodThatFindsRoomNowMayTakeItFirst(t *testing.T) {
	s := oneNode("4", forecasttest.Pod("just-created", "", "3", 0, 0))
	answer := forecast.Run(t.Context(), s, nil, batchJob(t, "{template: {spec: {}}}"))
	if pod := answer.Pods[0]; pod.State != forecast.Waits || len(pod.Nodes) == 0 {
		t.Errorf("the pod starts, or waits behind the other: %+v", pod)
	}
}

func TestAPlannedPodThatWaitsTakesTheRoomThatALaterJobMakes(t *testing.T) {
	s := oneNode("4", forecasttest.Pod("wide", "node-1", "4", 1500, 0))
	s.Pods[0].Status.StartTime = new(metav1.NewTime(forecasttest.AsOf.Add(-1)))
	small := "{template: {spec: {priorityClassName: %s, containers: [{name: main, resources: {requests: {cpu: 2}}}]}}}"
	jobs := []forecast.Job{named(t, "first", fmt.Sprintf(small, "low")), named(t, "second", fmt.Sprintf(small, "high"))}
	for _, answer := range forecast.All(t.Context(), s, jobs) {
		if pod := answer.Pods[0]; pod.State != forecast.Starts {
			t.Errorf("%s starts when the wide pod has stopped: %+v", answer.Name, pod)
		}
	}
}

// The master of the training job finds room at once. Its worker is created while the victim of the other job is stopping,
// and takes the room that the victim leaves; or it is created when the other job's pod has started, and evicts that.
func TestPodsThatFollowOthersAreCreatedWhileVictimsOfAnotherPlannedJobStop(t *testing.T) {
	s := oneNode("4", forecasttest.Pod("lowest", "node-1", "4", 100, 0))
	s.Nodes = append(s.Nodes, forecasttest.Node("node-2", "1"))
	training := job(t, forecasttest.TrainingJob("training", "high", "high", 1, 1))
	answers := forecast.All(t.Context(), s, []forecast.Job{named(t, "other", "{template: {spec: {priorityClassName: low}}}"), training})
	for _, answer := range answers {
		if len(answer.Approximate) > 0 {
			t.Errorf("approximate: %v", answer.Approximate)
		}
	}
	if e := evictionOf(answers[1], "the pod of other"); e == nil || e.Certain {
		t.Errorf("the worker may evict the pod of the other job, or not: %+v\n%s", e, answers[1].Text())
	}
}

// The important Job's pod comes after the planned one of little importance, and evicts it. There is room for both.
func TestOnlyAPlannedPodWithAControllerIsScheduledAgainWhenAnotherEvictsIt(t *testing.T) {
	for noun, want := range map[string]struct {
		state   forecast.State
		outcome string
	}{
		"pod": {forecast.Waits, "it is lost: nothing recreates it"},
		"Job": {forecast.Starts, "Job first recreates it, and it starts on node-2"},
	} {
		s := oneNode("4")
		s.Nodes = append(s.Nodes, forecasttest.Node("node-2", "4"))
		s.Nodes[0].Labels["pool"] = "a"
		first := named(t, "first", "{template: {spec: {priorityClassName: low, affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 100, preference: {matchExpressions: [{key: pool, operator: Exists}]}}]}}}}}")
		first.Noun = noun
		second := named(t, "second", "{template: {spec: {priorityClassName: high, nodeSelector: {pool: a}}}}")
		answers := forecast.All(t.Context(), s, []forecast.Job{first, second})
		if pod := answers[0].Pods[0]; pod.State != want.state {
			t.Errorf("%s: %+v", noun, pod)
		}
		if e := evictionOf(answers[1], "the pod of first"); e == nil || e.Certain || e.Outcome != want.outcome {
			t.Errorf("%s: %+v\n%s", noun, e, answers[1].Text())
		}
	}
}

func TestMoreVictimsThanAreNamedAreAReason(t *testing.T) {
	s := oneNode("4")
	s.Nodes = nil
	for i := range 80 {
		name := fmt.Sprint("node-", i)
		s.Nodes = append(s.Nodes, forecasttest.Node(name, "4"))
		s.Pods = append(s.Pods, forecasttest.Pod("low-"+name, name, "3", 100, 0))
	}
	answer := forecast.Run(t.Context(), s, nil, batchJob(t, "{template: {spec: {priorityClassName: high}}}"))
	if len(answer.Evicts) < 80 && !slices.ContainsFunc(answer.Approximate, func(r forecast.Reason) bool { return r.Code == forecast.TooManyChoices }) {
		t.Errorf("%d of 80 possible victims are named, approximate %v", len(answer.Evicts), answer.Approximate)
	}
}

// Eight pods of different sizes that began at the same time may be in any of 40,320 orders.
func TestMoreOrdersOfVictimsThanAreTriedAreAReason(t *testing.T) {
	s := oneNode("10")
	for i := range 8 {
		s.Pods = append(s.Pods, forecasttest.Pod(fmt.Sprint("low-", i), "node-1", fmt.Sprintf("%dm", 1000+i), 100, 0))
	}
	answer := forecast.Run(t.Context(), s, nil, batchJob(t, "{template: {spec: {priorityClassName: high, containers: [{name: main, resources: {requests: {cpu: 5}}}]}}}"))
	if !slices.ContainsFunc(answer.Approximate, func(r forecast.Reason) bool { return r.Code == forecast.TooManyChoices }) {
		t.Errorf("approximate %v:\n%s", answer.Approximate, answer.Text())
	}
}

func TestMoreCyclesOfAQueueThanAreFollowedAreAReason(t *testing.T) {
	var waiting []*kueue.Workload
	for i := range 1100 { // each a size of its own, so that Kueue decides about each
		name := fmt.Sprint("large-", i)
		waiting = append(waiting, forecasttest.Workload("Job", name, types.UID("job-"+name), forecasttest.Pod(name, "", fmt.Sprint(5+i), 0, 0), 2000, -20))
	}
	answer := forecast.Run(t.Context(), team(waiting), nil, taskJob(t, forecasttest.Task("high", "user-queue", "high", "3", 1)))
	if !slices.ContainsFunc(answer.Approximate, func(r forecast.Reason) bool { return r.Code == forecast.TooManyChoices }) {
		t.Errorf("approximate %v:\n%s", answer.Approximate, answer.Text())
	}
}

// A pending pod that the scheduler has not tried yet evicts another pod with and without the planned job.
func TestWhatAPendingPodEvictsWithoutThePlannedJobIsNotItsEviction(t *testing.T) {
	pending := forecasttest.Pod("pending", "", "3", 500, 0)
	pending.Spec.NodeSelector = map[string]string{"zone": "b"}
	s := inZones(map[string]string{"node-1": "a", "node-2": "b"},
		forecasttest.Pod("ours", "node-1", "3", 100, 0), forecasttest.Pod("theirs", "node-2", "3", 100, 0), pending)
	answer := forecast.Run(t.Context(), s, nil, batchJob(t, `{template: {spec: {priorityClassName: high, nodeSelector: {zone: a},
		containers: [{name: main, resources: {requests: {cpu: 3}}}]}}}`))
	if e := evictionOf(answer, "ours"); e == nil || !e.Certain {
		t.Errorf("the job evicts the pod in its zone: %+v\n%s", e, answer.Text())
	}
	if e := evictionOf(answer, "theirs"); e != nil {
		t.Errorf("the pending pod evicts the pod in the other zone, and not the job: %+v\n%s", e, answer.Text())
	}
}

// twoVictims is a cluster in which a gang of two pods with 2 CPUs evicts small from node-1 and large from node-2, and of
// which 1 CPU of node-2 is free then. A pod of little priority fills node-3.
func twoVictims(ofSmall string) *forecast.Snapshot {
	small := forecasttest.Pod("small", "node-1", "1", 100, 0)
	small.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: ofSmall, Name: "web", UID: "web", Controller: new(true)}}
	s := oneNode("2", small, forecasttest.Pod("large", "node-2", "3", 100, 0), forecasttest.Pod("little", "node-3", "1", 50, 0))
	s.Nodes = append(s.Nodes, forecasttest.Node("node-2", "3"), forecasttest.Node("node-3", "1"))
	return s
}

const twoOfTwo = `{parallelism: 2, completions: 2, template: {spec: {priorityClassName: high, containers: [{name: main, resources: {requests: {cpu: 2}}}]}}}`

// A ReplicaSet creates a new pod for small as soon as small is being deleted, a StatefulSet when it is gone. While large
// still stops, the new pod evicts little; afterwards it finds room on node-2.
func TestAReplacementMayBeTriedWhileOtherVictimsStillStop(t *testing.T) {
	for _, kind := range []string{"ReplicaSet", "StatefulSet"} {
		answer := forecast.Run(t.Context(), twoVictims(kind), nil, batchJob(t, twoOfTwo))
		if e := evictionOf(answer, "little"); e == nil || e.Certain {
			t.Errorf("%s: the little pod may be evicted, or not: %+v\n%s", kind, e, answer.Text())
		}
		for _, name := range []string{"small", "large"} {
			if e := evictionOf(answer, name); e == nil || !e.Certain {
				t.Errorf("%s: %s is evicted in any case: %+v", kind, name, e)
			}
		}
	}
}

// The first stage evicts web, whose new pod finds the empty node-2, from where the second stage evicts it. It then
// evicts one of the two little pods.
func TestAReplacementThatIsEvictedInTurnIsReplacedOnce(t *testing.T) {
	web := forecasttest.Pod("web", "node-1", "3", 100, 0)
	web.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "web", Controller: new(true)}}
	s := oneNode("4", web, forecasttest.Pod("little-1", "node-3", "3", 50, 0), forecasttest.Pod("little-2", "node-4", "3", 50, 0))
	for _, name := range []string{"node-2", "node-3", "node-4"} {
		s.Nodes = append(s.Nodes, forecasttest.Node(name, "4"))
	}
	var job forecast.Job
	for _, node := range []string{"node-1", "node-2"} {
		stage := batchJob(t, "{template: {spec: {priorityClassName: high, nodeSelector: {kubernetes.io/hostname: "+node+`},
			containers: [{name: main, resources: {requests: {cpu: 3}}}]}}}`)
		stage.Stages[0][0].Pods[0].Name = "on-" + node
		stage.Stages = append(job.Stages, stage.Stages...)
		job = stage
	}
	answer := forecast.Run(t.Context(), s, nil, job)
	for _, name := range []string{"little-1", "little-2"} {
		if e := evictionOf(answer, name); e == nil || e.Certain {
			t.Errorf("one of the little pods is evicted, and not both: %+v\n%s", e, answer.Text())
		}
	}
	if e := evictionOf(answer, "web"); e == nil || !e.Certain {
		t.Errorf("web is evicted in any case: %+v", e)
	}
}
