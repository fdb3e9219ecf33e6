package example_test

import (
	"math"
	"slices"
	"testing"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
	"pgregory.net/rapid"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/example"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
)

// schema is tensorflow/core/example/{example,feature}.proto as a descriptor in text form, for Google's own protobuf
// implementation to read and write what this package does by hand.
const schema = `
name: "example.proto" package: "tensorflow" syntax: "proto3"
message_type { name: "BytesList" field { name: "value" number: 1 label: LABEL_REPEATED type: TYPE_BYTES } }
message_type { name: "FloatList" field { name: "value" number: 1 label: LABEL_REPEATED type: TYPE_FLOAT options { packed: true } } }
message_type { name: "Int64List" field { name: "value" number: 1 label: LABEL_REPEATED type: TYPE_INT64 options { packed: true } } }
message_type {
  name: "Feature"
  field { name: "bytes_list" number: 1 label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: ".tensorflow.BytesList" oneof_index: 0 }
  field { name: "float_list" number: 2 label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: ".tensorflow.FloatList" oneof_index: 0 }
  field { name: "int64_list" number: 3 label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: ".tensorflow.Int64List" oneof_index: 0 }
  oneof_decl { name: "kind" }
}
message_type {
  name: "Features"
  field { name: "feature" number: 1 label: LABEL_REPEATED type: TYPE_MESSAGE type_name: ".tensorflow.Features.FeatureEntry" }
  nested_type {
    name: "FeatureEntry"
    field { name: "key" number: 1 label: LABEL_OPTIONAL type: TYPE_STRING }
    field { name: "value" number: 2 label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: ".tensorflow.Feature" }
    options { map_entry: true }
  }
}
message_type { name: "Example" field { name: "features" number: 1 label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: ".tensorflow.Features" } }
`

func newMessage(t rapid.TB) *dynamicpb.Message {
	t.Helper()
	var file descriptorpb.FileDescriptorProto
	if err := prototext.Unmarshal([]byte(schema), &file); err != nil {
		t.Fatal(err)
	}
	descriptor, err := protodesc.NewFile(&file, nil)
	if err != nil {
		t.Fatal(err)
	}
	return dynamicpb.NewMessage(descriptor.Messages().ByName("Example"))
}

func sub(m protoreflect.Message, name protoreflect.Name) protoreflect.Message {
	return m.Mutable(m.Descriptor().Fields().ByName(name)).Message()
}

// toProtobuf makes the message of values.
func toProtobuf(t rapid.TB, features []graph.Feature, values graph.Example) *dynamicpb.Message {
	t.Helper()
	m := newMessage(t)
	all := sub(m, "features")
	byName := all.Mutable(all.Descriptor().Fields().ByName("feature")).Map()
	for i, f := range features {
		feature := byName.Mutable(protoreflect.ValueOfString(f.Name).MapKey()).Message()
		list := func(kind protoreflect.Name) protoreflect.List {
			l := sub(feature, kind)
			return l.Mutable(l.Descriptor().Fields().ByName("value")).List()
		}
		switch f.DType {
		case graph.Float32:
			l := list("float_list")
			for _, x := range values[i].Floats {
				l.Append(protoreflect.ValueOfFloat32(x))
			}
		case graph.Uint8:
			list("bytes_list").Append(protoreflect.ValueOfBytes(values[i].Bytes))
		default:
			l := list("int64_list")
			for _, x := range values[i].Ints {
				l.Append(protoreflect.ValueOfInt64(x))
			}
		}
	}
	return m
}

func TestRecordsAreReadAndWrittenAsProtobufsOwnLibraryDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z]{0,4}`), 1, 4, rapid.ID).Draw(t, "names")
		var features []graph.Feature
		var values graph.Example
		for _, name := range names {
			n := rapid.IntRange(1, 20).Draw(t, "elements")
			f := graph.Feature{Name: name, DType: rapid.SampledFrom([]graph.DType{graph.Float32, graph.Int64, graph.Uint8}).Draw(t, "type"), Shape: []int{n}}
			var v graph.Value
			switch f.DType {
			case graph.Float32:
				v.Floats = rapid.SliceOfN(rapid.Float32(), n, n).Draw(t, "floats")
			case graph.Uint8:
				v.Bytes = rapid.SliceOfN(rapid.Byte(), n, n).Draw(t, "bytes")
			default:
				v.Ints = rapid.SliceOfN(rapid.Int64(), n, n).Draw(t, "ints")
			}
			features, values = append(features, f), append(values, v)
		}
		want := toProtobuf(t, features, values)

		// Protobuf reads what is written here.
		got := dynamicpb.NewMessage(want.Descriptor()) // Equal asks for one descriptor
		if err := proto.Unmarshal(example.Append(nil, features, values), got); err != nil {
			t.Fatal(err)
		}
		if !proto.Equal(got, want) {
			t.Fatalf("protobuf reads %v, want %v", got, want)
		}
		// What protobuf writes is read here.
		written, err := proto.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		read := make(graph.Example, len(features))
		if err := example.NewDecoder(features).Decode(written, read); err != nil {
			t.Fatal(err)
		}
		for i := range features {
			same := slices.EqualFunc(read[i].Floats, values[i].Floats, func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) })
			if !same || !slices.Equal(read[i].Ints, values[i].Ints) || !slices.Equal(read[i].Bytes, values[i].Bytes) {
				t.Fatalf("feature %q: %v, want %v", features[i].Name, read[i], values[i])
			}
		}
	})
}
