package forecast_test

import (
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast/forecasttest"
)

// The master starts on node-1 at once. Its worker finds room on node-2 when the pod there is gone, and evicts the low one on
// node-3 before.
func TestAWorkerMayBeCreatedWhilePodsOfOthersStop(t *testing.T) {
	going := forecasttest.Pod("going", "node-2", "3", 2_000_000, 0)
	going.DeletionTimestamp = &going.CreationTimestamp
	s := oneNode("1", going, forecasttest.Pod("low", "node-3", "3", 100, 0))
	s.Nodes = append(s.Nodes, forecasttest.Node("node-2", "3"), forecasttest.Node("node-3", "3"))
	answer := forecast.Run(t.Context(), s, nil, high(t))
	if e := evictionOf(answer, "low"); e == nil || e.Certain || !answer.MaySpareAll {
		t.Errorf("the worker may evict the low pod: %+v\n%s", e, answer.Text())
	}
}

// The waiting pod finds room on node-1 now, where the worker needs it, and the master has to evict the low pod first.
func TestAWorkerMayComeBeforeAPodThatFindsRoomNow(t *testing.T) {
	s := oneNode("3", forecasttest.Pod("low", "node-2", "1", 100, 0), forecasttest.Pod("waits", "", "3", 1_000_000, 0))
	s.Nodes = append(s.Nodes, forecasttest.Node("node-2", "1"))
	planned := high(t)
	planned.Stages[0][0].Pods[0].Spec.NodeSelector = map[string]string{"kubernetes.io/hostname": "node-2"}
	answer := forecast.Run(t.Context(), s, nil, planned)
	if pod := answer.Pods[1]; pod.State == forecast.Starts || len(pod.Nodes) != 1 {
		t.Errorf("worker 0 may start on node-1, or wait: %+v\n%s", pod, answer.Text())
	}
}

// If the waiting pod comes first, a pod of the job evicts the low one. If it comes last, it does so itself.
func TestAnEvictionThatAPendingPodMayTakeOverIsCounted(t *testing.T) {
	s := oneNode("8", forecasttest.Pod("low", "node-1", "1", 100, 0), forecasttest.Pod("waits", "", "1", 1_000_000, 0))
	answer := forecast.Run(t.Context(), s, nil, batchJob(t, `{parallelism: 2, completions: 2, template: {spec: {priorityClassName: high,
		containers: [{name: main, resources: {requests: {cpu: 3500m}}}]}}}`))
	if evictions := answer.Claims().Evictions; !evictions.Certain || evictions.Pods != (forecast.Range{Max: 1}) {
		t.Errorf("none or one is evicted for the job: %+v\n%s", evictions, answer.Text())
	}
}

func TestAPodThatStopsAlreadyIsNotEvicted(t *testing.T) {
	going := forecasttest.Pod("going", "node-1", "2", 100, 10)
	going.DeletionTimestamp = &going.CreationTimestamp
	s := oneNode("4", going, forecasttest.Pod("low", "node-1", "2", 100, 0))
	answer := forecast.Run(t.Context(), s, nil, batchJob(t, `{template: {spec: {priorityClassName: high, containers: [{name: main, resources: {requests: {cpu: 4}}}]}}}`))
	if e := evictionOf(answer, "going"); e != nil {
		t.Errorf("%+v\n%s", e, answer.Text())
	}
}

// The scheduler has reserved the node for a pod that is too large for it, and gives it up when it tries that pod again.
func TestANodeThatIsReservedInVainBecomesFree(t *testing.T) {
	for name, c := range map[string]struct {
		cpu    string
		change func(*forecast.Snapshot)
	}{
		"for a pod that fits nowhere":     {"5", func(*forecast.Snapshot) {}},
		"for a pod that starts elsewhere": {"5", func(s *forecast.Snapshot) { s.Nodes = append(s.Nodes, forecasttest.Node("node-2", "5")) }},
	} {
		reserved := forecasttest.Pod("reserved", "", c.cpu, 1_000_000, 0)
		reserved.Status.NominatedNodeName = "node-1"
		s := oneNode("4", reserved)
		c.change(s)
		answer := forecast.Run(t.Context(), s, nil, batchJob(t, `{template: {spec: {priorityClassName: high, nodeSelector: {kubernetes.io/hostname: node-1},
			containers: [{name: main, resources: {requests: {cpu: 3}}}]}}}`))
		if answer.Outcome != forecast.Fits || !answer.Claims().Outcome.Certain {
			t.Errorf("%s:\n%s", name, answer.Text())
		}
	}
}

// The first pod of the job evicts a pod of node-1, the second one another there, or that of node-2. None of them evicts twice.
func TestAPodEvictsNoMoreBeforeItsVictimsAreKnownToStop(t *testing.T) {
	s := oneNode("4", forecasttest.Pod("large", "node-1", "1790m", 100, 5338), forecasttest.Pod("small", "node-1", "700m", 100, 5203),
		forecasttest.Pod("other", "node-2", "3840m", 100, 2811))
	s.Nodes = append(s.Nodes, forecasttest.Node("node-2", "3920m"))
	answer := forecast.Run(t.Context(), s, nil, batchJob(t, `{parallelism: 2, completions: 2, template: {spec: {priorityClassName: high,
		containers: [{name: main, resources: {requests: {cpu: 1670m}}}]}}}`))
	if evictions := answer.Claims().Evictions; evictions.Pods != (forecast.Range{Min: 2, Max: 2}) {
		t.Errorf("%+v\n%s", evictions, answer.Text())
	}
}

// The waiting pod evicts low-1 on node-1. If that is gone before going is, the waiting pod evicts low-2 as well, once the other
// pod of node-2 is gone, and the job has node-1.
func TestPodsOfOneNodeMayBeGoneOneAfterTheOther(t *testing.T) {
	going := forecasttest.Pod("going", "node-1", "1", 100, 10)
	going.DeletionTimestamp = &going.CreationTimestamp
	leaving := forecasttest.Pod("leaving", "node-2", "2", 2_000_000, 10)
	leaving.DeletionTimestamp = &leaving.CreationTimestamp
	waits := forecasttest.Pod("waits", "", "4", 1_000_000, 0)
	s := oneNode("4", going, forecasttest.Pod("low-1", "node-1", "2", 100, 0), leaving, forecasttest.Pod("low-2", "node-2", "1", 100, 20), waits)
	s.Nodes = append(s.Nodes, forecasttest.Node("node-2", "4"))
	answer := forecast.Run(t.Context(), s, nil, batchJob(t, `{template: {spec: {priorityClassName: high, nodeSelector: {kubernetes.io/hostname: node-1},
		containers: [{name: main, resources: {requests: {cpu: 4}}}]}}}`))
	if evictions := answer.Claims().Evictions; evictions.Pods.Min != 0 || answer.Pods[0].State == forecast.Starts || len(answer.Pods[0].Nodes) == 0 {
		t.Errorf("it may start without an eviction of its own, or wait: %+v\n%s", evictions, answer.Text())
	}
}
