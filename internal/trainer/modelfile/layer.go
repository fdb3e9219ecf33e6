package modelfile

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.starlark.net/starlark"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/graph"
)

// layerGraph holds the layer applications in the order in which the file makes them.
type layerGraph struct {
	nodes []graph.Node
	count map[string]int // layers made of each class without a name of their own, as Keras counts them
}

func newLayerGraph() *layerGraph { return &layerGraph{count: map[string]int{}} }

// name gives a layer Keras's name for it: the class in snake case, then class_1, class_2 and so on.
func (g *layerGraph) name(class, given string) string {
	if given != "" {
		return given
	}
	n := g.count[class]
	g.count[class] = n + 1
	if n == 0 {
		return class
	}
	return fmt.Sprintf("%s_%d", class, n)
}

// append adds a node behind its inputs and gives the tensor that it makes.
func (g *layerGraph) append(n graph.Node, inputs ...*symbol) *symbol {
	for _, in := range inputs {
		n.Inputs = append(n.Inputs, in.layer)
	}
	g.nodes = append(g.nodes, n)
	return &symbol{op: opLayer, layer: len(g.nodes) - 1, detail: n.Name, dtype: float32Type, dims: n.Shape}
}

// layer is a layer that has been made and can be called once.
type layer struct {
	fn         string // the class, as files write it
	node       graph.Node
	activation graph.Op // a fused one; "" is none
	trains     bool     // the call takes training=
	merges     bool     // it takes a list of inputs
	looksUp    bool     // its input is row numbers
	called     bool
	complete   func(n *graph.Node, in []int) error    // checks the input's shape and sets the node's
	merge      func(n *graph.Node, ins [][]int) error // the same, of a layer that merges
}

func (l *layer) String() string        { return l.node.Name }
func (l *layer) Type() string          { return "layer" }
func (l *layer) Freeze()               {}
func (l *layer) Truth() starlark.Bool  { return true }
func (l *layer) Hash() (uint32, error) { return 0, errors.New("a layer cannot be a key") }
func (l *layer) Name() string          { return l.node.Name }

// CallInternal applies the layer to a tensor.
func (l *layer) CallInternal(t *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	sig := signature{name: l.fn + " " + l.node.Name, positional: []string{"inputs"}}
	if l.trains {
		sig.keywords = []string{"training"}
	}
	a, err := sig.bind(args, kwargs)
	if err != nil {
		return nil, err
	}
	g := sessionOf(t).layers
	if g == nil {
		return nil, fmt.Errorf("%s is called outside of the model", sig.name)
	}
	inputs, err := l.inputs(a)
	if err != nil {
		return nil, err
	}
	if l.called {
		return nil, fmt.Errorf("%s is called a second time; layers that share their weights are not implemented", sig.name)
	}
	if l.looksUp {
		if err := g.lookedUp(inputs[0]); err != nil {
			return nil, fmt.Errorf("%s: %w", sig.name, err)
		}
	}
	n := l.node
	n.Line = lineOf(t)
	if !a.none("training") {
		if !a.boolean("training") {
			a.fail("training=False is not implemented: the layer would not be trained")
		}
		if a.err != nil {
			return nil, a.err
		}
		switch n.Op {
		case graph.BatchNorm:
			attrs := *n.BatchNorm
			attrs.TrainingAlways = true
			n.BatchNorm = &attrs
		case graph.Dropout:
			attrs := *n.Dropout
			attrs.TrainingAlways = true
			n.Dropout = &attrs
		}
		sessionOf(t).notice(t, "training=True of %s is honoured in training only; evaluation, prediction and the saved model use inference mode", n.Name)
	}
	if l.merges {
		var shapes [][]int
		for _, in := range inputs {
			shapes = append(shapes, in.dims)
		}
		err = l.merge(&n, shapes)
	} else {
		err = l.complete(&n, inputs[0].dims)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", sig.name, err)
	}
	if size, ok := elements(n.Shape); !ok || size == 0 {
		return nil, fmt.Errorf("%s: output shape %s is too large", sig.name, shapeText(n.Shape))
	}
	l.called = true
	out := g.append(n, inputs...)
	if l.activation != "" {
		out = g.append(graph.Node{Op: l.activation, Name: n.Name + "/" + string(l.activation), Shape: n.Shape, Line: n.Line}, out)
	}
	return out, nil
}

