package differential

import (
	"math/rand/v2"
	"slices"
)

// A family is a kind of snapshot. Every family isolates a few rules of the scheduler, so that a difference points to a
// rule and the count of a family shows how well its rules are covered.
type family struct {
	name string
	// weight is the family's share among all, by the sum of the weights.
	weight int
	shape  shape
}

// A span is a range of counts, both ends included.
type span struct{ least, most int }

// A shape describes the contents of a snapshot. Numbers are probabilities of the event beside them unless they are
// spans.
type shape struct {
	nodes   span // nodes of the cluster
	running span // pods per node, as far as they have room
	pending span // pods that wait

	priorities  float64 // the pods have several priorities, not one
	reach       float64 // a pending pod has the highest of them
	never       float64 // a class never preempts
	ties        float64 // nodes and pods are alike, and start times are near one another
	fewPods     float64 // a node takes few pods
	taints      float64 // a node has a taint, a pod tolerates some
	cordons     float64 // a node is cordoned
	selectors   float64 // a pod has a node selector, or required node affinity
	preferences float64 // a pod prefers nodes by their labels
	ports       float64 // a pod has a host port
	podAffinity float64 // a pod has affinity or anti-affinity to pods
	spread      float64 // a pod has topology spread constraints
	containers  float64 // a pod has more than one plain container
	bare        float64 // a pod requests nothing
	devices     float64 // nodes have, and a pod requests, extended resources or disk
	budgets     float64 // the snapshot has disruption budgets
	terminating float64 // a running pod is being deleted
	finished    float64 // a bound pod has ended
	unstarted   float64 // a bound pod has no start time yet
	nominated   float64 // a pending pod is nominated to a node already
	services    float64 // Services, ReplicaSets and StatefulSets select pods
	images      float64 // nodes have images
	resized     float64 // a running pod is being resized
	bystanders  float64 // there are pods that the scheduler does not try
	odd         float64 // a container has odd requests
	overfull    float64 // a running pod exists without room
	gang        float64 // the pending pods are alike
	large       float64 // a pending pod requests most of a node
	volumes     float64 // a pod has volume claims
	claims      float64 // a pod has resource claims, or extended resources of a DeviceClass
}

// preempting is what every family about preemption has in common.
func preempting(s shape) shape {
	s.nodes, s.running, s.pending = span{2, 7}, span{2, 9}, span{1, 1}
	s.priorities, s.reach = 1, 0.75
	return s
}

