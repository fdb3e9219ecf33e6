package modelfile

import (
	"errors"
	"fmt"
	"slices"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
)

// What files compute with the outputs of layers directly becomes a layer, as in Keras: tf_op_layer_… by its name.

// tensorLayerFunctions are the functions that make such layers, and nothing else.
func tensorLayerFunctions() map[string]starlark.Value {
	values := map[string]starlark.Value{"tensorflow.keras.backend.square": squareFunction("tensorflow.keras.backend.square")}
	for path, input := range map[string]string{
		"tensorflow.reduce_sum": "input_tensor", "tensorflow.math.reduce_sum": "input_tensor", "tensorflow.keras.backend.sum": "x",
	} {
		sig := signature{name: display(path), positional: []string{input, "axis", "keepdims"}, keywords: []string{"name"}}
		values[path] = function(sig, func(t *starlark.Thread, a *arguments) (starlark.Value, error) {
			if !a.has(input) {
				a.wrong(input, "")
				return nil, a.err
			}
			x, ok := a.values[input].(*symbol)
			if !ok || x.op != opLayer {
				return nil, fmt.Errorf("%s of %s is not implemented; only of the output of a layer, while the model is made", sig.name, printed(a.values[input]))
			}
			keep := a.has("keepdims") && a.boolean("keepdims")
			axes := a.axes("axis", len(x.dims))
			if a.err != nil {
				return nil, a.err
			}
			v, err := sumOfAxes(t, x, axes, keep)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", sig.name, err)
			}
			return v, nil
		})
	}
	return values
}

// axes reads one or several axes of a tensor with rank axes besides that of the records, which is number 0; ascending.
func (a *arguments) axes(name string, rank int) []int {
	if a.none(name) {
		a.fail("it sums over the records too; name the axes")
		return nil
	}
	axes := a.dims(name, -maxRank)
	if len(axes) == 0 {
		a.wrong(name, "an axis, or several")
	}
	for i, axis := range axes {
		if axis < 0 {
			axes[i] = axis + rank + 1
		}
		if axes[i] < 1 || axes[i] > rank {
			a.fail("%s=%s; want axes from 1 (0 is the records') to %d", name, printed(a.values[name]), rank)
		}
	}
	slices.Sort(axes)
	return axes
}

func sumOfAxes(t *starlark.Thread, x *symbol, axes []int, keep bool) (starlark.Value, error) {
	for i, axis := range axes {
		if axis != axes[0]+i {
			return nil, errors.New("only a sum over neighbouring axes is implemented")
		}
	}
	attrs := &graph.ReduceSumAttrs{From: axes[0] - 1, Axes: len(axes), KeepDims: keep}
	shape := slices.Clone(x.dims[:attrs.From])
	if keep {
		shape = append(shape, slices.Repeat([]int{1}, attrs.Axes)...)
	}
	shape = append(shape, x.dims[attrs.From+attrs.Axes:]...)
	if len(shape) > 0 {
		return tensorLayer(t, "Sum", graph.Node{Op: graph.ReduceSum, Shape: shape, ReduceSum: attrs}, x)
	}
	attrs.KeepDims = true // the network has no array without an axis
	v, err := tensorLayer(t, "Sum", graph.Node{Op: graph.ReduceSum, Shape: slices.Repeat([]int{1}, attrs.Axes), ReduceSum: attrs}, x)
	if err == nil && attrs.Axes > 1 {
		v, err = tensorLayer(t, "Reshape", graph.Node{Op: graph.Reshape, Shape: []int{1}}, v.(*symbol))
	}
	if err != nil {
		return nil, err
	}
	v.(*symbol).dims = []int{}
	return v, nil
}

// squareFunction is tf.square: of a layer's output, its product with itself.
func squareFunction(path string) starlark.Value {
	sig := signature{name: display(path), positional: []string{"x"}, keywords: []string{"name"}}
	return function(sig, func(t *starlark.Thread, a *arguments) (starlark.Value, error) {
		x := a.symbol("x")
		if a.err == nil && x.op == opLayer {
			v, err := tensorLayer(t, "Square", graph.Node{Op: graph.Multiply, Shape: nodeShape(x.dims)}, x, x)
			if err != nil {
				return nil, err
			}
			v.(*symbol).dims = x.dims
			return v, nil
		}
		return &symbol{op: opSquare, args: []*symbol{x}, dtype: float32Type}, nil
	})
}

// layerArithmetic makes a layer of x op y where that is a sum, a difference or a product of two outputs of one shape,
// or an output times a number. Other operands are none of its business.
func layerArithmetic(t *starlark.Thread, op syntax.Token, x, y starlark.Value) (v starlark.Value, mine bool, err error) {
	if v, mine, err = sessionOf(t).madeArithmetic(op, x, y); mine {
		return v, true, err
	}
	a, aok := x.(*symbol)
	b, bok := y.(*symbol)
	aok, bok = aok && a.op == opLayer, bok && b.op == opLayer
	if aok && bok {
		operation, ok := map[syntax.Token]struct {
			name string
			op   graph.Op
		}{syntax.PLUS: {"add", graph.Add}, syntax.MINUS: {"sub", graph.Subtract}, syntax.STAR: {"mul", graph.Multiply}}[op]
		if !ok {
			return nil, false, nil
		}
		g := sessionOf(t).layers
		if g == nil {
			return nil, true, errors.New("a computation with the outputs of layers, outside of the model")
		}
		both := g.broadcast(graph.Node{Op: operation.op}, []*symbol{a, b}, placeOf(t))
		a, b = both[0], both[1]
		if !slices.Equal(a.dims, b.dims) {
			return nil, true, fmt.Errorf("the shapes %s and %s of %s and %s differ; of broadcasting, only that of a last axis of size 1 is implemented", shapeText(a.dims), shapeText(b.dims), a, b)
		}
		v, err := tensorLayer(t, operation.name, graph.Node{Op: operation.op, Shape: nodeShape(a.dims)}, a, b)
		return withDims(v, a.dims), true, err
	}
	number := y
	if bok {
		a, number = b, x
	}
	factor, ok := asNumber(number)
	if op != syntax.STAR || !ok || !aok && !bok {
		return nil, false, nil
	}
	v, err = tensorLayer(t, "mul", graph.Node{Op: graph.Scale, Shape: nodeShape(a.dims), Scale: &graph.ScaleAttrs{Value: factor}}, a)
	return withDims(v, a.dims), true, err
}

// withDims is a layer's output with the shape that it has in TensorFlow.
func withDims(v starlark.Value, dims []int) starlark.Value {
	if s, ok := v.(*symbol); ok {
		s.dims = dims
	}
	return v
}

func tensorLayer(t *starlark.Thread, operation string, n graph.Node, inputs ...*symbol) (starlark.Value, error) {
	g := sessionOf(t).layers
	if g == nil {
		return nil, errors.New("a computation with the output of a layer, outside of the model")
	}
	n.Name, n.Place = g.name("tf_op_layer_"+operation, ""), placeOf(t)
	return g.append(n, inputs...), nil
}
