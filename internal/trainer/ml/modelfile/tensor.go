package modelfile

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
)

// tensorFunctions are the functions of tf that losses, metrics and feeds are written with. On traced values they trace,
// on tensors with values they compute.
func tensorFunctions() map[string]starlark.Value {
	values := map[string]starlark.Value{
		"tensorflow.convert_to_tensor": function(signature{
			name: "tf.convert_to_tensor", positional: []string{"value"}, keywords: []string{"name"}, only: map[string][]starlark.Value{"dtype": none, "dtype_hint": none},
		}, func(t *starlark.Thread, a *arguments) (starlark.Value, error) { return a.tensorLike(t, "value"), nil }),
	}
	for name, f := range map[string]starlark.Value{
		"reduce_mean": reduceMean(), "reshape": reshapeFunction(), "cast": castFunction(), "argmax": argmaxFunction(), "equal": equalFunction(), "greater": greaterFunction(),
		"divide": binaryFunction("divide", syntax.SLASH), "multiply": binaryFunction("multiply", syntax.STAR),
		"add": binaryFunction("add", syntax.PLUS), "subtract": binaryFunction("subtract", syntax.MINUS),
	} {
		values["tensorflow."+name] = f
		if name != "reshape" && name != "cast" {
			values["tensorflow.math."+name] = f
		}
	}
	values["tensorflow.dtypes.cast"] = values["tensorflow.cast"]
	for _, path := range []string{"tensorflow.expand_dims", "tensorflow.keras.backend.expand_dims"} {
		values[path] = expandDimsFunction(path)
	}
	for _, path := range []string{"tensorflow.round", "tensorflow.math.round"} {
		values[path] = traced(path, opRound, "x", nil)
	}
	values["tensorflow.squeeze"] = traced("tensorflow.squeeze", opSqueeze, "input", map[string][]starlark.Value{"axis": none})
	values["tensorflow.identity"] = function(signature{name: "tf.identity", positional: []string{"input"}, keywords: []string{"name"}},
		func(_ *starlark.Thread, a *arguments) (starlark.Value, error) { return a.symbol("input"), nil })
	values["tensorflow.concat"] = function(signature{name: "tf.concat", positional: []string{"values", "axis"}, keywords: []string{"name"}}, concat)
	values["tensorflow.keras.metrics.accuracy"] = function(signature{name: "tf.keras.metrics.accuracy", positional: []string{"y_true", "y_pred"}},
		func(_ *starlark.Thread, a *arguments) (starlark.Value, error) {
			return &symbol{op: opEqual, args: []*symbol{a.symbol("y_true"), a.symbol("y_pred")}, dtype: boolType}, nil
		})
	return values
}

// symbol reads an argument that must be traced.
func (a *arguments) symbol(name string) *symbol {
	s, ok := a.values[name].(*symbol)
	if !ok {
		a.wrong(name, "the model's output or the labels")
	}
	return s
}

// tensorLike reads a traced value or a tensor; arrays become tensors.
func (a *arguments) tensorLike(t *starlark.Thread, name string) starlark.Value {
	switch v := a.values[name].(type) {
	case *symbol, eager:
		return v
	case *array:
		return eager{v}
	case *starlark.List:
		if made, err := makeArray(sessionOf(t), v, ""); err == nil {
			return eager{made}
		}
	}
	a.wrong(name, "a tensor")
	return starlark.None
}

func reduceMean() starlark.Value {
	sig := signature{
		name: "tf.reduce_mean", positional: []string{"input_tensor", "axis"}, keywords: []string{"name"},
		only: map[string][]starlark.Value{"axis": none, "keepdims": falseOnly},
	}
	return function(sig, func(_ *starlark.Thread, a *arguments) (starlark.Value, error) {
		return &symbol{op: opReduceMean, args: []*symbol{a.symbol("input_tensor")}, dtype: float32Type}, nil
	})
}

func reshapeFunction() starlark.Value {
	sig := signature{name: "tf.reshape", positional: []string{"tensor", "shape"}, keywords: []string{"name"}}
	return function(sig, func(t *starlark.Thread, a *arguments) (starlark.Value, error) {
		if list, ok := a.values["tensor"].(*starlark.List); ok && list.Len() > 0 {
			if first, ok := list.Index(0).(*symbol); ok && first.op == opLayer {
				return reshapeOfList(t, list, a)
			}
		}
		x, dims := a.tensorLike(t, "tensor"), a.dims("shape", -1)
		if a.err != nil {
			return nil, a.err
		}
		if e, ok := x.(eager); ok {
			v, err := e.a.reshape(dims)
			return eager{v}, err
		}
		s := x.(*symbol)
		if s.op == opLayer {
			return reshapeOfLayer(t, s, dims)
		}
		return &symbol{op: opReshape, args: []*symbol{s}, detail: fmt.Sprint(dims), dims: dims, dtype: s.dtype}, nil
	})
}

