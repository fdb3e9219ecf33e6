package quota

import (
	"fmt"
	"hash/maphash"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue/tas"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/topology"
)

// Node is what the engine must know of a node to place pods by topology.
type Node struct {
	Name        string
	Labels      map[string]string
	Taints      []corev1.Taint
	Allocatable corev1.ResourceList
	// Unavailable is true for a node that is not ready or not schedulable: it has no capacity.
	Unavailable bool
}

// clusterNode is a node of the cluster.
type clusterNode struct {
	topology.Node
	Unavailable bool
}

// otherPod is a pod that Kueue does not place by topology; it takes room of its node.
type otherPod struct {
	node     string
	requests topology.Units
}

// placement is pods of a workload in a domain of a flavor's topology.
type placement struct {
	flavor string
	values []string
	perPod topology.Units
	count  int32
	// domain names flavor and values.
	domain string
	// hash is equal for equal placements, and most probably for no others.
	hash uint64
}

var hashSeed = maphash.MakeSeed()

func newPlacement(flavor string, values []string, perPod topology.Units, count int32) placement {
	p := placement{flavor: flavor, values: values, perPod: perPod, count: count, domain: flavor + "," + topology.ID(values)}
	p.hash = maphash.String(hashSeed, fmt.Sprintln(p.flavor, p.values, p.perPod, p.count))
	return p
}

// places is the capacity of the topologies of flavors. All queues of an engine share it, because flavors do.
type places struct {
	// of has the flavors whose topology is known.
	of map[string]*topology.Capacity
	// state is equal when what is used is equal; findings are what searches found in this cycle.
	state    uint64
	findings map[finding]found
	// stale: nodes, other pods, topologies or flavors have changed; uncounted: only what workloads use.
	stale, uncounted bool
}

// SetTopology adds or changes a Topology.
func (e *Engine) SetTopology(name string, levels []string) {
	e.changed()
	if slices.Equal(e.topologies[name], levels) {
		return
	}
	e.topologies[name] = slices.Clone(levels)
	e.stale = true
	e.topologiesChanged()
}

// SetNode adds or changes a node.
func (e *Engine) SetNode(n Node) {
	old, known := e.nodesByName[n.Name]
	now := clusterNode{Unavailable: n.Unavailable, Node: topology.Node{
		Name: n.Name, Labels: n.Labels, Taints: n.Taints, Allocatable: scheduler.Units(n.Allocatable),
	}}
	if known && equality.Semantic.DeepEqual(old, now) {
		return
	}
	e.changed()
	e.nodesByName[n.Name] = now
	// Of a node that is not available no capacity comes, and yet Kueue tries again what waits.
	e.nodeChanged(old.Labels, n.Labels)
}

// DeleteNode removes a node.
func (e *Engine) DeleteNode(name string) {
	e.changed()
	old := e.nodesByName[name]
	delete(e.nodesByName, name)
	e.nodeChanged(old.Labels)
}

// SetPod adds or changes a pod on a node that Kueue did not place there by topology. Pods of workloads with a topology
// assignment, and pods that have ended, are not to be set.
func (e *Engine) SetPod(name types.NamespacedName, node string, requests corev1.ResourceList) {
	pod := otherPod{node, scheduler.Units(requests)}
	old, known := e.otherPods[name]
	if known && old.node == pod.node && maps.Equal(old.requests, pod.requests) {
		return
	}
	e.changed()
	e.otherPods[name] = pod
	e.places.stale = true
	if known && (old.node != pod.node || exceeds(old.requests, pod.requests)) {
		e.podFreed(old.node)
	}
}

// DeletePod removes a pod that was set.
func (e *Engine) DeletePod(name types.NamespacedName) {
	pod, known := e.otherPods[name]
	if !known {
		return
	}
	e.changed()
	delete(e.otherPods, name)
	e.places.stale = true
	e.podFreed(pod.node)
}

// exceeds reports whether any of the requests was greater before. One that is gone does not count for Kueue.
func exceeds(old, now topology.Units) bool {
	for name, amount := range old {
		if left, requested := now[name]; requested && amount > left {
			return true
		}
	}
	return false
}

// podFreed has workloads tried again that may use room that a pod has left on a node: those of queues with a flavor whose
// topology has the node. A pod that takes room makes no difference to those who wait.
func (e *Engine) podFreed(name string) {
	node, known := e.nodesByName[name]
	if !known {
		return
	}
	for _, q := range e.queues {
		if slices.ContainsFunc(q.groups, func(g resourceGroup) bool {
			return slices.ContainsFunc(g.flavors, func(flavor string) bool { return e.hasNode(flavor, node.Labels) })
		}) {
			e.retryLater(q)
		}
	}
}

// nodeChanged has the capacities made anew, and all workloads tried again if the topology of a flavor has the node, by its
// labels before or after.
func (e *Engine) nodeChanged(labels ...map[string]string) {
	e.places.stale = true
	for flavor := range e.flavors {
		if slices.ContainsFunc(labels, func(set map[string]string) bool { return e.hasNode(flavor, set) }) {
			e.retryAll()
			return
		}
	}
}

