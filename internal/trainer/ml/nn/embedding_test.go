package nn_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/gradient"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/kernel"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/nn"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/philox"
)

func tableModel(rows, width int) *graph.Model {
	return model(2).dense(3).ids(3).embedding(rows, width).flatten().merge(graph.Concatenate, 1).dense(4).build()
}

func TestARowsGradientIsThatOfItsLookupsInTheOrderOfTheRecords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const rows, width, lookups = 6, 5, 3
		const stepRecords = 16 // a power of 2, so that a record's own gradient has the same bits in any minibatch
		records := rapid.IntRange(1, 12).Draw(t, "records")
		m := &graph.Model{Name: "rows", Loss: graph.SparseSoftmaxCrossEntropy, Optimizer: graph.Optimizer{Kind: graph.SGD, LearningRate: 1}, Output: 2, Nodes: []graph.Node{
			{Op: graph.Input, Name: "ids", Shape: []int{lookups}, Integer: true},
			{Op: graph.Embedding, Name: "e", Inputs: []int{0}, Shape: []int{lookups, width}, Embedding: &graph.EmbeddingAttrs{InputDim: rows, OutputDim: width}},
			{Op: graph.Flatten, Name: "f", Inputs: []int{1}, Shape: []int{lookups * width}},
		}}
		n, err := nn.Compile(m, nn.Options{Kernel: kernel.Portable(), Threads: 2, MaxBatch: 12})
		if err != nil {
			t.Fatal(err)
		}
		defer n.Close()
		state := make([]float32, n.StateSize())
		n.Init(state, 5)
		var ids []int32
		for range records { // rows of a record differ, so that each lookup's own gradient can be seen
			ids = append(ids, rapid.Permutation([]int32{0, 1, 2, 3, 4, 5}).Draw(t, "rows")[:lookups]...)
		}
		data := &graph.Batch{N: records, Inputs: [][]float32{nil}, Integers: [][]int32{ids}, Labels: make([]int32, records)}
		got := rowsBuffer(n)
		if _, err := n.Gradient(state, data, stepRecords, 0, 0, 1, gradientBuffer(n), got); err != nil {
			t.Fatal(err)
		}
		want := map[int32][]float32{}
		for r := range records {
			one := &graph.Batch{N: 1, Inputs: [][]float32{nil}, Integers: [][]int32{ids[r*lookups:][:lookups]}, Labels: []int32{0}}
			rows := rowsBuffer(n)
			if _, err := n.Gradient(state, one, stepRecords, 0, 0, 1, gradientBuffer(n), rows); err != nil {
				t.Fatal(err)
			}
			for k, row := range rows[0].Index {
				values := rows[0].Values[k*width:][:width]
				if sum := want[row]; sum != nil {
					kernel.Portable().Add(sum, values)
				} else {
					want[row] = slices.Clone(values)
				}
			}
		}
		if len(got[0].Index) != len(want) || !slices.IsSorted(got[0].Index) {
			t.Fatalf("rows %v, want %d of them", got[0].Index, len(want))
		}
		for k, row := range got[0].Index {
			if values := got[0].Values[k*width:][:width]; hash(values) != hash(want[row]) {
				t.Fatalf("row %d: %v, one by one %v", row, values, want[row])
			}
		}
	})
}

func TestEmbeddingsBeginAsKerasUniformNumbersOfOurGenerator(t *testing.T) {
	n := compile(t, tableModel(9, 4), kernel.Portable(), 1, 1)
	state := make([]float32, n.StateSize())
	n.Init(state, 3)
	position := slices.IndexFunc(n.Params(), func(p nn.Param) bool { return p.Name == "embedding/embeddings" })
	key := philox.NewKey(3, philox.Init)
	for i, v := range state[n.Tables()[0].Offset:][:36] {
		if want := float32(2*float64(philox.Float32(key.Element(philox.Index{uint32(position)}, uint64(i))))-1) * float32(0.05); v != want {
			t.Fatalf("element %d is %v, want %v", i, v, want)
		}
	}
}

func TestASnapshotOfTablesAndTheirSlotsGoesOnToTheSameBits(t *testing.T) {
	m := testModels["rows of three tables, two of them for one input, beside numbers"]()
	m.Optimizer = graph.Optimizer{Kind: graph.Adam, LearningRate: 0.01, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-7}
	n := compile(t, m, kernel.Portable(), 1, 5)
	state, _ := train(t, m, kernel.Portable(), 1, 4)
	restored := make([]float32, n.StateSize())
	if err := n.Restore(restored, n.Snapshot(state)); err != nil {
		t.Fatal(err)
	}
	if hash(restored) != hash(state) {
		t.Error("the restored state has other bits")
	}
	names := ""
	for _, tensor := range n.Export(state) {
		names += tensor.Name + " "
	}
	if !strings.Contains(names, "embedding_2/embeddings") || strings.Contains(names, "optimizer") {
		t.Errorf("a model holds %s", names)
	}
}

func TestWhatATableCannotDoIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		build func() *graph.Model
		want  string
	}{
		"numbers choose no rows":    {func() *graph.Model { return model(3).embedding(5, 2).flatten().dense(2).build() }, "no integer input"},
		"row numbers are no values": {func() *graph.Model { return model(3).ids(3).dense(2).build() }, "only Embedding layers"},
		"a table without rows":      {func() *graph.Model { return model(3).ids(3).embedding(0, 2).flatten().dense(2).build() }, "a table of 0 rows"},
		"a sum over axes that are not there": {func() *graph.Model {
			m := model(3, 2).reduceSum(0, 1, false).dense(2).build()
			m.Nodes[1].ReduceSum.Axes = 3
			return m
		}, "a sum over 3 axes"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := nn.Compile(c.build(), nn.Options{Kernel: kernel.Portable(), MaxBatch: 2})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
	n := compile(t, tableModel(5, 2), kernel.Portable(), 1, 4)
	state := randomState(n)
	for name, change := range map[string]func(*graph.Batch){
		"a row beyond the table":    func(b *graph.Batch) { b.Integers[1][7] = 5 },
		"a row below 0":             func(b *graph.Batch) { b.Integers[1][7] = -1 },
		"row numbers are missing":   func(b *graph.Batch) { b.Integers = nil },
		"too few of them":           func(b *graph.Batch) { b.Integers[1] = b.Integers[1][1:] },
		"an input too few":          func(b *graph.Batch) { b.Inputs = b.Inputs[:1] },
		"an input is of other size": func(b *graph.Batch) { b.Inputs[0] = b.Inputs[0][1:] },
	} {
		t.Run(name, func(t *testing.T) {
			b := batch(tableModel(5, 2), 4, 1)
			change(b)
			if _, err := n.Gradient(state, b, 4, 0, 0, 1, gradientBuffer(n), rowsBuffer(n)); err == nil {
				t.Error("the minibatch was taken")
			}
		})
	}
	t.Run("a row that would not be finite is refused by the table's name", func(t *testing.T) {
		sum := gradient.Sum{Dense: make([]float32, n.TrainableSize()), Rows: []gradient.Rows{{Index: []int32{2}, Values: []float32{1, float32(math.Inf(1))}}}}
		if err := n.Apply(slices.Clone(state), sum, nil, 3); !errors.Is(err, nn.ErrNotFinite) || !strings.Contains(err.Error(), "embedding/embeddings") {
			t.Errorf("error %v", err)
		}
		sum.Rows[0].Index[0] = 5
		if err := n.Apply(slices.Clone(state), sum, nil, 3); err == nil || !strings.Contains(err.Error(), "row 5 of 5") {
			t.Errorf("error %v", err)
		}
	})
}
