package forecast

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue/tas"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/placement"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/quota"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/topology"
)

// setTopologies gives the engine what decides where Kueue places pods: topologies, nodes, and the pods that it does
// not place itself. Where no flavor has a topology, it does nothing.
func (q *queues) setTopologies(s *Snapshot) {
	if !slices.ContainsFunc(s.Queues.Flavors, func(f *kueue.ResourceFlavor) bool { return f.Spec.TopologyName != nil }) {
		return
	}
	for _, t := range s.Queues.Topologies {
		q.engine.SetTopology(t.Name, levelsOf(t))
	}
	for _, n := range s.Nodes {
		q.engine.SetNode(quota.Node{
			Name: n.Name, Labels: n.Labels, Taints: n.Spec.Taints, Allocatable: n.Status.Allocatable,
			Unavailable: n.Spec.Unschedulable || !scheduler.NodeReady(n),
		})
	}
	for _, p := range s.Pods {
		if p.Spec.NodeName != "" && !tas.PlacesPods(p.Annotations) {
			q.engine.SetPod(types.NamespacedName{Namespace: p.Namespace, Name: p.Name}, p.Spec.NodeName, scheduler.PodRequests(&p.Spec))
		}
	}
}

// placesOn reports whether Kueue may place pods on a node by its name, as it does for flavors whose topology goes down to
// hosts.
func (q *Queues) placesOn(node *corev1.Node) bool {
	if q == nil {
		return false
	}
	for _, flavor := range q.Flavors {
		if flavor.Spec.TopologyName == nil {
			continue
		}
		at := indexOf(q.Topologies, "", string(*flavor.Spec.TopologyName))
		if at < 0 {
			continue
		}
		if levels := levelsOf(q.Topologies[at]); topology.ByHost(levels) && topology.Selects(flavor.Spec.NodeLabels, levels, node.Labels) {
			return true
		}
	}
	return false
}

func levelsOf(t *kueue.Topology) []string {
	levels := make([]string, len(t.Spec.Levels))
	for i, level := range t.Spec.Levels {
		levels[i] = level.NodeLabel
	}
	return levels
}

// requestTopology reads what a pod set requests from the annotations of its pods.
func (q *queues) requestTopology(set *quota.PodSet, annotations map[string]string, job Job) {
	request, err := tas.RequestOf(annotations)
	if err != nil {
		q.notes.add(QueueTopology, job.String(), "%s has a topology request that Kueue cannot read: %v", job, err)
		return
	}
	set.Topology = request
	if request != nil && request.PodSetGroupName != nil {
		set.Group = *request.PodSetGroupName
	}
}

// domains are the node labels of the domains of a set's pods; nil where Kueue does not place them.
type domains []map[string]string

// put gives a pod its domain. Kueue has none for what is left over when a set is divided into slices: that pod stays gated.
func (d domains) put(pod *corev1.PodSpec, i int) {
	switch {
	case d == nil:
	case i >= len(d):
		pod.SchedulingGates = append(slices.Clip(pod.SchedulingGates), corev1.PodSchedulingGate{Name: kueue.TopologySchedulingGate})
	default:
		if pod.NodeSelector == nil {
			pod.NodeSelector = map[string]string{}
		}
		maps.Copy(pod.NodeSelector, d[i])
	}
}

// domainsOf has, for each pod of a set in order, the node labels of the domain that it must go to. (Kueue gives the pods of
// an indexed Job their domains in this order, and others in any; those are alike.)
func domainsOf(a *kueue.TopologyAssignment) domains {
	if a == nil {
		return nil
	}
	all := domains{}
	for _, d := range tas.Domains(a) {
		labels := make(map[string]string, len(a.Levels))
		for i, level := range a.Levels {
			labels[level] = d.Values[i]
		}
		for range d.Count {
			all = append(all, maps.Clone(labels))
		}
	}
	return all
}

// podsBesideQueues are the pods of planned jobs that do not go through a queue.
func podsBesideQueues(jobs []Job) []*corev1.Pod {
	var pods []*corev1.Pod
	for _, job := range jobs {
		for _, stage := range job.Stages {
			for _, part := range stage {
				if part.Queue != "" {
					continue
				}
				for _, pod := range part.Pods {
					pods = append(pods, pod.Pod)
				}
			}
		}
	}
	return pods
}

// sharesNodes reports whether planned pods that do not go through a queue may run on nodes of a flavor's topology.
func (q *queues) sharesNodes(flavor *kueue.ResourceFlavor) bool {
	if len(q.beside) == 0 {
		return false
	}
	at := indexOf(q.objects.Topologies, "", string(*flavor.Spec.TopologyName))
	if at < 0 {
		return true
	}
	levels := levelsOf(q.objects.Topologies[at])
	var nodes []*corev1.Node
	for _, node := range q.snapshot.Nodes {
		if topology.Selects(flavor.Spec.NodeLabels, levels, node.Labels) {
			nodes = append(nodes, node)
		}
	}
	return len(nodes) > 0 && slices.ContainsFunc(q.beside, func(pod *corev1.Pod) bool {
		_, never := placement.Never(pod, nodes)
		return !never
	})
}

// noteTopologies notes what is not known about the topologies of flavors that a decision may depend on: which there are,
// or when an admission check lets Kueue place the pods.
func (q *queues) noteTopologies(a admission, others bool) {
	named := a.flavors
	if others || len(a.evicted) > 0 {
		named = append(slices.Clone(named), q.flavorsAround(a.queue)...)
	}
	for _, name := range named {
		flavor := q.flavors[kueue.ResourceFlavorReference(name)]
		switch {
		case flavor == nil || flavor.Spec.TopologyName == nil:
		case q.objects.TopologiesUnread != "":
			q.notes.add(QueueTopology, "ResourceFlavor "+name, "ResourceFlavor %s has a topology, and topologies could not be read (%s)",
				name, q.objects.TopologiesUnread)
		case q.sharesNodes(flavor):
			q.notes.add(QueueTopology, "ResourceFlavor "+name, "ResourceFlavor %s has a topology, and pods of other planned jobs may take or free room there before Kueue places the pods", name)
		case len(a.checks) > 0:
			q.notes.add(QueueTopology, "ResourceFlavor "+name, "ResourceFlavor %s has a topology, and an admission check may delay or change the places of the pods", name)
		}
	}
}

// flavorsAround are the flavors whose quota a decision in a queue may depend on: its own, and with a cohort those of all
// queues that have one.
func (q *queues) flavorsAround(name string) []string {
	at := slices.IndexFunc(q.objects.ClusterQueues, func(o *kueue.ClusterQueue) bool { return o.Name == name })
	if at < 0 {
		return nil
	}
	own := q.objects.ClusterQueues[at]
	var names []string
	for _, queue := range q.objects.ClusterQueues {
		if queue.Name != name && (own.Spec.CohortName == "" || queue.Spec.CohortName == "") {
			continue
		}
		for _, group := range queue.Spec.ResourceGroups {
			for _, flavor := range group.Flavors {
				names = append(names, string(flavor.Name))
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
