package placement

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/node/topology"
)

// node is a node and what is on it.
type node struct {
	object *corev1.Node
	name   string
	zone   string
	added  uint32 // later nodes have higher numbers
	owner  *byte  // the Cluster that may change it

	allocatable quantities
	podsAllowed int
	// byDevices are extended resources that the node has as devices.
	byDevices map[int]*deviceClass

	pods      []occupant
	nominated []*Pod

	// Sums over pods.
	requested        quantities
	heldForScore     [2]int64
	withPorts        int
	withAffinity     int
	withAntiAffinity int
}

// occupant is a pod on a node.
type occupant struct {
	pod         *Pod
	terminating bool
	// preempted: it is terminating because kube-scheduler makes room.
	preempted bool
}

func (c *Cluster) newNode(object *corev1.Node) *node {
	allocatable := c.slots.quantities(object.Status.Allocatable)
	if c.devices != nil {
		for slot, count := range c.devices.offered[object.Name] {
			allocatable = allocatable.add(make(quantities, slot+1), 0)
			allocatable[slot] = count
		}
	}
	*c.changes++
	return &node{
		object: object, added: *c.changes, name: object.Name, zone: topology.GetZoneKey(object), owner: c.owner,
		allocatable: allocatable, podsAllowed: int(object.Status.Allocatable.Pods().Value()),
		requested: make(quantities, len(allocatable)), byDevices: c.byDevices(allocatable),
	}
}

func (n *node) clone(owner *byte) *node {
	clone := *n
	clone.owner = owner
	clone.pods = slices.Clone(n.pods)
	clone.nominated = slices.Clone(n.nominated)
	clone.requested = slices.Clone(n.requested)
	return &clone
}

func (n *node) put(o occupant) {
	n.pods = append(n.pods, o)
	n.sum(o.pod, 1)
}

func (n *node) take(i int) {
	n.sum(n.pods[i].pod, -1)
	n.pods = slices.Delete(n.pods, i, i+1)
}

func (n *node) sum(pod *Pod, sign int) {
	n.requested = n.requested.add(pod.held, int64(sign))
	n.heldForScore[0] += int64(sign) * pod.heldForScore[0]
	n.heldForScore[1] += int64(sign) * pod.heldForScore[1]
	if len(pod.ports) > 0 {
		n.withPorts += sign
	}
	if pod.hasAffinity() {
		n.withAffinity += sign
	}
	if len(pod.antiAffinity) > 0 {
		n.withAntiAffinity += sign
	}
}

func (n *node) find(pod *Pod) int {
	return slices.IndexFunc(n.pods, func(o occupant) bool { return o.pod == pod })
}
