package codec_test

import (
	"bytes"
	"encoding/hex"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/dataset"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/codec"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
)

// mnist is the schema of the tutorial's model.
var mnist = []graph.Feature{
	{Name: "image", DType: graph.Float32, Shape: []int{1, 28, 28}},
	{Name: "label", DType: graph.Int64, Shape: []int{1}},
}

func mnistValues() graph.Example {
	values := codec.NewExample(mnist)
	for i := range values[0].Floats {
		values[0].Floats[i] = float32(i % 256)
	}
	values[1].Ints[0] = 7
	return values
}

func record(t testing.TB, name string, features []graph.Feature, values graph.Example) []byte {
	t.Helper()
	b, err := codec.Append(nil, name, features, values)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func decode(t testing.TB, name string, features []graph.Feature, record []byte) error {
	t.Helper()
	d, err := codec.NewDecoder(name, features)
	if err != nil {
		t.Fatal(err)
	}
	return d.Decode(record, codec.NewExample(features))
}

func TestRecordsOfTheTutorial(t *testing.T) {
	asBytes, asExample := record(t, dataset.BytesCodec, mnist, mnistValues()), record(t, dataset.TFExampleCodec, mnist, mnistValues())
	t.Run("an MNIST record has ElasticDL's sizes: 3144 bytes, or 3174 as tf_example", func(t *testing.T) {
		if len(asBytes) != 3144 || len(asExample) != 3174 {
			t.Errorf("%d and %d bytes", len(asBytes), len(asExample))
		}
	})
	t.Run("the bytes codec is the arrays one behind the other, little-endian", func(t *testing.T) {
		if got := hex.EncodeToString(asBytes[4:8]) + hex.EncodeToString(asBytes[3136:]); got != "0000803f"+"0700000000000000" {
			t.Error(got)
		}
	})
	t.Run("a tf_example record read as bytes is refused with the setting that is right", func(t *testing.T) {
		err := decode(t, dataset.BytesCodec, mnist, asExample)
		if err == nil || !strings.Contains(err.Error(), `this record is a tf_example`) || !strings.Contains(err.Error(), `set codec = "tf_example"`) {
			t.Error(err)
		}
	})
	t.Run("a bytes record read as tf_example is refused with the setting that is right", func(t *testing.T) {
		err := decode(t, dataset.TFExampleCodec, mnist, asBytes)
		if err == nil || !strings.Contains(err.Error(), `set codec = "bytes"`) {
			t.Error(err)
		}
	})
	t.Run("a tf_example record that happens to have the size of the bytes codec is refused all the same", func(t *testing.T) {
		// One int64 of 8 bytes would be held in a record of any size: choose the shape so that both codecs agree on it.
		features := []graph.Feature{{Name: "pixels", DType: graph.Uint8, Shape: []int{200}}}
		values := codec.NewExample(features)
		other := record(t, dataset.TFExampleCodec, features, values)
		features[0].Shape = []int{len(other)}
		err := decode(t, dataset.BytesCodec, features, other)
		if err == nil || !strings.Contains(err.Error(), `set codec = "tf_example"`) {
			t.Error(err)
		}
	})
	t.Run("a tf_example of another schema read as bytes is refused with the features that it holds", func(t *testing.T) {
		features := []graph.Feature{{Name: "clicks", DType: graph.Int64, Shape: []int{3}}}
		err := decode(t, dataset.BytesCodec, mnist, record(t, dataset.TFExampleCodec, features, graph.Example{{Ints: []int64{1, 2, 3}}}))
		if err == nil || !strings.Contains(err.Error(), `"clicks"`) || !strings.Contains(err.Error(), "3144") {
			t.Error(err)
		}
	})
	t.Run("a record one byte short or long is refused with both sizes", func(t *testing.T) {
		for _, bad := range [][]byte{asBytes[:3143], append(slices.Clone(asBytes), 0), nil} {
			err := decode(t, dataset.BytesCodec, mnist, bad)
			if err == nil || !strings.Contains(err.Error(), "needs exactly 3144") {
				t.Error(err)
			}
		}
	})
	for _, name := range []string{dataset.BytesCodec, dataset.TFExampleCodec} {
		t.Run("decoding into a used buffer allocates nothing: "+name, func(t *testing.T) {
			d, err := codec.NewDecoder(name, mnist)
			if err != nil {
				t.Fatal(err)
			}
			r, values := record(t, name, mnist, mnistValues()), codec.NewExample(mnist)
			allocations := testing.AllocsPerRun(100, func() { err = d.Decode(r, values) })
			if err != nil || allocations != 0 {
				t.Errorf("%v allocations, %v", allocations, err)
			}
		})
	}
}

// schemas draws a schema and values that fit it.
func schemas(t *rapid.T) ([]graph.Feature, graph.Example) {
	names := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z]{1,4}`), 1, 4, rapid.ID).Draw(t, "names")
	var features []graph.Feature
	for _, name := range names {
		features = append(features, graph.Feature{
			Name:  name,
			DType: rapid.SampledFrom([]graph.DType{graph.Float32, graph.Int64, graph.Int32, graph.Uint8}).Draw(t, "type"),
			Shape: rapid.SliceOfN(rapid.IntRange(1, 4), 0, 3).Draw(t, "shape"),
		})
	}
	values := codec.NewExample(features)
	for i, f := range features {
		for k := range f.Elements() {
			switch f.DType {
			case graph.Float32:
				values[i].Floats[k] = math.Float32frombits(rapid.Uint32().Draw(t, "bits"))
			case graph.Int64:
				values[i].Ints[k] = rapid.Int64().Draw(t, "int64")
			case graph.Int32:
				values[i].Ints[k] = int64(rapid.Int32().Draw(t, "int32"))
			default:
				values[i].Bytes[k] = rapid.Byte().Draw(t, "byte")
			}
		}
	}
	return features, values
}

func TestEveryCodecReadsWhatItWrites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		features, values := schemas(t)
		for _, name := range []string{dataset.BytesCodec, dataset.TFExampleCodec} {
			written, err := codec.Append(nil, name, features, values)
			if err != nil {
				t.Fatal(err)
			}
			d, err := codec.NewDecoder(name, features)
			if err != nil {
				t.Fatal(err)
			}
			got := codec.NewExample(features)
			if err := d.Decode(written, got); err != nil {
				t.Fatal(err)
			}
			again, err := codec.Append(nil, name, features, got) // compares bits, NaNs included
			if err != nil || !slices.Equal(again, written) {
				t.Fatalf("%s: other values after reading (%v)", name, err)
			}
		}
	})
}

func TestBadSchemas(t *testing.T) {
	for name, features := range map[string][]graph.Feature{
		"no features":           nil,
		"a name twice":          {mnist[0], mnist[0]},
		"an empty name":         {{DType: graph.Float32}},
		"an unknown type":       {{Name: "x", DType: "float64"}},
		"a dimension of 0":      {{Name: "x", DType: graph.Uint8, Shape: []int{4, 0}}},
		"a negative dimension":  {{Name: "x", DType: graph.Uint8, Shape: []int{-1}}},
		"an overflowing shape":  {{Name: "x", DType: graph.Int64, Shape: []int{1 << 31, 1 << 31, 1 << 31}}},
		"features of gigabytes": {{Name: "x", DType: graph.Int64, Shape: []int{30 << 20}}, {Name: "y", DType: graph.Int64, Shape: []int{30 << 20}}},
	} {
		t.Run(name+" are refused", func(t *testing.T) {
			if _, err := codec.NewDecoder(dataset.BytesCodec, features); err == nil {
				t.Error("accepted")
			}
		})
	}
	t.Run("an unknown codec is refused with those there are", func(t *testing.T) {
		if _, err := codec.NewDecoder("csv", mnist); err == nil || !strings.Contains(err.Error(), "bytes or tf_example") {
			t.Error(err)
		}
	})
	t.Run("values that do not fit the schema are not written", func(t *testing.T) {
		for _, values := range []graph.Example{{}, {{Floats: make([]float32, 784)}, {}}, {{Floats: make([]float32, 783)}, {Ints: []int64{1}}}, {{Ints: make([]int64, 784)}, {Ints: []int64{1}}}} {
			if _, err := codec.Append(nil, dataset.BytesCodec, mnist, values); err == nil {
				t.Errorf("wrote %v", values)
			}
		}
		wide := []graph.Feature{{Name: "x", DType: graph.Int32, Shape: []int{1}}}
		if _, err := codec.Append(nil, dataset.BytesCodec, wide, graph.Example{{Ints: []int64{1 << 40}}}); err == nil {
			t.Error("wrote an int64 as int32")
		}
	})
}

func FuzzDecode(f *testing.F) {
	for _, name := range []string{dataset.BytesCodec, dataset.TFExampleCodec} {
		record, err := codec.Append(nil, name, fuzzed, graph.Example{{Floats: []float32{1, -2}}, {Ints: []int64{3}}, {Bytes: []byte{4, 5, 6}}, {Ints: []int64{-7}}})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(record)
	}
	f.Fuzz(func(t *testing.T, record []byte) {
		for _, name := range []string{dataset.BytesCodec, dataset.TFExampleCodec} {
			decoder, err := codec.NewDecoder(name, fuzzed)
			if err != nil {
				t.Fatal(err)
			}
			values := codec.NewExample(fuzzed)
			if decoder.Decode(record, values) != nil {
				continue
			}
			// What was read is written and read again as the same bytes.
			written, err := codec.Append(nil, name, fuzzed, values)
			if err != nil {
				t.Fatal(err)
			}
			if name == dataset.BytesCodec && !bytes.Equal(written, record) {
				t.Fatalf("% x is written as % x", record, written)
			}
			again := codec.NewExample(fuzzed)
			if err := decoder.Decode(written, again); err != nil {
				t.Fatal(err)
			}
			if twice, err := codec.Append(nil, name, fuzzed, again); err != nil || !bytes.Equal(twice, written) {
				t.Fatalf("written again, it differs: %v", err)
			}
		}
	})
}

// fuzzed is a schema with every type.
var fuzzed = []graph.Feature{
	{Name: "f", DType: graph.Float32, Shape: []int{2}},
	{Name: "i", DType: graph.Int64, Shape: []int{1}},
	{Name: "b", DType: graph.Uint8, Shape: []int{3}},
	{Name: "n", DType: graph.Int32, Shape: []int{1}},
}
