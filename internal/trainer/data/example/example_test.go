package example_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/example"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
)

// Messages are put together by hand here, as other writers might.

func field(n protowire.Number, message ...[]byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, n, protowire.BytesType), slices.Concat(message...))
}

func entry(name string, features ...[]byte) []byte {
	return field(1, field(1, []byte(name)), field(2, features...))
}

func message(entries ...[]byte) []byte { return field(1, entries...) }

func packedInts(values ...int64) []byte {
	var b []byte
	for _, v := range values {
		b = protowire.AppendVarint(b, uint64(v))
	}
	return field(1, b)
}

func plainInt(v int64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), uint64(v))
}

func plainFloat(v float32) []byte {
	return protowire.AppendFixed32(protowire.AppendTag(nil, 1, protowire.Fixed32Type), math.Float32bits(v))
}

var (
	ints   = []graph.Feature{{Name: "x", DType: graph.Int64, Shape: []int{3}}}
	floats = []graph.Feature{{Name: "x", DType: graph.Float32, Shape: []int{2}}}
	pixels = []graph.Feature{{Name: "x", DType: graph.Uint8, Shape: []int{3}}}
)

func TestDecode(t *testing.T) {
	unknown := slices.Concat(
		protowire.AppendVarint(protowire.AppendTag(nil, 9, protowire.VarintType), 5),
		protowire.AppendFixed64(protowire.AppendTag(nil, 10, protowire.Fixed64Type), 5),
		field(11, []byte("later")),
	)
	for name, c := range map[string]struct {
		features []graph.Feature
		record   []byte
		want     graph.Value
	}{
		"packed numbers": {ints, message(entry("x", field(3, packedInts(1, -2, math.MaxInt64)))), graph.Value{Ints: []int64{1, -2, math.MaxInt64}}},
		"numbers one by one": {
			ints, message(entry("x", field(3, plainInt(1), plainInt(-2), plainInt(3)))), graph.Value{Ints: []int64{1, -2, 3}},
		},
		"packed and single numbers mixed": {
			ints, message(entry("x", field(3, plainInt(1), packedInts(2, 3)))), graph.Value{Ints: []int64{1, 2, 3}},
		},
		"a list in two pieces, which protobuf merges": {
			ints, message(entry("x", field(3, packedInts(1, 2)), field(3, packedInts(3)))), graph.Value{Ints: []int64{1, 2, 3}},
		},
		"another member of the oneof before, of which the last counts": {
			ints, message(entry("x", field(2, plainFloat(1)), field(3, packedInts(1, 2, 3)))), graph.Value{Ints: []int64{1, 2, 3}},
		},
		"the key twice, of which the last counts": {
			ints, message(entry("x", field(3, packedInts(9, 9, 9))), entry("x", field(3, packedInts(1, 2, 3)))), graph.Value{Ints: []int64{1, 2, 3}},
		},
		"features in two messages, which protobuf merges": {
			ints, slices.Concat(message(entry("y")), message(entry("x", field(3, packedInts(1, 2, 3))))), graph.Value{Ints: []int64{1, 2, 3}},
		},
		"floats one by one":    {floats, message(entry("x", field(2, plainFloat(1.5), plainFloat(-2)))), graph.Value{Floats: []float32{1.5, -2}}},
		"a string of elements": {pixels, message(entry("x", field(1, field(1, []byte{1, 2, 255})))), graph.Value{Bytes: []byte{1, 2, 255}}},
		"unknown fields at every level": {
			ints,
			slices.Concat(unknown, field(1, unknown, field(1, unknown, field(1, []byte("x")), field(2, unknown, field(3, unknown, packedInts(1, 2, 3), unknown))))),
			graph.Value{Ints: []int64{1, 2, 3}},
		},
		"other features": {ints, message(entry("a"), entry("x", field(3, packedInts(1, 2, 3))), entry("z", field(1))), graph.Value{Ints: []int64{1, 2, 3}}},
	} {
		t.Run("a record is read that has "+name, func(t *testing.T) {
			got := make(graph.Example, 1)
			if err := example.NewDecoder(c.features).Decode(c.record, got); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got[0].Ints, c.want.Ints) || !slices.Equal(got[0].Floats, c.want.Floats) || !slices.Equal(got[0].Bytes, c.want.Bytes) {
				t.Errorf("%v, want %v", got[0], c.want)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	narrow := []graph.Feature{{Name: "x", DType: graph.Int32, Shape: []int{1}}}
	for name, c := range map[string]struct {
		features []graph.Feature
		record   []byte
		wantText string
	}{
		"a missing feature":               {ints, message(entry("y", field(2, plainFloat(1)))), `feature "x" is missing; the record holds "y" (float_list of 1)`},
		"no feature at all":               {ints, nil, `the record holds no features`},
		"too few values":                  {ints, message(entry("x", field(3, packedInts(1, 2)))), `feature "x" holds 2 values`},
		"too many values":                 {ints, message(entry("x", field(3, packedInts(1, 2, 3, 4)))), `feature "x" holds 4 values`},
		"floats where integers should be": {ints, message(entry("x", field(2, plainFloat(1)))), `feature "x" is float_list in the record, and the schema says int64`},
		"an empty list behind a full one": {ints, message(entry("x", field(3, packedInts(1, 2, 3)), field(2))), `is float_list`},
		"a feature of no kind":            {ints, message(entry("x")), `is nothing`},
		"a string of another length":      {pixels, message(entry("x", field(1, field(1, []byte("ab"))))), `a string of 2 bytes`},
		"two strings":                     {pixels, message(entry("x", field(1, field(1, []byte("abc")), field(1, []byte("abc"))))), `holds 2 strings`},
		"an int64 where an int32 belongs": {narrow, message(entry("x", field(3, packedInts(1<<31)))), `2147483648, which is no int32`},
		"a number cut off":                {ints, message(entry("x", field(3, field(1, []byte{0x80})))), "not a tf.train.Example"},
		"half a packed float":             {floats, message(entry("x", field(2, field(1, []byte{1, 2, 3, 4, 5})))), "no multiple of 4"},
	} {
		t.Run(name+" is refused by name", func(t *testing.T) {
			err := example.NewDecoder(c.features).Decode(c.record, make(graph.Example, 1))
			if err == nil || !strings.Contains(err.Error(), c.wantText) {
				t.Errorf("%v, want %q", err, c.wantText)
			}
		})
	}
	t.Run("a record that was cut anywhere is refused", func(t *testing.T) {
		whole := message(entry("x", field(3, packedInts(1, 2, 300))))
		for n := 1; n < len(whole); n++ {
			err := example.NewDecoder(ints).Decode(whole[:n], make(graph.Example, 1))
			if !errors.Is(err, example.ErrMalformed) {
				t.Errorf("%d of %d bytes: %v", n, len(whole), err)
			}
		}
	})
}

func FuzzDecode(f *testing.F) {
	f.Add(message(entry("x", field(3, packedInts(1, 2, 3)))))
	f.Add(message(entry("x", field(2, plainFloat(1), plainFloat(2))), entry("y", field(1, field(1, []byte("abc"))))))
	f.Add([]byte("\x0a\xff\xff\xff\xff\x0f"))
	f.Fuzz(func(t *testing.T, record []byte) {
		found, err := example.Look(record)
		for _, features := range [][]graph.Feature{ints, floats, pixels} {
			values := make(graph.Example, 1)
			if decoded := example.NewDecoder(features).Decode(record, values); decoded == nil {
				if err == nil && !slices.ContainsFunc(found, func(f example.Found) bool { return f.Name == "x" }) {
					t.Fatalf("decoded a feature that is not there: %v", found)
				}
				// What was read is written and read again as the same bytes.
				written := example.Append(nil, features, values)
				again := make(graph.Example, 1)
				if err := example.NewDecoder(features).Decode(written, again); err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(example.Append(nil, features, again), written) || !example.Holds(written, features) {
					t.Fatal("written again, it differs")
				}
			}
		}
	})
}
