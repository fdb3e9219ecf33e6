package data_test

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/dataset"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/codec"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/datatest"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/recordio"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
)

// scaled is the feed of small: x ÷ 3 + 0.1, each rounded to float32.
var scaled = graph.Feed{
	Features: small,
	Columns: []graph.Column{{Feature: "x", Transforms: []graph.Transform{
		{Op: "divide", Value: 3}, {Op: "add", Value: 0.1}, {Op: "multiply", Value: 0.7}, {Op: "subtract", Value: 1e-3},
	}}},
	Label: "label",
}

// mnistFeed is the tutorial's: pixels ÷ 255.
var mnistFeed = graph.Feed{
	Features: mnist,
	Columns:  []graph.Column{{Feature: "image", Transforms: []graph.Transform{{Op: "divide", Value: 255}}}},
	Label:    "label",
}

func batcher(t testing.TB, ds *data.Dataset, feed graph.Feed, maxBatch int) *data.Batcher {
	t.Helper()
	b, err := data.NewBatcher(ds, feed, maxBatch)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// expected is what scaled makes of the number v, one rounded operation after the other.
func expected(v float32) float32 {
	v /= 3
	v = float32(v + float32(0.1))
	v = float32(v * float32(0.7))
	return float32(v - float32(1e-3))
}

func TestFill(t *testing.T) {
	for _, name := range []string{dataset.BytesCodec, dataset.TFExampleCodec} {
		path := save(t, filepath.Join(t.TempDir(), "a"), name, 0, 50, 7)
		t.Run("records in any order become inputs and labels in that order: "+name, func(t *testing.T) {
			b := batcher(t, open(t, data.Spec{Path: path, Codec: name, Features: small}), scaled, 8)
			var batch graph.Batch
			for _, indices := range [][]int64{{3}, {49, 0, 6, 7, 8, 8, 33, 1}, {5, 4}} {
				if err := b.Fill(t.Context(), 0, indices, &batch); err != nil {
					t.Fatal(err)
				}
				if batch.N != len(indices) || len(batch.Labels) != batch.N || len(batch.Inputs) != 1 || len(batch.Inputs[0]) != 2*batch.N {
					t.Fatalf("%+v", batch)
				}
				for n, i := range indices {
					x, half := expected(float32(i)), expected(float32(i)/2)
					if batch.Inputs[0][2*n] != x || batch.Inputs[0][2*n+1] != half || batch.Labels[n] != int32(i%10) {
						t.Errorf("record %d: %v, label %d; want %v, %v", i, batch.Inputs[0][2*n:2*n+2], batch.Labels[n], x, half)
					}
				}
			}
		})
	}
	path := save(t, filepath.Join(t.TempDir(), "a"), dataset.BytesCodec, 0, 50, 7)
	t.Run("a minibatch of none, of too many or of records that are not there is refused", func(t *testing.T) {
		b := batcher(t, open(t, data.Spec{Path: path, Features: small}), scaled, 2)
		for _, indices := range [][]int64{nil, {1, 2, 3}, {50}, {-1}, {0, math.MaxInt64}} {
			if err := b.Fill(t.Context(), 0, indices, &graph.Batch{}); err == nil {
				t.Errorf("filled %v", indices)
			}
		}
		if err := b.Fill(t.Context(), 1, []int64{0}, &graph.Batch{}); err == nil {
			t.Error("filled from a file that is not there")
		}
	})
	t.Run("a record that does not fit the schema is named with its file", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "mixed")
		other, err := codec.Append(nil, dataset.BytesCodec, small, graph.Example{{Floats: []float32{1, 2}}, {Ints: []int64{math.MaxInt32 + 1}}})
		if err != nil {
			t.Fatal(err)
		}
		saveBytes(t, path, datatest.RecordIO(t, recordio.WriterOptions{}, smallRecord(t, dataset.BytesCodec, 0), smallRecord(t, dataset.TFExampleCodec, 1), other, nil))
		b := batcher(t, open(t, data.Spec{Path: path, Features: small}), scaled, 2)
		for record, wantText := range map[int64]string{1: "tf_example", 2: `label "label" is 2147483648`, 3: "0 bytes"} {
			err := b.Fill(t.Context(), 0, []int64{0, record}, &graph.Batch{})
			if err == nil || !strings.Contains(err.Error(), wantText) || !strings.Contains(err.Error(), path) {
				t.Errorf("record %d: %v, want %q", record, err, wantText)
			}
		}
	})
	t.Run("a label that is a float32 becomes a target, whatever the minibatch held before", func(t *testing.T) {
		schema := []graph.Feature{{Name: "x", DType: graph.Int32, Shape: []int{1}}, {Name: "y", DType: graph.Float32, Shape: []int{1}}}
		path := filepath.Join(t.TempDir(), "measured")
		var records [][]byte
		for i := range 3 {
			record, err := codec.Append(nil, dataset.BytesCodec, schema, graph.Example{{Ints: []int64{int64(i)}}, {Floats: []float32{float32(i) - 0.75}}})
			if err != nil {
				t.Fatal(err)
			}
			records = append(records, record)
		}
		saveBytes(t, path, datatest.RecordIO(t, recordio.WriterOptions{}, records...))
		b := batcher(t, open(t, data.Spec{Path: path, Features: schema}), graph.Feed{Features: schema, Columns: []graph.Column{{Feature: "x"}}, Label: "y"}, 2)
		batch := graph.Batch{Labels: []int32{4, 5}}
		if err := b.Fill(t.Context(), 0, []int64{2, 0}, &batch); err != nil {
			t.Fatal(err)
		}
		if len(batch.Labels) != 0 || len(batch.Targets) != 2 || batch.Targets[0] != 1.25 || batch.Targets[1] != -0.75 {
			t.Errorf("%+v", batch)
		}
	})
	t.Run("row numbers are taken as they are, beside numbers, and refused where they fit no table", func(t *testing.T) {
		schema := []graph.Feature{{Name: "rows", DType: graph.Int64, Shape: []int{2}}, {Name: "x", DType: graph.Float32, Shape: []int{1}}, {Name: "y", DType: graph.Uint8, Shape: []int{1}}}
		path := filepath.Join(t.TempDir(), "rows")
		var records [][]byte
		for _, row := range []int64{7, math.MaxInt32, math.MaxInt32 + 1} {
			record, err := codec.Append(nil, dataset.TFExampleCodec, schema, graph.Example{{Ints: []int64{row, -3}}, {Floats: []float32{0.5}}, {Bytes: []byte{1}}})
			if err != nil {
				t.Fatal(err)
			}
			records = append(records, record)
		}
		saveBytes(t, path, datatest.RecordIO(t, recordio.WriterOptions{}, records...))
		ds := open(t, data.Spec{Path: path, Codec: dataset.TFExampleCodec, Features: schema})
		b := batcher(t, ds, graph.Feed{Features: schema, Columns: []graph.Column{{Feature: "x"}, {Feature: "rows", Integer: true}}, Label: "y"}, 2)
		var batch graph.Batch
		if err := b.Fill(t.Context(), 0, []int64{1, 0}, &batch); err != nil {
			t.Fatal(err)
		}
		if got := batch.Integers[1]; !slices.Equal(got, []int32{math.MaxInt32, -3, 7, -3}) || !slices.Equal(batch.Inputs[0], []float32{0.5, 0.5}) || len(batch.Inputs[1]) != 0 {
			t.Errorf("%+v", batch)
		}
		if err := b.Fill(t.Context(), 0, []int64{2}, &batch); err == nil || !strings.Contains(err.Error(), `"rows"`) || !strings.Contains(err.Error(), "2147483648") {
			t.Errorf("error %v", err)
		}
		if _, err := data.NewBatcher(ds, graph.Feed{Features: schema, Columns: []graph.Column{{Feature: "x", Integer: true}}, Label: "y"}, 2); err == nil {
			t.Error("a float32 was taken for row numbers")
		}
	})
	t.Run("an input function gets the decoded values, and what it returns is copied", func(t *testing.T) {
		own := []float32{0, 0, 0}
		feed := graph.Feed{Features: small, Function: func(records []graph.Example) ([][]float32, []int32, error) {
			labels := make([]int32, len(records))
			for i, r := range records {
				own[i], labels[i] = r[0].Floats[0]+r[0].Floats[1], int32(r[1].Ints[0])+100
			}
			return [][]float32{own[:len(records)]}, labels, nil
		}}
		b := batcher(t, open(t, data.Spec{Path: path, Features: small}), feed, 3)
		var batch graph.Batch
		if err := b.Fill(t.Context(), 0, []int64{4, 40, 9}, &batch); err != nil {
			t.Fatal(err)
		}
		clear(own)
		if in := batch.Inputs[0]; in[0] != 6 || in[1] != 60 || in[2] != 13.5 || batch.Labels[2] != 109 || batch.N != 3 {
			t.Errorf("%+v", batch)
		}
	})
	t.Run("an input function's error and wrong counts are errors", func(t *testing.T) {
		broken := errors.New("line 7: no such key")
		for _, function := range []func([]graph.Example) ([][]float32, []int32, error){
			func([]graph.Example) ([][]float32, []int32, error) { return nil, nil, broken },
			func([]graph.Example) ([][]float32, []int32, error) { return [][]float32{{1, 2}}, []int32{1}, nil },
			func([]graph.Example) ([][]float32, []int32, error) { return [][]float32{{1, 2, 3}}, []int32{1, 2}, nil },
			func([]graph.Example) ([][]float32, []int32, error) { return [][]float32{{}}, []int32{1, 2}, nil },
		} {
			b := batcher(t, open(t, data.Spec{Path: path, Features: small}), graph.Feed{Features: small, Function: function}, 2)
			if err := b.Fill(t.Context(), 0, []int64{0, 1}, &graph.Batch{}); err == nil {
				t.Error("no error")
			}
		}
	})
	t.Run("a feed that the schema cannot serve is refused by name", func(t *testing.T) {
		ds := open(t, data.Spec{Path: path, Features: small})
		column := []graph.Column{{Feature: "x"}}
		for wantText, feed := range map[string]graph.Feed{
			`"y", which its schema does not hold`: {Features: small, Columns: []graph.Column{{Feature: "y"}}, Label: "label"},
			`"class", which its schema`:           {Features: small, Columns: column, Label: "class"},
			`label "x" is float32[2]`:             {Features: small, Columns: column, Label: "x"},
			`"log" is not one of`:                 {Features: small, Columns: []graph.Column{{Feature: "x", Transforms: []graph.Transform{{Op: "log"}}}}, Label: "label"},
			"exactly one of the two":              {Features: small, Label: "label"},
			"schema of the records is empty":      {Columns: column},
		} {
			if _, err := data.NewBatcher(ds, feed, 1); err == nil || !strings.Contains(err.Error(), wantText) {
				t.Errorf("%v, want %q", err, wantText)
			}
		}
		if _, err := data.NewBatcher(ds, scaled, 0); err == nil {
			t.Error("made for minibatches of 0 records")
		}
	})
}

