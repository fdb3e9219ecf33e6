package modelfile

import (
	"fmt"
	"math"

	"go.starlark.net/starlark"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
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
	add(two("tensorflow.keras.losses.binary_crossentropy", opBinaryXent, "y_true", "y_pred", map[string][]starlark.Value{"from_logits": falseOnly, "label_smoothing": {starlark.MakeInt(0), starlark.Float(0)}}))
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

// outputForms is what recognizing losses and metrics needs to know of the model's outputs and of the labels.
type outputForms struct {
	built *kerasModel
	// labelRank is how many axes a minibatch's labels have; 0 where that is not known.
	labelRank int
	trusting  bool // ranks that are not known are right: there are no labels
	main      int  // the output that the loss takes, in the layer graph: a logit where it is one of yes and no; -1 before
}

// foundLoss is a loss that was recognized.
type foundLoss struct {
	kind graph.LossKind
	out  *symbol // in the layer graph
	sum  bool    // of the records' losses, not their mean
}

// tensor is the output that a traced value is made of.
func (f *outputForms) tensor(s *symbol) *symbol {
	for i, key := range f.built.outputs.keys {
		if key == s.output {
			return f.built.outputs.tensors[i]
		}
	}
	return nil
}

// rank is how many axes a minibatch of a value has, 0 where that is not known.
func (f *outputForms) rank(s *symbol) int {
	switch s.op {
	case opLabels:
		return f.labelRank
	case opOutput:
		return 1 + len(f.tensor(s).dims)
	case opReshape:
		return len(s.dims)
	case opSqueeze:
		return 1
	case opExpandDims:
		if r := f.rank(s.args[0]); r > 0 {
			return r + 1
		}
		return 0
	case opCast, opSigmoid, opRound, opGreater:
		return f.rank(s.args[0])
	}
	return 0
}

// alike reports whether TensorFlow compares two values record by record. Where their ranks differ, it takes every label
// with every output.
func (f *outputForms) alike(x, y *symbol) bool {
	a, b := f.rank(x), f.rank(y)
	return a == b && a > 0 || f.trusting && (a == 0 || b == 0)
}

// keepsElements reports whether a traced step changes the shape of one value for each record, and nothing else.
func keepsElements(s *symbol) bool {
	switch s.op {
	case opExpandDims, opSqueeze:
		return true
	case opReshape:
		return isFlattened(s) || len(s.dims) == 2 && s.dims[0] == -1 && s.dims[1] == 1
	}
	return false
}

// isTarget recognizes the labels as numbers, in whatever shape, and perhaps cast to tf.float32.
func isTarget(s *symbol) bool {
	for keepsElements(s) || s.op == opCast && s.dtype == float32Type {
		s = s.args[0]
	}
	return s.op == opLabels
}

// isLabels recognizes the labels as whole numbers.
func isLabels(s *symbol) bool {
	for keepsElements(s) || s.op == opCast && (s.dtype == int32Type || s.dtype == int64Type) {
		s = s.args[0]
	}
	return s.op == opLabels
}

// outputOf recognizes one of the model's outputs, in whatever shape, and whether the sigmoid function was applied to
// it.
func outputOf(s *symbol) (out *symbol, sigmoid, ok bool) {
	for keepsElements(s) || s.op == opSigmoid && !sigmoid {
		sigmoid = sigmoid || s.op == opSigmoid
		s = s.args[0]
	}
	return s, sigmoid, s.op == opOutput
}

// logit is the node before the sigmoid function that a node is, perhaps reshaped.
func (f *outputForms) logit(node int) (int, bool) {
	nodes := f.built.layers.nodes
	for nodes[node].Op == graph.Reshape || nodes[node].Op == graph.Flatten {
		node = nodes[node].Inputs[0]
	}
	if nodes[node].Op == graph.Sigmoid {
		return nodes[node].Inputs[0], true
	}
	return 0, false
}

// lossOf recognizes a loss.
func (f *outputForms) lossOf(s *symbol) (foundLoss, bool) {
	found := foundLoss{sum: s.op != opReduceMean}
	if !found.sum {
		s = s.args[0]
	}
	var labels, output *symbol
	switch s.op {
	case opSparseXent, opSoftmaxXent, opSigmoidXent, opBinaryXent, opSquaredDifference:
		labels, output = s.args[0], s.args[1]
	case opSquare:
		if s = s.args[0]; s.op != opSubtract {
			return found, false
		}
		labels, output = s.args[0], s.args[1]
	default:
		return found, false
	}
	if s.op == opSubtract || s.op == opSquaredDifference {
		if _, _, ok := outputOf(labels); ok {
			labels, output = output, labels
		}
	}
	out, sigmoid, ok := outputOf(output)
	if !ok || f.tensor(out) == nil {
		return found, false
	}
	found.out = f.tensor(out)
	switch s.op {
	case opSparseXent:
		found.kind = graph.SparseSoftmaxCrossEntropy
		return found, isLabels(labels) && output == out
	case opSoftmaxXent: // of labels that are all in one class each it is the same
		found.kind = graph.SparseSoftmaxCrossEntropy
		known := labels.op == opOneHot && isLabels(labels.args[0]) && flattens(labels.args[0]) && len(found.out.dims) == 1 && labels.dims[0] == found.out.dims[0]
		return found, known && output == out
	case opSigmoidXent:
		found.kind = graph.SigmoidCrossEntropy
		return found, !sigmoid && isTarget(labels) && f.alike(labels, output)
	case opBinaryXent:
		found.kind = graph.SigmoidCrossEntropy
		found.sum = found.sum && f.rank(output) != 1
		if !sigmoid {
			logit, ok := f.logit(found.out.layer)
			if !ok {
				return found, false
			}
			found.out = f.built.layers.symbolOf(logit)
		}
		return found, isTarget(labels) && f.alike(labels, output)
	}
	found.kind = graph.MeanSquaredError
	return found, !sigmoid && isTarget(labels) && f.alike(labels, output)
}

func isFlattened(s *symbol) bool { return s.op == opReshape && len(s.dims) == 1 && s.dims[0] == -1 }

// flattens reports whether casts and reshapes of a value flatten it somewhere.
func flattens(s *symbol) bool {
	for s.op == opCast {
		s = s.args[0]
	}
	return isFlattened(s)
}

// isMain reports whether an output is the one that the loss takes, and whether it is its sigmoid.
func (f *outputForms) isMain(out *symbol) (sigmoid, ok bool) {
	t := f.tensor(out)
	if t == nil {
		return false, false
	}
	nodes := f.built.layers.nodes
	for at := t.layer; ; at = nodes[at].Inputs[0] {
		if at == f.main {
			return sigmoid, true
		}
		switch n := nodes[at]; {
		case n.Op == graph.Sigmoid && !sigmoid:
			sigmoid = true
		case n.Op != graph.Reshape && n.Op != graph.Flatten:
			return false, false
		}
	}
}

// accuracyOf recognizes the share of right answers, equal(prediction, labels) in either order, cast to a float and
// averaged or not. The prediction is argmax(output, 1), or of one value for each record whether it is above a number,
// or rounded.
func (f *outputForms) accuracyOf(s *symbol) (graph.Metric, bool) {
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
	if f.isPrediction(x) && isLabels(y) || f.isPrediction(y) && isLabels(x) {
		return graph.Metric{Kind: graph.Accuracy}, true
	}
	for _, pair := range [][2]*symbol{{x, y}, {y, x}} {
		if threshold, ok := f.isYes(pair[0]); ok && isLabels(pair[1]) && f.alike(pair[0], pair[1]) {
			return graph.Metric{Kind: graph.BinaryAccuracy, Threshold: threshold}, true
		}
	}
	return graph.Metric{}, false
}

// isYes recognizes cast(output > threshold, a number's type), and a probability that is rounded. The threshold is one
// of logits.
func (f *outputForms) isYes(s *symbol) (threshold float64, ok bool) {
	for keepsElements(s) {
		s = s.args[0]
	}
	if s.op != opCast || s.dtype == boolType {
		return 0, false
	}
	for s = s.args[0]; keepsElements(s); {
		s = s.args[0]
	}
	rounded := s.op == opRound
	if s.op != opGreater && !rounded {
		return 0, false
	}
	threshold = s.number
	out, sigmoid, ok := outputOf(s.args[0])
	if !ok {
		return 0, false
	}
	probability, ok := f.isMain(out)
	if probability && sigmoid {
		return 0, false
	}
	if rounded {
		threshold = 0.5 // of two whole numbers that are as near, the even one: 0
	}
	if probability || sigmoid {
		if !(threshold > 0 && threshold < 1) {
			return 0, false
		}
		return math.Log(threshold / (1 - threshold)), ok
	}
	return threshold, ok && !rounded
}

func (f *outputForms) isPrediction(s *symbol) bool {
	for s.op == opCast && (s.dtype == int32Type || s.dtype == int64Type) {
		s = s.args[0]
	}
	if s.op != opArgmax || s.dims[0] != 1 && s.dims[0] != -1 || s.args[0].op != opOutput {
		return false
	}
	_, ok := f.isMain(s.args[0])
	return ok
}
