package modelfile

import (
	"errors"
	"fmt"

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

// append adds a node behind its input and gives the tensor that it makes.
func (g *layerGraph) append(n graph.Node, in *symbol) *symbol {
	if in != nil {
		n.Inputs = []int{in.layer}
	}
	g.nodes = append(g.nodes, n)
	return &symbol{op: opLayer, layer: len(g.nodes) - 1, detail: n.Name, dtype: float32Type, dims: n.Shape}
}

// layer is a layer that has been made and can be called once.
type layer struct {
	fn       string // the class, as files write it
	node     graph.Node
	relu     bool // a fused activation
	trains   bool // the call takes training=
	called   bool
	complete func(n *graph.Node, in []int) error // checks the input's shape and sets the node's
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
	in, ok := a.values["inputs"].(*symbol)
	switch {
	case g == nil:
		return nil, fmt.Errorf("%s is called outside of the model", sig.name)
	case !ok:
		a.wrong("inputs", "the output of another layer")
		return nil, a.err
	case in.op != opLayer:
		return nil, fmt.Errorf("%s is called with %s; only the outputs of layers can be its input", sig.name, in)
	case l.called:
		return nil, fmt.Errorf("%s is called a second time; layers that share their weights are not implemented", sig.name)
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
	if err := l.complete(&n, in.dims); err != nil {
		return nil, fmt.Errorf("%s: %w", sig.name, err)
	}
	if size, ok := elements(n.Shape); !ok || size == 0 {
		return nil, fmt.Errorf("%s: output shape %s is too large", sig.name, shapeText(n.Shape))
	}
	l.called = true
	out := g.append(n, in)
	if l.relu {
		out = g.append(graph.Node{Op: graph.ReLU, Name: n.Name + "/relu", Shape: n.Shape, Line: n.Line}, out)
	}
	return out, nil
}

// activation is a function of TensorFlow that layers take as an argument.
type activation string

const reluActivation activation = "tf.nn.relu"

func (f activation) String() string        { return string(f) }
func (f activation) Type() string          { return "activation" }
func (f activation) Name() string          { return string(f) }
func (f activation) Freeze()               {}
func (f activation) Truth() starlark.Bool  { return true }
func (f activation) Hash() (uint32, error) { return starlark.String(f).Hash() }

// CallInternal refuses a call: it would make a layer without a name.
func (f activation) CallInternal(*starlark.Thread, starlark.Tuple, []starlark.Tuple) (starlark.Value, error) {
	return nil, fmt.Errorf("calling %s is not implemented; write tf.keras.layers.Activation(%s)(x)", f, f)
}

func isRelu(v starlark.Value) (relu, known bool) {
	switch {
	case v == nil, v == starlark.None, v == starlark.String("linear"):
		return false, true
	case v == starlark.String("relu"), v == reluActivation:
		return true, true
	}
	return false, false
}

func (a *arguments) activation(name string) bool {
	relu, known := isRelu(a.values[name])
	if !known {
		a.wrong(name, `"relu" or None`)
	}
	return relu
}

var (
	none        = []starlark.Value{starlark.None}
	falseOnly   = []starlark.Value{starlark.False, starlark.None}
	zerosOnly   = []starlark.Value{starlark.String("zeros")}
	onesOnly    = []starlark.Value{starlark.String("ones")}
	glorotOnly  = []starlark.Value{starlark.String("glorot_uniform")}
	lastOnly    = []starlark.Value{starlark.None, starlark.String("channels_last")}
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
