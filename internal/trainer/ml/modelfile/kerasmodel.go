package modelfile

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
)

// kerasModel is what tf.keras.Model returns, or what calling an object of a model's class builds.
type kerasModel struct {
	name    string
	layers  *layerGraph
	outputs *modelOutput
	inputs  []modelInput // in the order in which tf.keras.Model was given them
	byKey   bool         // they were given as a dict
	lenient bool         // the output need not depend on all of them

	// Of the network that ends in the output that loss takes, when that is known.
	nodes  []graph.Node
	output int
	origin []int // of each node, its place in layers
}

// modelOutput is the tensors that a model returns: one without a name, or several by their keys.
type modelOutput struct {
	keys    []string
	tensors []*symbol
}

// outputsOf reads a model's output: a tensor, alone or in a list, or a dict of them.
func outputsOf(v starlark.Value) (*modelOutput, error) {
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
		out := &modelOutput{}
		for _, item := range list.Items() {
			key, isText := item[0].(starlark.String)
			s, isTensor := item[1].(*symbol)
			if !isText || !isTensor || s.op != opLayer {
				return nil, fmt.Errorf("returns %s under the key %s; outputs of layers under names are wanted", printed(item[1]), printed(item[0]))
			}
			out.keys, out.tensors = append(out.keys, string(key)), append(out.tensors, s)
		}
		if len(out.keys) > 0 {
			return out, nil
		}
	}
	s, ok := v.(*symbol)
	switch {
	case v == starlark.None:
		return nil, errors.New("returns None; return the output of the last layer")
	case !ok || s.op != opLayer:
		return nil, fmt.Errorf("returns %s; one output of a layer, or a dict of them, is wanted", printed(v))
	}
	return &modelOutput{[]string{""}, []*symbol{s}}, nil
}

// modelInput is an input by the name under which a dict of features has it.
type modelInput struct {
	key  string
	node int // in the layer graph
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
		in, out := a.inputs("inputs"), a.outputs("outputs")
		given := "model"
		if !a.none("name") {
			given = a.text("name", "")
		}
		if a.err != nil {
			return nil, a.err
		}
		m := &kerasModel{name: given, layers: s.layers, outputs: out, inputs: in}
		_, m.byKey = a.values["inputs"].(*starlark.Dict)
		kept, err := m.needed(out.tensors)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for _, out := range out.tensors { // what is wrong is said of this line
			probe := *m
			if err := probe.cut(out); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
		for i, n := range s.layers.nodes {
			if !kept[i] {
				add(&s.report.Notices, n.Place, "layer %s is not between the model's input and output, and is left out", n.Name)
			}
		}
		return m, nil
	})
}

// outputs reads what a model returns.
func (a *arguments) outputs(name string) *modelOutput {
	if !a.has(name) {
		a.wrong(name, "")
		return nil
	}
	out, err := outputsOf(a.values[name])
	if err != nil {
		a.wrong(name, "one output of a layer, or a dict of them")
		return nil
	}
	return out
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

// needed are the nodes that outputs depend on, and the inputs that are turned into others before the network has them.
func (m *kerasModel) needed(outputs []*symbol) (map[int]bool, error) {
	g, inputs := m.layers, m.inputs
	for i, in := range inputs {
		if g.nodes[in.node].Op != graph.Input || g.made[in.node] != nil {
			return nil, fmt.Errorf("inputs=%s is not a tf.keras.Input", g.nodes[in.node].Name)
		}
		if slices.ContainsFunc(inputs[:i], func(other modelInput) bool { return other.node == in.node }) {
			return nil, fmt.Errorf("inputs has %s twice", g.nodes[in.node].Name)
		}
	}
	given := func(node int) bool {
		return slices.ContainsFunc(inputs, func(in modelInput) bool { return in.node == node })
	}
	used := map[int]bool{}
	last := ""
	for _, out := range outputs {
		used[out.layer], last = true, g.nodes[out.layer].Name
	}
	for at := len(g.nodes) - 1; at >= 0; at-- { // a node's inputs stand before it
		if !used[at] {
			continue
		}
		sources := g.nodes[at].Inputs
		if made := g.made[at]; made != nil {
			sources = made.sources()
		} else if len(sources) == 0 && !given(at) {
			return nil, fmt.Errorf("the output %s comes from input %s, which is not among the model's inputs (%s)", last, g.nodes[at].Name, g.names(inputs))
		}
		for _, from := range sources {
			used[from] = true
		}
	}
	for _, in := range inputs {
		if !used[in.node] && !m.lenient {
			return nil, fmt.Errorf("the output %s does not depend on input %s", last, g.nodes[in.node].Name)
		}
	}
	return used, nil
}

// cut makes the network that ends in one of the layer graph's nodes.
func (m *kerasModel) cut(out *symbol) error {
	lenient := m.lenient
	m.lenient = true // the other outputs may need the other inputs
	used, err := m.needed([]*symbol{out})
	m.lenient = lenient
	if err != nil {
		return err
	}
	feeds := map[int]bool{} // nodes that the network itself takes
	for i, n := range m.layers.nodes {
		if used[i] {
			for _, from := range n.Inputs {
				feeds[from] = true
			}
		}
	}
	feeds[out.layer] = true
	place := map[int]int{}
	names := map[string]bool{}
	for i, n := range m.layers.nodes {
		if !used[i] || !feeds[i] {
			continue
		}
		if names[n.Name] {
			return fmt.Errorf("two layers have the name %q", n.Name)
		}
		names[n.Name] = true
		place[i] = len(m.nodes)
		n.Inputs = slices.Clone(n.Inputs)
		for k, from := range n.Inputs {
			n.Inputs[k] = place[from]
		}
		m.nodes, m.origin = append(m.nodes, n), append(m.origin, i)
	}
	m.output = place[out.layer]
	return m.checkNumbers()
}

func (g *layerGraph) names(inputs []modelInput) string {
	var names []string
	for _, in := range inputs {
		names = append(names, g.nodes[in.node].Name)
	}
	return strings.Join(names, ", ")
}
