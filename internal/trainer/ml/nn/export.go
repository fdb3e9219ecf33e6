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

// stored is a variable by the name that it has where it is kept, and where it begins in the state.
type stored struct {
	Param
	name   string
	offset int
}

// variables are what models hold: the parameters and moving statistics, in the order of Params.
func (n *Network) variables() []stored {
	var all []stored
	for _, p := range n.params {
		all = append(all, stored{p, p.Name, p.Offset})
	}
	return all
}

// SlotPrefix begins the names under which checkpoints hold what the optimizer keeps of each variable.
const SlotPrefix = "optimizer/"

// everything is the variables, and behind them what the optimizer keeps of each, as "optimizer/SLOT/VARIABLE".
func (n *Network) everything() []stored {
	all := n.variables()
	for i, slot := range n.optimizer.slots {
		for _, p := range n.params {
			if p.Offset < n.trainable {
				all = append(all, stored{p, SlotPrefix + slot.name + "/" + p.Name, n.trainable + n.stats + i*n.trainable + p.Offset})
			}
		}
		for _, e := range n.embeddings {
			all = append(all, stored{e.table, SlotPrefix + slot.name + "/" + e.table.Name, e.table.Offset + (i+1)*e.table.Size})
		}
	}
	return all
}

// Export copies the state's variables in Keras' layout, in the order of Params. The optimizer's slots are not among
// them.
func (n *Network) Export(state []float32) []Tensor { return export(state, n.variables()) }

// Import is the inverse of Export. The tensors may come in any order, but all must be there. The optimizer's slots stay
// as they are.
func (n *Network) Import(state []float32, tensors []Tensor) error {
	return n.fill(state, n.variables(), tensors)
}

// Snapshot copies the whole state as tensors, for a checkpoint: what Export gives, and the optimizer's slots in the
// same layout.
func (n *Network) Snapshot(state []float32) []Tensor { return export(state, n.everything()) }

// Restore is the inverse of Snapshot, to the bit.
func (n *Network) Restore(state []float32, tensors []Tensor) error {
	return n.fill(state, n.everything(), tensors)
}

func export(state []float32, variables []stored) []Tensor {
	tensors := make([]Tensor, 0, len(variables))
	for _, v := range variables {
		data := make([]float32, v.Size)
		for i := range data {
			data[i] = state[v.offset+v.inState(i)]
		}
		tensors = append(tensors, Tensor{v.name, slices.Clone(v.Shape), data})
	}
	return tensors
}

func (n *Network) fill(state []float32, variables []stored, tensors []Tensor) error {
	if len(state) != n.state {
		return fmt.Errorf("state of %d floats for a network of %d", len(state), n.state)
	}
	for _, v := range variables {
		at := slices.IndexFunc(tensors, func(t Tensor) bool { return t.Name == v.name })
		if at < 0 {
			return fmt.Errorf("there is no tensor %q, which the model has; the file belongs to another model", v.name)
		}
		t := tensors[at]
		if !slices.Equal(t.Shape, v.Shape) || len(t.Data) != v.Size {
			return fmt.Errorf("tensor %q has shape %v (%d values), in the model it has %v; the file belongs to another model", v.name, t.Shape, len(t.Data), v.Shape)
		}
		for i, value := range t.Data {
			state[v.offset+v.inState(i)] = value
		}
	}
	return nil
}
