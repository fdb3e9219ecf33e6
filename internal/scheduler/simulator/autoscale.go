package simulator

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/placement"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/simulator/scenariofile"
)

// scaler is the autoscaler of a node group.
type scaler struct {
	group *scenariofile.NodeGroup
	nodes []*node // as many as the group may have
	// coming are the nodes that were requested and are not ready.
	coming int
}

// scale requests the nodes that the pending pods need: first fit, in the order of the pods, into nodes that are coming
// and then into new nodes, the first group first (Cluster Autoscaler's estimate, with the expander "priority").
func (s *simulation) scale() {
	if len(s.scalers) == 0 {
		return
	}
	for _, scaler := range s.scalers {
		var rooms [][]int64
		for range scaler.coming {
			rooms = append(rooms, slices.Clone(scaler.nodes[0].capacity))
		}
		for _, h := range s.listed {
			if _, never := placement.Never(h.template.Object(), []*corev1.Node{scaler.nodes[0].object}); never {
				continue
			}
			for _, p := range h.waiting.pods[h.waiting.head:] {
				if p.scaled != nil && p.scaled != scaler {
					continue // another group provides its node
				}
				at := slices.IndexFunc(rooms, h.fits)
				if at < 0 {
					if !s.request(scaler) {
						break
					}
					at = len(rooms)
					rooms = append(rooms, slices.Clone(scaler.nodes[0].capacity))
				}
				p.scaled = scaler
				for i, request := range h.requests {
					rooms[at][i] -= request
				}
			}
		}
	}
}

func (h *shape) fits(room []int64) bool {
	for i, request := range h.requests {
		if request > room[i] {
			return false
		}
	}
	return true
}

// request requests one more node, within the group's maximum.
func (s *simulation) request(scaler *scaler) bool {
	for _, n := range scaler.nodes {
		if n.lost && !n.coming {
			n.coming = true
			scaler.coming++
			s.eventQueue.add(event{at: s.now + Time(scaler.group.Autoscale.Provision), kind: nodeReady, subject: n.id})
			return true
		}
	}
	return false
}

func (s *simulation) scalerOf(n *node) *scaler {
	return s.scalers[slices.IndexFunc(s.scalers, func(c *scaler) bool { return c.group == n.group })]
}

// provisioned adds a node that has become ready.
func (s *simulation) provisioned(n *node) {
	n.coming = false
	scaler := s.scalerOf(n)
	scaler.coming--
	if !n.lost {
		return // it has returned from a failure meanwhile
	}
	s.joins(n)
}

// idle removes a node that has been empty for long enough.
func (s *simulation) idle(n *node, version int) {
	if n.lost || n.version != version {
		return
	}
	there := 0
	for _, other := range s.scalerOf(n).nodes {
		if !other.lost {
			there++
		}
	}
	if there > n.group.Autoscale.Min {
		s.leaves(n)
	}
}
