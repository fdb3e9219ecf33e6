package safetensors

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func written(t *testing.T, tensors []Tensor, metadata map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, tensors, metadata); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func readBack(data []byte) ([]Tensor, map[string]string, error) {
	return Read(bytes.NewReader(data), int64(len(data)))
}

// file puts a file together by hand.
func file(header string, data ...byte) []byte {
	out := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(out, header...), data...)
}

func TestWrite(t *testing.T) {
	tensors := []Tensor{
		Float32("b", []int{2}, []float32{1, -2}),
		Int64("a", nil, []int64{7}),
	}

	t.Run("the bytes are the ones of the format", func(t *testing.T) {
		header := `{"__metadata__":{"step":"3","who":"me"},"b":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"a":{"dtype":"I64","shape":[],"data_offsets":[8,16]}}`
		header += strings.Repeat(" ", 7-(len(header)+7)%8)
		data, err := hex.DecodeString("0000803f" + "000000c0" + "0700000000000000")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(file(header, data...), written(t, tensors, map[string]string{"who": "me", "step": "3"})); diff != "" {
			t.Error(diff)
		}
	})

	t.Run("a reader that shares nothing with this one finds the same tensors", func(t *testing.T) {
		python, err := exec.LookPath("python3")
		if err != nil {
			t.Skip("there is no python3 here; the bytes themselves are checked by the test before this one")
		}
		path := filepath.Join(t.TempDir(), "m.safetensors")
		all := slices.Concat(tensors, []Tensor{Int32("ü \"<&>", []int{1, 3}, []int32{-1, 0, math.MaxInt32})})
		if err := os.WriteFile(path, written(t, all, map[string]string{"k": "v"}), 0o600); err != nil {
			t.Fatal(err)
		}
		const program = `
import json, struct, sys
raw = open(sys.argv[1], "rb").read()
n, = struct.unpack("<Q", raw[:8])
assert n % 8 == 0
header = json.loads(raw[8:8+n])
out = {"metadata": header.pop("__metadata__"), "tensors": []}
code = {"F32": "f", "I64": "q", "I32": "i"}
for name, e in header.items():
    lo, hi = e["data_offsets"]
    body = raw[8+n+lo:8+n+hi]
    count = 1
    for d in e["shape"]: count *= d
    out["tensors"].append([name, e["dtype"], e["shape"], list(struct.unpack("<%d%s" % (count, code[e["dtype"]]), body))])
print(json.dumps(out))
`
		printed, err := exec.Command(python, "-c", program, path).Output()
		if err != nil {
			t.Fatal(err)
		}
		var got any
		if err := json.Unmarshal(printed, &got); err != nil {
			t.Fatal(err)
		}
		want := map[string]any{"metadata": map[string]any{"k": "v"}, "tensors": []any{
			[]any{"b", "F32", []any{2.0}, []any{1.0, -2.0}},
			[]any{"a", "I64", []any{}, []any{7.0}},
			[]any{"ü \"<&>", "I32", []any{1.0, 3.0}, []any{-1.0, 0.0, float64(math.MaxInt32)}},
		}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})

	for name, c := range map[string]struct {
		tensors []Tensor
		want    string
	}{
		"two tensors of one name are refused":         {[]Tensor{Int32("a", nil, []int32{1}), Int32("a", nil, []int32{1})}, `"a" is used twice`},
		"the name of the metadata is refused":         {[]Tensor{Int32("__metadata__", nil, []int32{1})}, "reserved"},
		"data that does not fit the shape is refused": {[]Tensor{Float32("a", []int{2}, []float32{1})}, `tensor "a": F32[2] takes 8 bytes, and there are 4`},
		"a negative shape is refused":                 {[]Tensor{Float32("a", []int{-1}, nil)}, "shape [-1] is negative"},
		"a shape that overflows is refused":           {[]Tensor{Float32("a", []int{math.MaxInt, 8}, nil)}, "more elements than memory"},
		"another type is refused":                     {[]Tensor{{Name: "a", DType: "F8_E4M3"}}, `type "F8_E4M3" is not implemented`},
		"a name that is not UTF-8 is refused":         {[]Tensor{Int32("\xff", nil, []int32{1})}, "not UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			err := Write(&b, c.tensors, nil)
			if err == nil || !strings.Contains(err.Error(), c.want) || b.Len() > 0 {
				t.Errorf("error %v after %d bytes, want %s", err, b.Len(), c.want)
			}
		})
	}

	t.Run("an error of the writer is passed on", func(t *testing.T) {
		if err := Write(fullDisk{}, tensors, nil); !errors.Is(err, errFull) {
			t.Errorf("error %v", err)
		}
	})
}

var errFull = errors.New("disk full")

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }

