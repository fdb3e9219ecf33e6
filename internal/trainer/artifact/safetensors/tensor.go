// Package safetensors reads and writes the safetensors format (github.com/huggingface/safetensors, version 0.x): an
// 8-byte little-endian header length, a JSON header with the name, type, shape and offsets of every tensor, and the
// tensors' little-endian bytes.
//
// The written bytes depend only on the arguments, so a model's hash does too. Files to read are not trusted: every
// length is checked against the file before memory is allocated for it, and an error names file and offset. The package
// supports the element types with which PyTorch and TensorFlow train; other types (such as 8-bit floats) are rejected
// by name.
package safetensors

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// The element types of Tensor.DType.
const (
	F64  = "F64"  // float64
	F32  = "F32"  // float32
	F16  = "F16"  // IEEE 754 half precision
	BF16 = "BF16" // bfloat16
	I64  = "I64"  // int64
	I32  = "I32"  // int32
	I16  = "I16"  // int16
	I8   = "I8"   // int8
	U8   = "U8"   // uint8
	Bool = "BOOL" // one byte, 0 or 1
)

// ElementBytes is the size of an element in bytes, or 0 for a type that is not implemented.
func ElementBytes(dtype string) int {
	switch dtype {
	case F64, I64:
		return 8
	case F32, I32:
		return 4
	case F16, BF16, I16:
		return 2
	case I8, U8, Bool:
		return 1
	}
	return 0
}

// Tensor is a named array, its elements in row-major order.
type Tensor struct {
	Name  string
	DType string // one of the constants above
	Shape []int  // empty for a single value
	Data  []byte // little-endian, elements × size of DType
}

// Float32 is a tensor of float32 values, which are copied.
func Float32(name string, shape []int, values []float32) Tensor {
	data := make([]byte, 0, 4*len(values))
	for _, v := range values {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
	}
	return Tensor{Name: name, DType: F32, Shape: slices.Clone(shape), Data: data}
}

// Float32s is a copy of the elements of an F32 tensor; another type is an error.
func (t Tensor) Float32s() ([]float32, error) {
	if err := t.holds(F32); err != nil {
		return nil, err
	}
	out := make([]float32, len(t.Data)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(t.Data[4*i:]))
	}
	return out, nil
}

// Int64s is a copy of the elements of an I64 tensor; another type is an error.
func (t Tensor) Int64s() ([]int64, error) {
	if err := t.holds(I64); err != nil {
		return nil, err
	}
	out := make([]int64, len(t.Data)/8)
	for i := range out {
		out[i] = int64(binary.LittleEndian.Uint64(t.Data[8*i:]))
	}
	return out, nil
}

// Int32s is a copy of the elements of an I32 tensor; another type is an error.
func (t Tensor) Int32s() ([]int32, error) {
	if err := t.holds(I32); err != nil {
		return nil, err
	}
	out := make([]int32, len(t.Data)/4)
	for i := range out {
		out[i] = int32(binary.LittleEndian.Uint32(t.Data[4*i:]))
	}
	return out, nil
}

func (t Tensor) holds(dtype string) error {
	if t.DType != dtype {
		return fmt.Errorf("safetensors: tensor %q holds %s, not %s", t.Name, t.DType, dtype)
	}
	return nil
}

// dataBytes is what a tensor of the type and shape takes, or an error when there is no such tensor.
func dataBytes(dtype string, shape []int) (int64, error) {
	n := int64(ElementBytes(dtype))
	if n == 0 {
		return 0, fmt.Errorf("type %q is not implemented", dtype)
	}
	for _, d := range shape {
		if d < 0 {
			return 0, fmt.Errorf("shape %v is negative", shape)
		}
		if d > 0 && n > math.MaxInt64/int64(d) {
			return 0, fmt.Errorf("shape %v has more elements than memory can hold", shape)
		}
		n *= int64(d)
	}
	return n, nil
}
