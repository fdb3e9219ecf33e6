package safetensors

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"
)

// Read reads a whole file of the given size: its tensors in the order of their data, and its metadata. The file must
// hold what its header says and nothing else, as the format demands. An error names the file, when r has a Name as
// *os.File does, and the offset.
func Read(r io.ReaderAt, size int64) ([]Tensor, map[string]string, error) {
	tensors, metadata, err := read(r, size)
	if err != nil {
		file := "the input"
		if named, ok := r.(interface{ Name() string }); ok {
			file = fmt.Sprintf("%q", named.Name())
		}
		return nil, nil, fmt.Errorf("safetensors %s: %w", file, err)
	}
	return tensors, metadata, nil
}

// lengthBytes is the size of the header's length.
const lengthBytes = 8

func read(r io.ReaderAt, size int64) ([]Tensor, map[string]string, error) {
	if size < lengthBytes {
		return nil, nil, fmt.Errorf("offset 0: the file has %d bytes, fewer than the header's length takes", size)
	}
	prefix, err := readAt(r, 0, lengthBytes)
	if err != nil {
		return nil, nil, err
	}
	length := binary.LittleEndian.Uint64(prefix)
	if length > maxHeader || int64(length) > size-lengthBytes {
		return nil, nil, fmt.Errorf("offset 0: a header of %d bytes does not fit a file of %d bytes (the format allows %d)", length, size, maxHeader)
	}
	text, err := readAt(r, lengthBytes, int64(length))
	if err != nil {
		return nil, nil, err
	}
	entries, metadata, err := parseHeader(text)
	if err != nil {
		return nil, nil, fmt.Errorf("offset %d: header: %w", lengthBytes, err)
	}
	start := lengthBytes + int64(length)
	if err := checkPlaces(entries, start, size); err != nil {
		return nil, nil, err
	}
	tensors := make([]Tensor, len(entries))
	for i, e := range entries {
		data, err := readAt(r, start+e.Offsets[0], e.Offsets[1]-e.Offsets[0])
		if err != nil {
			return nil, nil, fmt.Errorf("tensor %q: %w", e.name, err)
		}
		tensors[i] = Tensor{Name: e.name, DType: e.DType, Shape: e.Shape, Data: data}
	}
	return tensors, metadata, nil
}

func readAt(r io.ReaderAt, at, n int64) ([]byte, error) {
	b := make([]byte, n)
	if got, err := r.ReadAt(b, at); got < len(b) {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, fmt.Errorf("offset %d: %d of %d bytes: %w", at, got, n, err)
	}
	return b, nil
}

// entry is a header entry with its name.
type entry struct {
	name string
	place
}

// checkPlaces orders the entries by their data and checks that they fill the file from the header's end, without holes
// and overlaps.
func checkPlaces(entries []entry, start, size int64) error {
	slices.SortStableFunc(entries, func(a, b entry) int {
		for i := range a.Offsets {
			if a.Offsets[i] != b.Offsets[i] {
				return int(min(max(a.Offsets[i]-b.Offsets[i], -1), 1))
			}
		}
		return 0
	})
	at := int64(0)
	for _, e := range entries {
		want, err := dataBytes(e.DType, e.Shape)
		switch {
		case err != nil:
			return fmt.Errorf("tensor %q: %w", e.name, err)
		case e.Offsets[0] != at || e.Offsets[1] < at:
			return fmt.Errorf("offset %d: tensor %q says that it takes the bytes %d to %d behind the header; the next free one is %d", start+at, e.name, e.Offsets[0], e.Offsets[1], at)
		case e.Offsets[1]-e.Offsets[0] != want:
			return fmt.Errorf("offset %d: tensor %q, %s%v, takes %d bytes, and the header gives it %d", start+at, e.name, e.DType, e.Shape, want, e.Offsets[1]-e.Offsets[0])
		case e.Offsets[1] > size-start:
			return fmt.Errorf("offset %d: tensor %q ends at offset %d, and the file has %d bytes; it is truncated", start+at, e.name, start+e.Offsets[1], size)
		}
		at = e.Offsets[1]
	}
	if at != size-start {
		return fmt.Errorf("offset %d: %d bytes belong to no tensor", start+at, size-start-at)
	}
	return nil
}

// parseHeader walks the header's object by hand: encoding/json would take the last of two equal keys without a word.
func parseHeader(text []byte) ([]entry, map[string]string, error) {
	if !utf8.Valid(text) || len(text) == 0 || text[0] != '{' {
		return nil, nil, errors.New("it is not a JSON object in UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(text))
	if _, err := d.Token(); err != nil {
		return nil, nil, err
	}
	var entries []entry
	var metadata map[string]string
	seen := map[string]bool{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, nil, err
		}
		name, ok := key.(string)
		if !ok || seen[name] {
			return nil, nil, fmt.Errorf("the key %v stands there twice or is no string", key)
		}
		seen[name] = true
		if name == metadataKey {
			if err := d.Decode(&metadata); err != nil {
				return nil, nil, fmt.Errorf("%s: %w", name, err)
			}
			continue
		}
		e, err := parseEntry(d)
		if err != nil {
			return nil, nil, fmt.Errorf("tensor %q: %w", name, err)
		}
		entries = append(entries, entry{name, e})
	}
	if _, err := d.Token(); err != nil {
		return nil, nil, err
	}
	if rest := bytes.TrimRight(text[d.InputOffset():], " \n\t\r"); len(rest) > 0 {
		return nil, nil, fmt.Errorf("%d bytes stand behind the object", len(rest))
	}
	return entries, metadata, nil
}

// parseEntry reads one tensor's object: the three keys, and no others.
func parseEntry(d *json.Decoder) (place, error) {
	var fields map[string]json.RawMessage
	if err := d.Decode(&fields); err != nil {
		return place{}, err
	}
	var p place
	var offsets []int64
	for key, into := range map[string]any{"dtype": &p.DType, "shape": &p.Shape, "data_offsets": &offsets} {
		raw, ok := fields[key]
		if !ok || string(raw) == "null" {
			return place{}, fmt.Errorf("%s is missing", key)
		}
		if err := json.Unmarshal(raw, into); err != nil {
			return place{}, fmt.Errorf("%s: %w", key, err)
		}
	}
	if len(fields) != 3 || len(offsets) != 2 {
		return place{}, errors.New("dtype, shape and two data_offsets are wanted, and nothing else")
	}
	p.Offsets = [2]int64(offsets)
	return p, nil
}
