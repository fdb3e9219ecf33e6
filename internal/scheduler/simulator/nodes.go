package simulator

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/simulator/scenariofile"
)

// node is a node and its pods.
type node struct {
	id     int
	name   string
	group  *scenariofile.NodeGroup
	object *corev1.Node

	capacity, free []int64 // by number of the simulation's resources
	pods           []*pod
	lost           bool // or not yet added, or removed
	coming         bool // the autoscaler has requested it
	touched        bool // a pod has left it since the last scheduling attempt
	version        int  // of its being empty
	failures       int  // version of its next failure
}

// amountOf is a quantity as a whole number: thousandths of cpu, units of everything else.
func amountOf(name corev1.ResourceName, q resource.Quantity) int64 {
	if name == corev1.ResourceCPU {
		return q.MilliValue()
	}
	return q.Value()
}

// newNode makes the n-th node of a group, which is not yet part of the cluster.
func (s *simulation) newNode(group *scenariofile.NodeGroup, n int) *node {
	allocatable := corev1.ResourceList(group.Allocatable)
	labels := map[string]string{corev1.LabelHostname: group.NodeName(n)}
	maps.Copy(labels, group.Labels)
	for key := range group.Domains {
		labels[key] = group.Domain(key, n)
	}
	made := &node{id: len(s.allNodes), name: group.NodeName(n), group: group, lost: true, object: &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: group.NodeName(n), Labels: labels},
		Spec:       corev1.NodeSpec{Taints: group.Taints},
		Status:     corev1.NodeStatus{Allocatable: allocatable, Capacity: allocatable},
	}}
	made.capacity = make([]int64, len(s.resources))
	for i, name := range s.resources {
		made.capacity[i] = amountOf(name, allocatable[name])
	}
	made.free = slices.Clone(made.capacity)
	s.allNodes = append(s.allNodes, made)
	s.nodes[made.name] = made
	return made
}

// joins makes a node part of the cluster.
func (s *simulation) joins(n *node) {
	s.cluster.AddNode(n.object)
	s.begins(n)
}

// begins starts the node's failures and statistics.
func (s *simulation) begins(n *node) {
	n.lost = false
	s.stats.grow(n.capacity, 1)
	s.touch(n)
	s.emptied(n)
	s.seesNode(n)
	s.logNode(n)
	if f := s.scenario.Failures; f != nil {
		n.failures++
		s.eventQueue.add(event{at: s.now + s.rng.exponential(f.MeanTimeBetween), kind: nodeLost, subject: n.id, outage: Time(f.Repair), version: n.failures})
	}
}

// leaves removes a node from the cluster. Its pods end at once.
func (s *simulation) leaves(n *node) {
	s.stats.grow(n.capacity, -1)
	s.cluster.RemoveNode(n.name)
	n.lost = true
	n.failures++
	s.logNode(n)
	twice := s.missesNode(n)
	for _, p := range slices.Clone(n.pods) {
		p.leaving, p.why = true, nodeGone
		s.gone(p)
	}
	for _, w := range twice { // once no pod is on the node any more
		s.losesTwo(w)
	}
}

func (s *simulation) touch(n *node) {
	if !n.touched {
		n.touched = true
		s.touched = append(s.touched, n)
	}
}

// take and giveBack reserve and release a pod's requests on a node.
func (n *node) take(p *pod) {
	n.pods = append(n.pods, p)
	n.version++
	for i, amount := range p.shape.requests {
		n.free[i] -= amount
	}
}

func (n *node) giveBack(p *pod) {
	at := slices.Index(n.pods, p)
	n.pods = slices.Delete(n.pods, at, at+1)
	for i, amount := range p.shape.requests {
		n.free[i] += amount
	}
}

// emptied lets the autoscaler see a node without pods.
func (s *simulation) emptied(n *node) {
	if a := n.group.Autoscale; a != nil && len(n.pods) == 0 && !n.lost {
		n.version++
		s.eventQueue.add(event{at: s.now + Time(a.Idle), kind: nodeIdle, subject: n.id, version: n.version})
	}
}

func (s *simulation) logNode(n *node) {
	if s.log == nil {
		return
	}
	state := eventlog.Node{Name: n.name, Lost: n.lost, Domains: s.domainsOf(n)}
	for name, amount := range n.object.Status.Allocatable {
		switch name {
		case corev1.ResourceCPU:
			state.CPU = amount.String()
		case corev1.ResourceMemory:
			state.Memory = amount.String()
		case corev1.ResourcePods:
		default:
			if state.Other == nil {
				state.Other = map[string]string{}
			}
			state.Other[string(name)] = amount.String()
		}
	}
	s.write(eventlog.Event{Node: &state})
}
