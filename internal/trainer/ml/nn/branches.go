package nn

import (
	"fmt"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
)

// branches is where the graph is no chain. A value that several layers take has a gradient for each of them: that of
// the first is the value's own, to which the others are added in the order of the layers.
type branches struct {
	any       bool
	consumers [][]int     // of each node, in order; one that takes it twice is there twice
	taken     []int       // how many of them have been compiled
	gradients [][]*tensor // of each node, those of its second consumer and so on
}

func (c *compiler) findBranches() branches {
	b := branches{consumers: make([][]int, len(c.nodes)), taken: make([]int, len(c.nodes)), gradients: make([][]*tensor, len(c.nodes))}
	for i, node := range c.nodes {
		for _, in := range node.Inputs {
			b.consumers[c.place[in]] = append(b.consumers[c.place[in]], i)
		}
		b.any = b.any || len(node.Inputs) > 1
	}
	return b
}

// onlyNext is the node behind node i, if that takes i and nothing else does: the two can be done together.
func (c *compiler) onlyNext(i int) *graph.Node {
	if i+1 < len(c.nodes) && len(c.branches.consumers[i]) == 1 && c.branches.consumers[i][0] == i+1 && len(c.nodes[i+1].Inputs) == 1 {
		return c.nodes[i+1]
	}
	return nil
}

// take is the point behind node `from` as node i takes it.
func (c *compiler) take(i, from int) point {
	p := c.points[from]
	if from != i-1 || len(c.branches.consumers[from]) > 1 {
		p.conv = nil
	}
	if len(c.branches.consumers[from]) > 1 {
		p.readOnly = true
		if turn := c.branches.taken[from]; turn > 0 && p.trainable {
			p.gradient = c.branches.gradients[from][turn-1]
		}
		c.branches.taken[from]++
	}
	return p
}

// addGradientsOf adds the step of the backward pass that sums the gradients of node i's value.
func (c *compiler) addGradientsOf(i int) {
	if len(c.branches.consumers[i]) < 2 || !c.trainable {
		return
	}
	sum, n := c.gradient, c.n
	var others []*tensor
	for range c.branches.consumers[i][1:] {
		others = append(others, c.newGradient(sum.size))
	}
	c.branches.gradients[i] = others
	c.backward = append(c.backward, backwardStep{before: []operation{{true, func(t *thread, s span) {
		for _, g := range others {
			n.kernel.Add(sum.record(t, s.from), g.record(t, s.from))
		}
	}}}})
}

// arity is how many inputs a layer takes.
type arity struct{ least, most int }

func (a arity) String() string {
	switch a.most {
	case 0:
		return "none"
	case 1:
		return "one"
	case 2:
		return "two"
	}
	return fmt.Sprintf("%d or more", a.least)
}

const manyInputs = 1 << 20

func inputsOf(op graph.Op) arity {
	switch op {
	case graph.Input:
		return arity{0, 0}
	case graph.Add, graph.Multiply, graph.Concatenate:
		return arity{2, manyInputs}
	case graph.Subtract:
		return arity{2, 2}
	}
	return arity{1, 1}
}
