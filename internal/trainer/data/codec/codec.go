// Package codec turns a record's bytes into typed values and back: the codecs `bytes` and `tf_example` of ElasticDL's
// --codec_type. A schema (graph.Feature: name, element type, shape) says what a record has to hold; a record that does not
// fit is an error and is never read as something else. In the original, a tf_example record read with the bytes codec
// trained on garbage without a word.
//
// The codec of a file cannot be read from RecordIO, so each decoder recognizes the other codec's records and says so.
package codec

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/dataset"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/example"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
)

// maxRecordBytes bounds a schema, so that sizes never overflow and a wrong shape does not exhaust memory.
const maxRecordBytes = 256 << 20

// Decoder decodes records of one schema into dst, which has a Value for every feature, in order, made by NewExample or
// used before: its buffers are reused, and nothing is allocated once they are large enough. A Decoder serves one
// goroutine.
type Decoder interface {
	Decode(record []byte, dst graph.Example) error
}

// NewDecoder returns the decoder of a codec for a schema.
func NewDecoder(name string, features []graph.Feature) (Decoder, error) {
	if err := CheckFeatures(features); err != nil {
		return nil, err
	}
	switch name {
	case dataset.BytesCodec:
		if err := checkFixed(features); err != nil {
			return nil, err
		}
		return &bytesDecoder{features: features, size: BytesSize(features)}, nil
	case dataset.TFExampleCodec:
		return &exampleDecoder{decoder: example.NewDecoder(features), size: BytesSize(features)}, nil
	default:
		return nil, unknown(name)
	}
}

// Append appends the record of values, which are in the order of features, to b. Values that do not fit the schema are
// refused by name.
func Append(b []byte, name string, features []graph.Feature, values graph.Example) ([]byte, error) {
	if err := checkValues(features, values); err != nil {
		return nil, err
	}
	switch name {
	case dataset.BytesCodec:
		if err := checkFixed(features); err != nil {
			return nil, err
		}
		return appendBytes(b, features, values), nil
	case dataset.TFExampleCodec:
		return example.Append(b, features, values), nil
	default:
		return nil, unknown(name)
	}
}

// checkFixed refuses features whose elements have no fixed size.
func checkFixed(features []graph.Feature) error {
	for _, f := range features {
		if f.DType == graph.String {
			return fmt.Errorf("feature %q is text, which codec \"bytes\" cannot hold; use codec = \"tf_example\"", f.Name)
		}
	}
	return nil
}

func unknown(name string) error {
	return fmt.Errorf("codec %q is not known; use %s", name, strings.Join(dataset.Codecs(), " or "))
}

// CheckFeatures refuses a schema that no record can have: none at all, a name twice or empty, an unknown type, a
// dimension below 1.
func CheckFeatures(features []graph.Feature) error {
	if len(features) == 0 {
		return fmt.Errorf("the schema of the records is empty: the model's feed names no feature")
	}
	names := map[string]bool{}
	total := 0
	for _, f := range features {
		if f.Name == "" || names[f.Name] {
			return fmt.Errorf("feature name %q is empty or not unique in the schema", f.Name)
		}
		names[f.Name] = true
		size := ElementBytes(f.DType)
		if f.DType == graph.String {
			size = 1 // at least
		}
		if size == 0 {
			return fmt.Errorf("feature %q: element type %q is not one of float32, int64, int32, uint8, string", f.Name, f.DType)
		}
		for _, d := range f.Shape {
			if d < 1 || size > maxRecordBytes/d {
				return fmt.Errorf("feature %q: shape %v is not of 1 to %d bytes", f.Name, f.Shape, maxRecordBytes)
			}
			size *= d
		}
		if total += size; total > maxRecordBytes {
			return fmt.Errorf("the schema makes records of more than %d bytes", maxRecordBytes)
		}
	}
	return nil
}

// ElementBytes is the size of an element in the bytes codec; 0 for text, and for an unknown type.
func ElementBytes(t graph.DType) int {
	switch t {
	case graph.Float32, graph.Int32:
		return 4
	case graph.Int64:
		return 8
	case graph.Uint8:
		return 1
	default:
		return 0
	}
}

// BytesSize is the size of every record of a schema in the bytes codec.
func BytesSize(features []graph.Feature) int {
	n := 0
	for _, f := range features {
		n += f.Elements() * ElementBytes(f.DType)
	}
	return n
}

// NewExample makes a value with a buffer of the right size for every feature.
func NewExample(features []graph.Feature) graph.Example {
	values := make(graph.Example, len(features))
	for i, f := range features {
		switch f.DType {
		case graph.Float32:
			values[i].Floats = make([]float32, f.Elements())
		case graph.Uint8:
			values[i].Bytes = make([]byte, f.Elements())
		case graph.String:
			values[i].Strings = make([][]byte, f.Elements())
		default:
			values[i].Ints = make([]int64, f.Elements())
		}
	}
	return values
}