func castFunction() starlark.Value {
	sig := signature{name: "tf.cast", positional: []string{"x", "dtype"}, keywords: []string{"name"}}
	return function(sig, func(t *starlark.Thread, a *arguments) (starlark.Value, error) {
		x, d := a.tensorLike(t, "x"), a.dtype("dtype")
		if a.err != nil {
			return nil, a.err
		}
		if e, ok := x.(eager); ok {
			v, err := e.a.convert(sessionOf(t), d)
			return eager{v}, err
		}
		if s := x.(*symbol); s.op == opLayer || s.op == opMade {
			session := sessionOf(t)
			if session.layers == nil {
				return nil, errors.New("tf.cast of the output of a layer, outside of the model")
			}
			v, err := session.castMade(s, d)
			if err != nil {
				return nil, fmt.Errorf("tf.cast of %s to %s: %w", s, d, err)
			}
			return v, nil
		}
		return &symbol{op: opCast, args: []*symbol{x.(*symbol)}, detail: string(d), dtype: d}, nil
	})
}

func argmaxFunction() starlark.Value {
	sig := signature{name: "tf.argmax", positional: []string{"input", "axis", "output_type"}, keywords: []string{"name"}}
	return function(sig, func(_ *starlark.Thread, a *arguments) (starlark.Value, error) {
		axis := 0
		if !a.none("axis") {
			axis = a.integer("axis", -maxRank, maxRank)
		}
		d := int64Type
		if a.has("output_type") {
			d = a.dtype("output_type")
		}
		return &symbol{op: opArgmax, args: []*symbol{a.symbol("input")}, detail: fmt.Sprintf("axis=%d", axis), dims: []int{axis}, dtype: d}, nil
	})
}

func equalFunction() starlark.Value {
	sig := signature{name: "tf.equal", positional: []string{"x", "y"}, keywords: []string{"name"}}
	return function(sig, func(_ *starlark.Thread, a *arguments) (starlark.Value, error) {
		return &symbol{op: opEqual, args: []*symbol{a.symbol("x"), a.symbol("y")}, dtype: boolType}, nil
	})
}

func greaterFunction() starlark.Value {
	sig := signature{name: "tf.greater", positional: []string{"x", "y"}, keywords: []string{"name"}}
	return function(sig, func(_ *starlark.Thread, a *arguments) (starlark.Value, error) {
		y := a.number("y")
		return above(a.symbol("x"), y), nil
	})
}

// greater is a traced value that is compared with a number: x > 0.0 or 0.0 < x.
func greater(op syntax.Token, x, y starlark.Value) (starlark.Value, bool) {
	if op == syntax.LT {
		op, x, y = syntax.GT, y, x
	}
	s, traced := x.(*symbol)
	number, known := asNumber(y)
	if op != syntax.GT || !traced || !known {
		return nil, false
	}
	return above(s, number), true
}

func above(x *symbol, threshold float64) *symbol {
	return &symbol{op: opGreater, args: []*symbol{x}, detail: fmt.Sprint(threshold), number: threshold, dtype: boolType}
}

func binaryFunction(name string, op syntax.Token) starlark.Value {
	sig := signature{name: "tf.math." + name, positional: []string{"x", "y"}, keywords: []string{"name"}}
	return function(sig, func(t *starlark.Thread, a *arguments) (starlark.Value, error) {
		for _, arg := range []string{"x", "y"} {
			if !a.has(arg) {
				a.wrong(arg, "")
				return nil, a.err
			}
		}
		x, y := a.values["x"], a.values["y"]
		if v, ok := x.(*array); ok { // TensorFlow converts arrays before it computes
			x = eager{v}
		}
		if v, ok := y.(*array); ok {
			y = eager{v}
		}
		v, mine, err := layerArithmetic(t, op, x, y)
		if !mine {
			v, err = operate(sessionOf(t), op, x, y)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", sig.name, err)
		}
		return v, nil
	})
}

// traced is a function of one traced value.
func traced(path, op, argument string, only map[string][]starlark.Value) starlark.Value {
	sig := signature{name: display(path), positional: []string{argument}, keywords: []string{"name"}, only: only}
	return function(sig, func(_ *starlark.Thread, a *arguments) (starlark.Value, error) {
		x := a.symbol(argument)
		if a.err == nil && (x.op == opLayer || x.op == opMade) {
			return nil, fmt.Errorf("%s of the output of a layer is not implemented", sig.name)
		}
		return &symbol{op: op, args: []*symbol{x}, dtype: float32Type}, nil
	})
}

