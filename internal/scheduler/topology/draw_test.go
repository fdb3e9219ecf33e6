package topology

import (
	"fmt"
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue/tas"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler"
)

// situation is the input of one placement, as recordings have it.
type situation struct {
	Levels      []string                  `json:"levels"`
	Tolerations []corev1.Toleration       `json:"tolerations,omitempty"`
	Nodes       []nodeOf                  `json:"nodes"`
	Others      []useOf                   `json:"others,omitempty"`
	Used        []useOf                   `json:"used,omitempty"`
	Requests    []requestOf               `json:"requests"`
	Empty       bool                      `json:"empty,omitempty"`
	Broken      string                    `json:"broken,omitempty"`
	Admitted    map[string][]domainOfPods `json:"admitted,omitempty"`
}

type nodeOf struct {
	Name        string              `json:"name"`
	Labels      map[string]string   `json:"labels"`
	Taints      []corev1.Taint      `json:"taints,omitempty"`
	Allocatable corev1.ResourceList `json:"allocatable"`
}

// useOf is a pod on a node, or pods in a domain.
type useOf struct {
	Node     string              `json:"node,omitempty"`
	Values   []string            `json:"values,omitempty"`
	Requests corev1.ResourceList `json:"requests"`
	Count    int32               `json:"count,omitempty"`
}

type requestOf struct {
	PodSet       string                       `json:"podSet"`
	Group        string                       `json:"group,omitempty"`
	Count        int32                        `json:"count"`
	Requests     corev1.ResourceList          `json:"requests"`
	Topology     *kueue.PodSetTopologyRequest `json:"topology,omitempty"`
	NodeSelector map[string]string            `json:"nodeSelector,omitempty"`
	NodeAffinity *corev1.NodeSelector         `json:"nodeAffinity,omitempty"`
	Tolerations  []corev1.Toleration          `json:"tolerations,omitempty"`
}

type domainOfPods struct {
	Values []string `json:"values"`
	Count  int32    `json:"count"`
}

// capacity builds what a situation describes.
func (s *situation) capacity() *Capacity {
	var nodes []Node
	for _, n := range s.Nodes {
		nodes = append(nodes, Node{Name: n.Name, Labels: n.Labels, Taints: n.Taints, Allocatable: scheduler.Units(n.Allocatable)})
	}
	c := NewCapacity("default", NewTree(s.Levels, nodes), s.Tolerations)
	for _, o := range s.Others {
		c.Occupy(o.Node, scheduler.Units(o.Requests))
	}
	for _, u := range s.Used {
		c.Add(u.Values, scheduler.Units(u.Requests), u.Count)
	}
	return c
}

func (s *situation) requests() []Request {
	var all []Request
	for _, r := range s.Requests {
		all = append(all, Request{
			PodSet: r.PodSet, Group: r.Group, Count: r.Count, PerPod: scheduler.Units(r.Requests), Topology: r.Topology,
			NodeSelector: r.NodeSelector, NodeAffinity: r.NodeAffinity, Tolerations: r.Tolerations,
		})
	}
	return all
}

func (s *situation) options() Options {
	o := Options{Empty: s.Empty, Broken: s.Broken, Admitted: map[string]*Assignment{}}
	for name, domains := range s.Admitted {
		a := &Assignment{Levels: s.Levels[len(s.Levels)-1:]}
		for _, d := range domains {
			a.Domains = append(a.Domains, tas.Domain(d))
		}
		o.Admitted[name] = a
	}
	return o
}

// drawer makes situations.
type drawer struct{ *rand.Rand }

func newDrawer(seed uint64) drawer { return drawer{rand.New(rand.NewPCG(seed, 1))} }

func (d drawer) chance(percent int) bool { return d.IntN(100) < percent }

func (d drawer) between(low, high int) int { return low + d.IntN(high-low+1) }

var levelNames = []string{"cloud/block", "cloud/rack", "cloud/shelf", corev1.LabelHostname}