func checkValues(features []graph.Feature, values graph.Example) error {
	if len(values) != len(features) {
		return fmt.Errorf("%d values for a schema of %d features", len(values), len(features))
	}
	for i, f := range features {
		v, have := values[i], 0
		switch f.DType {
		case graph.Float32:
			have = len(v.Floats)
		case graph.Uint8:
			have = len(v.Bytes)
		case graph.String:
			have = len(v.Strings)
		default:
			have = len(v.Ints)
		}
		if have != f.Elements() || len(v.Floats)+len(v.Ints)+len(v.Bytes)+len(v.Strings) != have {
			return fmt.Errorf("feature %q: %d float, %d integer, %d byte and %d text elements, and the schema says %s%v", f.Name, len(v.Floats), len(v.Ints), len(v.Bytes), len(v.Strings), f.DType, f.Shape)
		}
		if f.DType == graph.Int32 {
			for _, x := range v.Ints {
				if x != int64(int32(x)) {
					return fmt.Errorf("feature %q: %d is no int32", f.Name, x)
				}
			}
		}
	}
	return nil
}

// bytesDecoder reads the elements of the features one behind the other, little-endian, without any header.
type bytesDecoder struct {
	features []graph.Feature
	size     int
}

func (d *bytesDecoder) Decode(record []byte, dst graph.Example) error {
	if example.Holds(record, d.features) {
		return fmt.Errorf("this record is a tf_example (%d bytes; a record of the bytes codec has %d for this model); set codec = \"tf_example\"", len(record), d.size)
	}
	if len(record) != d.size {
		return fmt.Errorf("the record has %d bytes, and codec \"bytes\" needs exactly %d for %s%s", len(record), d.size, Describe(d.features), otherFeatures(record))
	}
	for i := range d.features {
		f, v := &d.features[i], &dst[i]
		n := f.Elements()
		switch f.DType {
		case graph.Float32:
			v.Floats = sized(v.Floats, n)
			for k := range v.Floats {
				v.Floats[k] = math.Float32frombits(binary.LittleEndian.Uint32(record[4*k:]))
			}
			record = record[4*n:]
		case graph.Int64:
			v.Ints = sized(v.Ints, n)
			for k := range v.Ints {
				v.Ints[k] = int64(binary.LittleEndian.Uint64(record[8*k:]))
			}
			record = record[8*n:]
		case graph.Int32:
			v.Ints = sized(v.Ints, n)
			for k := range v.Ints {
				v.Ints[k] = int64(int32(binary.LittleEndian.Uint32(record[4*k:])))
			}
			record = record[4*n:]
		case graph.Uint8:
			v.Bytes = append(v.Bytes[:0], record[:n]...)
			record = record[n:]
		}
	}
	return nil
}

func appendBytes(b []byte, features []graph.Feature, values graph.Example) []byte {
	for i, f := range features {
		switch v := values[i]; f.DType {
		case graph.Float32:
			for _, x := range v.Floats {
				b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
			}
		case graph.Int64:
			for _, x := range v.Ints {
				b = binary.LittleEndian.AppendUint64(b, uint64(x))
			}
		case graph.Int32:
			for _, x := range v.Ints {
				b = binary.LittleEndian.AppendUint32(b, uint32(int32(x)))
			}
		case graph.Uint8:
			b = append(b, v.Bytes...)
		}
	}
	return b
}

func sized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

type exampleDecoder struct {
	decoder *example.Decoder
	size    int
}

func (d *exampleDecoder) Decode(record []byte, dst graph.Example) error {
	err := d.decoder.Decode(record, dst)
	if err != nil && len(record) == d.size {
		return fmt.Errorf("this record is none of codec \"tf_example\" (%w) and has exactly the %d bytes of codec \"bytes\" for this model; set codec = \"bytes\"", err, d.size)
	}
	return err
}

// Describe writes a schema as a sentence's part: image float32[1 28 28], label int64[1].
func Describe(features []graph.Feature) string {
	s := ""
	for i, f := range features {
		if i > 0 {
			s += ", "
		}
		s += fmt.Sprintf("%s %s%v", f.Name, f.DType, f.Shape)
	}
	return s
}

// otherFeatures ends the message about a record of the wrong size when it is a tf.train.Example of another schema.
func otherFeatures(record []byte) string {
	found, err := example.Look(record)
	if err != nil || len(found) == 0 {
		return ""
	}
	names := make([]string, 0, len(found))
	for _, f := range found {
		names = append(names, f.Name)
	}
	return fmt.Sprintf("; it parses as a tf_example with the features %q", names)
}
