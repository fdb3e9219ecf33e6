// Package example is the record codec tf_example: tf.train.Example messages (tensorflow/core/example/example.proto and
// feature.proto), parsed by hand on the protobuf wire format. Lists may be packed or not, unknown fields are skipped,
// and where a message repeats a map key or a oneof the last one counts, as protobuf defines.
//
// How a value is held: Float32 in float_list, Int32 and Int64 in int64_list, Uint8 as one string of the elements in
// bytes_list, String as one string for each of them. A decoder writes into the caller's buffers and allocates nothing
// once they are large enough.
package example

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
)

// ErrMalformed is a record that is not a tf.train.Example.
var ErrMalformed = errors.New("the record is not a tf.train.Example")

// Kind is which list a feature's values are in; its number is the field of tf.train.Feature.
type Kind uint8

// The kinds of tf.train.Feature.
const (
	NoKind    Kind = 0 // the feature is there and holds nothing
	BytesKind Kind = 1
	FloatKind Kind = 2
	Int64Kind Kind = 3
)

// String is the field's name in feature.proto.
func (k Kind) String() string {
	switch k {
	case BytesKind:
		return "bytes_list"
	case FloatKind:
		return "float_list"
	case Int64Kind:
		return "int64_list"
	default:
		return "nothing"
	}
}

func kindOf(t graph.DType) Kind {
	switch t {
	case graph.Float32:
		return FloatKind
	case graph.Uint8, graph.String:
		return BytesKind
	default:
		return Int64Kind
	}
}

// Decoder decodes records of one schema. It is not safe for concurrent use.
type Decoder struct {
	features []graph.Feature
	seen     []bool
}

// NewDecoder returns a decoder for records that hold features. Features of the record that are not named are skipped.
func NewDecoder(features []graph.Feature) *Decoder {
	return &Decoder{features: features, seen: make([]bool, len(features))}
}

// Decode parses record into dst, which has a Value for every feature, in order. The buffers in dst are reused. A
// missing feature, another kind of list and another number of elements than the schema's are errors that name the
// feature.
func (d *Decoder) Decode(record []byte, dst graph.Example) error {
	clear(d.seen)
	err := eachFeature(record, func(name, feature []byte) error {
		for i := range d.features {
			if d.features[i].Name == string(name) { // the compiler compares without allocating
				d.seen[i] = true
				return decodeFeature(feature, &d.features[i], &dst[i])
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i, seen := range d.seen {
		if !seen {
			return fmt.Errorf("feature %q is missing; the record holds %s", d.features[i].Name, describe(record))
		}
	}
	return nil
}

func decodeFeature(b []byte, feature *graph.Feature, value *graph.Value) error {
	want, elements := kindOf(feature.DType), feature.Elements()
	kind, count := NoKind, 0
	var text []byte
	err := eachList(b, func(k Kind, list []byte) error {
		if k != kind { // another member of the oneof: what was there before does not count
			kind, count = k, 0
		}
		return eachValue(k, list, func(payload []byte, bits uint64) {
			count++
			switch {
			case k != want || count > elements: // counted only; said below
			case k == FloatKind:
				value.Floats = append(value.Floats[:count-1], math.Float32frombits(uint32(bits)))
			case k == Int64Kind:
				value.Ints = append(value.Ints[:count-1], int64(bits))
			case feature.DType == graph.String:
				value.Strings = appendText(value.Strings, count-1, payload)
			default:
				text = payload
			}
		})
	})
	switch {
	case err != nil:
		return err
	case kind != want:
		return fmt.Errorf("feature %q is %s in the record, and the schema says %s, which is held in %s", feature.Name, kind, feature.DType, want)
	case feature.DType == graph.String && count == elements:
	case feature.DType == graph.String:
		return fmt.Errorf("feature %q holds %d strings, and the schema says %s%v: %d", feature.Name, count, feature.DType, feature.Shape, elements)
	case kind == BytesKind && count != 1:
		return fmt.Errorf("feature %q holds %d strings, and the schema says %s%v: one string of %d bytes", feature.Name, count, feature.DType, feature.Shape, elements)
	case kind == BytesKind && len(text) != elements:
		return fmt.Errorf("feature %q holds a string of %d bytes, and the schema says %s%v: %d", feature.Name, len(text), feature.DType, feature.Shape, elements)
	case kind == BytesKind:
		value.Bytes = append(value.Bytes[:0], text...)
	case count != elements:
		return fmt.Errorf("feature %q holds %d values, and the schema says %s%v: %d", feature.Name, count, feature.DType, feature.Shape, elements)
	}
	if feature.DType == graph.Int32 {
		for i, v := range value.Ints {
			if v != int64(int32(v)) {
				return fmt.Errorf("feature %q: element %d is %d, which is no int32", feature.Name, i, v)
			}
		}
	}
	return nil
}

// appendText makes a copy of text element k, in the buffer that it has.
func appendText(all [][]byte, k int, text []byte) [][]byte {
	if k == len(all) {
		all = append(all, nil)
	}
	all[k] = append(all[k][:0], text...)
	return all[:max(k+1, len(all))]
}

// Append appends the record of values (in the order of features) to b: features in that order, numbers packed, so that
// equal values give equal bytes.
func Append(b []byte, features []graph.Feature, values graph.Example) []byte {
	named := make([]Named, len(features))
	for i, f := range features {
		v := values[i]
		named[i] = Named{Name: f.Name, Kind: kindOf(f.DType), Floats: v.Floats, Ints: v.Ints}
		if f.DType == graph.String {
			named[i].Strings = v.Strings
		} else if named[i].Kind == BytesKind {
			named[i].Strings = [][]byte{v.Bytes}
		}
	}
	return AppendNamed(b, named)
}

// Named is a feature of a record by its name, whatever a model makes of it. Its values are in the slice that Kind says.
type Named struct {
	Name    string
	Kind    Kind
	Floats  []float32
	Ints    []int64
	Strings [][]byte
}

// AppendNamed appends the record of features to b, in their order, numbers packed.
func AppendNamed(b []byte, features []Named) []byte {
	var entries []byte
	for _, f := range features {
		entry := protowire.AppendTag(nil, 1, protowire.BytesType)
		entry = protowire.AppendString(entry, f.Name)
		var feature []byte
		if f.Kind != NoKind {
			feature = appendMessage(nil, protowire.Number(f.Kind), f.list())
		}
		entry = appendMessage(entry, 2, feature)
		entries = appendMessage(entries, 1, entry)
	}
	return appendMessage(b, 1, entries)
}

// list is the content of a float_list, an int64_list or a bytes_list.
func (f Named) list() []byte {
	var packed []byte
	switch f.Kind {
	case FloatKind:
		for _, x := range f.Floats {
			packed = binary.LittleEndian.AppendUint32(packed, math.Float32bits(x))
		}
	case Int64Kind:
		for _, x := range f.Ints {
			packed = protowire.AppendVarint(packed, uint64(x))
		}
	default:
		var all []byte
		for _, x := range f.Strings {
			all = appendMessage(all, 1, x)
		}
		return all
	}
	return appendMessage(nil, 1, packed)
}

func appendMessage(b []byte, field protowire.Number, message []byte) []byte {
	b = protowire.AppendTag(b, field, protowire.BytesType)
	return protowire.AppendBytes(b, message)
}
