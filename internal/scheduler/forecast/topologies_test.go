package forecast_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue/tas"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast/forecasttest"
)

const rackLabel = "example.com/rack"

// racks is a queue with a quota of 100 CPU on two racks, r0 and r1, of two nodes of 4 CPU each: r0-0, r0-1, r1-0, r1-1.
func racks(workloads ...*kueue.Workload) *forecast.Snapshot {
	s := &forecast.Snapshot{AsOf: forecasttest.AsOf, Version: "v1.37.1", Queues: forecasttest.Queues("100", workloads...)}
	s.Namespaces = []*corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: corev1.NamespaceDefault}}}
	for _, rack := range []string{"r0", "r1"} {
		for host := range 2 {
			node := forecasttest.Node(fmt.Sprintf("%s-%d", rack, host), "4")
			node.Labels[rackLabel], node.Labels["pool"] = rack, "gpu"
			s.Nodes = append(s.Nodes, node)
		}
	}
	s.Queues.Flavors[0].Spec = kueue.ResourceFlavorSpec{
		NodeLabels: map[string]string{"pool": "gpu"}, TopologyName: new(kueue.TopologyReference("racks")),
	}
	s.Queues.Topologies = []*kueue.Topology{{
		ObjectMeta: metav1.ObjectMeta{Name: "racks"},
		Spec:       kueue.TopologySpec{Levels: []kueue.TopologyLevel{{NodeLabel: rackLabel}, {NodeLabel: corev1.LabelHostname}}},
	}}
	for _, w := range workloads {
		for _, d := range tas.Domains(w.Status.Admission.PodSetAssignments[0].TopologyAssignment) {
			for i := range d.Count {
				name := w.OwnerReferences[0].Name
				pod := forecasttest.OfJob(forecasttest.Pod(fmt.Sprintf("%s-%d", name, i), d.Values[0], "2", 0, 10), name)
				pod.Annotations = map[string]string{kueue.PodSetUnconstrainedTopologyAnnotation: "true"}
				s.Pods = append(s.Pods, pod)
			}
		}
	}
	return s
}

// taskOn is a task of n pods of 2 CPU whose pods have an annotation.
func taskOn(t *testing.T, n int, annotation, value string) forecast.Job {
	t.Helper()
	return forecast.MapPods([]forecast.Job{taskJob(t, forecasttest.Task("planned", "user-queue", "high", "2", n))}, func(pod forecast.Pod) forecast.Pod {
		pod.Pod = pod.DeepCopy()
		pod.Annotations = map[string]string{annotation: value}
		return pod
	})[0]
}

// placedOn is a Workload with quota of which one pod of 2 CPU is on a host.
func placedOn(name, host string, priority int32) *kueue.Workload {
	w := forecasttest.Workload("Job", name, types.UID("job-"+name), forecasttest.Pod(name, "", "2", 0, 0), priority, 10)

	w.Status.Admission.PodSetAssignments[0].TopologyAssignment = tas.NewAssignment(
		[]string{corev1.LabelHostname}, []tas.Domain{{Values: []string{host}, Count: 1}})
	return w
}

// nodesOf are all nodes that the pods may start on.
func nodesOf(answer *forecast.Answer) string {
	var nodes []string
	for _, pod := range answer.Pods {
		nodes = append(nodes, pod.Nodes...)
	}
	slices.Sort(nodes)
	return strings.Join(slices.Compact(nodes), " ")
}

func TestAFlavorOfTwoResourcesIsNamedOnce(t *testing.T) {
	s := racks()
	group := &s.Queues.ClusterQueues[0].Spec.ResourceGroups[0]
	group.CoveredResources = append(group.CoveredResources, corev1.ResourceMemory)
	group.Flavors[0].Resources = append(group.Flavors[0].Resources, kueue.ResourceQuota{Name: corev1.ResourceMemory, NominalQuota: resource.MustParse("1Ti")})
	job := forecast.MapPods([]forecast.Job{taskOn(t, 1, kueue.PodSetUnconstrainedTopologyAnnotation, "true")}, func(pod forecast.Pod) forecast.Pod {
		pod.Pod = pod.DeepCopy()
		pod.Spec.Containers[0].Resources.Requests[corev1.ResourceMemory] = resource.MustParse("1Gi")
		return pod
	})[0]
	if answer := forecast.Run(t.Context(), s, nil, job); !strings.Contains(answer.Text(), "admitted by ClusterQueue team with quota of any\n") {
		t.Error(answer.Text())
	}
}

