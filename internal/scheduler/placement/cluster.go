package placement

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Snapshot is a cluster at one moment. Its objects are read, kept and never changed.
type Snapshot struct {
	Nodes []*corev1.Node
	// Pods of all namespaces. Those that have finished are passed over; those without a node are pending.
	Pods []*corev1.Pod
	PDBs []*policyv1.PodDisruptionBudget
	// Namespaces, for affinity terms that select namespaces by label.
	Namespaces []*corev1.Namespace
	// PriorityClasses, for pods whose priority admission has not resolved yet.
	PriorityClasses []*schedulingv1.PriorityClass
	// Pods without spread constraints of their own are spread by the selectors of these.
	Services               []*corev1.Service
	ReplicationControllers []*corev1.ReplicationController
	ReplicaSets            []*appsv1.ReplicaSet
	StatefulSets           []*appsv1.StatefulSet
	// Devices that drivers offer; nil where they are not known.
	Devices *Devices
	// Storage is the objects that volume claims are bound to; nil if they are not known.
	Storage *Storage
	// Version is that of the API server, "v1.37.1": its scheduler's rules apply. "" has those of the newest tested one.
	Version string
}

// Cluster is the nodes of a cluster and what runs on them.
type Cluster struct {
	immutable
	// nodes in kube-scheduler's order: the zones take turns (backend/cache/node_tree.go).
	nodes []*node
	// versions identify by position the state of a node. No version is used twice, in any clone.
	versions []uint32
	// journal has the positions of nodes that changed, the latest last, after those that it has forgotten.
	journal   []int32
	forgotten int
	*layout
	// nominated are the pods that wait for room which was made for them, and where.
	nominated map[*Pod]string
	budgets   []*budget
	pending   []*Pod
	// shared are the ResourceClaims that pods name, by namespace and name.
	shared map[string]sharedClaim
	// volumes are the PersistentVolumes, and the claims that are bound to them.
	volumes *volumes

	// How many pods on nodes have terms of affinity, and required terms of anti-affinity.
	withAffinity, withAntiAffinity int

	// TieBreak chooses one of n equals, 0 to n-1, where kube-scheduler chooses at random. Nil: the first. It must not
	// keep state that a clone would share.
	TieBreak func(n int) int

	// next is the start of the next search for feasible nodes (sched.nextStartNodeIndex).
	next int
	// reading: this is a reader, which leaves alone what decisions share.
	reading bool
	// owner is the token by which this Cluster knows the nodes that are its own to change. A clone shares nodes until
	// either changes them.
	owner *byte
}

// layout is the information that follows from the node objects alone. It is replaced when they change.
type layout struct {
	// position of every node in Cluster.nodes.
	position map[string]int
	all      []int // every position
	// shunned reports whether some node has a taint that keeps pods off if possible.
	shunned bool
	// images that pods have, looked up when they came.
	images map[string]*image
}

// immutable is what does not change once a cluster is made, and the memory that is reused. Clones share it.
type immutable struct {
	slots           *slots
	namespaces      map[string]labels.Set
	priorityClasses map[string]*schedulingv1.PriorityClass
	spreading       spreading
	devices         *devices // nil where they are not known, as is storage
	storage         *storage
	rules           rules
	// changes counts what was done to nodes.
	changes *uint32
	work    *workspace
}

// New makes a cluster from a snapshot.
func New(snapshot Snapshot) *Cluster {
	c := &Cluster{
		immutable: immutable{
			slots: newSlots(rulesOf(snapshot.Version)), namespaces: map[string]labels.Set{}, priorityClasses: map[string]*schedulingv1.PriorityClass{},
			spreading: newSpreading(&snapshot), rules: rulesOf(snapshot.Version), changes: new(uint32), work: &workspace{},
		},
		nominated: map[*Pod]string{}, owner: new(byte), shared: map[string]sharedClaim{},
	}
	c.devices = newDevices(snapshot.Devices, snapshot.Pods, c.slots)
	c.storage, c.volumes = newStorage(snapshot.Storage, c.owner)
	for _, namespace := range snapshot.Namespaces {
		c.namespaces[namespace.Name] = namespace.Labels
	}
	for _, class := range snapshot.PriorityClasses {
		c.priorityClasses[class.Name] = class
	}
	for _, pdb := range snapshot.PDBs {
		if b := newBudget(pdb); b != nil {
			c.budgets = append(c.budgets, b)
		}
	}
	for _, object := range snapshot.Nodes {
		c.nodes = append(c.nodes, c.newNode(object))
	}
	c.arrange()
	for _, object := range snapshot.Pods {
		if Finished(object) {
			continue
		}
		if object.Spec.NodeName == "" {
			if object.DeletionTimestamp != nil {
				continue // Schedulers pass over it.
			}
			pod := c.Pod(object)
			c.pending = append(c.pending, pod)
			// Another scheduler's nominations count for nothing.
			if nominee := object.Status.NominatedNodeName; nominee != "" && !foreign(pod) && (c.rules.gatedNominations || !gated(pod)) {
				c.Nominate(pod, nominee)
			}
			continue
		}
		if at, known := c.position[object.Spec.NodeName]; known {
			c.place(at, occupant{pod: c.Pod(object), terminating: object.DeletionTimestamp != nil, preempted: preempted(object)})
		}
	}
	slices.SortStableFunc(c.pending, queueOrder)
	return c
}

