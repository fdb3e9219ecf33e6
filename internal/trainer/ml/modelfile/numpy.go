package modelfile

import (
	"cmp"
	"fmt"
	"slices"

	"go.starlark.net/starlark"

	"github.com/elastic-training/terraform-provider-elastic/internal/wording"
)

// arrayFunctions are the functions of numpy, on real values.
func arrayFunctions() map[string]starlark.Value {
	return map[string]starlark.Value{
		"numpy.frombuffer":  fromBuffer(),
		"numpy.resize":      resize(),
		"numpy.concatenate": joinArrays("np.concatenate", concatenate),
		"numpy.stack":       joinArrays("np.stack", stack),
		"numpy.reshape":     reshapeArray(),
		"numpy.array":       arrayFunction("np.array"),
		"numpy.asarray":     arrayFunction("np.asarray"),
	}
}

// array reads an argument that is an array, or a tensor, which numpy converts.
func (a *arguments) array(name string) *array {
	switch v := a.values[name].(type) {
	case *array:
		return v
	case eager:
		return v.a
	}
	a.wrong(name, "a numpy array")
	return nil
}

func fromBuffer() starlark.Value {
	sig := signature{
		name: "np.frombuffer", positional: []string{"buffer", "dtype"},
		only: map[string][]starlark.Value{"count": {starlark.MakeInt(-1)}, "offset": {starlark.MakeInt(0)}},
	}
	return function(sig, func(t *starlark.Thread, a *arguments) (starlark.Value, error) {
		buffer, d := a.array("buffer"), float64Type
		if a.has("dtype") {
			d = a.dtype("dtype")
		}
		if a.err != nil {
			return nil, a.err
		}
		bytes := buffer.size() * buffer.dtype.bytes()
		if bytes%d.bytes() != 0 {
			return nil, fmt.Errorf("np.frombuffer: %d bytes are no whole number of %s", bytes, d)
		}
		out, err := newArray(sessionOf(t), d, []int{bytes / d.bytes()})
		if err != nil {
			return nil, err
		}
		out.fill(buffer.raw())
		out.readOnly = true
		if buffer.origin != nil {
			out.origin = &origin{feature: buffer.origin.feature, dtype: buffer.dtype, bytes: bytes, reread: d, readAt: placeOf(t)}
		}
		return out, nil
	})
}

// resize repeats or cuts off the elements to fill a shape.
func resize() starlark.Value {
	return function(signature{name: "np.resize", positional: []string{"a", "new_shape"}}, func(t *starlark.Thread, a *arguments) (starlark.Value, error) {
		in, shape := a.array("a"), a.dims("new_shape", 0)
		if a.err != nil {
			return nil, a.err
		}
		out, err := newArray(sessionOf(t), in.dtype, shape)
		if err != nil {
			return nil, err
		}
		if in.size() == 0 && out.size() > 0 {
			return nil, fmt.Errorf("np.resize: an empty array cannot fill shape %s", shapeText(shape))
		}
		for k := range out.size() {
			if in.dtype.float() {
				out.f[k] = in.f[k%in.size()]
			} else {
				out.i[k] = in.i[k%in.size()]
			}
		}
		if o := in.origin; o != nil && o.reread != "" && o.reread != o.dtype && out.size() < in.size() {
			sessionOf(t).warn(placeOf(t), "reads only the first %s bytes of a %s-byte %s feature %q: np.frombuffer in line %d takes the bytes of its values for %s values, "+
				"and np.resize cuts the rest off, so training sees a scrambled part; mend it by using the values as they are: .astype(np.float32) and np.reshape instead of the two",
				wording.Count(int64(out.size()*out.dtype.bytes())), wording.Count(int64(o.bytes)), o.dtype, o.feature, o.readAt.Line, o.reread)
		}
		return out, nil
	})
}

func reshapeArray() starlark.Value {
	sig := signature{name: "np.reshape", positional: []string{"a", "newshape"}, keywords: []string{"shape"}, only: map[string][]starlark.Value{"order": {starlark.String("C")}}}
	return function(sig, func(_ *starlark.Thread, a *arguments) (starlark.Value, error) {
		name := "newshape"
		if a.has("shape") {
			name = "shape"
		}
		in, dims := a.array("a"), a.dims(name, -1)
		if a.err != nil {
			return nil, a.err
		}
		return in.reshape(dims)
	})
}

