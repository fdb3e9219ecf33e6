package modelfile

import (
	"fmt"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
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
		x, dims := a.tensorLike(t, "tensor"), a.dims("shape", -1)
		if a.err != nil {
			return nil, a.err
		}
		if e, ok := x.(eager); ok {
			v, err := e.a.reshape(dims)
			return eager{v}, err
		}
		s := x.(*symbol)
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