// Clone copies the cluster: what is done to either is not seen by the other. It costs about a word per node.
func (c *Cluster) Clone() *Cluster {
	clone := *c
	clone.nodes = slices.Clone(c.nodes)
	clone.versions = slices.Clone(c.versions)
	clone.journal = nil
	clone.nominated = maps.Clone(c.nominated)
	clone.budgets = slices.Clone(c.budgets)
	clone.pending = slices.Clone(c.pending)
	clone.shared = maps.Clone(c.shared)
	c.owner, clone.owner = new(byte), new(byte)
	return &clone
}

// reader is the cluster for a query, which must not change later decisions. These depend on more than the nodes: on the
// start of the next search, on how often TieBreak was called, and on the memos, as a shape that has one leaves other
// choices to TieBreak. So a reader has a start of its own, takes the first of equals, and neither makes nor uses a
// memo. It shares the nodes and must not be used to change them.
func (c *Cluster) reader() *Cluster {
	r := *c
	r.TieBreak, r.reading, r.work = nil, true, &workspace{}
	return &r
}

// Approximate lists what a pod uses that is not modelled, as Decision.Approximate does, without a decision.
func (c *Cluster) Approximate(pod *Pod) []string {
	if gated(pod) {
		return nil
	}
	c.preFilter(pod)
	return pod.preFilterState.approximate
}

// Pending are the pods of the snapshot that have no node, in the order of the scheduling queue.
func (c *Cluster) Pending() []*Pod { return c.pending }

// Nodes are the cluster's nodes, in the order in which they are tried.
func (c *Cluster) Nodes() []*corev1.Node {
	objects := make([]*corev1.Node, len(c.nodes))
	for i, n := range c.nodes {
		objects[i] = n.object
	}
	return objects
}

// Knows reports whether a node of this name is in the cluster.
func (c *Cluster) Knows(node string) bool {
	_, known := c.position[node]
	return known
}

// PodsOn are the pods on a node, those that are stopping included, in the order of their arrival.
func (c *Cluster) PodsOn(name string) []*Pod {
	at, known := c.position[name]
	if !known {
		return nil
	}
	var pods []*Pod
	for _, o := range c.nodes[at].pods {
		pods = append(pods, o.pod)
	}
	return pods
}

// AddPod puts a pod on a node, without asking whether it fits. Its nomination ends.
func (c *Cluster) AddPod(pod *Pod, node string) {
	c.Denominate(pod)
	at := c.mustKnow(node)
	c.bindVolumes(pod, c.nodes[at])
	c.place(at, occupant{pod: pod})
}

// RemovePod takes a pod from its node: it has stopped, or is gone.
func (c *Cluster) RemovePod(pod *Pod, node string) {
	at := c.mustKnow(node)
	n := c.own(at)
	i := n.find(pod)
	if i < 0 {
		panic(fmt.Sprintf("pod %s is not on node %s", pod, node))
	}
	n.take(i)
	c.consume(pod, n, -1)
	c.count(pod, -1)
}

// Evict begins the end of a pod: it stays on its node, terminating, until RemovePod. The budgets (PDBs) that cover it
// shrink.
func (c *Cluster) Evict(pod *Pod, node string) {
	n := c.own(c.mustKnow(node))
	i := n.find(pod)
	if i < 0 {
		panic(fmt.Sprintf("pod %s is not on node %s", pod, node))
	}
	if n.pods[i].terminating {
		return
	}
	n.pods[i].terminating, n.pods[i].preempted = true, true
	for j, b := range c.budgets {
		if b.covers(pod) && b.allowed > 0 {
			less := *b
			less.allowed--
			c.budgets[j] = &less
		}
	}
}

// Unnoticed marks a victim whose deletion kube-scheduler's cache has not observed yet: the next decisions count it as a
// pod that stays, and evict further victims, until Evict. The budgets stay as its eviction has left them.
func (c *Cluster) Unnoticed(pod *Pod, node string) {
	n := c.own(c.mustKnow(node))
	if i := n.find(pod); i >= 0 {
		n.pods[i].terminating, n.pods[i].preempted = false, false
	}
}

