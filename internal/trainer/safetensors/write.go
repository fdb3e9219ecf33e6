// Package safetensors reads and writes the safetensors format: an 8-byte little-endian header length, a JSON header
// that names every tensor with its type, shape and place, and the tensors' little-endian bytes one behind the other.
// What it writes is a function of its arguments alone, so that a model's hash is too.
package safetensors

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
)

// Tensor is a named array, its elements in row-major order.
type Tensor struct {
	Name  string
	DType string // "F32"
	Shape []int
	Data  []byte // little-endian
}

// Float32 is a tensor of float32 values.
func Float32(name string, shape []int, values []float32) Tensor {
	data := make([]byte, 0, 4*len(values))
	for _, v := range values {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
	}
	return Tensor{Name: name, DType: "F32", Shape: slices.Clone(shape), Data: data}
}

// headerAlignment is what the format's own library pads headers to.
const headerAlignment = 8

// Write writes tensors in the given order. The header's keys stand in the same order, metadata first and sorted.
func Write(w io.Writer, tensors []Tensor, metadata map[string]string) error {
	header, err := header(tensors, metadata)
	if err != nil {
		return err
	}
	if _, err := w.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(header)))); err != nil {
		return err
	}
	if _, err := w.Write(header); err != nil {
		return err
	}
	for _, t := range tensors {
		if _, err := w.Write(t.Data); err != nil {
			return err
		}
	}
	return nil
}

// header is written by hand because its keys have an order, which encoding/json would sort away.
func header(tensors []Tensor, metadata map[string]string) ([]byte, error) {
	var b bytes.Buffer
	field := func(name string, value any) error {
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		key, err := json.Marshal(name)
		if err != nil {
			return err
		}
		text, err := json.Marshal(value)
		if err != nil {
			return err
		}
		b.Write(key)
		b.WriteByte(':')
		b.Write(text)
		return nil
	}
	b.WriteByte('{')
	if len(metadata) > 0 {
		if err := field("__metadata__", metadata); err != nil {
			return nil, err
		}
	}
	seen := map[string]bool{}
	at := 0
	for _, t := range tensors {
		if seen[t.Name] || t.Name == "__metadata__" {
			return nil, fmt.Errorf("safetensors: the name %q is used twice or reserved", t.Name)
		}
		seen[t.Name] = true
		place := struct {
			DType   string `json:"dtype"`
			Shape   []int  `json:"shape"`
			Offsets [2]int `json:"data_offsets"`
		}{t.DType, append([]int{}, t.Shape...), [2]int{at, at + len(t.Data)}}
		if err := field(t.Name, place); err != nil {
			return nil, err
		}
		at += len(t.Data)
	}
	b.WriteByte('}')
	for b.Len()%headerAlignment != 0 {
		b.WriteByte(' ')
	}
	return b.Bytes(), nil
}
