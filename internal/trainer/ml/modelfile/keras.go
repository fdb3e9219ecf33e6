package modelfile

import (
	"fmt"
	"maps"
	"slices"

	"go.starlark.net/starlark"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
)

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
	values := map[string]starlark.Value{
		keras + "Input":                                         inputFunction("tf.keras.Input"),
		keras + "layers.Input":                                  inputFunction("tf.keras.layers.Input"),
		keras + "Model":                                         modelFunction("tf.keras.Model"),
		keras + "models.Model":                                  modelFunction("tf.keras.models.Model"),
		keras + "layers.Reshape":                                reshapeLayer(),
		keras + "layers.Conv2D":                                 convLayer("tf.keras.layers.Conv2D"),
		keras + "layers.Convolution2D":                          convLayer("tf.keras.layers.Convolution2D"),
		keras + "layers.BatchNormalization":                     batchNormLayer(),
		keras + "layers.Dropout":                                dropoutLayer(),
		keras + "layers.Flatten":                                flatten,
		keras + "layers.Dense":                                  denseLayer(),
		keras + "layers.Activation":                             activationLayer(),
		keras + "layers.ReLU":                                   reluLayer(),
		keras + "layers.LeakyReLU":                              leakyReLULayer(),
		keras + "layers.Softmax":                                softmaxLayer(),
		keras + "layers.Embedding":                              embeddingLayer("tf.keras.layers.Embedding", false),
		"elasticdl.python.elasticdl.layers.embedding.Embedding": embeddingLayer("Embedding", true),
		keras + "layers.Layer":                                  layerBase,
		"enum.Enum":                                             enumBase,
	}
	for name, op := range activationOps {
		for _, path := range []string{keras + "activations.", "tensorflow.nn.", "tensorflow."} {
			if path != "tensorflow." || op == graph.Sigmoid || op == graph.Tanh {
				values[path+name] = activation{display(path + name), op}
			}
		}
	}
	maps.Copy(values, poolFunctions())
	maps.Copy(values, mergeFunctions())
	maps.Copy(values, tensorLayerFunctions())
	return values
}

func inputFunction(name string) starlark.Value {
	sig := signature{
		name: name, positional: []string{"shape"}, keywords: []string{"name", "dtype"},
		only: map[string][]starlark.Value{"batch_size": none, "sparse": falseOnly, "tensor": none, "ragged": falseOnly},
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
		d := float32Type
		if !a.none("dtype") {
			known := false
			if d, known = asDtype(a.values["dtype"]); !known || !slices.Contains([]dtype{float32Type, int32Type, int64Type, stringType}, d) {
				a.wrong("dtype", "float32, int32, int64 or string")
			}
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
		return g.input(graph.Node{Name: g.name("input", given), Shape: shape, Place: placeOf(t)}, d), nil
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
	// A data_format in its place looks like a dilation; both are checked by their lists above.
	return constructor(sig, "conv2d", func(a *arguments, l *layer) {
		c := &graph.Conv2DAttrs{Filters: a.integer("filters", 1, maxDimension), Padding: a.text("padding", "valid"), UseBias: a.boolean("use_bias")}
		if !a.has("kernel_size") {
			a.wrong("kernel_size", "")
		}
		c.KernelH, c.KernelW = a.pair("kernel_size", 1)
		c.StrideH, c.StrideW = a.pair("strides", 1)
		if c.Padding != "valid" && c.Padding != "same" {
			a.wrong("padding", `"valid" or "same"`)
		}
		l.activation = a.activation("activation")
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
		b := &graph.BatchNormAttrs{Momentum: 0.99, Epsilon: 1e-3, Center: a.boolean("center"), Scale: a.boolean("scale")}
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
		d := &graph.DenseAttrs{Units: a.integer("units", 1, maxDimension), UseBias: a.boolean("use_bias")}
		l.activation = a.activation("activation")
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
		op := a.activation("activation")
		if op == "" && a.err == nil {
			a.wrong("activation", "one of "+activationNames())
		}
		elementwise(l, op)
	})
}

func reluLayer() starlark.Value {
	zero := []starlark.Value{starlark.MakeInt(0), starlark.Float(0)}
	sig := signature{
		name: "tf.keras.layers.ReLU", positional: []string{"max_value", "negative_slope", "threshold"},
		only: map[string][]starlark.Value{"max_value": none, "negative_slope": zero, "threshold": zero},
	}
	return constructor(sig, "re_lu", func(_ *arguments, l *layer) { elementwise(l, graph.ReLU) })
}

func leakyReLULayer() starlark.Value {
	return constructor(signature{name: "tf.keras.layers.LeakyReLU", positional: []string{"alpha"}}, "leaky_re_lu", func(a *arguments, l *layer) {
		l.node.LeakyReLU = &graph.LeakyReLUAttrs{Alpha: 0.3}
		if a.has("alpha") {
			if l.node.LeakyReLU.Alpha = a.number("alpha"); l.node.LeakyReLU.Alpha < 0 {
				a.wrong("alpha", "a number from 0")
			}
		}
		elementwise(l, graph.LeakyReLU)
	})
}

func softmaxLayer() starlark.Value {
	sig := signature{name: "tf.keras.layers.Softmax", positional: []string{"axis"}, only: map[string][]starlark.Value{"axis": lastAxis}}
	return constructor(sig, "softmax", func(_ *arguments, l *layer) { elementwise(l, graph.Softmax) })
}

// elementwise makes l a layer whose output has its input's shape.
func elementwise(l *layer, op graph.Op) {
	l.node.Op = op
	l.complete = func(n *graph.Node, in []int) error {
		n.Shape = in
		return nil
	}
}
