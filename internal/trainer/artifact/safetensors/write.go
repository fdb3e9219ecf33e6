package safetensors

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf8"
)

const (
	// headerAlignment is what the format's own library pads headers to, with blanks.
	headerAlignment = 8
	// maxHeader is the largest header that the format allows.
	maxHeader = 100_000_000
	// metadataKey is the header's key for the metadata; no tensor can have the name.
	metadataKey = "__metadata__"
)

// place is a tensor's entry in the header; the order of the fields is the format library's.
type place struct {
	DType   string   `json:"dtype"`
	Shape   []int    `json:"shape"`
	Offsets [2]int64 `json:"data_offsets"` // from the end of the header
}

// Write writes tensors in the given order. The header's keys stand in the same order, metadata first and sorted, so
// equal arguments give equal bytes. Nothing is written when a tensor is malformed.
func Write(w io.Writer, tensors []Tensor, metadata map[string]string) error {
	header, err := header(tensors, metadata)
	if err != nil {
		return fmt.Errorf("safetensors: %w", err)
	}
	parts := [][]byte{binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header}
	for _, t := range tensors {
		parts = append(parts, t.Data)
	}
	for _, p := range parts {
		if _, err := w.Write(p); err != nil {
			return fmt.Errorf("safetensors: writing %d tensors: %w", len(tensors), err)
		}
	}
	return nil
}

// header is put together by hand because its keys have an order, which encoding/json would sort away.
func header(tensors []Tensor, metadata map[string]string) ([]byte, error) {
	var b bytes.Buffer
	field := func(name string, value any) error {
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		for i, v := range []any{name, value} {
			text, err := json.Marshal(v)
			if err != nil {
				return err
			}
			if i == 1 {
				b.WriteByte(':')
			}
			b.Write(text)
		}
		return nil
	}
	b.WriteByte('{')
	if len(metadata) > 0 {
		for k, v := range metadata {
			if !utf8.ValidString(k) || !utf8.ValidString(v) {
				return nil, fmt.Errorf("metadata %q is not UTF-8", k)
			}
		}
		if err := field(metadataKey, metadata); err != nil {
			return nil, err
		}
	}
	seen := map[string]bool{}
	at := int64(0)
	for _, t := range tensors {
		if seen[t.Name] || t.Name == metadataKey || !utf8.ValidString(t.Name) {
			return nil, fmt.Errorf("the tensor name %q is used twice, reserved or not UTF-8", t.Name)
		}
		seen[t.Name] = true
		size, err := dataBytes(t.DType, t.Shape)
		if err == nil && size != int64(len(t.Data)) {
			err = fmt.Errorf("%s%v takes %d bytes, and there are %d", t.DType, t.Shape, size, len(t.Data))
		}
		if err != nil {
			return nil, fmt.Errorf("tensor %q: %w", t.Name, err)
		}
		if err := field(t.Name, place{t.DType, append([]int{}, t.Shape...), [2]int64{at, at + size}}); err != nil {
			return nil, err
		}
		at += size
	}
	b.WriteByte('}')
	for b.Len()%headerAlignment != 0 {
		b.WriteByte(' ')
	}
	if b.Len() > maxHeader {
		return nil, fmt.Errorf("the header of %d tensors has %d bytes; the format allows %d", len(tensors), b.Len(), maxHeader)
	}
	return b.Bytes(), nil
}