func TestPixelTypes(t *testing.T) {
	dir := t.TempDir()
	saveMNIST(t, dir, "train", "", 300)
	for _, path := range []string{dir, "synthetic://digits?records=300"} {
		t.Run("pixels and labels are the same numbers in every type of the schema, in either order: "+filepath.Base(path), func(t *testing.T) {
			var first graph.Batch
			for i, image := range []graph.DType{graph.Float32, graph.Int64, graph.Int32, graph.Uint8} {
				for _, label := range []graph.DType{graph.Int64, graph.Int32, graph.Uint8} {
					feed := mnistFeed
					feed.Features = []graph.Feature{{Name: "image", DType: image, Shape: []int{28, 28, 1}}, {Name: "label", DType: label}}
					if i%2 == 1 {
						feed.Features[0], feed.Features[1] = feed.Features[1], feed.Features[0]
					}
					ds := open(t, data.Spec{Path: path, Features: feed.Features})
					var batch graph.Batch
					if err := batcher(t, ds, feed, 4).Fill(t.Context(), 0, []int64{299, 7, 130, 0}, &batch); err != nil {
						t.Fatal(err)
					}
					if first.N == 0 {
						first = batch
						raw, err := ds.Read(t.Context(), 0, 7, 8)
						if err != nil || batch.Inputs[0][784+400] != float32(raw[0][400])/255 || batch.Labels[1] != int32(raw[0][784]) {
							t.Fatalf("record 7 is another (%v)", err)
						}
					}
					for k, x := range batch.Inputs[0] {
						if x != first.Inputs[0][k] {
							t.Fatalf("%s, %s: element %d is %v, want %v", image, label, k, x, first.Inputs[0][k])
						}
					}
					for k, l := range batch.Labels {
						if l != first.Labels[k] {
							t.Fatalf("%s, %s: label %d is %v, want %v", image, label, k, l, first.Labels[k])
						}
					}
				}
			}
		})
	}
}

