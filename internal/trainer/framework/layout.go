package framework

import (
	"fmt"
	"math"
	"slices"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/nn"
)

// The roles of tensors, in the order in which they stand in the state.
const (
	parameter = "parameter" // gradients are for them
	statistic = "statistic" // measured with every gradient
	frozen    = "frozen"    // of the model, and never changed
	slot      = "slot"      // the optimizer's: in checkpoints, not in models
)

var roles = []string{parameter, statistic, frozen, slot}

// Description is what a script says of itself.
type Description struct {
	Model     string   `json:"model"`
	Optimizer string   `json:"optimizer"`
	Framework string   `json:"framework"` // with its version, for people
	Metrics   []string `json:"metrics"`   // shares of records, in the order of an answer's counts
	Tensors   []tensor `json:"tensors"`
}

type tensor struct {
	Name  string `json:"name"`
	Shape []int  `json:"shape"`
	Role  string `json:"role"`
}

// layout is where each tensor is in the state. Sizes and offsets are in floats.
type layout struct {
	tensors    []placed
	parameters int
	statistics int
	state      int
}

type placed struct {
	tensor
	offset, size int
}

// maxState bounds a state to what a machine can hold: 64 GiB.
const maxState = 1 << 34

// layOut checks a description and places its tensors.
func layOut(d Description) (layout, error) {
	var l layout
	names := map[string]bool{}
	role := 0
	for _, t := range d.Tensors {
		at := slices.Index(roles, t.Role)
		switch {
		case at < 0:
			return layout{}, fmt.Errorf("tensor %q has the role %q; there are %q", t.Name, t.Role, roles)
		case at < role:
			return layout{}, fmt.Errorf("tensor %q, a %s, stands behind a %s; the order is %q", t.Name, t.Role, roles[role], roles)
		case t.Name == "" || names[t.Name]:
			return layout{}, fmt.Errorf("two tensors, or one without a name, are called %q", t.Name)
		}
		role, names[t.Name] = at, true
		size := 1
		for _, n := range t.Shape {
			if n < 0 || n > math.MaxInt32 || size > maxState/max(n, 1) {
				return layout{}, fmt.Errorf("tensor %q has the shape %v", t.Name, t.Shape)
			}
			size *= n
		}
		if l.state > maxState-size {
			return layout{}, fmt.Errorf("the state has more than %d numbers", maxState)
		}
		l.tensors = append(l.tensors, placed{t, l.state, size})
		l.state += size
		switch t.Role {
		case parameter:
			l.parameters += size
		case statistic:
			l.statistics += size
		}
	}
	if l.parameters == 0 {
		return layout{}, fmt.Errorf("the script describes no tensor with the role %q: there is nothing to train", parameter)
	}
	return l, nil
}

// export copies the tensors of a state that are kept: all, or those of the model.
func (l layout) export(state []float32, withSlots bool) []nn.Tensor {
	var out []nn.Tensor
	for _, t := range l.tensors {
		if t.Role != slot || withSlots {
			out = append(out, nn.Tensor{Name: t.Name, Shape: slices.Clone(t.Shape), Data: slices.Clone(state[t.offset : t.offset+t.size])})
		}
	}
	return out
}

// restore is the inverse of export with slots.
func (l layout) restore(state []float32, tensors []nn.Tensor) error {
	if len(state) != l.state {
		return fmt.Errorf("state of %d floats for a script with %d", len(state), l.state)
	}
	byName := make(map[string]nn.Tensor, len(tensors))
	for _, t := range tensors {
		byName[t.Name] = t
	}
	for _, want := range l.tensors {
		t, ok := byName[want.Name]
		if !ok {
			return fmt.Errorf("there is no tensor %q, which the script has; the file belongs to another model", want.Name)
		}
		if !slices.Equal(t.Shape, want.Shape) || len(t.Data) != want.size {
			return fmt.Errorf("tensor %q has shape %v (%d values), in the script it has %v; the file belongs to another model", want.Name, t.Shape, len(t.Data), want.Shape)
		}
		copy(state[want.offset:], t.Data)
	}
	return nil
}
