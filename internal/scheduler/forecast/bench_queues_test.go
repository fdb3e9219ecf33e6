package forecast_test

import (
	"fmt"
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

const blockLabel = "example.com/block"

// crowdedQueues has that many queues of 16 CPU in cohorts of ten, with ten workloads of four pods each, of which two hold
// the quota and eight wait, over five times as many nodes of 8 CPU in three levels: blocks of 200 nodes, racks of 20, and
// hosts. Two of five nodes are used.
func crowdedQueues(queues int) *forecast.Snapshot {
	s := &forecast.Snapshot{AsOf: forecasttest.AsOf, Version: "v1.37.1", Queues: forecasttest.Queues("16")}
	s.Namespaces = []*corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: corev1.NamespaceDefault}}}
	all := s.Queues
	queue, local := all.ClusterQueues[0], all.LocalQueues[0]
	all.ClusterQueues, all.LocalQueues = nil, nil
	all.Flavors[0].Spec = kueue.ResourceFlavorSpec{NodeLabels: map[string]string{"pool": "gpu"}, TopologyName: new(kueue.TopologyReference("racks"))}
	all.Topologies = []*kueue.Topology{{
		ObjectMeta: metav1.ObjectMeta{Name: "racks"},
		Spec:       kueue.TopologySpec{Levels: []kueue.TopologyLevel{{NodeLabel: blockLabel}, {NodeLabel: rackLabel}, {NodeLabel: corev1.LabelHostname}}},
	}}
	for i := range 5 * queues {
		node := forecasttest.Node(fmt.Sprintf("node-%04d", i), "8")
		node.Labels[blockLabel], node.Labels[rackLabel], node.Labels["pool"] = fmt.Sprintf("b%d", i/200), fmt.Sprintf("r%d", i/20), "gpu"
		s.Nodes = append(s.Nodes, node)
	}
	for i := range queues {
		q, l := *queue, *local
		q.Name, l.Name = fmt.Sprintf("team-%d", i), fmt.Sprintf("user-queue-%d", i)
		q.Spec = *queue.Spec.DeepCopy()
		q.Spec.CohortName, q.Spec.Preemption.ReclaimWithinCohort = kueue.CohortReference(fmt.Sprintf("cohort-%d", i/10)), kueue.PreemptionPolicyAny
		l.Spec.ClusterQueue = kueue.ClusterQueueReference(q.Name)
		all.ClusterQueues, all.LocalQueues = append(all.ClusterQueues, &q), append(all.LocalQueues, &l)
		for j := range 10 {
			addCrowd(s, i, j)
		}
	}
	return s
}

// addCrowd adds workload j of queue i; the first two have their pods on a node each.
func addCrowd(s *forecast.Snapshot, i, j int) {
	name := fmt.Sprintf("job-%d-%d", i, j)
	since := -j
	if j < 2 {
		since = 10
	}
	w := forecasttest.Workload("Job", name, types.UID("job-"+name), forecasttest.Pod(name, "", "2", 0, 0), 100, since)
	w.Spec.QueueName = kueue.LocalQueueName(fmt.Sprintf("user-queue-%d", i))
	set := &w.Spec.PodSets[0]
	set.Count, set.TopologyRequest = 4, &kueue.PodSetTopologyRequest{Required: new(rackLabel)}
	s.Queues.Workloads = append(s.Queues.Workloads, w)
	if since < 0 {
		return
	}
	node := s.Nodes[2*i+j]
	w.Status.Admission.ClusterQueue = kueue.ClusterQueueReference(fmt.Sprintf("team-%d", i))
	given := &w.Status.Admission.PodSetAssignments[0]
	given.Count, given.ResourceUsage = new(int32(4)), corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8")}
	given.TopologyAssignment = tas.NewAssignment([]string{corev1.LabelHostname}, []tas.Domain{{Values: []string{node.Name}, Count: 4}})
	for k := range 4 {
		pod := forecasttest.OfJob(forecasttest.Pod(fmt.Sprintf("%s-%d", name, k), node.Name, "2", 0, 10), name)
		pod.Annotations = map[string]string{kueue.PodSetRequiredTopologyAnnotation: rackLabel}
		s.Pods = append(s.Pods, pod)
	}
}

// BenchmarkMakeInQueues forecasts a task of four pods in one rack that has to evict a workload of its queue.
func BenchmarkMakeInQueues(b *testing.B) {
	for _, queues := range []int{100, 1000} {
		b.Run(fmt.Sprintf("%d_queues_%d_workloads_%d_nodes", queues, 10*queues, 5*queues), func(b *testing.B) {
			s := crowdedQueues(queues)
			job := forecast.MapPods([]forecast.Job{taskJob(b, forecasttest.Task("planned", "user-queue-7", "high", "2", 4))}, func(pod forecast.Pod) forecast.Pod {
				pod.Pod = pod.DeepCopy()
				pod.Annotations = map[string]string{kueue.PodSetRequiredTopologyAnnotation: rackLabel}
				return pod
			})[0]
			b.ReportAllocs()
			for b.Loop() {
				if answer := forecast.Run(b.Context(), s, nil, job); answer.Outcome != forecast.Preempts {
					b.Fatal(answer.Text())
				}
			}
		})
	}
}