func (d drawer) situation() situation {
	var s situation
	s.Levels = [][]string{
		levelNames,
		{levelNames[0], levelNames[1], levelNames[3]},
		{levelNames[1], levelNames[3]},
		{levelNames[3]},
		{levelNames[0], levelNames[1]},
		{levelNames[0], levelNames[1], levelNames[2]},
		{levelNames[1]},
	}[d.IntN(7)]
	d.nodes(&s)
	if d.chance(20) {
		s.Tolerations = []corev1.Toleration{{Key: "a", Operator: corev1.TolerationOpExists}}
	}
	for range d.IntN(4) {
		s.Others = append(s.Others, useOf{Node: s.Nodes[d.IntN(len(s.Nodes))].Name, Requests: d.perPod()})
	}
	d.podSets(&s)
	if d.chance(60) {
		d.use(&s)
	}
	s.Empty = d.chance(10)
	if ByHost(s.Levels) && d.chance(25) {
		d.breakNode(&s)
	}
	return s
}

func (d drawer) nodes(s *situation) {
	blocks, racks, shelves, hosts := d.between(1, 3), d.between(1, 3), d.between(1, 2), d.between(1, 3)
	uniform := d.chance(50)
	size := d.allocatable()
	number := d.IntN(900)
	for b := range blocks {
		for r := range racks {
			for f := range shelves {
				for range hosts {
					if d.chance(10) {
						continue
					}
					number++
					n := nodeOf{Name: fmt.Sprintf("node-%d", number), Allocatable: size}
					if !uniform {
						n.Allocatable = d.allocatable()
					}
					n.Labels = map[string]string{
						levelNames[0]: fmt.Sprintf("b%d", b), levelNames[1]: fmt.Sprintf("r%d", r), levelNames[2]: fmt.Sprintf("s%d", f),
						levelNames[3]: fmt.Sprintf("host-%d", number), "kind": []string{"old", "new"}[d.IntN(2)],
					}
					if d.chance(15) {
						n.Taints = []corev1.Taint{{Key: []string{"a", "b"}[d.IntN(2)], Value: "x", Effect: []corev1.TaintEffect{
							corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute,
						}[d.IntN(3)]}}
					}
					s.Nodes = append(s.Nodes, n)
				}
			}
		}
	}
	if len(s.Nodes) == 0 {
		d.nodes(s)
	}
}

func (d drawer) allocatable() corev1.ResourceList {
	l := corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewQuantity(int64(d.between(1, 8)), resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(int64(d.between(1, 8))<<30, resource.BinarySI),
		corev1.ResourcePods:   *resource.NewQuantity(int64([]int{110, 110, 110, 3, 1}[d.IntN(5)]), resource.DecimalSI),
	}
	if d.chance(50) {
		l["example.com/gpu"] = *resource.NewQuantity(int64(d.IntN(9)), resource.DecimalSI)
	}
	return l
}

func (d drawer) perPod() corev1.ResourceList {
	l := corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(int64([]int{250, 500, 1000, 1000, 2000, 3000}[d.IntN(6)]), resource.DecimalSI)}
	if d.chance(40) {
		l[corev1.ResourceMemory] = *resource.NewQuantity(int64(d.between(1, 3))<<29, resource.BinarySI)
	}
	if d.chance(25) {
		l["example.com/gpu"] = *resource.NewQuantity(int64(d.between(0, 2)), resource.DecimalSI)
	}
	if d.chance(5) {
		return corev1.ResourceList{}
	}
	return l
}

func (d drawer) podSets(s *situation) {
	for i := range []int{1, 1, 1, 2, 3}[d.IntN(5)] {
		r := requestOf{PodSet: fmt.Sprintf("set-%d", i), Count: int32(d.between(1, 12)), Requests: d.perPod(), Topology: d.topology(s)}
		if d.chance(20) {
			r.NodeSelector = map[string]string{"kind": []string{"old", "new"}[d.IntN(2)]}
		}
		if d.chance(15) {
			r.NodeAffinity = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: levelNames[d.IntN(2)], Operator: []corev1.NodeSelectorOperator{corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn}[d.IntN(2)], Values: []string{"b0", "r1"}},
			}}}}
		}
		if d.chance(30) {
			r.Tolerations = []corev1.Toleration{{Key: []string{"a", "b"}[d.IntN(2)], Operator: corev1.TolerationOpExists}}
		}
		s.Requests = append(s.Requests, r)
	}
	if len(s.Requests) > 1 && d.chance(60) {
		workers, leader := &s.Requests[0], &s.Requests[1]
		if d.chance(30) {
			workers, leader = leader, workers
		}
		leader.Count, leader.Group, workers.Group = 1, "group", "group"
		leader.Topology = workers.Topology
		if leader.Topology != nil {
			copied := *leader.Topology
			leader.Topology = &copied
		}
	}
}

