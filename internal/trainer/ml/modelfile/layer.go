package modelfile

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.starlark.net/starlark"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
)

// layerGraph holds the layer applications in the order in which the file makes them.
type layerGraph struct {
	nodes []graph.Node
	count map[string]int // layers made of each class without a name of their own, as Keras counts them

	called map[any]bool         // layers and objects that have been called
	text   map[int]bool         // of a tf.keras.Input: its elements are text
	dtypes map[int]dtype        // of a tf.keras.Input: the type that the file gave it
	casts  map[int]bool         // of a tf.keras.Input: its reader converts integers
	made   map[int]*madeFeature // of an Input that no tf.keras.Input made: what the feed makes it of
}

func newLayerGraph() *layerGraph {
	return &layerGraph{
		count: map[string]int{}, called: map[any]bool{}, text: map[int]bool{}, dtypes: map[int]dtype{}, casts: map[int]bool{},
		made: map[int]*madeFeature{},
	}
}

// snapshot is the graph as it is, to be restored.
func (g *layerGraph) snapshot() *layerGraph {
	return &layerGraph{
		slices.Clone(g.nodes), maps.Clone(g.count), maps.Clone(g.called), maps.Clone(g.text), maps.Clone(g.dtypes),
		maps.Clone(g.casts), maps.Clone(g.made),
	}
}

func (g *layerGraph) restore(s *layerGraph) {
	*g = *s.snapshot()
}

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

// symbolOf is the value of a node.
func (g *layerGraph) symbolOf(node int) *symbol {
	n := g.nodes[node]
	return &symbol{op: opLayer, layer: node, detail: n.Name, dtype: float32Type, dims: n.Shape}
}

// input adds an input of the model.
func (g *layerGraph) input(n graph.Node, d dtype) *symbol {
	n.Op, n.Integer = graph.Input, d == int32Type || d == int64Type
	out := g.append(n)
	out.dtype, g.dtypes[out.layer] = d, d
	if d == stringType {
		g.text[out.layer] = true
	}
	return out
}

// layer is a layer that has been made and can be called once.
type layer struct {
	fn         string // the class, as files write it
	node       graph.Node
	activation graph.Op                               // a fused one; "" is none
	trains     bool                                   // the call takes training=
	merges     bool                                   // it takes a list of inputs
	looksUp    bool                                   // its input is row numbers
	masksZero  bool                                   // row 0 stands for nothing: the output has a mask
	note       string                                 // about how it was made
	passesMask bool                                   // it does with a mask what Keras does: nothing
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
	if err := sessionOf(t).spend(callBytes); err != nil {
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
	called := *l
	if err := called.trainingArgument(t, a); err != nil {
		return nil, err
	}
	for _, in := range inputs {
		if in.mask != nil && !l.passesMask {
			return nil, fmt.Errorf("%s: its input %s has a mask of Embedding's mask_zero, which is implemented for layers of the file with call(self, x, mask=None) alone; leave mask_zero out", sig.name, in)
		}
	}
	if g.called[l] {
		return nil, fmt.Errorf("%s is called a second time; layers that share their weights are not implemented", sig.name)
	}
	g.called[l] = true
	out, err := g.apply(&called, inputs, placeOf(t))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", sig.name, err)
	}
	return out, nil
}

// trainingArgument reads the call's training=.
func (l *layer) trainingArgument(t *starlark.Thread, a *arguments) error {
	if _, phase := a.values["training"].(trainingPhase); a.none("training") || phase {
		return nil
	}
	if !a.boolean("training") {
		a.fail("training=False is not implemented: the layer would not be trained")
	}
	if a.err != nil {
		return a.err
	}
	switch n := &l.node; n.Op {
	case graph.BatchNorm:
		attrs := *n.BatchNorm
		attrs.TrainingAlways = true
		n.BatchNorm = &attrs
	case graph.Dropout:
		attrs := *n.Dropout
		attrs.TrainingAlways = true
		n.Dropout = &attrs
	}
	sessionOf(t).notice(t, "training=True of %s is honoured in training only; evaluation, prediction and the saved model use inference mode", l.node.Name)
	return nil
}

