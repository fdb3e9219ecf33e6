package modelfile

import (
	"fmt"
	"strings"

	"go.starlark.net/starlark"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/graph"
)

// metric is what a constructor of tf.keras.metrics returns.
type metric struct {
	path string
	graph.Metric
}

func (m metric) String() string        { return m.path + "()" }
func (m metric) Type() string          { return "metric" }
func (m metric) Freeze()               {}
func (m metric) Truth() starlark.Bool  { return true }
func (m metric) Hash() (uint32, error) { return starlark.String(m.path).Hash() }

// implementedMetrics is what eval_metrics_fn may name, for messages.
const implementedMetrics = "accuracy as tf.equal(tf.argmax(predictions, 1), labels), or of one value for each record as " +
	"tf.equal(tf.cast(tf.reshape(predictions, [-1]) > 0.0, tf.int32), tf.cast(tf.reshape(labels, [-1]), tf.int32)), and " +
	"tf.keras.metrics.SparseCategoricalAccuracy(), BinaryAccuracy(threshold=0.0), AUC(from_logits=True) and MeanSquaredError()"

// metricFunctions are the metrics of tf.keras.metrics. Outputs are logits here, so that what Keras takes for probabilities
// unless it is told otherwise must be told so.
func metricFunctions() map[string]starlark.Value {
	values := map[string]starlark.Value{}
	add := func(name string, sig signature, of func(a *arguments) (graph.Metric, error)) {
		sig.name = "tf.keras.metrics." + name
		sig.keywords = append(sig.keywords, "name")
		if sig.only == nil {
			sig.only = map[string][]starlark.Value{}
		}
		sig.only["dtype"] = float32Only
		values["tensorflow.keras.metrics."+name] = function(sig, func(_ *starlark.Thread, a *arguments) (starlark.Value, error) {
			m, err := of(a)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", sig.name, err)
			}
			return metric{sig.name, m}, nil
		})
	}
	kind := func(k graph.MetricKind) func(*arguments) (graph.Metric, error) {
		return func(*arguments) (graph.Metric, error) { return graph.Metric{Kind: k}, nil }
	}
	add("SparseCategoricalAccuracy", signature{}, kind(graph.Accuracy))
	add("MeanSquaredError", signature{}, kind(graph.SquaredError))
	add("BinaryAccuracy", signature{keywords: []string{"threshold"}}, func(a *arguments) (graph.Metric, error) {
		if !a.has("threshold") {
			return graph.Metric{}, fmt.Errorf("the threshold of 0.5 is one of probabilities, and the output is a logit; write threshold=0.0")
		}
		return graph.Metric{Kind: graph.BinaryAccuracy, Threshold: a.number("threshold")}, nil
	})
	auc := signature{
		keywords: []string{"from_logits"},
		only: map[string][]starlark.Value{
			"num_thresholds": {starlark.MakeInt(200)}, "curve": {starlark.String("ROC")}, "summation_method": {starlark.String("interpolation")},
			"thresholds": none, "multi_label": {starlark.False}, "label_weights": none,
		},
	}
	add("AUC", auc, func(a *arguments) (graph.Metric, error) {
		if !a.has("from_logits") || !a.boolean("from_logits") {
			return graph.Metric{}, fmt.Errorf("it takes probabilities, and the output is a logit; write from_logits=True")
		}
		return graph.Metric{Kind: graph.AUC}, nil
	})
	add("Accuracy", signature{}, func(*arguments) (graph.Metric, error) {
		return graph.Metric{}, fmt.Errorf("it counts the outputs that equal their labels as numbers; write SparseCategoricalAccuracy(), or BinaryAccuracy(threshold=0.0) of one value for each record")
	})
	return values
}

// metricOf recognizes a metric.
func metricOf(v starlark.Value, shape []int) (graph.Metric, bool) {
	switch v := v.(type) {
	case metric:
		return v.Metric, true
	case *symbol:
		if loss, ok := lossOf(v, shape); ok && loss == graph.MeanSquaredError {
			return graph.Metric{Kind: graph.SquaredError}, true
		}
		return accuracyOf(v)
	}
	return graph.Metric{}, false
}

// metricsWith are the metrics of the outputs that a loss takes.
func metricsWith(l graph.LossKind) []graph.MetricKind {
	if l == graph.SigmoidCrossEntropy {
		return []graph.MetricKind{graph.BinaryAccuracy, graph.AUC}
	}
	return []graph.MetricKind{graph.MetricOf(l)}
}

func kinds(all []graph.MetricKind) string {
	texts := make([]string, len(all))
	for i, k := range all {
		texts[i] = string(k)
	}
	return strings.Join(texts, " or ")
}
