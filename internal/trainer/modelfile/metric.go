package modelfile

import (
	"fmt"

	"go.starlark.net/starlark"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/graph"
)

// metric is what a constructor of tf.keras.metrics returns.
type metric struct {
	path string
	kind graph.MetricKind
}

func (m metric) String() string        { return m.path + "()" }
func (m metric) Type() string          { return "metric" }
func (m metric) Freeze()               {}
func (m metric) Truth() starlark.Bool  { return true }
func (m metric) Hash() (uint32, error) { return starlark.String(m.path).Hash() }

// metricFunctions are the metrics of tf.keras.metrics that go with losses of one value for each record.
func metricFunctions() map[string]starlark.Value {
	const metrics = "tensorflow.keras.metrics."
	zero := []starlark.Value{starlark.MakeInt(0), starlark.Float(0)}
	binary := signature{name: "tf.keras.metrics.BinaryAccuracy", keywords: []string{"name"}, only: map[string][]starlark.Value{"threshold": zero, "dtype": float32Only}}
	squared := signature{name: "tf.keras.metrics.MeanSquaredError", keywords: []string{"name"}, only: map[string][]starlark.Value{"dtype": float32Only}}
	return map[string]starlark.Value{
		metrics + "BinaryAccuracy": function(binary, func(_ *starlark.Thread, a *arguments) (starlark.Value, error) {
			if !a.has("threshold") {
				return nil, fmt.Errorf("%s: the threshold of 0.5 is one of probabilities, and the output is a logit; write threshold=0.0", binary.name)
			}
			return metric{binary.name, graph.BinaryAccuracy}, nil
		}),
		metrics + "MeanSquaredError": function(squared, func(*starlark.Thread, *arguments) (starlark.Value, error) {
			return metric{squared.name, graph.SquaredError}, nil
		}),
	}
}

// metricOf recognizes a metric.
func metricOf(v starlark.Value, shape []int) (graph.MetricKind, bool) {
	switch v := v.(type) {
	case metric:
		return v.kind, true
	case *symbol:
		if loss, ok := lossOf(v, shape); ok && loss == graph.MeanSquaredError {
			return graph.SquaredError, true
		}
		return graph.Accuracy, isAccuracy(v)
	}
	return "", false
}
