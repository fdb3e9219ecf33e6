package framework

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/artifact/safetensors"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/wire"
)

// The roles of tensors, in their order in the state.
const (
	parameter = "parameter" // has gradients
	statistic = "statistic" // measured with every gradient
	frozen    = "frozen"    // in the model, never changed
	slot      = "slot"      // of the optimizer: in checkpoints, not in models
	report    = "report"    // follows the statistics of every gradient, and is not part of the state
)

var roles = []string{parameter, statistic, frozen, slot, report}

// Description is how a script describes itself.
type Description struct {
	Model     string   `json:"model"`
	Optimizer string   `json:"optimizer"`
	Framework string   `json:"framework"` // with its version, for messages
	Metrics   []string `json:"metrics"`   // shares of records, in the order of a response's counts
	Tensors   []tensor `json:"tensors"`
}

type tensor struct {
	Name  string `json:"name"`
	Shape []int  `json:"shape"`
	Role  string `json:"role"`
	// DType is the element type, as safetensors calls it; "" is F32. A gradient is F32 for every element of a
	// parameter, whatever the parameter's type is.
	DType string `json:"dtype,omitempty"`
	// Aliases are further names of the tensor in the saved model, for tied weights.
	Aliases []string `json:"aliases,omitempty"`
}

func (t tensor) names() []string { return append([]string{t.Name}, t.Aliases...) }

// layout is the position of each tensor in the state. The state is a []float32 as everywhere, but only the F32 tensors
// in it are read as numbers here: a tensor of another type takes as many 32-bit words as its bytes need, which are
// copied as they are.
type layout struct {
	tensors    []placed
	parameters int // floats of a gradient: one for each element of a parameter
	statistics int // words of the statistics and reports that come with a gradient
	state      int // words
}

type placed struct {
	tensor
	offset, words int // in the state
	bytes         int // of the tensor; its last word is padded with 0
}

// data is the tensor's part of a state, in words.
func (p placed) data(state []float32) []float32 { return state[p.offset : p.offset+p.words] }

// maxState bounds a state to what a machine can hold: 64 GiB.
const maxState = 1 << 34

// wordBytes is the size of a word of the state.
const wordBytes = 4

// layOut checks a description and places its tensors.
func layOut(d Description) (layout, error) {
	var l layout
	names := map[string]bool{}
	role := 0
	for _, t := range d.Tensors {
		t.DType = cmp.Or(t.DType, safetensors.F32)
		at := slices.Index(roles, t.Role)
		width := safetensors.ElementBytes(t.DType)
		switch {
		case at < 0:
			return layout{}, fmt.Errorf("tensor %q has the role %q; there are %q", t.Name, t.Role, roles)
		case at < role:
			return layout{}, fmt.Errorf("tensor %q, a %s, stands behind a %s; the order is %q", t.Name, t.Role, roles[role], roles)
		case width == 0:
			return layout{}, fmt.Errorf("tensor %q has the element type %q, which this elastic-trainer does not know", t.Name, t.DType)
		}
		role = at
		for _, name := range t.names() {
			if name == "" || names[name] {
				return layout{}, fmt.Errorf("two tensors, or one without a name, are called %q", name)
			}
			names[name] = true
		}
		size := 1
		for _, n := range t.Shape {
			if n < 0 || n > math.MaxInt32 || size > maxState/max(n, 1) {
				return layout{}, fmt.Errorf("tensor %q has the shape %v", t.Name, t.Shape)
			}
			size *= n
		}
		p := placed{tensor: t, offset: l.state, bytes: size * width, words: (size*width + wordBytes - 1) / wordBytes}
		if l.state+l.statistics > maxState-max(p.words, size) {
			return layout{}, fmt.Errorf("the state has more than %d numbers", maxState)
		}
		l.tensors = append(l.tensors, p)
		if t.Role != report {
			l.state += p.words
		}
		switch t.Role {
		case parameter:
			l.parameters += size
		case statistic, report:
			l.statistics += p.words
		}
	}
	if l.parameters == 0 {
		return layout{}, fmt.Errorf("the script describes no tensor with the role %q: there is nothing to train", parameter)
	}
	return l, nil
}

// export copies the tensors of a saved model; a tensor with several names is saved under each of them.
func (l layout) export(state []float32) []safetensors.Tensor {
	var out []safetensors.Tensor
	for _, p := range l.tensors {
		if p.Role == slot || p.Role == report {
			continue
		}
		for _, name := range p.names() {
			out = append(out, p.stored(name, state))
		}
	}
	return out
}

// snapshot copies all tensors of a state, each once.
func (l layout) snapshot(state []float32) []safetensors.Tensor {
	var out []safetensors.Tensor
	for _, p := range l.tensors {
		if p.Role != report {
			out = append(out, p.stored(p.Name, state))
		}
	}
	return out
}

func (p placed) stored(name string, state []float32) safetensors.Tensor {
	data := wire.Bytes(p.data(state))[:p.bytes]
	return safetensors.Tensor{Name: name, DType: p.DType, Shape: slices.Clone(p.Shape), Data: slices.Clone(data)}
}

// restore is the inverse of snapshot.
func (l layout) restore(state []float32, tensors []safetensors.Tensor) error {
	if len(state) != l.state {
		return fmt.Errorf("state of %d floats for a script with %d", len(state), l.state)
	}
	byName := make(map[string]safetensors.Tensor, len(tensors))
	for _, t := range tensors {
		byName[t.Name] = t
	}
	for _, want := range l.tensors {
		if want.Role == report {
			continue
		}
		t, ok := byName[want.Name]
		if !ok {
			return fmt.Errorf("there is no tensor %q, which the script has; the file belongs to another model", want.Name)
		}
		if t.DType != want.DType || !slices.Equal(t.Shape, want.Shape) || len(t.Data) != want.bytes {
			return fmt.Errorf("tensor %q is %s%v (%d bytes), in the script it is %s%v; the file belongs to another model",
				want.Name, t.DType, t.Shape, len(t.Data), want.DType, want.Shape)
		}
		words := want.data(state)
		clear(words[len(words)-min(1, len(words)):]) // the padding of the last word
		copy(wire.Bytes(words), t.Data)
	}
	return nil
}

// diverged returns the first tensor of floats whose values were all finite before an update and are not after it. A
// tensor may contain infinity from the start, as an attention mask does.
func (l layout) diverged(before, after []float32, finite func([]float32) bool) (string, bool) {
	for _, p := range l.tensors {
		if p.Role != report && p.DType == safetensors.F32 && !finite(p.data(after)) && finite(p.data(before)) {
			return p.Name, true
		}
	}
	return "", false
}