// drawTensors draws tensors of all types with any bytes in them.
func drawTensors(t *rapid.T) []Tensor {
	names := rapid.SliceOfNDistinct(rapid.String(), 0, 5, rapid.ID[string]).Draw(t, "names")
	var tensors []Tensor
	for _, name := range names {
		if name == metadataKey {
			continue
		}
		shape := rapid.SliceOfN(rapid.IntRange(0, 4), 0, 3).Draw(t, "shape")
		dtype := rapid.SampledFrom([]string{F64, F32, F16, BF16, I64, I32, I16, I8, U8, Bool}).Draw(t, "dtype")
		size, err := dataBytes(dtype, shape)
		if err != nil {
			t.Fatal(err)
		}
		data := rapid.SliceOfN(rapid.Byte(), int(size), int(size)).Draw(t, "data")
		tensors = append(tensors, Tensor{name, dtype, shape, data})
	}
	return tensors
}

func TestRoundTrip(t *testing.T) {
	t.Run("what is written is read, and what is read is written again", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			tensors := drawTensors(t)
			metadata := rapid.MapOfN(rapid.String(), rapid.String(), 0, 4).Draw(t, "metadata")
			var first, second bytes.Buffer
			if err := Write(&first, tensors, metadata); err != nil {
				t.Fatal(err)
			}
			got, gotMetadata, err := readBack(first.Bytes())
			if err != nil {
				t.Fatal(err)
			}
			if len(gotMetadata) != len(metadata) || len(got) != len(tensors) {
				t.Fatalf("read %d tensors and %d metadata", len(got), len(gotMetadata))
			}
			if err := Write(&second, got, gotMetadata); err != nil {
				t.Fatal(err)
			}
			if !hasEmpty(tensors) && !bytes.Equal(first.Bytes(), second.Bytes()) {
				t.Errorf("%q and %q", first.Bytes(), second.Bytes())
			}
			byName := map[string]Tensor{}
			for _, g := range got {
				byName[g.Name] = g
			}
			for _, want := range tensors {
				g := byName[want.Name]
				if g.DType != want.DType || !bytes.Equal(g.Data, want.Data) || len(g.Shape) != len(want.Shape) {
					t.Errorf("read %v, wrote %v", g, want)
				}
			}
		})
	})

	t.Run("every shorter file is refused", func(t *testing.T) {
		whole := written(t, []Tensor{Float32("w", []int{2, 2}, []float32{1, 2, 3, 4}), Int32("n", nil, []int32{5})}, map[string]string{"k": "v"})
		for n := range whole {
			if _, _, err := readBack(whole[:n]); err == nil {
				t.Errorf("%d of %d bytes are accepted", n, len(whole))
			}
		}
	})

	t.Run("values come back as they were", func(t *testing.T) {
		got, _, err := readBack(written(t, []Tensor{
			Float32("f", []int{2}, []float32{0.1, float32(math.Inf(-1))}), Int64("q", nil, []int64{math.MinInt64}), Int32("i", []int{1}, []int32{-5}),
		}, nil))
		if err != nil {
			t.Fatal(err)
		}
		f, ferr := got[0].Float32s()
		q, qerr := got[1].Int64s()
		i, ierr := got[2].Int32s()
		if err := errors.Join(ferr, qerr, ierr); err != nil {
			t.Fatal(err)
		}
		if f[0] != 0.1 || !math.IsInf(float64(f[1]), -1) || q[0] != math.MinInt64 || i[0] != -5 {
			t.Errorf("got %v, %v, %v", f, q, i)
		}
		if _, err := got[0].Int64s(); err == nil || !strings.Contains(err.Error(), `tensor "f" holds F32, not I64`) {
			t.Errorf("error %v", err)
		}
	})
}

// hasEmpty: tensors without data share their place, and their order in the header is not that of the data.
func hasEmpty(tensors []Tensor) bool {
	for _, t := range tensors {
		if len(t.Data) == 0 {
			return true
		}
	}
	return false
}