// inputs are the tensors of a call: one, or a list of them for a layer that merges.
func (l *layer) inputs(a *arguments) ([]*symbol, error) {
	values, want := starlark.Tuple{a.values["inputs"]}, "the output of another layer"
	if l.merges {
		want = "a list of the outputs of at least two other layers"
		switch list := a.values["inputs"].(type) {
		case *starlark.List:
			values = slices.Collect(list.Elements())
		case starlark.Tuple:
			values = list
		}
		if len(values) < 2 {
			a.wrong("inputs", want)
			return nil, a.err
		}
	}
	var inputs []*symbol
	for _, v := range values {
		in, ok := v.(*symbol)
		if !ok {
			a.wrong("inputs", want)
			return nil, a.err
		}
		if in.op != opLayer {
			return nil, fmt.Errorf("%s is called with %s; only the outputs of layers can be its input", a.fn, in)
		}
		inputs = append(inputs, in)
	}
	return inputs, nil
}

// activation is a function of TensorFlow that layers take as an argument.
type activation struct {
	path string // as files write it
	op   graph.Op
}

func (f activation) String() string        { return f.path }
func (f activation) Type() string          { return "activation" }
func (f activation) Name() string          { return f.path }
func (f activation) Freeze()               {}
func (f activation) Truth() starlark.Bool  { return true }
func (f activation) Hash() (uint32, error) { return starlark.String(f.path).Hash() }

// CallInternal refuses a call: it would make a layer without a name.
func (f activation) CallInternal(*starlark.Thread, starlark.Tuple, []starlark.Tuple) (starlark.Value, error) {
	return nil, fmt.Errorf("calling %s is not implemented; write tf.keras.layers.Activation(%s)(x)", f, f)
}

// activationOps are the activations by Keras' names.
var activationOps = map[string]graph.Op{"relu": graph.ReLU, "sigmoid": graph.Sigmoid, "tanh": graph.Tanh, "softmax": graph.Softmax}

// activation reads an activation's name or function; "" is none.
func (a *arguments) activation(name string) graph.Op {
	switch v := a.values[name].(type) {
	case nil, starlark.NoneType:
		return ""
	case activation:
		return v.op
	case starlark.String:
		if op, ok := activationOps[string(v)]; ok || v == "linear" {
			return op
		}
	}
	a.wrong(name, activationNames()+" or None")
	return ""
}

// activationNames is for messages.
func activationNames() string {
	var quoted []string
	for _, name := range slices.Sorted(maps.Keys(activationOps)) {
		quoted = append(quoted, strconv.Quote(name))
	}
	return strings.Join(quoted, ", ")
}

var (
	none        = []starlark.Value{starlark.None}
	falseOnly   = []starlark.Value{starlark.False, starlark.None}
	zerosOnly   = []starlark.Value{starlark.String("zeros")}
	onesOnly    = []starlark.Value{starlark.String("ones")}
	glorotOnly  = []starlark.Value{starlark.String("glorot_uniform")}
	lastOnly    = []starlark.Value{starlark.None, starlark.String("channels_last")}
	lastAxis    = []starlark.Value{starlark.MakeInt(-1)}
	trueOnly    = []starlark.Value{starlark.True}
	float32Only = []starlark.Value{starlark.None, starlark.String("float32"), dtypeValue{float32Type}}
	oneByOne    = []starlark.Value{starlark.MakeInt(1), starlark.Tuple{starlark.MakeInt(1), starlark.MakeInt(1)}}
)

// merged adds to the arguments that every layer accepts with the values that change nothing.
func merged(more map[string][]starlark.Value) map[string][]starlark.Value {
	only := map[string][]starlark.Value{"trainable": trueOnly, "dtype": float32Only}
	for k, v := range more {
		only[k] = v
	}
	return only
}

// constructor registers a layer class: snake is its name in snake case, from which Keras names the layers.
func constructor(sig signature, snake string, build func(*arguments, *layer)) starlark.Value {
	sig.keywords = append(sig.keywords, "name")
	sig.only = merged(sig.only)
	return function(sig, func(t *starlark.Thread, a *arguments) (starlark.Value, error) {
		g := sessionOf(t).layers
		if g == nil {
			return nil, fmt.Errorf("%s is made outside of the model; layers are made at the top of the file or in custom_model()", sig.name)
		}
		l := &layer{fn: sig.name}
		given := ""
		if !a.none("name") {
			given = a.text("name", "")
		}
		build(a, l)
		if a.err != nil {
			return nil, a.err
		}
		l.node.Name = g.name(snake, given)
		return l, nil
	})
}
