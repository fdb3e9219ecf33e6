package nn

import (
	"fmt"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
)

// input is one of the model's inputs: an array of floats, or of row numbers.
type input struct {
	name    string
	size    int     // of a record
	value   *tensor // nil for an integer input
	ids     []int32 // of the minibatch, of an integer input
	readers []*embedding
}

func (c *compiler) addInput(node *graph.Node) {
	in := &input{name: node.Name, size: elements(node.Shape)}
	for i := range c.n.model.Nodes {
		if &c.n.model.Nodes[i] == node {
			c.n.inputs[c.input[i]] = in
		}
	}
	c.readOnly = true
	if node.Integer {
		c.ids = in
		return
	}
	in.value = &tensor{size: in.size}
	c.value = in.value
}

// checkIntegers refuses numbers where rows are chosen, and row numbers everywhere else.
func checkIntegers(node *graph.Node, operands []point) error {
	for _, p := range operands {
		switch {
		case p.ids != nil && node.Op != graph.Embedding:
			return fmt.Errorf("it takes the integer input %q, which only Embedding layers can", p.ids.name)
		case p.ids == nil && node.Op == graph.Embedding:
			return fmt.Errorf("its input is no integer input of the model")
		}
	}
	return nil
}

// take makes the input that of a minibatch, where it stands at that place. The caller has checked the minibatch's size.
func (in *input) take(b *graph.Batch, place int) error {
	if in.value != nil {
		if len(b.Inputs[place]) != b.N*in.size {
			return fmt.Errorf("minibatch of %d records: input %q should be %d × %d floats, and is %d", b.N, in.name, b.N, in.size, len(b.Inputs[place]))
		}
		in.value.data = b.Inputs[place]
		return nil
	}
	if len(b.Integers) <= place || len(b.Integers[place]) != b.N*in.size {
		return fmt.Errorf("minibatch of %d records: input %q should be %d × %d integers", b.N, in.name, b.N, in.size)
	}
	in.ids = b.Integers[place]
	for _, e := range in.readers {
		for i, id := range in.ids {
			if id < 0 || int(id) >= e.rows {
				return fmt.Errorf("record %d of the minibatch has %d in input %q; the table of layer %q has rows 0 to %d", i/in.size, id, in.name, e.name, e.rows-1)
			}
		}
	}
	return nil
}