func joinArrays(name string, join func(*session, []*array) (*array, error)) starlark.Value {
	sig := signature{name: name, positional: []string{"arrays", "axis"}, only: map[string][]starlark.Value{"axis": {starlark.MakeInt(0)}}}
	return function(sig, func(t *starlark.Thread, a *arguments) (starlark.Value, error) {
		list, ok := a.values["arrays"].(starlark.Iterable)
		if _, one := list.(*array); !ok || one {
			a.wrong("arrays", "a list of numpy arrays")
			return nil, a.err
		}
		var parts []*array
		for v := range starlark.Elements(list) {
			switch v := v.(type) {
			case *array:
				parts = append(parts, v)
			case eager:
				parts = append(parts, v.a)
			default:
				return nil, fmt.Errorf("%s: an element of the list is %s, not a numpy array", name, printed(v))
			}
		}
		if len(parts) == 0 {
			return nil, fmt.Errorf("%s: the list is empty", name)
		}
		out, err := join(sessionOf(t), parts)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		return out, nil
	})
}

// concatenate joins arrays along their first axis.
func concatenate(s *session, parts []*array) (*array, error) {
	first := parts[0]
	if len(first.shape) == 0 {
		return nil, fmt.Errorf("arrays without dimensions cannot be joined")
	}
	d, rows := first.dtype, 0
	for _, p := range parts {
		if len(p.shape) != len(first.shape) || !slices.Equal(p.shape[1:], first.shape[1:]) {
			return nil, fmt.Errorf("the %s and the %s do not fit together", first, p)
		}
		d = promote(d, p.dtype)
		rows += p.shape[0]
	}
	return join(s, parts, d, append([]int{rows}, first.shape[1:]...))
}

// stack joins arrays of one shape along a new first axis.
func stack(s *session, parts []*array) (*array, error) {
	first := parts[0]
	d := first.dtype
	for _, p := range parts {
		if !slices.Equal(p.shape, first.shape) {
			return nil, fmt.Errorf("the %s and the %s do not have one shape", first, p)
		}
		d = promote(d, p.dtype)
	}
	return join(s, parts, d, append([]int{len(parts)}, first.shape...))
}

// join copies the elements of parts one behind the other.
func join(s *session, parts []*array, d dtype, shape []int) (*array, error) {
	out, err := newArray(s, d, shape)
	if err != nil {
		return nil, err
	}
	k := 0
	for _, p := range parts {
		if err := out.take(k, p); err != nil {
			return nil, err
		}
		k += p.size()
	}
	return out, nil
}

func arrayFunction(name string) starlark.Value {
	return function(signature{name: name, positional: []string{"object", "dtype"}}, func(t *starlark.Thread, a *arguments) (starlark.Value, error) {
		d := dtype("")
		if !a.none("dtype") {
			d = a.dtype("dtype")
		}
		if !a.has("object") {
			a.wrong("object", "")
		}
		if a.err != nil {
			return nil, a.err
		}
		out, err := makeArray(sessionOf(t), a.values["object"], d)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		return out, nil
	})
}

// makeArray builds an array of numbers, arrays, and lists of them, always as a copy.
func makeArray(s *session, v starlark.Value, d dtype) (*array, error) {
	a, err := nested(s, v, 0)
	if err != nil {
		return nil, err
	}
	d = cmp.Or(d, a.dtype)
	return a.convert(s, d)
}

func nested(s *session, v starlark.Value, depth int) (*array, error) {
	if depth > maxRank {
		return nil, fmt.Errorf("more than %d dimensions", maxRank)
	}
	var list []starlark.Value
	switch v := v.(type) {
	case *array:
		return v, nil
	case eager:
		return v.a, nil
	case starlark.Int, starlark.Float:
		o, _, err := asOperand(s, v)
		return o.a, err
	case *starlark.List:
		list = slices.Collect(v.Elements())
	case starlark.Tuple:
		list = v
	default:
		if err := checkValue(v, "an array"); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("%s is no number and no list of numbers", printed(v))
	}
	if len(list) == 0 {
		return newArray(s, float64Type, []int{0})
	}
	parts := make([]*array, len(list))
	for i, x := range list {
		p, err := nested(s, x, depth+1)
		if err != nil {
			return nil, err
		}
		parts[i] = p
	}
	return stack(s, parts)
}
