package modelfile

import (
	"errors"
	"fmt"
	"slices"

	"go.starlark.net/starlark"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/graph"
)

// layerGraph holds the layer applications in the order in which the file makes them.
type layerGraph struct {
	nodes []graph.Node
	count map[string]int // layers made of each class without a name of their own, as Keras counts them
}

func newLayerGraph() *layerGraph { return &layerGraph{count: map[string]int{}} }

// name gives a layer Keras's name for it: the class in snake case, then class_1, class_2, …
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
		if !a.boolean("training", true) {
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

// layerFunctions are tf.keras.Input, tf.keras.Model and tf.keras.layers.
func layerFunctions() map[string]starlark.Value {
	const keras = "tensorflow.keras."
	flatten := constructor(signature{name: "tf.keras.layers.Flatten", only: map[string][]starlark.Value{"data_format": lastOnly}}, "flatten",
		func(_ *arguments, l *layer) {
			l.node.Op = graph.Flatten
			l.complete = func(n *graph.Node, in []int) error {
				size, _ := elements(in)
				n.Shape = []int{size}
				return nil
			}
		})
	return map[string]starlark.Value{
		keras + "Input":                     inputFunction("tf.keras.Input"),
		keras + "layers.Input":              inputFunction("tf.keras.layers.Input"),
		keras + "Model":                     modelFunction("tf.keras.Model"),
		keras + "models.Model":              modelFunction("tf.keras.models.Model"),
		keras + "layers.Reshape":            reshapeLayer(),
		keras + "layers.Conv2D":             convLayer("tf.keras.layers.Conv2D"),
		keras + "layers.Convolution2D":      convLayer("tf.keras.layers.Convolution2D"),
		keras + "layers.BatchNormalization": batchNormLayer(),
		keras + "layers.MaxPooling2D":       maxPoolLayer("tf.keras.layers.MaxPooling2D"),
		keras + "layers.MaxPool2D":          maxPoolLayer("tf.keras.layers.MaxPool2D"),
		keras + "layers.Dropout":            dropoutLayer(),
		keras + "layers.Flatten":            flatten,
		keras + "layers.Dense":              denseLayer(),
		keras + "layers.Activation":         activationLayer(),
		keras + "layers.ReLU":               reluLayer(),
		keras + "activations.relu":          reluActivation,
		"tensorflow.nn.relu":                reluActivation,
	}
}

func inputFunction(name string) starlark.Value {
	sig := signature{
		name: name, positional: []string{"shape"}, keywords: []string{"name"},
		only: map[string][]starlark.Value{"batch_size": none, "dtype": float32Only, "sparse": falseOnly, "tensor": none, "ragged": falseOnly},
	}
	return function(sig, func(t *starlark.Thread, a *arguments) (starlark.Value, error) {
		g := sessionOf(t).layers
		if g == nil {
			return nil, fmt.Errorf("%s is called outside of the model", name)
		}
		shape := a.dims("shape", 1)
		given := ""
		if !a.none("name") {
			given = a.text("name", "")
		}
		if a.err != nil {
			return nil, a.err
		}
		if _, ok := elements(shape); !ok || len(shape) == 0 {
			return nil, fmt.Errorf("%s: shape %s is empty or too large", name, shapeText(shape))
		}
		if given == "" { // Keras counts inputs from 1
			g.count["input"] = max(1, g.count["input"])
		}
		return g.append(graph.Node{Op: graph.Input, Name: g.name("input", given), Shape: shape, Line: lineOf(t)}, nil), nil
	})
}

func reshapeLayer() starlark.Value {
	return constructor(signature{name: "tf.keras.layers.Reshape", positional: []string{"target_shape"}}, "reshape", func(a *arguments, l *layer) {
		target := a.dims("target_shape", -1)
		l.node.Op = graph.Reshape
		l.complete = func(n *graph.Node, in []int) error {
			size, _ := elements(in)
			shape, err := resolveShape(target, size)
			if err != nil {
				return err
			}
			n.Shape = shape
			return nil
		}
	})
}

func convLayer(name string) starlark.Value {
	sig := signature{
		name:       name,
		positional: []string{"filters", "kernel_size", "strides", "padding", "data_format", "dilation_rate", "activation", "use_bias"},
		only: map[string][]starlark.Value{
			"data_format": lastOnly, "dilation_rate": oneByOne, "groups": {starlark.MakeInt(1)},
			"kernel_initializer": glorotOnly, "bias_initializer": zerosOnly, "kernel_regularizer": none, "bias_regularizer": none,
			"activity_regularizer": none, "kernel_constraint": none, "bias_constraint": none,
		},
	}
	// A data_format given in its place cannot be told from a dilation; both are checked by their lists above.
	return constructor(sig, "conv2d", func(a *arguments, l *layer) {
		c := &graph.Conv2DAttrs{Filters: a.integer("filters", 1, maxDimension), Padding: a.text("padding", "valid"), UseBias: a.boolean("use_bias", true)}
		if !a.has("kernel_size") {
			a.wrong("kernel_size", "")
		}
		c.KernelH, c.KernelW = a.pair("kernel_size", 1)
		c.StrideH, c.StrideW = a.pair("strides", 1)
		if c.Padding != "valid" && c.Padding != "same" {
			a.wrong("padding", `"valid" or "same"`)
		}
		l.relu = a.activation("activation")
		l.node.Op, l.node.Conv2D = graph.Conv2D, c
		l.complete = func(n *graph.Node, in []int) error { return convShape(n, c, in) }
	})
}

func convShape(n *graph.Node, c *graph.Conv2DAttrs, in []int) error {
	if len(in) != 3 {
		return fmt.Errorf("the input has shape %s; a convolution wants (height, width, channels): put a Reshape before it", shapeText(in))
	}
	h, w := (in[0]+c.StrideH-1)/c.StrideH, (in[1]+c.StrideW-1)/c.StrideW
	if c.Padding == "valid" {
		if in[0] < c.KernelH || in[1] < c.KernelW {
			return fmt.Errorf("the kernel %dx%d is larger than the input %s", c.KernelH, c.KernelW, shapeText(in))
		}
		h, w = (in[0]-c.KernelH)/c.StrideH+1, (in[1]-c.KernelW)/c.StrideW+1
	}
	if _, ok := elements([]int{c.KernelH, c.KernelW, in[2], c.Filters}); !ok {
		return fmt.Errorf("the kernel (%d, %d, %d, %d) is too large", c.KernelH, c.KernelW, in[2], c.Filters)
	}
	n.Shape = []int{h, w, c.Filters}
	return nil
}

func batchNormLayer() starlark.Value {
	sig := signature{
		name:       "tf.keras.layers.BatchNormalization",
		positional: []string{"axis", "momentum", "epsilon", "center", "scale"},
		only: map[string][]starlark.Value{
			"beta_initializer": zerosOnly, "gamma_initializer": onesOnly, "moving_mean_initializer": zerosOnly, "moving_variance_initializer": onesOnly,
			"beta_regularizer": none, "gamma_regularizer": none, "beta_constraint": none, "gamma_constraint": none,
			"renorm": falseOnly, "virtual_batch_size": none, "adjustment": none,
		},
	}
	return constructor(sig, "batch_normalization", func(a *arguments, l *layer) {
		b := &graph.BatchNormAttrs{Momentum: 0.99, Epsilon: 1e-3, Center: a.boolean("center", true), Scale: a.boolean("scale", true)}
		axis := -1
		if a.has("axis") {
			axis = a.integer("axis", -1, maxRank)
		}
		if a.has("momentum") {
			if b.Momentum = a.number("momentum"); b.Momentum < 0 || b.Momentum > 1 {
				a.wrong("momentum", "a number from 0 to 1")
			}
		}
		if a.has("epsilon") {
			if b.Epsilon = a.number("epsilon"); b.Epsilon <= 0 {
				a.wrong("epsilon", "a number above 0")
			}
		}
		l.trains = true
		l.node.Op, l.node.BatchNorm = graph.BatchNorm, b
		l.complete = func(n *graph.Node, in []int) error {
			if axis != -1 && axis != len(in) {
				return fmt.Errorf("axis=%d is not implemented; only the last axis of %s is", axis, shapeText(in))
			}
			n.Shape = in
			return nil
		}
	})
}

func maxPoolLayer(name string) starlark.Value {
	sig := signature{
		name:       name,
		positional: []string{"pool_size", "strides", "padding", "data_format"},
		only:       map[string][]starlark.Value{"padding": {starlark.String("valid")}, "data_format": lastOnly},
	}
	return constructor(sig, "max_pooling2d", func(a *arguments, l *layer) {
		p := &graph.MaxPoolAttrs{}
		p.PoolH, p.PoolW = a.pair("pool_size", 2)
		p.StrideH, p.StrideW = p.PoolH, p.PoolW
		if !a.none("strides") {
			p.StrideH, p.StrideW = a.pair("strides", 1)
		}
		l.node.Op, l.node.MaxPool = graph.MaxPool, p
		l.complete = func(n *graph.Node, in []int) error {
			if len(in) != 3 || in[0] < p.PoolH || in[1] < p.PoolW {
				return fmt.Errorf("a window of %dx%d does not fit the input %s, which should be (height, width, channels)", p.PoolH, p.PoolW, shapeText(in))
			}
			n.Shape = []int{(in[0]-p.PoolH)/p.StrideH + 1, (in[1]-p.PoolW)/p.StrideW + 1, in[2]}
			return nil
		}
	})
}

func dropoutLayer() starlark.Value {
	sig := signature{
		name: "tf.keras.layers.Dropout", positional: []string{"rate", "noise_shape", "seed"},
		only: map[string][]starlark.Value{"noise_shape": none, "seed": none},
	}
	return constructor(sig, "dropout", func(a *arguments, l *layer) {
		rate := a.number("rate")
		if rate < 0 || rate >= 1 {
			a.wrong("rate", "a number from 0 to below 1")
		}
		l.trains = true
		l.node.Op, l.node.Dropout = graph.Dropout, &graph.DropoutAttrs{Rate: rate}
		l.complete = func(n *graph.Node, in []int) error {
			n.Shape = in
			return nil
		}
	})
}

func denseLayer() starlark.Value {
	sig := signature{
		name: "tf.keras.layers.Dense", positional: []string{"units", "activation", "use_bias"},
		only: map[string][]starlark.Value{
			"kernel_initializer": glorotOnly, "bias_initializer": zerosOnly, "kernel_regularizer": none, "bias_regularizer": none,
			"activity_regularizer": none, "kernel_constraint": none, "bias_constraint": none,
		},
	}
	return constructor(sig, "dense", func(a *arguments, l *layer) {
		d := &graph.DenseAttrs{Units: a.integer("units", 1, maxDimension), UseBias: a.boolean("use_bias", true)}
		l.relu = a.activation("activation")
		l.node.Op, l.node.Dense = graph.Dense, d
		l.complete = func(n *graph.Node, in []int) error {
			if len(in) != 1 {
				return fmt.Errorf("the input has shape %s; only flat inputs are implemented: put a Flatten before it", shapeText(in))
			}
			if _, ok := elements([]int{in[0], d.Units}); !ok {
				return fmt.Errorf("the kernel (%d, %d) is too large", in[0], d.Units)
			}
			n.Shape = []int{d.Units}
			return nil
		}
	})
}

func activationLayer() starlark.Value {
	return constructor(signature{name: "tf.keras.layers.Activation", positional: []string{"activation"}}, "activation", func(a *arguments, l *layer) {
		if relu := a.activation("activation"); !relu && a.err == nil {
			a.wrong("activation", `"relu"`)
		}
		reluNode(l)
	})
}

func reluLayer() starlark.Value {
	zero := []starlark.Value{starlark.MakeInt(0), starlark.Float(0)}
	sig := signature{
		name: "tf.keras.layers.ReLU", positional: []string{"max_value", "negative_slope", "threshold"},
		only: map[string][]starlark.Value{"max_value": none, "negative_slope": zero, "threshold": zero},
	}
	return constructor(sig, "re_lu", func(_ *arguments, l *layer) { reluNode(l) })
}

func reluNode(l *layer) {
	l.node.Op = graph.ReLU
	l.complete = func(n *graph.Node, in []int) error {
		n.Shape = in
		return nil
	}
}

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
	used := map[int]bool{}
	for at := out; ; at = g.nodes[at].Inputs[0] {
		used[at] = true
		if len(g.nodes[at].Inputs) == 0 {
			if at != in {
				return nil, fmt.Errorf("the output %s comes from input %s, and the model's input is %s", g.nodes[out].Name, g.nodes[at].Name, g.nodes[in].Name)
			}
			break
		}
		if at == in {
			return nil, fmt.Errorf("inputs=%s is not a tf.keras.Input", g.nodes[in].Name)
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
		if len(n.Inputs) > 0 {
			n.Inputs = []int{place[n.Inputs[0]]}
		}
		m.nodes = append(m.nodes, n)
	}
	m.output = place[out]
	return m, nil
}
