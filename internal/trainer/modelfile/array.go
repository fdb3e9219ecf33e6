package modelfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"go.starlark.net/starlark"
)

// dtype is the element type of an array or a tensor, by numpy's name.
type dtype string

const (
	boolType    dtype = "bool"
	uint8Type   dtype = "uint8"
	int32Type   dtype = "int32"
	int64Type   dtype = "int64"
	float32Type dtype = "float32"
	float64Type dtype = "float64"
)

func (d dtype) float() bool { return d == float32Type || d == float64Type }

// kind orders types as numpy's "same kind" rule does: bool, unsigned, signed, float.
func (d dtype) kind() int {
	switch d {
	case boolType:
		return 0
	case uint8Type:
		return 1
	case int32Type, int64Type:
		return 2
	}
	return 3
}

// bytes is the size of one element.
func (d dtype) bytes() int {
	switch d {
	case boolType, uint8Type:
		return 1
	case int32Type, float32Type:
		return 4
	}
	return 8
}

// promote is the type of an operation between arrays of two types, as numpy has it.
func promote(a, b dtype) dtype {
	if a == b {
		return a
	}
	if a.kind() < b.kind() || a.kind() == b.kind() && a.bytes() < b.bytes() {
		a, b = b, a
	}
	if a == float32Type && b.bytes() >= 4 && !b.float() {
		return float64Type // float32 does not hold every int32
	}
	return a
}

// array is a numpy array in row-major order. Floats live in f and all others in i; a float32 is always rounded, and
// operations on float32 rounded from float64 are exact to the bit, because 53 ≥ 2·24+2. Views share their elements.
type array struct {
	dtype    dtype
	shape    []int
	f        []float64
	i        []int64
	frozen   bool
	readOnly bool    // made by frombuffer: numpy would write through to the buffer
	origin   *origin // of a feature's own bytes, for the warning about frombuffer
}

// origin remembers that an array holds a feature's elements, or their bytes taken for another type.
type origin struct {
	feature  string
	dtype    dtype
	bytes    int
	reread   dtype // set when frombuffer took the bytes for this type
	lineRead int
}

// newArray makes a zero array, charged to the session.
func newArray(s *session, d dtype, shape []int) (*array, error) {
	n, ok := elements(shape)
	if !ok {
		return nil, fmt.Errorf("an array of shape %v is larger than a model file may make", shape)
	}
	if err := s.charge(n); err != nil {
		return nil, err
	}
	a := &array{dtype: d, shape: slices.Clone(shape)}
	if d.float() {
		a.f = make([]float64, n)
	} else {
		a.i = make([]int64, n)
	}
	return a, nil
}

func (a *array) size() int { return len(a.f) + len(a.i) }

// at is element k as a float64; int64 beyond 2⁵³ are rounded.
func (a *array) at(k int) float64 {
	if a.dtype.float() {
		return a.f[k]
	}
	return float64(a.i[k])
}

var errDoesNotFit = errors.New("a value does not fit the integer type")

// set stores v as numpy's astype does: floats are cut off towards zero, integers wrap. What numpy leaves to the
// processor (a float beyond the integer's range) is refused.
func (a *array) set(k int, v float64) error {
	switch a.dtype {
	case float32Type:
		a.f[k] = float64(float32(v))
	case float64Type:
		a.f[k] = v
	case boolType:
		a.setInt(k, 0)
		if v != 0 {
			a.setInt(k, 1)
		}
	default:
		limit := math.Ldexp(1, 8*a.dtype.bytes()-1)
		if a.dtype == uint8Type {
			limit = 256
		}
		if t := math.Trunc(v); !(t >= -limit && t < limit) || a.dtype == uint8Type && t < 0 {
			return fmt.Errorf("%v as %s: %w", v, a.dtype, errDoesNotFit)
		}
		a.i[k] = int64(v)
	}
	return nil
}

