package topology

import (
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Capacity is what the domains of a tree have, and what of it is used. It is not safe for concurrent use.
type Capacity struct {
	// name is that of the Topology; it appears in messages.
	name string
	tree *Tree
	// tolerations are the flavor's, which its pods get.
	tolerations []corev1.Toleration
	// free and used have a column for each resource, and in it a number for each leaf: what its nodes have, less other
	// pods; and what admitted workloads take of it.
	free, used map[corev1.ResourceName][]int64
	// numbers are the scratch space of Place, one for each domain.
	numbers []numbers
	// matching remembers which leaves the pods of a kind may go to.
	matching map[string]matching
	// fillings remember what fits, by request; changes are the leaves of which the usage changed since they were made.
	fillings map[string]*filling
	changes  []int
}

// NewCapacity makes the capacity of a tree of which nothing is used.
func NewCapacity(name string, tree *Tree, tolerations []corev1.Toleration) *Capacity {
	c := &Capacity{
		name: name, tree: tree, tolerations: tolerations, matching: map[string]matching{},
		free: map[corev1.ResourceName][]int64{}, used: map[corev1.ResourceName][]int64{}, numbers: make([]numbers, len(tree.domains)),
	}
	for i := range tree.leaves {
		for resource, amount := range tree.leaves[i].allocatable {
			c.column(c.free, resource)[i] += amount
		}
	}
	return c
}

// Tree is the tree whose capacity it is.
func (c *Capacity) Tree() *Tree { return c.tree }

// column is the numbers of a resource.
func (c *Capacity) column(of map[corev1.ResourceName][]int64, resource corev1.ResourceName) []int64 {
	if of[resource] == nil {
		of[resource] = make([]int64, len(c.tree.leaves))
	}
	return of[resource]
}

// Occupy takes what a pod requests that Kueue does not place (of a DaemonSet, say) from the node that it is on. A node
// that is not in the tree is ignored.
func (c *Capacity) Occupy(node string, requests Units) {
	at, known := c.tree.nodeLeaf[node]
	if !known {
		return
	}
	for resource, amount := range requests.withPod() {
		column := c.column(c.free, resource)
		column[at] = saturatingAdd(column[at], -amount)
	}
	c.forget()
}

// Add counts pods of an admitted workload in a domain, given by the values of its assignment. A domain that is not in
// the tree, because its node is gone or not ready, is ignored.
func (c *Capacity) Add(values []string, perPod Units, count int32) {
	c.use(values, perPod, int64(count))
}

// Clear forgets what was added.
func (c *Capacity) Clear() {
	clear(c.used)
	c.forget()
}

// Remove takes back what Add did.
func (c *Capacity) Remove(values []string, perPod Units, count int32) {
	c.use(values, perPod, -int64(count))
}

func (c *Capacity) use(values []string, perPod Units, count int64) {
	at, known := c.tree.leafOf[ID(values)]
	if !known {
		return
	}
	for resource, amount := range perPod.withPod() {
		column := c.column(c.used, resource)
		column[at] = saturatingAdd(column[at], saturatingTimes(amount, count))
	}
	c.note(at)
}

// Fits reports whether so many more pods go into a domain, as Kueue checks it before it admits: without the number of
// pods that a node takes, and never for pods that request nothing.
func (c *Capacity) Fits(values []string, perPod Units, count int32) bool {
	at, known := c.tree.leafOf[ID(values)]
	if !known {
		return false
	}
	return perPod.countIn(func(resource corev1.ResourceName) int64 {
		return saturatingAdd(c.at(c.free, resource, at), -c.at(c.used, resource, at))
	}) >= count
}

func (c *Capacity) at(of map[corev1.ResourceName][]int64, resource corev1.ResourceName, leaf int) int64 {
	if column := of[resource]; column != nil {
		return column[leaf]
	}
	return 0
}

// countIn is how many times some requests fit into a capacity.
func (u Units) countIn(capacity func(corev1.ResourceName) int64) int32 {
	count, requested := int32(math.MaxInt32), false
	for resource, amount := range u {
		requested = true
		count = min(count, times(capacity(resource), amount))
	}
	if !requested {
		return 0
	}
	return count
}

// times is how many times an amount fits into a capacity.
func times(capacity, amount int64) int32 {
	if amount == 0 {
		return math.MaxInt32
	}
	return int32(max(0, min(capacity/amount, math.MaxInt32))) //nolint:gosec // bounded just now
}

// Clone copies the usage; the tree is shared.
func (c *Capacity) Clone() *Capacity {
	copied := *c
	copied.free, copied.used = cloneColumns(c.free), cloneColumns(c.used)
	copied.numbers = make([]numbers, len(c.numbers))
	copied.matching = map[string]matching{}
	copied.forget()
	return &copied
}

func cloneColumns(of map[corev1.ResourceName][]int64) map[corev1.ResourceName][]int64 {
	copied := make(map[corev1.ResourceName][]int64, len(of))
	for resource, column := range of {
		copied[resource] = slices.Clone(column)
	}
	return copied
}

func saturatingAdd(a, b int64) int64 {
	sum := a + b
	switch {
	case a > 0 && b > 0 && sum < 0:
		return math.MaxInt64
	case a < 0 && b < 0 && sum >= 0:
		return math.MinInt64
	}
	return sum
}

func saturatingTimes(a, b int64) int64 {
	if a == 0 || b == 0 {
		return 0
	}
	product := a * b
	if product/b != a {
		if (a < 0) == (b < 0) {
			return math.MaxInt64
		}
		return math.MinInt64
	}
	return product
}