var families = []family{
	{"resources", 4, shape{nodes: span{1, 8}, running: span{0, 6}, pending: span{1, 1}, fewPods: 0.1}},
	{"preemption", 10, preempting(shape{fewPods: 0.1})},
	{"ties", 4, preempting(shape{ties: 1})},
	{"budgets", 8, preempting(shape{budgets: 1})},
	{"preemption policy", 2, preempting(shape{never: 0.5})},
	{"few pods per node", 2, preempting(shape{fewPods: 0.8, bare: 0.5})},
	{"taints", 5, preempting(shape{taints: 0.5, cordons: 0.15})},
	{"node affinity", 5, preempting(shape{selectors: 0.5, preferences: 0.4})},
	{"host ports", 4, preempting(shape{ports: 0.5})},
	{"pod affinity", 8, preempting(shape{podAffinity: 0.45})},
	{"topology spread", 7, preempting(shape{spread: 0.6, taints: 0.1, selectors: 0.1})},
	{"containers", 5, preempting(shape{containers: 0.6, bare: 0.1, odd: 0.1, ports: 0.1})},
	{"devices", 4, preempting(shape{devices: 0.7})},
	{"terminating", 4, preempting(shape{terminating: 0.25, finished: 0.1, unstarted: 0.1})},
	{"services", 3, preempting(shape{services: 1, spread: 0.1})},
	{"images", 2, preempting(shape{images: 1})},
	{"resized", 3, preempting(shape{resized: 0.5, containers: 0.2})},
	{"odd", 3, preempting(shape{odd: 0.4, overfull: 0.3, bystanders: 0.5, bare: 0.2})},
	{"nominated", 5, shape{nodes: span{2, 6}, running: span{1, 5}, pending: span{2, 4}, priorities: 1, reach: 0.5, nominated: 0.5, bystanders: 0.3}},
	{"sequence", 6, shape{nodes: span{2, 7}, running: span{0, 5}, pending: span{2, 6}, priorities: 1, reach: 0.4, budgets: 0.2}},
	{"long sequence", 2, shape{nodes: span{3, 6}, running: span{1, 6}, pending: span{8, 20}, priorities: 1, reach: 0.3, ties: 0.1, podAffinity: 0.1, spread: 0.1, ports: 0.1, nominated: 0.05}},
	{"many nodes", 2, shape{nodes: span{20, 60}, running: span{1, 6}, pending: span{1, 1}, priorities: 1, reach: 0.7, taints: 0.1, selectors: 0.1}},
	{"more nodes than are looked at", 1, shape{nodes: span{101, 180}, running: span{1, 3}, pending: span{1, 2}, priorities: 1, reach: 0.7, taints: 0.05, selectors: 0.05}},
	{"gangs", 4, shape{nodes: span{2, 8}, running: span{1, 6}, pending: span{3, 8}, priorities: 1, reach: 1, gang: 1, large: 0.4}},
	{"preemption in large clusters", 1, shape{nodes: span{101, 220}, running: span{2, 6}, pending: span{1, 2}, priorities: 1, reach: 1, large: 1, taints: 0.05, selectors: 0.05}},
	{"gangs in large clusters", 1, shape{nodes: span{101, 220}, running: span{2, 6}, pending: span{3, 8}, priorities: 1, reach: 1, gang: 1, large: 0.7, taints: 0.05, selectors: 0.05}},
	{"volumes", 6, preempting(shape{volumes: 0.7})},
	{"volumes in sequence", 3, shape{nodes: span{2, 6}, running: span{0, 5}, pending: span{2, 5}, priorities: 1, reach: 0.4, volumes: 0.7, nominated: 0.1}},
	{"resource claims", 6, preempting(shape{claims: 0.7})},
	{"resource claims in sequence", 3, shape{nodes: span{2, 6}, running: span{0, 5}, pending: span{2, 5}, priorities: 1, reach: 0.4, claims: 0.7, nominated: 0.1}},
	{"everything with claims", 3, shape{
		nodes: span{2, 7}, running: span{1, 6}, pending: span{1, 3}, priorities: 1, reach: 0.6, volumes: 0.3, claims: 0.3,
		never: 0.1, ties: 0.1, taints: 0.15, selectors: 0.1, preferences: 0.1, ports: 0.1, podAffinity: 0.12, spread: 0.12,
		containers: 0.15, devices: 0.1, budgets: 0.4, terminating: 0.05, unstarted: 0.03, nominated: 0.1, services: 0.2,
	}},
	{"everything", 10, shape{
		nodes: span{2, 8}, running: span{1, 6}, pending: span{1, 4}, priorities: 1, reach: 0.6,
		never: 0.1, ties: 0.1, fewPods: 0.1, taints: 0.15, cordons: 0.05, selectors: 0.1, preferences: 0.1, ports: 0.1,
		podAffinity: 0.12, spread: 0.12, containers: 0.15, bare: 0.05, devices: 0.1, budgets: 0.4, terminating: 0.05,
		finished: 0.05, unstarted: 0.03, nominated: 0.1, services: 0.2, images: 0.2,
		resized: 0.05, bystanders: 0.1, odd: 0.05, overfull: 0.05,
	}},
}

// Families are the names of the families, in their order.
func Families() []string {
	var names []string
	for _, f := range families {
		names = append(names, f.name)
	}
	return names
}

// drawFamily draws one of some families, by their weights.
func drawFamily(d rng, of []family) family {
	total := 0
	for _, f := range of {
		total += f.weight
	}
	at := d.IntN(total)
	return of[slices.IndexFunc(of, func(f family) bool {
		at -= f.weight
		return at < 0
	})]
}

// Generate makes the snapshot of a seed, and returns its family.
func Generate(seed uint64) (snapshot *Snapshot, familyName string) {
	d := newRNG(seed)
	drawn := drawFamily(d, families)
	return newGenerator(d, drawn.shape).snapshot(), drawn.name
}

// GenerateOf makes the snapshot of a seed that belongs to a family.
func GenerateOf(seed uint64, familyName string) *Snapshot {
	i := slices.IndexFunc(families, func(f family) bool { return f.name == familyName })
	return newGenerator(newRNG(seed), families[i].shape).snapshot()
}

func newRNG(seed uint64) rng { return rng{rand.New(rand.NewPCG(seed, 0x656c6173746963))} }

// rng draws what a snapshot is made of.
type rng struct{ *rand.Rand }

// chance is true with probability p.
func (d rng) chance(p float64) bool { return d.Float64() < p }

func (d rng) within(s span) int { return s.least + d.IntN(s.most-s.least+1) }

// pick draws one of items.
func pick[T any](d rng, items ...T) T { return items[d.IntN(len(items))] }
