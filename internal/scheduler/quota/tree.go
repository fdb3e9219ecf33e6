package quota

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// pair is a resource in a flavor: what quota is counted in.
type pair struct{ flavor, resource string }

// pairAmount is an amount of one pair; the number is the pair's in its tree.
type pairAmount struct {
	pair   int
	amount Amount
}

// cell is the quota of one pair at one node of the tree.
type cell struct {
	// listed: the node, or a node below it, has a quota for the pair (of whatever size).
	listed  bool
	nominal Amount
	// subtree is the nominal quota with what the children lend: what usage is compared with. For a ClusterQueue it is
	// nominal.
	subtree Amount
	// The limits, if there are any.
	mayBorrow, mayLend       Amount
	limitsBorrow, limitsLend bool
}

// node is a place in a tree of cohorts: a cohort, or a ClusterQueue as a leaf. The arithmetic is that of Kueue's
// pkg/cache/scheduler/resource_node.go.
type node struct {
	name   string
	parent *node
	tree   *tree
	weight float64
	// at maps the number of a pair to its cell; -1: the node has nothing to do with it. A node has every pair of its
	// children.
	at    []int32
	cells []cell
	// usage is what counts against subtree: for a ClusterQueue all that its workloads hold, for a cohort what its
	// children hold beyond what they do not lend.
	usage []Amount
	// freed is usage without those who are to be preempted in the cycle under way.
	freed []Amount
	// height is the distance to the furthest leaf; queues that are not active do not count.
	height int
	// lendable is, by resource, what could be had here if nothing were used; made for fair sharing.
	lendable map[string]Amount

	children []*node  // cohorts, by name
	queues   []*queue // ClusterQueues, by name
}

// tree is a whole tree of cohorts, or a ClusterQueue without one. Its nodes count in pairs by their number in it.
type tree struct {
	root   *node
	pairs  []pair
	number map[pair]int // the inverse of pairs
	// borrowers are lists that the heads of a cycle share; see Engine.borrowers.
	borrowers map[string][]*workload
}

func (n *node) cellAt(p int) (cell, Amount) {
	if i := n.at[p]; i >= 0 {
		return n.cells[i], n.usage[i]
	}
	return cell{}, 0
}

// localQuota is the part of the subtree's quota that is not lent.
func (c *cell) localQuota() Amount {
	if !c.limitsLend {
		return 0
	}
	return max(0, c.subtree.minus(c.mayLend))
}

// localAvailable is how much of what is not lent is unused.
func (n *node) localAvailable(p int) Amount {
	c, used := n.cellAt(p)
	return max(0, c.localQuota().minus(used))
}

// available is how much more the node can use, here and by borrowing; negative when more is used than there is.
func (n *node) available(p int) Amount {
	c, used := n.cellAt(p)
	if n.parent == nil {
		return c.subtree.minus(used)
	}
	above := n.parent.available(p)
	local := c.localQuota()
	if c.limitsBorrow {
		stored := c.subtree.minus(local)
		inParent := max(0, used.minus(local))
		above = min(above, stored.minus(inParent).plus(c.mayBorrow))
	}
	return max(0, local.minus(used)).plus(above)
}

// potential is available if nothing were used.
func (n *node) potential(p int) Amount {
	c, _ := n.cellAt(p)
	if n.parent == nil {
		return c.subtree
	}
	all := c.localQuota().plus(n.parent.potential(p))
	if c.limitsBorrow {
		all = min(all, c.subtree.plus(c.mayBorrow))
	}
	return all
}

// exceedsWith reports whether usage and v more are beyond the node's quota.
func (n *node) exceedsWith(p int, v Amount) bool {
	c, used := n.cellAt(p)
	return c.subtree < used.plus(v)
}

// exceedsAny reports whether usage is beyond the quota in any of the pairs.
func (n *node) exceedsAny(pairs []int) bool {
	return slices.ContainsFunc(pairs, func(p int) bool { return n.exceedsWith(p, 0) })
}

// add counts v more, at the parent too as far as it does not fit into what is not lent.
func (n *node) add(p int, v Amount) {
	i := n.at[p]
	local := max(0, n.cells[i].localQuota().minus(n.usage[i]))
	n.usage[i] = n.usage[i].plus(v)
	if n.parent != nil && v > local {
		n.parent.add(p, v.minus(local))
	}
}

// sub is the inverse of add for v >= 0.
func (n *node) sub(p int, v Amount) {
	i := n.at[p]
	inParent := n.usage[i].minus(n.cells[i].localQuota())
	n.usage[i] = n.usage[i].minus(v)
	if inParent > 0 && n.parent != nil {
		n.parent.sub(p, min(v, inParent))
	}
}

func (n *node) root() *node {
	for n.parent != nil {
		n = n.parent
	}
	return n
}

// isAbove reports whether a queue is below the node.
func (n *node) isAbove(q *queue) bool {
	for at := q.parent; at != nil; at = at.parent {
		if at == n {
			return true
		}
	}
	return false
}

// path is the names from the root to the node, as messages have them: /root/…/node.
func (n *node) path() string {
	if n.parent == nil {
		return "/" + n.name
	}
	return n.parent.path() + "/" + n.name
}

// heightFor is how far up the quota lies that a ClusterQueue needs for v more: 0 its own, else the height of the lowest
// subtree that has it, or of the whole tree if none has. below reports whether that subtree is not the whole tree.
func (q *queue) heightFor(p int, v Amount) (height int, below bool) {
	if !q.exceedsWith(p, v) || q.parent == nil {
		return 0, q.parent != nil
	}
	rest := v.minus(q.localAvailable(p))
	for n := q.parent; n != nil; n = n.parent {
		if !n.exceedsWith(p, rest) {
			return n.height, n.parent != nil
		}
		rest = rest.minus(n.localAvailable(p))
	}
	return q.root().height, false
}

// subtree appends the queues below a cohort.
func (n *node) subtree(queues []*queue) []*queue {
	queues = append(queues, n.queues...)
	for _, child := range n.children {
		queues = child.subtree(queues)
	}
	return queues
}

func resourceName(p pair) corev1.ResourceName { return corev1.ResourceName(p.resource) }
