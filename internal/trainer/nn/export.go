package nn

import (
	"fmt"
	"slices"
)

// Tensor is a variable in Keras' layout: what saved models hold.
type Tensor struct {
	Name  string
	Shape []int
	Data  []float32
}

// Export copies the state's variables in Keras' layout, in the order of Params. The optimizer's slots are not among them.
func (n *Network) Export(state []float32) []Tensor {
	tensors := make([]Tensor, 0, len(n.params))
	for _, p := range n.params {
		data := make([]float32, p.Size)
		for i := range data {
			data[i] = state[p.Offset+p.inState(i)]
		}
		tensors = append(tensors, Tensor{p.Name, slices.Clone(p.Shape), data})
	}
	return tensors
}

// Import is the inverse of Export. The tensors may come in any order, but all must be there. The optimizer's slots stay as
// they are.
func (n *Network) Import(state []float32, tensors []Tensor) error {
	if len(state) != n.state {
		return fmt.Errorf("state of %d floats for a network of %d", len(state), n.state)
	}
	for _, p := range n.params {
		at := slices.IndexFunc(tensors, func(t Tensor) bool { return t.Name == p.Name })
		if at < 0 {
			return fmt.Errorf("there is no tensor %q, which the model has; the file belongs to another model", p.Name)
		}
		t := tensors[at]
		if !slices.Equal(t.Shape, p.Shape) || len(t.Data) != p.Size {
			return fmt.Errorf("tensor %q has shape %v (%d values), in the model it has %v; the file belongs to another model", p.Name, t.Shape, len(t.Data), p.Shape)
		}
		for i, v := range t.Data {
			state[p.Offset+p.inState(i)] = v
		}
	}
	return nil
}

// Snapshot copies the whole state as tensors, for a checkpoint: what Export gives, and whatever else an update depends on.
func (n *Network) Snapshot(state []float32) []Tensor { return n.Export(state) }

// Restore is the inverse of Snapshot, to the bit.
func (n *Network) Restore(state []float32, tensors []Tensor) error { return n.Import(state, tensors) }
