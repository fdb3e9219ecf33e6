package forecast_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast/forecasttest"
)

// ofDaemon turns a pod into one of a DaemonSet's, which is tied to a node.
func ofDaemon(pod *corev1.Pod, node string) *corev1.Pod {
	pod.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Name: "agent", UID: "agent", Controller: new(true)}}
	pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
		}}},
	}}
	return pod
}

// agents is a DaemonSet whose pods request one CPU and one GiB each.
func agents(nodes ...string) forecast.Job {
	part := forecast.Part{}
	for _, node := range nodes {
		pod := ofDaemon(forecasttest.Pod("agent-"+node, "", "1", 1000, 0), node)
		pod.Spec.Containers[0].Resources.Requests[corev1.ResourceMemory] = resource.MustParse("1Gi")
		part.Pods = append(part.Pods, forecast.Pod{Role: "pod " + node, Pod: pod})
	}
	return forecast.Job{Noun: "DaemonSet", Namespace: "default", Name: "agent", Stages: []forecast.Stage{{part}}}
}

func TestEachPodOfADaemonSetHasTheReasonOfItsNode(t *testing.T) {
	s := oneNode("4", forecasttest.Pod("busy", "node-1", "4", 1000, 0))
	s.Nodes = append(s.Nodes, forecasttest.Node("node-2", "4"), forecasttest.Node("node-3", "4"))
	large := forecasttest.Pod("large", "node-2", "1", 1000, 0)
	large.Spec.Containers[0].Resources.Requests[corev1.ResourceMemory] = resource.MustParse("1Ti")
	s.Pods = append(s.Pods, large)
	answer := forecast.Run(t.Context(), s, nil, agents("node-1", "node-2", "node-3"))
	assertText(t, answer,
		"waits   pod node-1: node-1: Insufficient cpu (requested 1, free 0)",
		"waits   pod node-2: node-2: Insufficient memory (requested 1Gi, free 0)",
		"starts  pod node-3 on node-3 immediately",
	)
	if len(answer.Alike) > 0 {
		t.Errorf("each is tied to its node, and interchangeable are %v", answer.Alike)
	}
}

func TestPodsOfOneNameButOtherRequestsHaveTheirOwnReasons(t *testing.T) {
	part := forecast.Part{}
	for role, cpu := range map[string]string{"worker 0": "3", "worker 1": "5", "worker 2": "1"} {
		part.Pods = append(part.Pods, forecast.Pod{Role: role, Pod: forecasttest.Pod(role, "", cpu, 1000, 0)})
	}
	job := forecast.Job{Noun: "pod group", Namespace: "default", Name: "g", Stages: []forecast.Stage{{part}}}
	answer := forecast.Run(t.Context(), oneNode("8", forecasttest.Pod("busy", "node-1", "7", 1000, 0)), nil, job)
	assertText(t, answer, "worker 0: node-1: Insufficient cpu (requested 3,", "worker 1: node-1: Insufficient cpu (requested 5,")
	if len(answer.Alike) > 0 {
		t.Errorf("they request other amounts, and interchangeable are %v", answer.Alike)
	}
}

// TestTheEvictedPodOfADaemonSetIsCreatedAgainWhereItFits has pods that take the room of a DaemonSet's pod
// (kubernetes#141227). It finds room again only if another pod leaves some.
func TestTheEvictedPodOfADaemonSetIsCreatedAgainWhereItFits(t *testing.T) {
	for want, leaves := range map[string]bool{
		"DaemonSet agent recreates it, and it waits for capacity on its node": false,
		"DaemonSet agent recreates it, and it starts on node-1":               true,
	} {
		other := forecasttest.Pod("other", "node-1", "2", 1000000, 0)
		if leaves {
			other.DeletionTimestamp = &metav1.Time{Time: forecasttest.AsOf}
		}
		s := oneNode("4", other, ofDaemon(forecasttest.Pod("agent-x", "node-1", "2", 1000, 0), "node-1"))
		job := batchJob(t, `{template: {spec: {priorityClassName: high, containers: [{name: main, resources: {requests: {cpu: 2}}}]}}}`)
		answer := forecast.Run(t.Context(), s, nil, job)
		assertText(t, answer, want)
		if len(answer.Evicts) != 1 || answer.Evicts[0].Name != "agent-x" {
			t.Errorf("the DaemonSet's pod is the victim: %v", answer.Evicts)
		}
	}
}