func TestFillAllocatesNothing(t *testing.T) {
	dir := t.TempDir()
	saveMNIST(t, filepath.Join(dir, "idx"), "train", "", 300)
	for name, c := range map[string]struct {
		spec data.Spec
		feed graph.Feed
	}{
		"bytes":      {data.Spec{Path: save(t, filepath.Join(dir, "bytes"), dataset.BytesCodec, 0, 300, 20), Features: small}, scaled},
		"tf_example": {data.Spec{Path: save(t, filepath.Join(dir, "tf"), dataset.TFExampleCodec, 0, 300, 20), Features: small, Codec: dataset.TFExampleCodec}, scaled},
		"idx":        {data.Spec{Path: filepath.Join(dir, "idx"), Features: mnist}, mnistFeed},
		"synthetic":  {data.Spec{Path: "synthetic://digits?records=300", Features: mnist}, mnistFeed},
	} {
		t.Run("once the cache is warm: "+name, func(t *testing.T) {
			b := batcher(t, open(t, c.spec), c.feed, 10)
			var batch graph.Batch
			indices := []int64{299, 0, 13, 47, 112, 160, 201, 250, 20, 280}
			var err error
			allocations := testing.AllocsPerRun(50, func() { err = b.Fill(t.Context(), 0, indices, &batch) })
			if err != nil || allocations != 0 {
				t.Errorf("%v allocations, %v", allocations, err)
			}
		})
	}
}

