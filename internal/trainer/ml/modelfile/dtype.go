package modelfile

import (
	"slices"

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
	stringType  dtype = "string" // of features and inputs alone: there is no array of text
)

// namedTypes are the types of numbers that a file may name, in TensorFlow, in numpy and as a string. types.go adds tf.string.
var namedTypes = []dtype{uint8Type, int32Type, int64Type, float32Type, float64Type}

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

// dtypeValue is np.float32 or tf.float32.
type dtypeValue struct{ d dtype }

func (v dtypeValue) String() string        { return string(v.d) }
func (v dtypeValue) Type() string          { return "dtype" }
func (v dtypeValue) Freeze()               {}
func (v dtypeValue) Truth() starlark.Bool  { return true }
func (v dtypeValue) AttrNames() []string   { return []string{"is_floating", "is_integer", "name"} }
func (v dtypeValue) Hash() (uint32, error) { return starlark.String(v.d).Hash() }

// Attr offers what files ask types for.
func (v dtypeValue) Attr(name string) (starlark.Value, error) {
	switch name {
	case "is_integer":
		return starlark.Bool(!v.d.float() && v.d != stringType && v.d != boolType), nil
	case "is_floating":
		return starlark.Bool(v.d.float()), nil
	case "name":
		return starlark.String(v.d), nil
	}
	return nil, noAttribute(v, name)
}

// asDtype reads np.float32, tf.float32 or "float32".
func asDtype(v starlark.Value) (dtype, bool) {
	switch v := v.(type) {
	case dtypeValue:
		return v.d, true
	case starlark.String:
		return dtype(v), slices.Contains(namedTypes, dtype(v)) || dtype(v) == stringType
	}
	return "", false
}

// dtype reads an argument that names an element type.
func (a *arguments) dtype(name string) dtype {
	d, ok := asDtype(a.values[name])
	if !ok || d == stringType {
		a.wrong(name, "uint8, int32, int64, float32 or float64")
	}
	return d
}
