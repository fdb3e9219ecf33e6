package modelfile

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/graph"
)

// kerasModel is what tf.keras.Model returns.
type kerasModel struct {
	name   string
	nodes  []graph.Node
	output int
	inputs []modelInput // in the order in which tf.keras.Model was given them
	byKey  bool         // they were given as a dict
}

// modelInput is an input by the name under which a dict of features has it.
type modelInput struct {
	key  string
	node int // in nodes
}

func (m *kerasModel) String() string        { return "model " + m.name }
func (m *kerasModel) Type() string          { return "model" }
func (m *kerasModel) Freeze()               {}
func (m *kerasModel) Truth() starlark.Bool  { return true }
func (m *kerasModel) Hash() (uint32, error) { return 0, errors.New("a model cannot be a key") }

func modelFunction(name string) starlark.Value {
	sig := signature{name: name, positional: []string{"inputs", "outputs"}, keywords: []string{"name"}, only: map[string][]starlark.Value{"trainable": trueOnly}}
	return function(sig, func(t *starlark.Thread, a *arguments) (starlark.Value, error) {
		s := sessionOf(t)
		if s.layers == nil {
			return nil, fmt.Errorf("%s is called outside of the model", name)
		}
		in, out := a.inputs("inputs"), a.tensor("outputs")
		given := "model"
		if !a.none("name") {
			given = a.text("name", "")
		}
		if a.err != nil {
			return nil, a.err
		}
		m, err := s.layers.model(given, in, out.layer)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		_, m.byKey = a.values["inputs"].(*starlark.Dict)
		for i, n := range s.layers.nodes {
			if !slices.ContainsFunc(m.nodes, func(k graph.Node) bool { return k.Name == n.Name }) {
				add(&s.report.Notices, s.layers.nodes[i].Line, "layer %s is not between the model's input and output, and is left out", n.Name)
			}
		}
		return m, nil
	})
}

// tensor reads the output of a layer, alone or as the one element of a list or dict.
func (a *arguments) tensor(name string) *symbol {
	v := a.values[name]
	switch list := v.(type) {
	case *starlark.List:
		if list.Len() == 1 {
			v = list.Index(0)
		}
	case starlark.Tuple:
		if len(list) == 1 {
			v = list[0]
		}
	case *starlark.Dict:
		if list.Len() == 1 {
			v = list.Items()[0][1]
		}
	}
	s, ok := v.(*symbol)
	if !ok || s.op != opLayer {
		a.wrong(name, "one output of a layer (models with several are not implemented)")
		return nil
	}
	return s
}

// inputs reads one tf.keras.Input, or several in a list or dict; node is the place in the layer graph.
func (a *arguments) inputs(name string) []modelInput {
	var tensors, keys []starlark.Value
	switch v := a.values[name].(type) {
	case *starlark.List:
		tensors = slices.Collect(v.Elements())
	case starlark.Tuple:
		tensors = v
	case *starlark.Dict:
		for _, item := range v.Items() {
			keys, tensors = append(keys, item[0]), append(tensors, item[1])
		}
	default:
		tensors = []starlark.Value{v}
	}
	var inputs []modelInput
	for i, v := range tensors {
		s, ok := v.(*symbol)
		if !ok || s.op != opLayer {
			break
		}
		key := s.detail
		if keys != nil {
			text, ok := keys[i].(starlark.String)
			if !ok {
				break
			}
			key = string(text)
		}
		inputs = append(inputs, modelInput{key, s.layer})
	}
	if len(inputs) == 0 || len(inputs) != len(tensors) {
		a.wrong(name, "a tf.keras.Input, or a list or dict of them")
	}
	return inputs
}

// model cuts the nodes between inputs and one output out of the graph.
func (g *layerGraph) model(name string, inputs []modelInput, out int) (*kerasModel, error) {
	for i, in := range inputs {
		if len(g.nodes[in.node].Inputs) > 0 {
			return nil, fmt.Errorf("inputs=%s is not a tf.keras.Input", g.nodes[in.node].Name)
		}
		if slices.ContainsFunc(inputs[:i], func(other modelInput) bool { return other.node == in.node }) {
			return nil, fmt.Errorf("inputs has %s twice", g.nodes[in.node].Name)
		}
	}
	given := func(node int) bool {
		return slices.ContainsFunc(inputs, func(in modelInput) bool { return in.node == node })
	}
	used := map[int]bool{out: true}
	for at := out; at >= 0; at-- { // a node's inputs stand before it
		if !used[at] {
			continue
		}
		if len(g.nodes[at].Inputs) == 0 && !given(at) {
			return nil, fmt.Errorf("the output %s comes from input %s, which is not among the model's inputs (%s)", g.nodes[out].Name, g.nodes[at].Name, g.names(inputs))
		}
		for _, from := range g.nodes[at].Inputs {
			used[from] = true
		}
	}
	m := &kerasModel{name: name}
	place := map[int]int{}
	names := map[string]bool{}
	for i, n := range g.nodes {
		if !used[i] {
			continue
		}
		if names[n.Name] {
			return nil, fmt.Errorf("two layers have the name %q", n.Name)
		}
		names[n.Name] = true
		place[i] = len(m.nodes)
		n.Inputs = slices.Clone(n.Inputs)
		for k, from := range n.Inputs {
			n.Inputs[k] = place[from]
		}
		m.nodes = append(m.nodes, n)
	}
	for _, in := range inputs {
		if !used[in.node] {
			return nil, fmt.Errorf("the output %s does not depend on input %s", g.nodes[out].Name, g.nodes[in.node].Name)
		}
		m.inputs = append(m.inputs, modelInput{in.key, place[in.node]})
	}
	m.output = place[out]
	return m, checkIntegers(m.nodes)
}

func (g *layerGraph) names(inputs []modelInput) string {
	var names []string
	for _, in := range inputs {
		names = append(names, g.nodes[in.node].Name)
	}
	return strings.Join(names, ", ")
}