func (a *array) setInt(k int, v int64) {
	switch a.dtype {
	case uint8Type:
		v = int64(uint8(v))
	case int32Type:
		v = int64(int32(v))
	case boolType:
		if v != 0 {
			v = 1
		}
	case float32Type:
		a.f[k] = float64(float32(v))
		return
	case float64Type:
		a.f[k] = float64(v)
		return
	}
	a.i[k] = v
}

// convert copies a into another type.
func (a *array) convert(s *session, d dtype) (*array, error) {
	out, err := newArray(s, d, a.shape)
	if err != nil {
		return nil, err
	}
	for k := range a.size() {
		if a.dtype.float() {
			if err := out.set(k, a.f[k]); err != nil {
				return nil, err
			}
		} else {
			out.setInt(k, a.i[k])
		}
	}
	return out, nil
}

// view is the part [from, to) of the elements under another shape.
func (a *array) view(from, to int, shape []int) *array {
	v := &array{dtype: a.dtype, shape: shape, frozen: a.frozen, readOnly: a.readOnly}
	if a.dtype.float() {
		v.f = a.f[from:to:to]
	} else {
		v.i = a.i[from:to:to]
	}
	if from == 0 && to == a.size() {
		v.origin = a.origin
	}
	return v
}

// reshape resolves one -1 in shape and gives a view.
func (a *array) reshape(shape []int) (*array, error) {
	resolved, err := resolveShape(shape, a.size())
	if err != nil {
		return nil, fmt.Errorf("reshape of %s: %w", a, err)
	}
	return a.view(0, a.size(), resolved), nil
}

// resolveShape replaces one -1 so that the shape holds n elements.
func resolveShape(shape []int, n int) ([]int, error) {
	out, free, known := slices.Clone(shape), -1, 1
	for i, d := range out {
		switch {
		case d >= 0:
			known *= d
			if known > maxElements {
				return nil, fmt.Errorf("%v is too large", shape)
			}
		case d == -1 && free < 0:
			free = i
		default:
			return nil, fmt.Errorf("%v is no shape", shape)
		}
	}
	if free >= 0 && known > 0 && n%known == 0 {
		out[free] = n / known
		return out, nil
	}
	if free >= 0 || known != n {
		return nil, fmt.Errorf("%d elements do not fit shape %s", n, shapeText(shape))
	}
	return out, nil
}

func shapeText(shape []int) string {
	return "(" + strings.Trim(strings.ReplaceAll(fmt.Sprint(shape), " ", ", "), "[]") + ")"
}

// raw is the array's memory, little-endian.
func (a *array) raw() []byte {
	out := make([]byte, 0, a.size()*a.dtype.bytes())
	for k := range a.size() {
		switch a.dtype {
		case float32Type:
			out = binary.LittleEndian.AppendUint32(out, math.Float32bits(float32(a.f[k])))
		case float64Type:
			out = binary.LittleEndian.AppendUint64(out, math.Float64bits(a.f[k]))
		case int64Type:
			out = binary.LittleEndian.AppendUint64(out, uint64(a.i[k]))
		case int32Type:
			out = binary.LittleEndian.AppendUint32(out, uint32(a.i[k]))
		default:
			out = append(out, byte(a.i[k]))
		}
	}
	return out
}

// fill reads the array's memory from raw, which is as long as raw() would be.
func (a *array) fill(raw []byte) {
	for k := range a.size() {
		switch a.dtype {
		case float32Type:
			a.f[k] = float64(math.Float32frombits(binary.LittleEndian.Uint32(raw[4*k:])))
		case float64Type:
			a.f[k] = math.Float64frombits(binary.LittleEndian.Uint64(raw[8*k:]))
		case int64Type:
			a.i[k] = int64(binary.LittleEndian.Uint64(raw[8*k:]))
		case int32Type:
			a.i[k] = int64(int32(binary.LittleEndian.Uint32(raw[4*k:])))
		case boolType:
			a.setInt(k, int64(raw[k]))
		default:
			a.i[k] = int64(raw[k])
		}
	}
}

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
