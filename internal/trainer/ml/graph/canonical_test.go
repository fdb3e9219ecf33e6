package graph_test

import (
	"bytes"
	"math"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
)

// smallModel is a dense classifier over four values.
func smallModel() *graph.Model {
	return &graph.Model{
		Name: "small",
		Nodes: []graph.Node{
			{Op: graph.Input, Name: "x", Shape: []int{4}, Place: graph.Place{Line: 3}},
			{Op: graph.Dense, Name: "dense", Inputs: []int{0}, Shape: []int{2}, Dense: &graph.DenseAttrs{Units: 2, UseBias: true}, Place: graph.Place{Line: 4}},
		},
		Output:    1,
		Loss:      graph.SparseSoftmaxCrossEntropy,
		Optimizer: graph.Optimizer{Kind: graph.SGD, LearningRate: 0.1},
		Metrics:   []graph.Metric{{Name: "accuracy", Kind: graph.Accuracy}},
		Feed: graph.Feed{
			Features: []graph.Feature{{Name: "x", DType: graph.Float32, Shape: []int{4}}, {Name: "y", DType: graph.Int64, Shape: []int{1}}},
			Columns:  []graph.Column{{Feature: "x", Transforms: []graph.Transform{{Op: "divide", Value: 255}}}},
			Label:    "y",
		},
	}
}

func TestCanonical(t *testing.T) {
	want := `{"nodes":[{"op":"input","name":"x","shape":[4]},` +
		`{"op":"dense","name":"dense","inputs":[0],"shape":[2],"dense":{"units":2,"use_bias":true}}],` +
		`"output":1,"loss":"sparse_softmax_cross_entropy","optimizer":{"kind":"sgd","learning_rate":0.1},` +
		`"feed":{"features":[{"name":"x","dtype":"float32","shape":[4]},{"name":"y","dtype":"int64","shape":[1]}],` +
		`"columns":[{"feature":"x","transforms":[{"op":"divide","value":255}]}],"label":"y"}}`

	t.Run("the text is the one that digests were computed from", func(t *testing.T) {
		if got := string(graph.Canonical(smallModel())); got != want {
			t.Errorf("got\n%s\nwant\n%s\nevery job's lineage changes with this text", got, want)
		}
	})

	for name, change := range map[string]func(*graph.Model){
		"lines of the model file decide nothing": func(m *graph.Model) { m.Nodes[1].Place.Line = 40 },
		"the model's name decides nothing":       func(m *graph.Model) { m.Name = "other" },
		"the names of metrics decide nothing":    func(m *graph.Model) { m.Metrics[0].Name = "acc" },
		"a metric more decides nothing":          func(m *graph.Model) { m.Metrics = nil },
		"an input function is known by its digest": func(m *graph.Model) {
			m.Feed.Function = func([]graph.Example) ([][]float32, []int32, error) { return nil, nil, nil }
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := smallModel()
			change(m)
			if got := string(graph.Canonical(m)); got != want {
				t.Errorf("the text changed to %s", got)
			}
		})
	}

	for name, change := range map[string]func(*graph.Model){
		"another number of units is another model":   func(m *graph.Model) { m.Nodes[1].Dense.Units = 3 },
		"another learning rate is another model":     func(m *graph.Model) { m.Optimizer.LearningRate = 0.01 },
		"momentum is another model":                  func(m *graph.Model) { m.Optimizer.Momentum = 0.9 },
		"another scaling is another model":           func(m *graph.Model) { m.Feed.Columns[0].Transforms[0].Value = 256 },
		"another order of features is another model": func(m *graph.Model) { f := m.Feed.Features; f[0], f[1] = f[1], f[0] },
		"another layer name is another model":        func(m *graph.Model) { m.Nodes[1].Name = "logits" },
		"another input function is another model":    func(m *graph.Model) { m.Feed.FunctionDigest = "00" },
		"dropout at training only is another model":  func(m *graph.Model) { m.Nodes[1].Dropout = &graph.DropoutAttrs{Rate: 0.5} },
	} {
		t.Run(name, func(t *testing.T) {
			m := smallModel()
			change(m)
			if bytes.Equal(graph.Canonical(m), []byte(want)) {
				t.Error("the text did not change")
			}
		})
	}

	t.Run("a number that is not finite is a broken invariant", func(t *testing.T) {
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
		}()
		m := smallModel()
		m.Optimizer.LearningRate = math.NaN()
		graph.Canonical(m)
	})
}