// reshapeOfLayer is tf.reshape of a layer's output: the first number is of the records.
func reshapeOfLayer(t *starlark.Thread, x *symbol, dims []int) (starlark.Value, error) {
	if len(dims) == 0 || dims[0] != -1 {
		return nil, fmt.Errorf("tf.reshape of the output of a layer to %s: the first number is that of the records; write -1 for it, and numbers for the others", shapeText(dims))
	}
	n := product(nodeShape(x.dims))
	if size, ok := elements(dims[1:]); !ok || size != n || slices.Contains(dims[1:], 0) {
		return nil, fmt.Errorf("tf.reshape: %s has %d elements in a record, and shape %s another number of them", x, n, shapeText(dims[1:]))
	}
	v, err := tensorLayer(t, "Reshape", graph.Node{Op: graph.Reshape, Shape: nodeShape(dims[1:])}, x)
	if err != nil {
		return nil, err
	}
	out := v.(*symbol)
	out.dims = dims[1:]
	return out, nil
}

// reshapeOfList is tf.reshape of a list of layers' outputs.
func reshapeOfList(t *starlark.Thread, list *starlark.List, a *arguments) (starlark.Value, error) {
	s := sessionOf(t)
	if s.layers == nil {
		return nil, errors.New("tf.reshape of the outputs of layers, outside of the model")
	}
	joined, err := concatenateLayers(s, list, "tf_op_layer_concat")
	dims := a.dims("shape", -1)
	if err == nil {
		err = a.err
	}
	if err != nil {
		return nil, fmt.Errorf("tf.reshape of a list: %w", err)
	}
	s.warn(placeOf(t), "tf.reshape of a list puts its tensors before the records, which mixes the records of a minibatch; here those of a record are put one behind the other, as tf.concat(…, 1) does")
	return reshapeOfLayer(t, joined.(*symbol), dims)
}

func expandDimsFunction(path string) starlark.Value {
	first := "input"
	if strings.Contains(path, "backend") {
		first = "x"
	}
	return function(signature{name: display(path), positional: []string{first, "axis"}, keywords: []string{"name"}}, func(t *starlark.Thread, a *arguments) (starlark.Value, error) {
		x, axis := a.symbol(first), -1
		if a.has("axis") {
			axis = a.integer("axis", -maxRank, maxRank)
		}
		if a.err != nil {
			return nil, a.err
		}
		if x.op != opLayer {
			if axis != 1 && axis != -1 {
				return nil, fmt.Errorf("%s of %s at axis %d is not implemented; at the last one it is", display(path), x, axis)
			}
			return &symbol{op: opExpandDims, args: []*symbol{x}, detail: fmt.Sprint(axis), dtype: x.dtype}, nil
		}
		if axis < 0 {
			axis += len(x.dims) + 2
		}
		if axis < 1 || axis > len(x.dims)+1 {
			return nil, fmt.Errorf("%s of shape %s at axis %d: want one from 1 (0 is the records') to %d", display(path), shapeText(x.dims), axis, len(x.dims)+1)
		}
		return reshapeOfLayer(t, x, append([]int{-1}, slices.Insert(slices.Clone(x.dims), axis-1, 1)...))
	})
}

// concat is tf.concat along the last axis.
func concat(t *starlark.Thread, a *arguments) (starlark.Value, error) {
	list, ok := a.values["values"].(*starlark.List)
	if tuple, isTuple := a.values["values"].(starlark.Tuple); isTuple {
		list, ok = starlark.NewList(tuple), true
	}
	if !ok || list.Len() == 0 {
		a.wrong("values", "a list of the outputs of layers")
		return nil, a.err
	}
	axis := a.integer("axis", -maxRank, maxRank)
	s := sessionOf(t)
	first, isSymbol := list.Index(0).(*symbol)
	switch {
	case a.err != nil:
		return nil, a.err
	case s.layers == nil || !isSymbol || first.op != opLayer && first.op != opMade:
		return nil, fmt.Errorf("tf.concat of %s is not implemented; only of the outputs of layers, while the model is made", printed(list))
	case axis != -1 && axis != len(first.dims):
		return nil, fmt.Errorf("tf.concat along axis %d of shape %s is not implemented; along the last one it is", axis, shapeText(first.dims))
	}
	var v starlark.Value
	var err error
	if all, made := s.madeList(list); made {
		var m *madeFeature
		if m, err = concatenated(all); err == nil {
			return m.symbol("concat"), nil
		}
	} else {
		v, err = concatenateLayers(s, list, "tf_op_layer_concat")
	}
	if err != nil {
		return nil, fmt.Errorf("tf.concat: %w", err)
	}
	return v, nil
}