// apply adds a layer behind its inputs.
func (g *layerGraph) apply(l *layer, inputs []*symbol, at graph.Place) (*symbol, error) {
	n := l.node
	n.Place = at
	var err error
	var mask *symbol
	if l.looksUp {
		if inputs, mask, err = g.lookedUp(l, inputs[0], at); err != nil {
			return nil, err
		}
	}
	for i, in := range inputs {
		if in.op == opMade {
			if inputs[i], err = g.asFloats(in, at); err != nil {
				return nil, err
			}
		}
	}
	// A value without an axis but the records' is an array of one in the network.
	scalar := len(inputs[0].dims) == 0
	if scalar && !slices.Contains(elementwiseOps, n.Op) {
		return nil, errors.New("its input has no axis but the records'; tf.reshape it to (-1, 1)")
	}
	if l.merges {
		inputs = g.broadcast(n, inputs, at)
		var shapes [][]int
		for _, in := range inputs {
			if (len(in.dims) == 0) != scalar {
				return nil, fmt.Errorf("the shapes %s and %s of its inputs do not fit", shapeText(inputs[0].dims), shapeText(in.dims))
			}
			shapes = append(shapes, nodeShape(in.dims))
		}
		err = l.merge(&n, shapes)
	} else {
		err = l.complete(&n, nodeShape(inputs[0].dims))
	}
	if err != nil {
		return nil, err
	}
	if size, ok := elements(n.Shape); !ok || size == 0 {
		return nil, fmt.Errorf("output shape %s is too large", shapeText(n.Shape))
	}
	out := g.append(n, inputs...)
	if l.activation != "" {
		out = g.append(graph.Node{Op: l.activation, Name: n.Name + "/" + string(l.activation), Shape: n.Shape, Place: n.Place}, out)
	}
	if scalar {
		out.dims = []int{}
	}
	out.mask = mask
	return out, nil
}

// elementwiseOps are the layers that take values without an axis but the records'.
var elementwiseOps = []graph.Op{
	graph.Add, graph.Multiply, graph.Subtract, graph.ReLU, graph.Sigmoid, graph.Tanh, graph.LeakyReLU, graph.Reshape, graph.Flatten, graph.Scale,
}

// nodeShape is the shape in the network of a value with dims.
func nodeShape(dims []int) []int {
	if len(dims) == 0 {
		return []int{1}
	}
	return dims
}

// broadcast repeats those operands of a sum, a difference or a product whose last axis has size 1 where that of others
// is longer.
func (g *layerGraph) broadcast(n graph.Node, inputs []*symbol, at graph.Place) []*symbol {
	if n.Op == graph.Concatenate {
		return inputs
	}
	widest := inputs[0].dims
	for _, in := range inputs {
		if last := len(in.dims) - 1; last >= 0 && len(widest) == len(in.dims) && in.dims[last] > widest[last] {
			widest = in.dims
		}
	}
	out := slices.Clone(inputs)
	for i, in := range inputs {
		last := len(in.dims) - 1
		if last >= 0 && len(widest) == len(in.dims) && in.dims[last] == 1 && widest[last] > 1 && slices.Equal(in.dims[:last], widest[:last]) {
			out[i] = g.append(graph.Node{Op: graph.Broadcast, Name: g.name("tf_op_layer_BroadcastTo", ""), Shape: widest, Place: at}, in)
		}
	}
	return out
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
		if in.op != opLayer && in.op != opMade {
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

// CallInternal makes a layer of it where it is called with the output of one, and traces it in losses and metrics.
func (f activation) CallInternal(t *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	a, err := signature{name: f.path, positional: []string{"x"}, keywords: []string{"name"}}.bind(args, kwargs)
	if err != nil {
		return nil, err
	}
	x, ok := a.values["x"].(*symbol)
	switch {
	case !ok:
		a.wrong("x", "the output of a layer")
		return nil, a.err
	case x.op == opLayer || x.op == opMade:
		g := sessionOf(t).layers
		if g == nil {
			return nil, fmt.Errorf("%s is called outside of the model", f)
		}
		l := &layer{fn: f.path}
		elementwise(l, f.op)
		name := string(f.op)
		l.node.Name = g.name("tf_op_layer_"+strings.ToUpper(name[:1])+name[1:], "")
		out, err := g.apply(l, []*symbol{x}, placeOf(t))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f, err)
		}
		return out, nil
	case f.op == graph.Sigmoid:
		return &symbol{op: opSigmoid, args: []*symbol{x}, dtype: float32Type}, nil
	}
	return nil, fmt.Errorf("%s of %s is not implemented", f, x)
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
	maps.Copy(only, more)
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
		if l.note != "" {
			sessionOf(t).notice(t, "%s: %s", l.node.Name, l.note)
		}
		return l, nil
	})
}
