package datacmd_test

import (
	"bytes"
	"errors"
	"fmt"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/dataset"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/codec"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/datacmd"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/datatest"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/example"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/planted"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/recordio"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/table"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/tfrecord"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var mnist = datacmd.PixelFeatures([]int{28, 28})

// contents is every record's pixels and label as numbers, whatever the format.
func contents(t *testing.T, spec data.Spec) (images [][]float32, labels []int32) {
	t.Helper()
	spec.Features = mnist
	ds, err := data.Open(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	defer ds.Close() //nolint:errcheck // it has no errors
	b, err := data.NewBatcher(ds, graph.Feed{Features: mnist, Columns: []graph.Column{{Feature: "image"}}, Label: "label"}, 1)
	if err != nil {
		t.Fatal(err)
	}
	for file, f := range ds.Files() {
		for i := range f.Records {
			var batch graph.Batch
			if err := b.Fill(t.Context(), file, []int64{i}, &batch); err != nil {
				t.Fatal(err)
			}
			images, labels = append(images, batch.Inputs[0]), append(labels, batch.Labels[0])
		}
	}
	return images, labels
}

func same(t *testing.T, got, want data.Spec, lo, hi int) {
	t.Helper()
	images, labels := contents(t, got)
	wantImages, wantLabels := contents(t, want)
	if !slices.EqualFunc(images, wantImages[lo:hi], slices.Equal) || !slices.Equal(labels, wantLabels[lo:hi]) {
		t.Errorf("%d records of other contents than the %d of the source", len(labels), hi-lo)
	}
}

func TestSynthAndConvert(t *testing.T) {
	ctx, source := t.Context(), data.Spec{Path: "synthetic://digits?records=300&seed=5"}
	t.Run("a digit set in RecordIO has the file names, records and chunks that were asked for", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "new", "train")
		var calls []int64
		paths, err := datacmd.Synth(ctx, dataset.Digits, 300, 5, datacmd.Output{
			Dir: dir, RecordsPerFile: 120, RecordsPerChunk: 50, Compressor: recordio.Snappy,
			Progress: func(done, total int64) { calls = append(calls, done, total) },
		})
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, p := range paths {
			names = append(names, filepath.Base(p))
		}
		if !slices.Equal(names, []string{"data-0000", "data-0001", "data-0002"}) {
			t.Errorf("files %q", names)
		}
		if n := len(calls); n == 0 || calls[n-1] != 300 || calls[n-2] != 300 {
			t.Errorf("progress %v", calls)
		}
		same(t, data.Spec{Path: dir}, source, 0, 300)
		ds, err := data.Open(ctx, data.Spec{Path: dir})
		if err != nil {
			t.Fatal(err)
		}
		defer ds.Close() //nolint:errcheck // it has no errors
		if f, l := ds.Files(), ds.Layout(0); f[0].Records != 120 || f[2].Records != 60 || l.Chunks != 3 || l.LargestChunk != 50 || l.Compression != "snappy" {
			t.Errorf("%+v, %+v", f, l)
		}
		r, err := ds.Read(ctx, 0, 0, 1)
		if err != nil || len(r[0]) != 3144 {
			t.Errorf("a record of %d bytes, %v; ElasticDL's has 3144", len(r[0]), err)
		}
	})
	t.Run("records that fill the last file exactly leave no empty file behind", func(t *testing.T) {
		dir := t.TempDir()
		paths, err := datacmd.Synth(ctx, dataset.Digits, 40, 1, datacmd.Output{Dir: dir, RecordsPerFile: 20})
		entries, _ := os.ReadDir(dir)
		if err != nil || len(paths) != 2 || len(entries) != 2 {
			t.Errorf("%q, %d entries, %v", paths, len(entries), err)
		}
	})
	t.Run("a digit set in IDX is the same, and IDX becomes RecordIO in either codec, and that the other", func(t *testing.T) {
		root := t.TempDir()
		step := func(name string, from data.Spec, out datacmd.Output) data.Spec {
			t.Helper()
			out.Dir = filepath.Join(root, name)
			if _, err := datacmd.Convert(ctx, from, 0, -1, out); err != nil {
				t.Fatal(err)
			}
			made := data.Spec{Path: out.Dir, Codec: out.Codec}
			same(t, made, source, 0, 300)
			return made
		}
		idx := step("idx", source, datacmd.Output{Format: dataset.IDX, IDXPrefix: "t10k"})
		asBytes := step("bytes", idx, datacmd.Output{Codec: dataset.BytesCodec})
		asExample := step("example", idx, datacmd.Output{Codec: dataset.TFExampleCodec, Compressor: recordio.Gzip})
		step("copy", asExample, datacmd.Output{Codec: dataset.TFExampleCodec})
		step("example to bytes", asExample, datacmd.Output{Codec: dataset.BytesCodec})
		asBytes.Features = mnist
		step("bytes to example", asBytes, datacmd.Output{Codec: dataset.TFExampleCodec})
	})
	t.Run("a range of records, over files, is what was asked for", func(t *testing.T) {
		root := t.TempDir()
		if _, err := datacmd.Convert(ctx, source, 0, -1, datacmd.Output{Dir: filepath.Join(root, "all"), RecordsPerFile: 100}); err != nil {
			t.Fatal(err)
		}
		for _, r := range [][2]int64{{0, 80}, {80, 300}, {99, 101}, {199, 200}} {
			dir := filepath.Join(root, fmt.Sprint(r[0]))
			if _, err := datacmd.Convert(ctx, data.Spec{Path: filepath.Join(root, "all")}, r[0], r[1], datacmd.Output{Dir: dir}); err != nil {
				t.Fatal(err)
			}
			same(t, data.Spec{Path: dir}, source, int(r[0]), int(r[1]))
		}
		for _, r := range [][2]int64{{0, 301}, {300, -1}, {-1, 5}, {5, 5}} {
			if _, err := datacmd.Convert(ctx, source, r[0], r[1], datacmd.Output{Dir: t.TempDir()}); err == nil {
				t.Errorf("converted %v", r)
			}
		}
	})
}