func TestPodsGoToTheDomainsThatKueueGivesThem(t *testing.T) {
	for name, c := range map[string]struct {
		others            []*kueue.Workload
		pods              int
		annotation, value string
		nodes, wantText   string
		approximate       bool
	}{
		"one rack is required": {
			pods: 4, annotation: kueue.PodSetRequiredTopologyAnnotation, value: rackLabel, nodes: "r0-0 r0-1",
		},
		"the first rack is in use": {
			others: []*kueue.Workload{placedOn("other", "r0-1", 1000)},
			pods:   4, annotation: kueue.PodSetRequiredTopologyAnnotation, value: rackLabel, nodes: "r1-0 r1-1",
		},
		"one rack is preferred, and none has room for all": {
			others: []*kueue.Workload{placedOn("other", "r0-1", 1000)},
			pods:   5, annotation: kueue.PodSetPreferredTopologyAnnotation, value: rackLabel, nodes: "r0-0 r0-1 r1-0",
		},
		"no rack can ever hold them": {
			pods: 5, annotation: kueue.PodSetRequiredTopologyAnnotation, value: rackLabel, wantText: `topology "racks" allows to fit only 4 out of 5 pod(s)`,
		},
		"no topology has the level": {
			pods: 1, annotation: kueue.PodSetRequiredTopologyAnnotation, value: "example.com/block", wantText: `Flavor "any" does not contain the requested level`,
		},
		"a workload of lower priority makes room": {
			others: []*kueue.Workload{placedOn("one", "r0-0", 100), placedOn("two", "r1-0", 1000)},
			pods:   4, annotation: kueue.PodSetRequiredTopologyAnnotation, value: rackLabel, nodes: "r0-0 r0-1", wantText: "job-one",
			approximate: true, // an evicted workload may get what is left
		},
	} {
		answer := forecast.Run(t.Context(), racks(c.others...), nil, taskOn(t, c.pods, c.annotation, c.value))
		if got := nodesOf(&answer); c.nodes != "" && got != c.nodes {
			t.Errorf("%s: the pods go to %q, not %q:\n%s", name, got, c.nodes, answer.Text())
		}
		if text := answer.Text(); !strings.Contains(text, c.wantText) {
			t.Errorf("%s: %q is not in\n%s", name, c.wantText, text)
		}
		if len(answer.Approximate) > 0 != c.approximate {
			t.Errorf("%s: it is approximate: %v", name, answer.Approximate)
		}
	}
}

// TestAPodOutsideOfQueuesMattersToATopologyOnlyIfItMayRunThere has a pod that is planned before a task in a queue.
func TestAPodOutsideOfQueuesMattersToATopologyOnlyIfItMayRunThere(t *testing.T) {
	for name, c := range map[string]struct {
		pool    string
		matters bool
	}{
		"it may run on the nodes of the topology": {"gpu", true},
		"it selects other nodes":                  {"cpu", false},
	} {
		web := forecast.Job{Noun: "pod", Namespace: corev1.NamespaceDefault, Name: "web"}
		pod := forecasttest.Pod("web", "", "1", 0, 0)
		pod.Spec.NodeSelector = map[string]string{"pool": c.pool}
		web.Stages = []forecast.Stage{{{Pods: []forecast.Pod{{Role: "the pod", Pod: pod}}}}}
		answer := forecast.Run(t.Context(), racks(), []forecast.Job{web}, taskOn(t, 4, kueue.PodSetRequiredTopologyAnnotation, rackLabel))
		if noted := len(reasonsWith(answer, forecast.QueueTopology)) > 0; noted != c.matters {
			t.Errorf("%s: noted %t: %v", name, noted, answer.Approximate)
		}
	}
}
