package modelfile

import (
	"errors"
	"fmt"
	"slices"

	"go.starlark.net/starlark"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/graph"
)

// kerasModel is what tf.keras.Model returns.
type kerasModel struct {
	name   string
	nodes  []graph.Node
	output int
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
		in, out := a.tensor("inputs"), a.tensor("outputs")
		given := "model"
		if !a.none("name") {
			given = a.text("name", "")
		}
		if a.err != nil {
			return nil, a.err
		}
		m, err := s.layers.model(given, in.layer, out.layer)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
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

// model cuts the nodes between one input and one output out of the graph.
func (g *layerGraph) model(name string, in, out int) (*kerasModel, error) {
	if len(g.nodes[in].Inputs) > 0 {
		return nil, fmt.Errorf("inputs=%s is not a tf.keras.Input", g.nodes[in].Name)
	}
	used := map[int]bool{out: true}
	for at := out; at >= 0; at-- { // a node's inputs stand before it
		if !used[at] {
			continue
		}
		if len(g.nodes[at].Inputs) == 0 && at != in {
			return nil, fmt.Errorf("the output %s comes from input %s, and the model's input is %s", g.nodes[out].Name, g.nodes[at].Name, g.nodes[in].Name)
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
	m.output = place[out]
	return m, nil
}
