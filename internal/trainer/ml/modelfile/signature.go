package modelfile

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"go.starlark.net/starlark"
)

// signature lists the arguments that a function of the facade implements. What it does not list is refused: an
// argument that is ignored would train another model.
type signature struct {
	name       string                      // as files write it: tf.keras.layers.Conv2D
	positional []string                    // in TensorFlow's order
	keywords   []string                    // by name only
	only       map[string][]starlark.Value // accepted with these values alone, which are what is done anyway
}

// arguments are the bound arguments of one call. Its readers keep the first error; check err after the last of them.
type arguments struct {
	fn     string
	values map[string]starlark.Value
	err    error
}

func (s signature) bind(args starlark.Tuple, kwargs []starlark.Tuple) (*arguments, error) {
	a := &arguments{fn: s.name, values: map[string]starlark.Value{}}
	if len(args) > len(s.positional) {
		return nil, fmt.Errorf("%s: %d arguments without a name, and %d are implemented here; pass the others by name", s.name, len(args), len(s.positional))
	}
	for i, v := range args {
		if err := s.set(a, s.positional[i], v); err != nil {
			return nil, err
		}
	}
	for _, kw := range kwargs {
		if err := s.set(a, string(kw[0].(starlark.String)), kw[1]); err != nil {
			return nil, err
		}
	}
	return a, nil
}

func (s signature) set(a *arguments, name string, v starlark.Value) error {
	if _, twice := a.values[name]; twice {
		return fmt.Errorf("%s: argument %q is given twice", s.name, name)
	}
	if u, ok := v.(unknown); ok {
		return fmt.Errorf("%s: argument %q: %w", s.name, name, u.use())
	}
	if allowed, ok := s.only[name]; ok {
		for _, want := range allowed {
			if same, err := starlark.Equal(v, want); err == nil && same {
				a.values[name] = v
				return nil
			}
		}
		return fmt.Errorf("%s: %s=%s is not implemented; only %s is", s.name, name, printed(v), orList(allowed))
	}
	if !slices.Contains(s.positional, name) && !slices.Contains(s.keywords, name) {
		implemented := append(slices.Clone(s.positional), s.keywords...)
		return fmt.Errorf("%s: argument %q is not implemented (%s)", s.name, name, strings.Join(implemented, ", "))
	}
	a.values[name] = v
	return nil
}

func orList(values []starlark.Value) string {
	var texts []string
	for _, v := range values {
		texts = append(texts, printed(v))
	}
	return strings.Join(texts, " or ")
}

// printed is a value in an error message, never longer than a line.
func printed(v starlark.Value) string {
	const most = 200
	switch v := v.(type) {
	case *starlark.List, *starlark.Dict, starlark.Tuple:
		if starlark.Len(v) > 8 {
			return fmt.Sprintf("a %s of %d", v.Type(), starlark.Len(v))
		}
		for x := range starlark.Elements(v.(starlark.Iterable)) {
			if starlark.Len(x) > 8 {
				return "a " + v.Type()
			}
			if _, nested := x.(starlark.Iterable); nested {
				return "a nested " + v.Type()
			}
		}
	case starlark.String:
		if len(v) > most {
			return "a string of " + fmt.Sprint(len(v)) + " bytes"
		}
	}
	if small := (&weight{}); !small.add(v, 100, 10) {
		return "a nested " + v.Type()
	}
	text := v.String()
	if len(text) > most {
		text = text[:most] + "…"
	}
	return text
}

func (a *arguments) fail(format string, args ...any) {
	if a.err == nil {
		a.err = fmt.Errorf("%s: %s", a.fn, fmt.Sprintf(format, args...))
	}
}

func (a *arguments) has(name string) bool { return a.values[name] != nil }

// none reports whether the argument is absent or None.
func (a *arguments) none(name string) bool {
	v := a.values[name]
	return v == nil || v == starlark.None
}