func TestNothingIsLost(t *testing.T) {
	ctx := t.Context()
	t.Run("a file that is there is replaced only with Force", func(t *testing.T) {
		dir := t.TempDir()
		out := datacmd.Output{Dir: dir}
		if _, err := datacmd.Synth(ctx, dataset.Digits, 10, 1, out); err != nil {
			t.Fatal(err)
		}
		before, err := os.ReadFile(filepath.Join(dir, "data-0000"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := datacmd.Synth(ctx, dataset.Digits, 10, 2, out); err == nil || !strings.Contains(err.Error(), "data-0000") || !strings.Contains(err.Error(), "--force") {
			t.Error(err)
		}
		if after, err := os.ReadFile(filepath.Join(dir, "data-0000")); err != nil || !bytes.Equal(before, after) {
			t.Error("the file was changed")
		}
		out.Force = true
		if _, err := datacmd.Synth(ctx, dataset.Digits, 10, 2, out); err != nil {
			t.Error(err)
		}
		same(t, data.Spec{Path: dir}, data.Spec{Path: "synthetic://digits?records=10&seed=2"}, 0, 10)
	})
	t.Run("files of an earlier, larger run are not mixed with new ones, even with Force", func(t *testing.T) {
		dir := t.TempDir()
		if _, err := datacmd.Synth(ctx, dataset.Digits, 30, 1, datacmd.Output{Dir: dir, RecordsPerFile: 10}); err != nil {
			t.Fatal(err)
		}
		if _, err := datacmd.Synth(ctx, dataset.Digits, 20, 1, datacmd.Output{Dir: dir, RecordsPerFile: 10, Force: true}); err == nil || !strings.Contains(err.Error(), "data-0002") {
			t.Error(err)
		}
	})
	t.Run("a source that turns out to be damaged leaves nothing behind", func(t *testing.T) {
		from, dir := t.TempDir(), t.TempDir()
		paths, err := datacmd.Synth(ctx, dataset.Digits, 100, 1, datacmd.Output{Dir: from, RecordsPerFile: 50, RecordsPerChunk: 10})
		if err != nil {
			t.Fatal(err)
		}
		damage(t, paths[1])
		if _, err := datacmd.Convert(ctx, data.Spec{Path: from}, 0, -1, datacmd.Output{Dir: dir, RecordsPerFile: 20}); !errors.Is(err, recordio.ErrDamaged) {
			t.Error(err)
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
			t.Errorf("%v left, %v", entries, err)
		}
	})
	t.Run("what cannot be written is refused", func(t *testing.T) {
		dir := t.TempDir()
		if _, err := datacmd.Synth(ctx, dataset.Digits, 10, 1, datacmd.Output{Dir: filepath.Join(dir, "records")}); err != nil {
			t.Fatal(err)
		}
		for wantText, c := range map[string]struct {
			from data.Spec
			out  datacmd.Output
		}{
			`"parquet" is not known`:   {data.Spec{Path: "synthetic://digits"}, datacmd.Output{Format: "parquet"}},
			"has no chunks of records": {data.Spec{Path: "synthetic://digits"}, datacmd.Output{Format: dataset.TFRecord, RecordsPerChunk: 5}},
			`codec "csv" is not known`: {data.Spec{Path: "synthetic://digits"}, datacmd.Output{Codec: "csv"}},
			"written as IDX":           {data.Spec{Path: filepath.Join(dir, "records")}, datacmd.Output{Format: dataset.IDX}},
			"give the model file":      {data.Spec{Path: filepath.Join(dir, "records")}, datacmd.Output{Codec: dataset.TFExampleCodec}},
			"use positive numbers":     {data.Spec{Path: "synthetic://digits"}, datacmd.Output{RecordsPerFile: -1}},
		} {
			c.out.Dir = filepath.Join(dir, "out")
			if _, err := datacmd.Convert(ctx, c.from, 0, -1, c.out); err == nil || !strings.Contains(err.Error(), wantText) {
				t.Errorf("%v, want %q", err, wantText)
			}
		}
	})
}

// flowers are two rows of CSV.
const flowers = "length,petals,species\n1.5,5,setosa\n2,6,versicolor\n"

// digits writes a data set of 40 digits.
func digits(t *testing.T, out datacmd.Output) {
	t.Helper()
	if _, err := datacmd.Synth(t.Context(), dataset.Digits, 40, 1, out); err != nil {
		t.Fatal(err)
	}
}

// cut takes a byte off a file's end.
func cut(t *testing.T, path string) {
	t.Helper()
	info, err := os.Stat(path)
	if err == nil {
		err = os.Truncate(path, info.Size()-1)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// zip puts a compressed file in the place of a plain one.
func zip(t *testing.T, path string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(path+".gz", datatest.Gzip(b), 0o600), os.Remove(path)); err != nil {
		t.Fatal(err)
	}
}

func TestTFRecordAndCSV(t *testing.T) {
	ctx := t.Context()
	t.Run("a digit set goes through every format and comes back the same", func(t *testing.T) {
		source, root := data.Spec{Path: "synthetic://digits?records=100&seed=3"}, t.TempDir()
		var made []data.Spec
		step := func(from data.Spec, codecName string, out datacmd.Output) data.Spec {
			t.Helper()
			out.Dir = filepath.Join(root, fmt.Sprint(len(made)))
			out.RecordsPerFile = 60
			if _, err := datacmd.Convert(ctx, from, 0, -1, out); err != nil {
				t.Fatal(err)
			}
			made = append(made, data.Spec{Path: out.Dir, Codec: codecName})
			same(t, made[len(made)-1], source, 0, 100)
			return made[len(made)-1]
		}
		idx := step(source, "", datacmd.Output{Format: dataset.IDX})
		plain := step(idx, dataset.TFExampleCodec, datacmd.Output{Format: dataset.TFRecord})
		gzipped := step(plain, dataset.TFExampleCodec, datacmd.Output{Format: dataset.TFRecord, Compression: tfrecord.Gzip})
		zlibbed := step(gzipped, dataset.TFExampleCodec, datacmd.Output{Format: dataset.TFRecord, Compression: tfrecord.Zlib})
		chunks := step(zlibbed, dataset.TFExampleCodec, datacmd.Output{Format: dataset.RecordIO, RecordsPerChunk: 10})
		other := step(chunks, dataset.BytesCodec, datacmd.Output{Format: dataset.RecordIO, Codec: dataset.BytesCodec, Compressor: recordio.Snappy})
		other.Features = mnist
		step(other, dataset.TFExampleCodec, datacmd.Output{Format: dataset.TFRecord, Codec: dataset.TFExampleCodec})
	})
	t.Run("rows become records of either format, by the names of the columns", func(t *testing.T) {
		dir := t.TempDir()
		path := filepath.Join(dir, "flowers.csv")
		if err := os.WriteFile(path, []byte(flowers), 0o600); err != nil {
			t.Fatal(err)
		}
		from := data.Spec{Path: path, Table: table.Options{
			Columns: map[string][]string{"features": {"petals", "length"}, "label": {"species"}},
			Words:   map[string][]string{"species": {"setosa", "versicolor"}},
		}}
		features := []graph.Feature{{Name: "features", DType: graph.Float32, Shape: []int{2}}, {Name: "label", DType: graph.Int64, Shape: []int{1}}}
		for name, out := range map[string]datacmd.Output{
			"TFRecord": {Format: dataset.TFRecord}, "RecordIO": {}, "RecordIO of bytes": {Codec: dataset.BytesCodec},
		} {
			t.Run(name, func(t *testing.T) {
				out.Dir = filepath.Join(dir, name)
				if _, err := datacmd.Convert(ctx, from, 1, 2, out); err != nil {
					t.Fatal(err)
				}
				name := dataset.TFExampleCodec
				if out.Codec != "" {
					name = out.Codec
				}
				ds, err := data.Open(ctx, data.Spec{Path: out.Dir, Codec: name, Features: features})
				if err != nil {
					t.Fatal(err)
				}
				defer ds.Close() //nolint:errcheck // it has no errors
				record, err := ds.Read(ctx, 0, 0, 1)
				if err != nil {
					t.Fatal(err)
				}
				decoder, err := ds.NewDecoder(features)
				values := codec.NewExample(features)
				if err = errors.Join(err, decoder.Decode(record[0], values)); err != nil || fmt.Sprint(values) != "[{[6 2] [] [] []} {[] [1] [] []}]" {
					t.Errorf("%v, %v", values, err)
				}
			})
		}
	})
}

// damage flips a bit in a file's last byte.
func damage(t *testing.T, path string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)-1] ^= 1
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestInspectAndVerify(t *testing.T) {
	ctx, root := t.Context(), t.TempDir()
	write := func(name string, out datacmd.Output) string {
		t.Helper()
		out.Dir = filepath.Join(root, name)
		if _, err := datacmd.Synth(ctx, dataset.Digits, 450, 1, out); err != nil {
			t.Fatal(err)
		}
		return out.Dir
	}
	asBytes := write("bytes", datacmd.Output{RecordsPerFile: 300, Compressor: recordio.Gzip})
	asExample := write("example", datacmd.Output{Codec: dataset.TFExampleCodec, RecordsPerChunk: 50})
	asIDX := write("idx", datacmd.Output{Format: dataset.IDX})
	asTFRecord := write("tfrecord", datacmd.Output{Format: dataset.TFRecord, Compression: tfrecord.Zlib})
	asCSV := filepath.Join(root, "flowers.csv")
	if err := os.WriteFile(asCSV, []byte(flowers), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		path     string
		wantText []string
		not      string
	}{
		"RecordIO of the bytes codec": {asBytes, []string{"data-0001", "2 files", "gzip", "3144 bytes", "codec bytes", "as ElasticDL wrote MNIST", "label        [", "300 records, which is 6 ranges of 50"}, "which is 3 ranges"},
		"RecordIO of tf_example":      {asExample, []string{"codec tf_example", `"image" float_list of 784`, `"label" int64_list of 1`, "label        ["}, "note:"},
		"TFRecord":                    {asTFRecord, []string{"data-0000.tfrecord.zlib", "tfrecord", "zlib", "codec tf_example", `"image" float_list of 784`}, "note:"},
		"CSV":                         {asCSV, []string{"csv", "rows, read as tf_example", `"length" float_list of 1`, `"petals" int64_list of 1`, `"species" bytes_list of 1`, "petals       [5 6] …"}, "note:"},
		"IDX":                         {asIDX, []string{"train-images-idx3-ubyte", "image uint8[28 28] and label", "labels       ["}, "note:"},
		"synthetic data":              {"synthetic://digits?records=450", []string{"synthetic", "450"}, "note:"},
	} {
		t.Run("inspect says what it is: "+name, func(t *testing.T) {
			var text strings.Builder
			if err := datacmd.Inspect(ctx, data.Spec{Path: c.path}, datacmd.InspectOptions{RecordsPerTask: 50}, &text); err != nil {
				t.Fatal(err)
			}
			for _, want := range append(c.wantText, "fingerprint") {
				if !strings.Contains(text.String(), want) {
					t.Errorf("it does not say %q:\n%s", want, text.String())
				}
			}
			if strings.Contains(text.String(), c.not) {
				t.Errorf("it says %q:\n%s", c.not, text.String())
			}
		})
	}
	t.Run("verify reads everything, and continues behind a damaged file", func(t *testing.T) {
		var text strings.Builder
		var last int64
		progress := func(done, _ int64) { last = done }
		if err := datacmd.Verify(ctx, data.Spec{Path: asBytes, Features: mnist}, progress, &text); err != nil || last != 450 {
			t.Errorf("%v after %d records:\n%s", err, last, text.String())
		}
		damage(t, filepath.Join(asBytes, "data-0000"))
		text.Reset()
		err := datacmd.Verify(ctx, data.Spec{Path: asBytes}, nil, &text)
		if !errors.Is(err, recordio.ErrDamaged) || !strings.Contains(text.String(), "data-0000: NOT RIGHT") || !strings.Contains(text.String(), "data-0001: 150 records are right") {
			t.Errorf("%v\n%s", err, text.String())
		}
	})
	t.Run("a file compressed as a whole that does not fit the cache is pointed out", func(t *testing.T) {
		var text strings.Builder
		if err := datacmd.Inspect(ctx, data.Spec{Path: asTFRecord, CacheBytes: 1 << 20}, datacmd.InspectOptions{}, &text); err != nil || !strings.Contains(text.String(), "decompresses all before that") {
			t.Errorf("%v\n%s", err, text.String())
		}
	})
	t.Run("verify names file and offset of what is damaged, in every format, and reads the others", func(t *testing.T) {
		for name, c := range map[string]struct {
			good, bad string // names of files
			make      func(t *testing.T, dir string)
			wantText  string
			spec      data.Spec
		}{
			"a TFRecord file that ends early": {"data-0000.tfrecord", "data-0001.tfrecord", func(t *testing.T, dir string) {
				digits(t, datacmd.Output{Dir: dir, Format: dataset.TFRecord, RecordsPerFile: 20})
				cut(t, filepath.Join(dir, "data-0001.tfrecord"))
			}, "within its", data.Spec{}},
			"a TFRecord record that is damaged": {"data-0000.tfrecord", "data-0001.tfrecord", func(t *testing.T, dir string) {
				digits(t, datacmd.Output{Dir: dir, Format: dataset.TFRecord, RecordsPerFile: 20})
				damage(t, filepath.Join(dir, "data-0001.tfrecord"))
			}, "record at offset", data.Spec{}},
			"a record of another model": {"", "data-0000", func(t *testing.T, dir string) {
				digits(t, datacmd.Output{Dir: dir, Codec: dataset.TFExampleCodec, RecordsPerChunk: 30})
			}, `record 0 (of those from offset 0 on): feature "pixels" is missing`, data.Spec{Codec: dataset.TFExampleCodec, Features: []graph.Feature{{Name: "pixels", DType: graph.Float32, Shape: []int{1}}}}},
			"a record that is no tf_example": {"", "data-0000", func(t *testing.T, dir string) {
				digits(t, datacmd.Output{Dir: dir, Codec: dataset.BytesCodec})
			}, "not a tf.train.Example", data.Spec{Codec: dataset.TFExampleCodec}},
			"a row with a cell too many": {"a.csv", "b.csv", func(t *testing.T, dir string) {
				for name, text := range map[string]string{"a.csv": flowers, "b.csv": flowers + "1,2,3,4\n"} {
					if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
						t.Fatal(err)
					}
				}
			}, "line 4: the row has 4 cells", data.Spec{}},
			"a compressed pair that ends early": {"", "train-images-idx3-ubyte.gz", func(t *testing.T, dir string) {
				digits(t, datacmd.Output{Dir: dir, Format: dataset.IDX})
				for _, name := range []string{"train-images-idx3-ubyte", "train-labels-idx1-ubyte"} {
					zip(t, filepath.Join(dir, name))
				}
				cut(t, filepath.Join(dir, "train-images-idx3-ubyte.gz"))
			}, "offset", data.Spec{}},
		} {
			t.Run(name, func(t *testing.T) {
				c.spec.Path = t.TempDir()
				c.make(t, c.spec.Path)
				var text strings.Builder
				err := datacmd.Verify(ctx, c.spec, nil, &text)
				if err == nil || !strings.Contains(err.Error(), c.wantText) || !strings.Contains(err.Error(), filepath.Join(c.spec.Path, c.bad)) || !strings.Contains(text.String(), c.bad+": NOT RIGHT") {
					t.Errorf("%v; want %q\n%s", err, c.wantText, text.String())
				}
				if c.good != "" && !strings.Contains(text.String(), c.good+": ") {
					t.Errorf("nothing is said of %s:\n%s", c.good, text.String())
				}
			})
		}
	})
	t.Run("a sheet is a picture of the digits", func(t *testing.T) {
		var b bytes.Buffer
		if err := datacmd.Sheet(ctx, data.Spec{Path: asIDX}, 45, &b); err != nil {
			t.Fatal(err)
		}
		picture, err := png.Decode(&b)
		if err != nil || picture.Bounds().Dx() != 600 || picture.Bounds().Dy() != 90 {
			t.Errorf("%v, %v", picture.Bounds(), err)
		}
		if err := datacmd.Sheet(ctx, data.Spec{Path: asExample}, 45, &b); err == nil {
			t.Error("made a sheet of RecordIO")
		}
	})
}

func TestARangeOfRecordsMayLackItsBeginningOrItsEnd(t *testing.T) {
	for text, want := range map[string][2]int64{"": {0, -1}, "0:8000": {0, 8000}, "8000:": {8000, -1}, ":5": {0, 5}, ":": {0, -1}, "3:3": {3, 3}} {
		if lo, hi, err := datacmd.ParseRange(text); err != nil || lo != want[0] || hi != want[1] {
			t.Errorf("%q: %d, %d, %v; want %v", text, lo, hi, err, want)
		}
	}
	for _, text := range []string{"5", "a:b", "-1:5", "5:3", "1:2:3", "0:-5"} {
		if lo, hi, err := datacmd.ParseRange(text); err == nil {
			t.Errorf("%q: %d, %d", text, lo, hi)
		}
	}
}

func TestASetWithAPlantedStructureIsWrittenInEitherCodecAndReadAsTheSameRecords(t *testing.T) {
	made, dir := t.TempDir(), t.TempDir()
	for path, name := range map[string]string{made: "", dir: dataset.BytesCodec} {
		if _, err := datacmd.Synth(t.Context(), "census", 30, 4, datacmd.Output{Dir: path, Codec: name}); err != nil {
			t.Fatal(err)
		}
	}
	table, _ := planted.ByName("census")
	decoder, values := example.NewDecoder(table.Features), codec.NewExample(table.Features)
	for i, spec := range []data.Spec{{Path: data.Synthetic("census", 30, 4)}, {Path: made, Codec: dataset.TFExampleCodec}, {Path: dir, Codec: dataset.BytesCodec}} {
		spec.Features = table.Features
		ds, err := data.Open(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		records, err := ds.Read(t.Context(), 0, 0, 30)
		if err != nil {
			t.Fatal(err)
		}
		for r, record := range records {
			want := table.Record(4, uint32(r))
			if i == 2 { // the values in the order of the features
				if err := decoder.Decode(want, values); err != nil {
					t.Fatal(err)
				}
				if want, err = codec.Append(nil, dataset.BytesCodec, table.Features, values); err != nil {
					t.Fatal(err)
				}
			}
			if !bytes.Equal(record, want) {
				t.Fatalf("%+v: record %d is %x, want %x", spec, r, record, want)
			}
		}
		if err := ds.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
