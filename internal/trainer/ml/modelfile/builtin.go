package modelfile

import (
	"fmt"
	"slices"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// exceptions that files raise; their constructors make a value for `raise`.
var exceptions = []string{
	"Exception", "ValueError", "TypeError", "KeyError", "IndexError", "RuntimeError", "NotImplementedError", "AssertionError", "AttributeError",
}

// builtins are the functions of Python that Starlark lacks or answers otherwise for traced values.
func builtins() starlark.StringDict {
	d := starlark.StringDict{
		"isinstance": starlark.NewBuiltin("isinstance", isInstance),
		"sum":        starlark.NewBuiltin("sum", sum),
	}
	for _, name := range []string{
		"abs", "all", "any", "bool", "dict", "enumerate", "float", "int", "len", "list", "max", "min", "range", "reversed", "set", "sorted", "str", "tuple", "zip",
	} {
		d[name] = checked(name, starlark.Universe[name].(*starlark.Builtin))
	}
	for _, name := range []string{"bytes", "chr", "dir", "fail", "getattr", "hasattr", "hash", "ord", "print", "repr", "type"} {
		d[name] = metered(name, starlark.Universe[name].(*starlark.Builtin))
	}
	for _, name := range exceptions {
		d[name] = starlark.NewBuiltin(name, func(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			text := b.Name()
			for _, v := range args {
				text += ": " + printed(v)
			}
			if len(kwargs) > 0 {
				return nil, fmt.Errorf("%s takes no named arguments", b.Name())
			}
			return raised(text), nil
		})
	}
	return d
}

// raised is an exception that a file makes.
type raised string

func (r raised) String() string        { return string(r) }
func (r raised) Type() string          { return "exception" }
func (r raised) Freeze()               {}
func (r raised) Truth() starlark.Bool  { return true }
func (r raised) Hash() (uint32, error) { return starlark.String(r).Hash() }

// checked lets a function of Starlark see only values that it understands.
func checked(name string, f *starlark.Builtin) *starlark.Builtin {
	return starlark.NewBuiltin(name, func(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		s := sessionOf(t)
		args = slices.Clone(args)
		for i, v := range args {
			if err := checkValue(v, name+"()"); err != nil {
				return nil, err
			}
			if e, ok := v.(eager); ok && name != "str" {
				v = e.a
			}
			if a, ok := v.(*array); ok {
				var err error
				if args[i], err = arrayArgument(name, a); err != nil {
					return nil, err
				}
			}
			if n := starlark.Len(args[i]); n > s.limits.sequenceSize && name != "len" && name != "range" && name != "zip" {
				return nil, fmt.Errorf("%s() of %d elements is more than a model file may hold", name, n)
			}
		}
		return callMetered(t, name, f, args, kwargs)
	})
}

// arrayArgument is an array as the functions of Python take it.
func arrayArgument(name string, a *array) (starlark.Value, error) {
	switch name {
	case "int", "float", "bool", "abs":
		if a.size() != 1 {
			return nil, fmt.Errorf("%s() of a %s: only arrays of one element can be converted", name, a)
		}
		return plainNumber(&array{dtype: a.dtype, f: a.f, i: a.i}, nil), nil
	case "len":
		if len(a.shape) == 0 {
			return nil, fmt.Errorf("len() of an array without dimensions")
		}
	case "all", "any", "max", "min", "sorted", "set", "dict":
		return nil, fmt.Errorf("%s() of a %s is not implemented", name, a)
	}
	return a, nil
}

// sum is Python's, over numbers and arrays.
func sum(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var list starlark.Value
	var total starlark.Value = starlark.MakeInt(0)
	if err := starlark.UnpackPositionalArgs(b.Name(), args, kwargs, 1, &list, &total); err != nil {
		return nil, err
	}
	if err := checkLoop(list); err != nil {
		return nil, err
	}
	values, ok := list.(starlark.Iterable)
	if !ok {
		return nil, fmt.Errorf("sum() of %s", printed(list))
	}
	if n := starlark.Len(list); n > sessionOf(t).limits.sequenceSize {
		return nil, fmt.Errorf("sum() of %d elements is more than a model file may add", n)
	}
	for v := range starlark.Elements(values) {
		var err error
		if err := sessionOf(t).work(8); err != nil {
			return nil, err
		}
		if total, err = operate(sessionOf(t), syntax.PLUS, total, v); err != nil {
			return nil, err
		}
	}
	return total, nil
}