func (a *arguments) wrong(name, want string) {
	switch v := a.values[name].(type) {
	case nil:
		a.fail("argument %q is missing", name)
	case *symbol:
		a.fail("%s=%s is known only while training; want %s", name, v, want)
	default:
		a.fail("%s=%s; want %s", name, printed(v), want)
	}
}

// integer reads an int in [least, most].
func (a *arguments) integer(name string, least, most int) int {
	n, ok := asInt(a.values[name])
	if !ok || n < least || n > most {
		a.wrong(name, fmt.Sprintf("an integer from %d to %d", least, most))
	}
	return n
}

func asInt(v starlark.Value) (int, bool) {
	switch v := v.(type) {
	case starlark.Int:
		n, ok := v.Int64()
		return int(n), ok && n == int64(int(n))
	case *array:
		if v.size() == 1 && !v.dtype.float() {
			return int(v.i[0]), true
		}
	}
	return 0, false
}

// number reads a finite int or float.
func (a *arguments) number(name string) float64 {
	f, ok := asNumber(a.values[name])
	if !ok {
		a.wrong(name, "a number")
	}
	return f
}

func asNumber(v starlark.Value) (float64, bool) {
	switch v := v.(type) {
	case starlark.Int, starlark.Float:
		f, ok := starlark.AsFloat(v)
		return f, ok && !math.IsInf(f, 0) && !math.IsNaN(f)
	case *array:
		if v.size() == 1 {
			f := v.at(0)
			return f, !math.IsInf(f, 0) && !math.IsNaN(f)
		}
	}
	return 0, false
}

// boolean reads True or False; absent means True.
func (a *arguments) boolean(name string) bool {
	v, ok := a.values[name]
	if !ok {
		return true
	}
	b, ok := v.(starlark.Bool)
	if !ok {
		a.wrong(name, "True or False")
	}
	return bool(b)
}

func (a *arguments) text(name, absent string) string {
	v, ok := a.values[name]
	if !ok {
		return absent
	}
	s, ok := v.(starlark.String)
	if !ok {
		a.wrong(name, "a string")
	}
	return string(s)
}

// pair reads (height, width); one integer means both.
func (a *arguments) pair(name string, absent int) (h, w int) {
	v, ok := a.values[name]
	if !ok {
		return absent, absent
	}
	if n, ok := asInt(v); ok {
		h, w = n, n
	} else if dims, ok := intList(v); ok && len(dims) == 2 {
		h, w = dims[0], dims[1]
	}
	if h < 1 || w < 1 || h > maxDimension || w > maxDimension {
		a.wrong(name, "a positive integer or two of them")
	}
	return h, w
}

// dims reads a list or tuple of integers (or one), each at least least.
func (a *arguments) dims(name string, least int) []int {
	dims, ok := intList(a.values[name])
	if n, one := asInt(a.values[name]); one {
		dims, ok = []int{n}, true
	}
	ok = ok && len(dims) <= maxRank
	for _, d := range dims {
		ok = ok && d >= least && d <= maxDimension
	}
	if !ok {
		a.wrong(name, fmt.Sprintf("integers from %d, at most %d of them", least, maxRank))
		return nil
	}
	return dims
}

func intList(v starlark.Value) ([]int, bool) {
	var seq starlark.Indexable
	switch v := v.(type) {
	case *starlark.List:
		seq = v
	case starlark.Tuple:
		seq = v
	default:
		return nil, false
	}
	dims := make([]int, 0, seq.Len())
	for i := range seq.Len() {
		n, ok := asInt(seq.Index(i))
		if !ok {
			return nil, false
		}
		dims = append(dims, n)
	}
	return dims, true
}

// The bounds on shapes keep every product of dimensions far from overflow.
const (
	maxDimension = 1 << 24
	maxRank      = 8
	maxElements  = 1 << 28
)

// elements is the product of dims, or false when it passes maxElements.
func elements(dims []int) (int, bool) {
	n := 1
	for _, d := range dims {
		n *= d
		if n > maxElements {
			return 0, false
		}
	}
	return n, true
}