// hasNode reports whether a flavor's topology has a node with these labels.
func (e *Engine) hasNode(flavor string, labels map[string]string) bool {
	spec := e.flavors[flavor]
	levels := e.levels(&spec)
	return levels != nil && topology.Selects(spec.NodeLabels, levels, labels)
}

// topologiesChanged has the capacities made anew, and workloads tried again that there was no place for.
func (e *Engine) topologiesChanged() {
	e.places.stale = true
	if len(e.topologies) > 0 {
		e.retryAll()
	}
}

func (e *Engine) retryAll() {
	for _, q := range e.queues {
		e.retryLater(q)
	}
}

// preparePlaces makes the capacities as things are, before a cycle.
func (e *Engine) preparePlaces() {
	p := e.places
	if p.stale {
		p.stale, p.uncounted = false, true
		clear(p.of)
		for name, spec := range e.flavors {
			if levels := e.levels(&spec); levels != nil {
				p.of[name] = e.capacity(&spec, levels)
			}
		}
	}
	if !p.uncounted || len(p.of) == 0 {
		return
	}
	p.uncounted = false
	p.state, p.findings = 0, map[finding]found{}
	for _, c := range p.of {
		c.Clear()
	}
	for _, q := range e.queues {
		for _, w := range q.reserved {
			for _, at := range w.placed {
				p.count(at)
			}
		}
	}
}

// levels are those of a flavor's topology; nil if it has none or it is not known.
func (e *Engine) levels(spec *kueue.ResourceFlavorSpec) []string {
	if spec.TopologyName == nil || e.config.NodesUnknown {
		return nil
	}
	return e.topologies[string(*spec.TopologyName)]
}

func (e *Engine) capacity(spec *kueue.ResourceFlavorSpec, levels []string) *topology.Capacity {
	var nodes []topology.Node
	for _, name := range slices.Sorted(maps.Keys(e.nodesByName)) {
		if n := e.nodesByName[name]; !n.Unavailable && topology.Selects(spec.NodeLabels, levels, n.Labels) {
			nodes = append(nodes, n.Node)
		}
	}
	c := topology.NewCapacity(string(*spec.TopologyName), topology.NewTree(levels, nodes), spec.Tolerations)
	for _, pod := range e.otherPods {
		c.Occupy(pod.node, pod.requests)
	}
	return c
}

// count adds pods of an admitted workload. What is on a host counts for all flavors whose topology goes down to hosts.
func (p *places) count(at placement) {
	own := p.of[at.flavor]
	if own == nil {
		return
	}
	if !own.Tree().ByHost() {
		own.Add(at.values, at.perPod, at.count)
		return
	}
	for _, c := range p.of {
		if c.Tree().ByHost() {
			c.Add(at.values, at.perPod, at.count)
		}
	}
}

// use adds pods for the rest of a cycle, and free takes them back. Within a cycle Kueue counts them in their own flavor
// alone.
func (p *places) use(all []placement) {
	for _, at := range all {
		if c := p.of[at.flavor]; c != nil {
			p.state += at.hash
			c.Add(at.values, at.perPod, at.count)
		}
	}
}

func (p *places) free(all []placement) {
	for _, at := range all {
		if c := p.of[at.flavor]; c != nil {
			p.state -= at.hash
			c.Remove(at.values, at.perPod, at.count)
		}
	}
}

// fit reports whether there is room for pods.
func (p *places) fit(all []placement) bool {
	for _, at := range all {
		if c := p.of[at.flavor]; c != nil && !c.Fits(at.values, at.perPod, at.count) {
			return false
		}
	}
	return true
}

// placements lists where the pods of a workload with quota are.
func (w *workload) placements() []placement {
	var all []placement
	for i := range w.Reservation.Admission.PodSetAssignments {
		a := &w.Reservation.Admission.PodSetAssignments[i]
		if a.TopologyAssignment == nil {
			continue
		}
		perPod := w.perPod(a)
		flavors := slices.Compact(slices.Sorted(maps.Values(a.Flavors)))
		for _, d := range tas.Domains(a.TopologyAssignment) {
			for _, f := range flavors {
				all = append(all, newPlacement(string(f), d.Values, perPod, d.Count))
			}
		}
	}
	return all
}

// perPod is what a pod of a set requests: by its template, or, where that is not known, its part of the quota.
func (w *workload) perPod(a *kueue.PodSetAssignment) topology.Units {
	for i := range w.PodSets {
		if w.PodSets[i].Name == string(a.Name) {
			return scheduler.Units(w.PodSets[i].Requests)
		}
	}
	all := scheduler.Units(a.ResourceUsage)
	if a.Count != nil && *a.Count > 0 {
		for name := range all {
			all[name] /= int64(*a.Count)
		}
	}
	return all
}
