package modelfile

import (
	"errors"
	"fmt"
	"strings"

	"go.starlark.net/starlark"
)

// What a model file sees of an array, and of an eager tensor, which has one.

func (a *array) String() string {
	return "numpy array " + string(a.dtype) + shapeText(a.shape)
}
func (a *array) Type() string          { return "numpy array" }
func (a *array) Freeze()               { a.frozen = true }
func (a *array) Truth() starlark.Bool  { return a.size() == 1 && a.at(0) != 0 }
func (a *array) Hash() (uint32, error) { return 0, errors.New("a numpy array cannot be a key") }

// Len is the length of the first axis.
func (a *array) Len() int {
	if len(a.shape) == 0 {
		return 0
	}
	return a.shape[0]
}

// Index is a view of the part at k of the first axis.
func (a *array) Index(k int) starlark.Value {
	inner := 1
	for _, d := range a.shape[1:] {
		inner *= d
	}
	return a.view(k*inner, (k+1)*inner, a.shape[1:])
}

// Slice is a view of a range of the first axis.
func (a *array) Slice(start, end, step int) starlark.Value {
	if step != 1 || len(a.shape) == 0 {
		return unknown{"this slice", "of a numpy array is not implemented; only steps of 1 are"}
	}
	if end < start {
		end = start
	}
	inner := 1
	for _, d := range a.shape[1:] {
		inner *= d
	}
	return a.view(start*inner, end*inner, append([]int{end - start}, a.shape[1:]...))
}

// Get indexes with an integer or a tuple of integers.
func (a *array) Get(key starlark.Value) (starlark.Value, bool, error) {
	index, ok := intList(key)
	if n, one := asInt(key); one {
		index, ok = []int{n}, true
	}
	if !ok {
		return nil, false, fmt.Errorf("indexing a numpy array with %s is not implemented; only integers are", printed(key))
	}
	v := a
	for _, k := range index {
		if len(v.shape) == 0 {
			return nil, false, fmt.Errorf("too many indices for %s", a)
		}
		at := k
		if at < 0 {
			at += v.Len()
		}
		if at < 0 || at >= v.Len() {
			return nil, false, fmt.Errorf("index %d is out of bounds for %s", k, a)
		}
		v = v.Index(at).(*array)
	}
	return v, true, nil
}

// Iterate goes over the first axis.
func (a *array) Iterate() starlark.Iterator { return &arrayIterator{a: a} }

type arrayIterator struct {
	a *array
	k int
}

func (it *arrayIterator) Next(v *starlark.Value) bool {
	if it.k >= it.a.Len() {
		return false
	}
	*v = it.a.Index(it.k)
	it.k++
	return true
}

func (it *arrayIterator) Done() {}

// Attr offers the attributes and methods of a numpy array.
func (a *array) Attr(name string) (starlark.Value, error) {
	switch name {
	case "shape":
		shape := make(starlark.Tuple, len(a.shape))
		for i, d := range a.shape {
			shape[i] = starlark.MakeInt(d)
		}
		return shape, nil
	case "size":
		return starlark.MakeInt(a.size()), nil
	case "ndim":
		return starlark.MakeInt(len(a.shape)), nil
	case "dtype":
		return dtypeValue{a.dtype}, nil
	case "astype":
		return method(name, signature{name: name, positional: []string{"dtype"}}, func(t *starlark.Thread, args *arguments) (starlark.Value, error) {
			d := args.dtype("dtype")
			if args.err != nil {
				return nil, args.err
			}
			return a.convert(sessionOf(t), d)
		}), nil
	case "copy", "flatten":
		return method(name, signature{name: name}, func(t *starlark.Thread, _ *arguments) (starlark.Value, error) {
			c, err := a.convert(sessionOf(t), a.dtype)
			if err == nil && name == "flatten" {
				c.shape = []int{c.size()}
			}
			return c, err
		}), nil
	case "reshape":
		return starlark.NewBuiltin(name, func(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			var shape starlark.Value = args
			if len(args) == 1 {
				shape = args[0]
			}
			bound, err := signature{name: name, positional: []string{"shape"}}.bind(starlark.Tuple{shape}, kwargs)
			if err != nil {
				return nil, err
			}
			dims := bound.dims("shape", -1)
			if bound.err != nil {
				return nil, bound.err
			}
			return a.reshape(dims)
		}), nil
	}
	return nil, noAttribute(a, name)
}

// noAttribute explains what a value of the facade offers instead.
func noAttribute(v starlark.HasAttrs, name string) error {
	return fmt.Errorf("%s of a %s is not implemented; it has %s", name, v.Type(), strings.Join(v.AttrNames(), ", "))
}

// AttrNames lists the attributes for messages.
func (a *array) AttrNames() []string {
	return []string{"astype", "copy", "dtype", "flatten", "ndim", "reshape", "shape", "size"}
}

// eager is a TensorFlow tensor with a value: what input_fn gets for a feature.
type eager struct{ a *array }

func (e eager) String() string        { return "tensor " + string(e.a.dtype) + shapeText(e.a.shape) }
func (e eager) Type() string          { return "EagerTensor" }
func (e eager) Freeze()               { e.a.Freeze() }
func (e eager) Truth() starlark.Bool  { return e.a.Truth() }
func (e eager) Hash() (uint32, error) { return 0, errors.New("a tensor cannot be a key") }

// Attr offers numpy(), shape and dtype.
func (e eager) Attr(name string) (starlark.Value, error) {
	switch name {
	case "numpy":
		return method(name, signature{name: name}, func(*starlark.Thread, *arguments) (starlark.Value, error) { return e.a, nil }), nil
	case "shape", "dtype":
		return e.a.Attr(name)
	}
	return nil, noAttribute(e, name)
}

// AttrNames lists the attributes for messages.
func (e eager) AttrNames() []string { return []string{"dtype", "numpy", "shape"} }
