package topology

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Node is a node that is ready and schedulable.
type Node struct {
	Name        string
	Labels      map[string]string
	Taints      []corev1.Taint
	Allocatable Units
}

// Selects reports whether a flavor with some node labels and the levels of its topology includes a node: the node has
// the labels, and a value for each level.
func Selects(nodeLabels map[string]string, levels []string, node map[string]string) bool {
	for key, value := range nodeLabels {
		if node[key] != value {
			return false
		}
	}
	for _, level := range levels {
		if _, has := node[level]; !has {
			return false
		}
	}
	return true
}

// Tree is the domains of a topology with some nodes. It is not changed once made, so that Capacities share it.
type Tree struct {
	levels []string
	// byHost: the lowest level is kubernetes.io/hostname, so that a leaf is a node, and its name alone identifies it.
	byHost bool
	// domains, the leaves first; leaf i is domains[i].
	domains []domain
	leaves  []leaf
	// at has the indexes of the domains of each level, ordered by their values.
	at [][]int
	// rank is a domain's place among those of its level.
	rank []int
	// leafOf finds leaves by ID, and nodeLeaf by the name of a node.
	leafOf, nodeLeaf map[string]int
}

// domain is a place at one level.
type domain struct {
	level  int
	values []string // from the highest level to its own
	parent int      // -1: none
	// children in the order of their values.
	children []int
}

// leaf is a domain of the lowest level.
type leaf struct {
	id string
	// node is the node of a leaf by host.
	node        *Node
	allocatable Units
}

// ID identifies a domain: its values joined, or the host name alone where the lowest level is that.
func ID(values []string) string { return strings.Join(values, ",") }

// ByHost reports whether the lowest level of a topology is the host.
func ByHost(levels []string) bool {
	return len(levels) > 0 && levels[len(levels)-1] == corev1.LabelHostname
}

// NewTree makes the tree of the nodes that a flavor selects. levels are not empty.
func NewTree(levels []string, nodes []Node) *Tree {
	t := &Tree{levels: levels, byHost: ByHost(levels), leafOf: map[string]int{}, nodeLeaf: map[string]int{}}
	for i := range nodes {
		t.addNode(&nodes[i])
	}
	t.connect()
	t.rank = make([]int, len(t.domains))
	for _, level := range t.at {
		for rank, at := range level {
			t.rank[at] = rank
		}
	}
	return t
}

func (t *Tree) addNode(n *Node) {
	values := make([]string, len(t.levels))
	for i, level := range t.levels {
		values[i] = n.Labels[level]
	}
	id := ID(values)
	if t.byHost {
		id = values[len(values)-1]
	}
	at, known := t.leafOf[id]
	if !known {
		at = len(t.leaves)
		t.leafOf[id] = at
		t.leaves = append(t.leaves, leaf{id: id, allocatable: Units{}})
		t.domains = append(t.domains, domain{level: len(t.levels) - 1, values: values, parent: -1})
		if t.byHost {
			t.leaves[at].node = n
		}
	}
	t.leaves[at].allocatable.add(n.Allocatable, 1)
	t.nodeLeaf[n.Name] = at
}

// connect makes the domains above the leaves.
func (t *Tree) connect() {
	t.at = make([][]int, len(t.levels))
	lowest := len(t.levels) - 1
	for i := range t.leaves {
		t.at[lowest] = append(t.at[lowest], i)
	}
	for level := lowest; level >= 0; level-- {
		slices.SortFunc(t.at[level], func(a, b int) int { return slices.Compare(t.domains[a].values, t.domains[b].values) })
		if level == 0 {
			return
		}
		parents := map[string]int{}
		for _, child := range t.at[level] {
			values := t.domains[child].values[:level]
			parent, known := parents[ID(values)]
			if !known {
				parent = len(t.domains)
				parents[ID(values)] = parent
				t.domains = append(t.domains, domain{level: level - 1, values: values, parent: -1})
				t.at[level-1] = append(t.at[level-1], parent)
			}
			t.domains[child].parent = parent
			t.domains[parent].children = append(t.domains[parent].children, child)
		}
	}
}

// ByHost reports whether the lowest level is the host.
func (t *Tree) ByHost() bool { return t.byHost }

// HasLevel reports whether the tree's topology has a level.
func (t *Tree) HasLevel(level string) bool { return slices.Contains(t.levels, level) }

// Levels are the keys of the node labels, from the widest level to the narrowest.
func (t *Tree) Levels() []string { return t.levels }

// ancestor is the domain at a level that a domain lies in.
func (t *Tree) ancestor(of, level int) int {
	for t.domains[of].level > level {
		of = t.domains[of].parent
	}
	return of
}

// Units are amounts of resources: thousandths for cpu, whole units for everything else.
type Units map[corev1.ResourceName]int64

// add counts some requests a number of times.
func (u Units) add(requests Units, times int64) {
	for name, amount := range requests {
		u[name] = saturatingAdd(u[name], saturatingTimes(amount, times))
	}
}

// withPod is the requests of a pod together with its place in the number of pods that a node takes.
func (u Units) withPod() Units {
	all := maps.Clone(u)
	if all == nil {
		all = Units{}
	}
	all[corev1.ResourcePods]++
	return all
}