func TestBatchersOfOneDataSetDoNotDisturbEachOther(t *testing.T) {
	// A cache of a few chunks, so that batchers and reading ahead push out each other's.
	path := save(t, filepath.Join(t.TempDir(), "a"), dataset.BytesCodec, 0, 500, 10)
	ds := open(t, data.Spec{Path: path, Features: small, CacheBytes: 2000})
	var all sync.WaitGroup
	for w := range 4 {
		b := batcher(t, ds, scaled, 5)
		all.Go(func() {
			var batch graph.Batch
			for step := range 300 {
				at := int64((step*37 + w*101) % 490)
				ds.Prefetch(0, at, at+10)
				if err := b.Fill(t.Context(), 0, []int64{at, at + 3, at + 9}, &batch); err != nil {
					t.Error(err)
					return
				}
				if batch.Inputs[0][2] != expected(float32(at+3)) || batch.Labels[2] != int32((at+9)%10) {
					t.Errorf("worker %d, record %d: other values", w, at)
					return
				}
			}
		})
	}
	all.Wait()
}

// mnistDir is MNIST's own test set where the environment has it.
func mnistDir(t testing.TB) string {
	dir := os.Getenv("MNIST_DIR")
	if dir == "" {
		t.Skip("MNIST_DIR does not name a directory with t10k-images-idx3-ubyte.gz; the synthetic data in the other tests takes the same path")
	}
	return dir
}

func TestMNIST(t *testing.T) {
	ds := open(t, data.Spec{Path: filepath.Join(mnistDir(t), "t10k-images-idx3-ubyte.gz"), Format: dataset.IDX, Features: mnist})
	t.Run("the test set has 10,000 digits, the first of them 7, 2, 1, 0, 4", func(t *testing.T) {
		var batch graph.Batch
		if err := batcher(t, ds, mnistFeed, 5).Fill(t.Context(), 0, []int64{0, 1, 2, 3, 4}, &batch); err != nil {
			t.Fatal(err)
		}
		if ds.Records() != 10000 || [5]int32(batch.Labels) != [5]int32{7, 2, 1, 0, 4} {
			t.Errorf("%d records, labels %v", ds.Records(), batch.Labels)
		}
	})
}

func BenchmarkFill(b *testing.B) {
	feed := mnistFeed
	ds := open(b, data.Spec{Path: "synthetic://digits?records=1000", Features: mnist})
	batch, filler, indices := graph.Batch{}, batcher(b, ds, feed, 10), []int64{5, 3, 99, 20, 33, 47, 52, 66, 71, 84}
	for b.Loop() {
		if err := filler.Fill(b.Context(), 0, indices, &batch); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N*len(indices))/b.Elapsed().Seconds(), "records/s")
}