func TestReadRefuses(t *testing.T) {
	const entry = `{"dtype":"I32","shape":[1],"data_offsets":[0,4]}`
	four := []byte{1, 2, 3, 4}
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"an empty file":                         {nil, "offset 0: the file has 0 bytes"},
		"a header longer than the file":         {[]byte{9, 0, 0, 0, 0, 0, 0, 0, '{', '}'}, "offset 0: a header of 9 bytes does not fit a file of 10 bytes"},
		"a header longer than any memory":       {bytes.Repeat([]byte{255}, 16), "offset 0: a header of 18446744073709551615 bytes"},
		"a header that is no object":            {file(`[]`), "offset 8: header: it is not a JSON object"},
		"a header that is not UTF-8":            {file("{\"\xff\":3}"), "offset 8: header: it is not a JSON object in UTF-8"},
		"a header that is cut off":              {file(`{"a":`), "offset 8: header: "},
		"something behind the header's object":  {file(`{} x`), "2 bytes stand behind the object"},
		"a name that stands there twice":        {file(`{"a":`+entry+`,"a":`+entry+`}`, four...), "the key a stands there twice"},
		"metadata that is not of strings":       {file(`{"__metadata__":{"a":3}}`), "__metadata__: "},
		"an entry without a shape":              {file(`{"a":{"dtype":"I32","data_offsets":[0,4]}}`, four...), `tensor "a": shape is missing`},
		"an entry with a key that is not known": {file(`{"a":{"dtype":"I32","shape":[1],"data_offsets":[0,4],"x":1}}`, four...), "and nothing else"},
		"an entry with one offset":              {file(`{"a":{"dtype":"I32","shape":[1],"data_offsets":[0]}}`, four...), "two data_offsets"},
		"a type that is not implemented":        {file(`{"a":{"dtype":"F8_E4M3","shape":[4],"data_offsets":[0,4]}}`, four...), `tensor "a": type "F8_E4M3" is not implemented`},
		"a shape that is negative":              {file(`{"a":{"dtype":"I32","shape":[-1],"data_offsets":[0,4]}}`, four...), "shape [-1] is negative"},
		"a shape that overflows":                {file(`{"a":{"dtype":"I32","shape":[4611686018427387904,4],"data_offsets":[0,0]}}`), "more elements than memory"},
		"a shape that does not fit the offsets": {file(`{"a":{"dtype":"I32","shape":[2],"data_offsets":[0,4]}}`, four...), `offset 62: tensor "a", I32[2], takes 8 bytes, and the header gives it 4`},
		"offsets that run backwards":            {file(`{"a":{"dtype":"I32","shape":[1],"data_offsets":[0,-4]}}`, four...), "the next free one is 0"},
		"offsets that leave a hole":             {file(`{"a":{"dtype":"I32","shape":[1],"data_offsets":[1,5]}}`, 0, 1, 2, 3, 4), "the next free one is 0"},
		"tensors that overlap":                  {file(`{"a":`+entry+`,"b":`+entry+`}`, four...), `tensor "b" says that it takes the bytes 0 to 4`},
		"a tensor that ends behind the file":    {file(`{"a":`+entry+`}`, 1, 2, 3), "and the file has 65 bytes; it is truncated"},
		"bytes that belong to no tensor":        {file(`{"a":`+entry+`}`, 1, 2, 3, 4, 5), "offset 66: 1 bytes belong to no tensor"},
	} {
		t.Run(name+" is refused", func(t *testing.T) {
			_, _, err := readBack(c.data)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %s", err, c.want)
			}
		})
	}

	t.Run("the file is named, and a size that it does not have is an error", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "m.safetensors")
		if err := os.WriteFile(path, file("{}")[:9], 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close() //nolint:errcheck // read only
		_, _, err = Read(f, 10)
		if err == nil || !strings.Contains(err.Error(), `m.safetensors": offset 8: 1 of 2 bytes: unexpected EOF`) {
			t.Errorf("error %v", err)
		}
	})
}

// FuzzRead feeds anything to Read: what it accepts can be written, and gives the same tensors again.
func FuzzRead(f *testing.F) {
	var b bytes.Buffer
	if err := Write(&b, []Tensor{Float32("w", []int{1, 2}, []float32{1, 2}), Int64("n", nil, []int64{3}), Int32("e", []int{0}, nil)}, map[string]string{"k": "v"}); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add(file("{}"))
	f.Add(file(`{"a":{"dtype":"I32","shape":[1],"data_offsets":[0,4]}}`, 1, 2, 3, 4))
	f.Fuzz(func(t *testing.T, data []byte) {
		tensors, metadata, err := readBack(data)
		if err != nil {
			return
		}
		again, againMetadata, err := readBack(written(t, tensors, metadata))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tensors, again); diff != "" || len(metadata) != len(againMetadata) {
			t.Errorf("%s%v %v", diff, metadata, againMetadata)
		}
	})
}

// Int64 is a tensor of int64 values, which are copied.
func Int64(name string, shape []int, values []int64) Tensor {
	data := make([]byte, 0, 8*len(values))
	for _, v := range values {
		data = binary.LittleEndian.AppendUint64(data, uint64(v))
	}
	return Tensor{Name: name, DType: I64, Shape: slices.Clone(shape), Data: data}
}

// Int32 is a tensor of int32 values, which are copied.
func Int32(name string, shape []int, values []int32) Tensor {
	data := make([]byte, 0, 4*len(values))
	for _, v := range values {
		data = binary.LittleEndian.AppendUint32(data, uint32(v))
	}
	return Tensor{Name: name, DType: I32, Shape: slices.Clone(shape), Data: data}
}
