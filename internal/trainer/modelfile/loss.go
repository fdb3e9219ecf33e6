package modelfile

import (
	"fmt"

	"go.starlark.net/starlark"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/graph"
)

// lossFunctions are the functions of tf that losses are made of; all of them trace.
func lossFunctions() map[string]starlark.Value {
	two := func(path, op, first, second string, only map[string][]starlark.Value) (string, starlark.Value) {
		sig := signature{name: display(path), positional: []string{first, second}, keywords: []string{"name"}, only: only}
		return path, function(sig, func(_ *starlark.Thread, a *arguments) (starlark.Value, error) {
			return &symbol{op: op, args: []*symbol{a.symbol(first), a.symbol(second)}, dtype: float32Type}, nil
		})
	}
	values := map[string]starlark.Value{}
	add := func(path string, v starlark.Value) { values[path] = v }
	add(two("tensorflow.nn.sparse_softmax_cross_entropy_with_logits", opSparseXent, "labels", "logits", nil))
	add(two("tensorflow.nn.softmax_cross_entropy_with_logits", opSoftmaxXent, "labels", "logits", map[string][]starlark.Value{"axis": lastAxis}))
	add(two("tensorflow.nn.sigmoid_cross_entropy_with_logits", opSigmoidXent, "labels", "logits", nil))
	add(two("tensorflow.math.squared_difference", opSquaredDifference, "x", "y", nil))
	add(two("tensorflow.keras.losses.mean_squared_error", opSquaredDifference, "y_true", "y_pred", nil))
	for _, path := range []string{"tensorflow.square", "tensorflow.math.square"} {
		add(path, squareFunction(path))
	}
	oneHot := signature{
		name: "tf.one_hot", positional: []string{"indices", "depth"}, keywords: []string{"name"},
		only: map[string][]starlark.Value{"on_value": none, "off_value": none, "axis": append(lastAxis, starlark.None), "dtype": float32Only},
	}
	add("tensorflow.one_hot", function(oneHot, func(_ *starlark.Thread, a *arguments) (starlark.Value, error) {
		depth := a.integer("depth", 1, maxDimension)
		return &symbol{op: opOneHot, args: []*symbol{a.symbol("indices")}, detail: fmt.Sprint(depth), dims: []int{depth}, dtype: float32Type}, nil
	}))
	return values
}

const losses = "the tf.reduce_mean of one of these is wanted: tf.nn.sparse_softmax_cross_entropy_with_logits(labels, output), " +
	"tf.nn.softmax_cross_entropy_with_logits(tf.one_hot(tf.reshape(labels, [-1]), classes), output), or of one value for each record, both flattened by " +
	"tf.reshape(x, [-1]), tf.nn.sigmoid_cross_entropy_with_logits(labels, output) or tf.math.squared_difference(labels, output)"

// lossOf recognizes the mean of a loss over the records; shape is that of the model's output.
func lossOf(s *symbol, shape []int) (graph.LossKind, bool) {
	if s.op != opReduceMean {
		return "", false
	}
	s = s.args[0]
	switch s.op {
	case opSparseXent:
		return graph.SparseSoftmaxCrossEntropy, isLabels(s.args[0]) && s.args[1].op == opOutput
	case opSoftmaxXent: // of labels that are all in one class each it is the same
		hot := s.args[0]
		known := hot.op == opOneHot && isLabels(hot.args[0]) && flattens(hot.args[0]) && len(shape) == 1 && hot.dims[0] == shape[0]
		return graph.SparseSoftmaxCrossEntropy, known && s.args[1].op == opOutput
	case opSigmoidXent:
		return graph.SigmoidCrossEntropy, isTarget(s.args[0]) && isFlatOutput(s.args[1])
	case opSquare:
		if s = s.args[0]; s.op != opSubtract {
			return "", false
		}
	case opSquaredDifference:
	default:
		return "", false
	}
	x, y := s.args[0], s.args[1]
	return graph.MeanSquaredError, isTarget(x) && isFlatOutput(y) || isTarget(y) && isFlatOutput(x)
}

// isFlatOutput recognizes the output as one value for each record. Unless labels and output are both flattened, TensorFlow
// may take the difference of every label and every output.
func isFlatOutput(s *symbol) bool { return isFlattened(s) && s.args[0].op == opOutput }

func isFlattened(s *symbol) bool { return s.op == opReshape && len(s.dims) == 1 && s.dims[0] == -1 }

// isTarget recognizes the labels as numbers: flattened, and perhaps cast to tf.float32.
func isTarget(s *symbol) bool {
	flat := flattens(s)
	for isFlattened(s) || s.op == opCast && s.dtype == float32Type {
		s = s.args[0]
	}
	return flat && s.op == opLabels
}

// flattens says whether casts and reshapes of a value flatten it somewhere.
func flattens(s *symbol) bool {
	for s.op == opCast {
		s = s.args[0]
	}
	return isFlattened(s)
}

// isLabels recognizes the labels, flattened or cast to an integer type.
func isLabels(s *symbol) bool {
	for isFlattened(s) || s.op == opCast && (s.dtype == int32Type || s.dtype == int64Type) {
		s = s.args[0]
	}
	return s.op == opLabels
}

// accuracyOf recognizes the share of right answers, equal(prediction, labels) in either order, cast to a float and averaged
// or not. The prediction is argmax(output, 1), or of one value for each record whether it is above a number.
func accuracyOf(s *symbol) (graph.Metric, bool) {
	if s.op == opReduceMean {
		s = s.args[0]
		if s.op != opCast || !s.dtype.float() {
			return graph.Metric{}, false
		}
	}
	if s.op == opCast && s.dtype.float() {
		s = s.args[0]
	}
	if s.op != opEqual {
		return graph.Metric{}, false
	}
	x, y := s.args[0], s.args[1]
	if isPrediction(x) && isLabels(y) || isPrediction(y) && isLabels(x) {
		return graph.Metric{Kind: graph.Accuracy}, true
	}
	if threshold, ok := isYes(x); ok && isFlatLabels(y) {
		return graph.Metric{Kind: graph.BinaryAccuracy, Threshold: threshold}, true
	}
	threshold, ok := isYes(y)
	return graph.Metric{Kind: graph.BinaryAccuracy, Threshold: threshold}, ok && isFlatLabels(x)
}

// isYes recognizes cast(flat output > threshold, a number's type).
func isYes(s *symbol) (threshold float64, ok bool) {
	if s.op != opCast || s.dtype == boolType || s.args[0].op != opGreater {
		return 0, false
	}
	return s.args[0].number, isFlatOutput(s.args[0].args[0])
}

// isFlatLabels recognizes the labels as whole numbers, flattened: unless labels and output both are, TensorFlow may compare
// every label with every output.
func isFlatLabels(s *symbol) bool { return flattens(s) && isLabels(s) }

func isPrediction(s *symbol) bool {
	for s.op == opCast && (s.dtype == int32Type || s.dtype == int64Type) {
		s = s.args[0]
	}
	return s.op == opArgmax && (s.dims[0] == 1 || s.dims[0] == -1) && s.args[0].op == opOutput
}