func (d drawer) topology(s *situation) *kueue.PodSetTopologyRequest {
	level := func() *string { return &s.Levels[d.IntN(len(s.Levels))] }
	yes := true
	var r kueue.PodSetTopologyRequest
	switch d.IntN(10) {
	case 0:
		return nil
	case 1:
		r.Unconstrained = &yes
		return &r
	case 2, 3, 4:
		r.Required = level()
	case 5, 6, 7:
		r.Preferred = level()
	default: // slices alone
		d.slices(s, &r)
		return &r
	}
	if d.chance(40) {
		d.slices(s, &r)
	}
	if d.chance(2) {
		other := "cloud/other"
		r.Required = &other
	}
	return &r
}

func (d drawer) slices(s *situation, r *kueue.PodSetTopologyRequest) {
	at := d.IntN(len(s.Levels))
	size := int32(d.between(1, 4))
	if d.chance(60) || at == len(s.Levels)-1 {
		r.PodSetSliceRequiredTopology, r.PodSetSliceSize = &s.Levels[at], &size
		return
	}
	size = []int32{4, 6, 8}[d.IntN(3)]
	for ; at < len(s.Levels) && len(r.PodsetSliceRequiredTopologyConstraints) < 3; at += d.between(1, 2) {
		r.PodsetSliceRequiredTopologyConstraints = append(r.PodsetSliceRequiredTopologyConstraints,
			kueue.PodsetSliceRequiredTopologyConstraint{Topology: s.Levels[at], Size: size})
		size = max(1, size/int32(d.between(1, 2)))
		if d.chance(5) {
			size++
		}
	}
}

// use draws admitted workloads by placing some, so that they are where others are likely to be.
func (d drawer) use(s *situation) {
	c := s.capacity()
	for range d.between(1, 5) {
		other := situation{Levels: s.Levels}
		d.podSets(&other)
		placed, failure := c.Place(other.requests(), Options{})
		if failure != nil {
			continue
		}
		for _, r := range other.Requests {
			for _, domain := range placed[r.PodSet].Domains {
				s.Used = append(s.Used, useOf{Values: domain.Values, Requests: r.Requests, Count: domain.Count})
				c.Add(domain.Values, scheduler.Units(r.Requests), domain.Count)
			}
		}
	}
}

// breakNode places the workload, and breaks one of the nodes that it is on.
func (d drawer) breakNode(s *situation) {
	c := s.capacity()
	placed, failure := c.Place(s.requests(), Options{})
	if failure != nil {
		return
	}
	s.Empty, s.Admitted = false, map[string][]domainOfPods{}
	var hosts []string
	for _, r := range s.Requests {
		for _, domain := range placed[r.PodSet].Domains {
			s.Admitted[r.PodSet] = append(s.Admitted[r.PodSet], domainOfPods(domain))
			hosts = append(hosts, domain.Values[0])
			s.Used = append(s.Used, useOf{Values: domain.Values, Requests: r.Requests, Count: domain.Count})
		}
	}
	if len(hosts) == 0 {
		s.Admitted = nil
		return
	}
	s.Broken = hosts[d.IntN(len(hosts))]
	if d.chance(80) { // it is not ready any more
		for i := range s.Nodes {
			if s.Nodes[i].Labels[corev1.LabelHostname] == s.Broken {
				s.Nodes = append(s.Nodes[:i:i], s.Nodes[i+1:]...)
				break
			}
		}
	}
	// Only the pod sets with pods there are requested.
	var affected []requestOf
	for _, r := range s.Requests {
		for _, domain := range s.Admitted[r.PodSet] {
			if domain.Values[0] == s.Broken {
				affected = append(affected, r)
			}
		}
	}
	s.Requests = affected
}