// Preempt carries a decision to preempt out: the victims begin to end, pods of lower priority lose their nomination on
// the node, and the pod is nominated there (preemption.Executor, prepareCandidate). When the victims were terminating
// already, other nominations stay.
func (c *Cluster) Preempt(pod *Pod, node string, victims []*Pod) {
	n := c.nodes[c.mustKnow(node)]
	if slices.ContainsFunc(victims, func(victim *Pod) bool { return !n.pods[n.find(victim)].terminating }) {
		for _, other := range slices.Clone(n.nominated) {
			if other.Priority < pod.Priority {
				c.Denominate(other)
			}
		}
	}
	for _, victim := range victims {
		c.Evict(victim, node)
	}
	c.Nominate(pod, node)
}

// awaits reports whether pods are stopping on the node that is reserved for a pod, by preemption.
func (c *Cluster) awaits(pod *Pod) bool {
	at, reserved := c.reserved(pod)
	return reserved && slices.ContainsFunc(c.nodes[at].pods, func(o occupant) bool { return o.preempted && o.pod.Priority < pod.Priority })
}

// Nominate reserves room on a node for a pod.
func (c *Cluster) Nominate(pod *Pod, node string) {
	c.Denominate(pod)
	at, known := c.position[node]
	if !known {
		c.nominated[pod] = node
		return
	}
	n := c.own(at)
	n.nominated = append(n.nominated, pod)
	c.nominated[pod] = node
}

// Denominate ends a pod's nomination, if it has one.
func (c *Cluster) Denominate(pod *Pod) {
	node, was := c.nominated[pod]
	if !was {
		return
	}
	delete(c.nominated, pod)
	if at, known := c.position[node]; known {
		n := c.own(at)
		n.nominated = slices.DeleteFunc(n.nominated, func(other *Pod) bool { return other == pod })
	}
}

// Nominated is the node that is reserved for a pod; "" when none is.
func (c *Cluster) Nominated(pod *Pod) string { return c.nominated[pod] }

// AddNode adds a node, or replaces the one of its name and keeps its pods.
func (c *Cluster) AddNode(object *corev1.Node) {
	fresh := c.newNode(object)
	if at, known := c.position[object.Name]; known {
		old := c.nodes[at]
		for _, o := range old.pods {
			fresh.put(o)
		}
		fresh.nominated = slices.Clone(old.nominated)
		c.nodes[at] = fresh
	} else {
		c.nodes = append(c.nodes, fresh)
		for pod, name := range c.nominated {
			if name == object.Name {
				fresh.nominated = append(fresh.nominated, pod)
			}
		}
		slices.SortFunc(fresh.nominated, func(a, b *Pod) int { return cmp.Compare(a.String(), b.String()) })
	}
	c.arrange()
}

// RemoveNode removes a node with its pods, and returns these.
func (c *Cluster) RemoveNode(name string) []*Pod {
	at := c.mustKnow(name)
	lost := c.PodsOn(name)
	for _, pod := range lost {
		c.count(pod, -1)
	}
	c.nodes = slices.Delete(c.nodes, at, at+1)
	c.arrange()
	return lost
}

func (c *Cluster) mustKnow(node string) int {
	at, known := c.position[node]
	if !known {
		panic(fmt.Sprintf("node %q is not in the cluster", node))
	}
	return at
}

// own is the node at a position, as this cluster's own to change, which the caller does.
func (c *Cluster) own(at int) *node {
	c.touch(at)
	if n := c.nodes[at]; n.owner == c.owner {
		return n
	}
	n := c.nodes[at].clone(c.owner)
	c.nodes[at] = n
	return n
}

func (c *Cluster) place(at int, o occupant) {
	n := c.own(at)
	n.put(o)
	c.consume(o.pod, n, 1)
	c.count(o.pod, 1)
}

func (c *Cluster) count(pod *Pod, sign int) {
	if pod.hasAffinity() {
		c.withAffinity += sign
	}
	if len(pod.antiAffinity) > 0 {
		c.withAntiAffinity += sign
	}
	c.mount(pod, sign)
}

// arrange brings the nodes into kube-scheduler's order: the first of every zone, the second of every zone, and so on.
// It keeps the order within zones, and that of the zones.
func (c *Cluster) arrange() {
	var zones []string
	of := map[string][]*node{}
	for _, n := range c.nodes {
		if _, known := of[n.zone]; !known {
			zones = append(zones, n.zone)
		}
		of[n.zone] = append(of[n.zone], n)
	}
	nodes := make([]*node, 0, len(c.nodes))
	for turn := 0; len(nodes) < len(c.nodes); turn++ {
		for _, zone := range zones {
			if turn < len(of[zone]) {
				nodes = append(nodes, of[zone][turn])
			}
		}
	}
	c.nodes = nodes
	c.layout = &layout{position: make(map[string]int, len(nodes)), all: make([]int, len(nodes)), images: map[string]*image{}}
	c.versions = make([]uint32, len(nodes))
	for i, n := range nodes {
		c.position[n.name], c.all[i] = i, i
		c.shunned = c.shunned || slices.ContainsFunc(n.object.Spec.Taints, func(t corev1.Taint) bool { return t.Effect == corev1.TaintEffectPreferNoSchedule })
		c.touch(i)
	}
}
