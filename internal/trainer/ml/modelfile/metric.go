package modelfile

import (
	"fmt"
	"math"
	"strings"

	"go.starlark.net/starlark"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
)

// metric is what a constructor of tf.keras.metrics returns.
type metric struct {
	path string
	graph.Metric
	probabilities bool // it takes them, and not logits
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

// metricFunctions are the metrics of tf.keras.metrics. Outputs are logits here, so that what Keras takes for
// probabilities by default needs the argument that says otherwise.
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
			return metric{sig.name, m, probabilities(a)}, nil
		})
	}
	kind := func(k graph.MetricKind) func(*arguments) (graph.Metric, error) {
		return func(*arguments) (graph.Metric, error) { return graph.Metric{Kind: k}, nil }
	}
	add("SparseCategoricalAccuracy", signature{}, kind(graph.Accuracy))
	add("MeanSquaredError", signature{}, kind(graph.SquaredError))
	add("BinaryAccuracy", signature{keywords: []string{"threshold"}}, func(a *arguments) (graph.Metric, error) {
		if !a.has("threshold") {
			return graph.Metric{Kind: graph.BinaryAccuracy}, nil // 0.5 of probabilities
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
	add("AUC", auc, func(*arguments) (graph.Metric, error) {
		return graph.Metric{Kind: graph.AUC}, nil
	})
	add("Accuracy", signature{}, func(*arguments) (graph.Metric, error) {
		return graph.Metric{}, fmt.Errorf("it counts the outputs that equal their labels as numbers; write SparseCategoricalAccuracy(), or BinaryAccuracy(threshold=0.0) of one value for each record")
	})
	return values
}

// probabilities reports whether a metric expects probabilities: AUC without from_logits=True, and
// BinaryAccuracy without a threshold.
func probabilities(a *arguments) bool {
	switch a.fn {
	case "tf.keras.metrics.AUC":
		return !a.has("from_logits") || !a.boolean("from_logits")
	case "tf.keras.metrics.BinaryAccuracy":
		return !a.has("threshold")
	}
	return false
}

// CallInternal is a metric of labels and predictions, as a value.
func (m metric) CallInternal(_ *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	a, err := signature{name: m.path, positional: []string{"y_true", "y_pred"}}.bind(args, kwargs)
	if err != nil {
		return nil, err
	}
	s := &symbol{op: opMetric, args: []*symbol{a.symbol("y_true"), a.symbol("y_pred")}, detail: m.path, metric: &m, dtype: float32Type}
	return s, a.err
}

// Name is the class's.
func (m metric) Name() string { return m.path }

// metricOf recognizes a metric of the output with a key.
func (f *outputForms) metricOf(v starlark.Value, key string) (graph.Metric, error) {
	switch v := v.(type) {
	case metric:
		return f.ofOutput(v, &symbol{op: opOutput, output: key})
	case *symbol:
		if v.op == opMetric {
			if !isTarget(v.args[0]) && !isLabels(v.args[0]) {
				break
			}
			return f.ofOutput(*v.metric, v.args[1])
		}
		if loss, ok := f.lossOf(v); ok && loss.kind == graph.MeanSquaredError && !loss.sum && loss.out.layer == f.main {
			return graph.Metric{Kind: graph.SquaredError}, nil
		}
		if m, ok := f.accuracyOf(v); ok {
			return m, nil
		}
	}
	return graph.Metric{}, fmt.Errorf("is %s; implemented are %s", printed(v), implementedMetrics)
}

// ofOutput is a metric of tf.keras.metrics, applied to an output.
func (f *outputForms) ofOutput(m metric, prediction *symbol) (graph.Metric, error) {
	out, sigmoid, ok := outputOf(prediction)
	probability := false
	if ok {
		probability, ok = f.isMain(out)
	}
	switch probability = probability != sigmoid; {
	case !ok:
		return graph.Metric{}, fmt.Errorf("is %s of something else than the output that the loss takes, or its sigmoid", m)
	case m.probabilities && !probability && m.Kind == graph.AUC:
		return graph.Metric{}, fmt.Errorf("is %s, which takes probabilities, and the output is a logit; write from_logits=True", m)
	case m.probabilities && !probability:
		return graph.Metric{}, fmt.Errorf("is %s, whose threshold of 0.5 is one of probabilities, and the output is a logit; write threshold=0.0", m)
	case !m.probabilities && probability && m.Kind == graph.AUC:
		return graph.Metric{}, fmt.Errorf("is %s(from_logits=True), and the output is a probability; leave from_logits out", m.path)
	case !m.probabilities && probability && m.Kind == graph.BinaryAccuracy:
		if !(m.Threshold > 0 && m.Threshold < 1) {
			return graph.Metric{}, fmt.Errorf("is %s(threshold=%v), which no probability is; give one above 0 and below 1", m.path, m.Threshold)
		}
		m.Threshold = math.Log(m.Threshold / (1 - m.Threshold))
	}
	return m.Metric, nil
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
