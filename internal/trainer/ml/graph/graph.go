// Package graph is a training model as data: the layers that a model file built, its loss, its optimizer, and how
// a record becomes the model's input. It is what internal/trainer/ml/modelfile produces, what internal/trainer/ml/nn
// compiles, and what a job's lineage is computed from. It holds no arithmetic.
package graph

import "fmt"

// Op names a layer's operation.
type Op string

// The operations of this version; nn refuses a graph that holds another.
const (
	Input     Op = "input"
	Reshape   Op = "reshape"
	Conv2D    Op = "conv2d"
	Dense     Op = "dense"
	BatchNorm Op = "batch_norm"
	MaxPool   Op = "max_pool"
	Dropout   Op = "dropout"
	Flatten   Op = "flatten"
	ReLU      Op = "relu"
	Sigmoid   Op = "sigmoid"
	Tanh      Op = "tanh"
	Softmax   Op = "softmax" // over the last axis
	LeakyReLU Op = "leaky_relu"

	AveragePool       Op = "average_pool"
	GlobalAveragePool Op = "global_average_pool" // over height and width

	// These take several inputs, whose shapes are equal but for the last axis of Concatenate, along which they are put
	// one behind the other.
	Add         Op = "add"
	Multiply    Op = "multiply"
	Concatenate Op = "concatenate"
	Subtract    Op = "subtract" // the second of two from the first

	Embedding Op = "embedding"  // rows of a table, chosen by an integer input
	ReduceSum Op = "reduce_sum" // over neighbouring axes
	Scale     Op = "scale"      // times a number
	Broadcast Op = "broadcast"  // a last axis of size 1, repeated
)

// Node is one layer application. Shapes leave out the batch dimension; images are height, width, channels (NHWC).
type Node struct {
	Op     Op     `json:"op"`
	Name   string `json:"name"` // as Keras would name it: conv2d, conv2d_1, batch_normalization, …
	Inputs []int  `json:"inputs,omitempty"`
	Shape  []int  `json:"shape"`

	Conv2D    *Conv2DAttrs    `json:"conv2d,omitempty"`
	Dense     *DenseAttrs     `json:"dense,omitempty"`
	BatchNorm *BatchNormAttrs `json:"batch_norm,omitempty"`
	MaxPool   *MaxPoolAttrs   `json:"max_pool,omitempty"`
	Dropout   *DropoutAttrs   `json:"dropout,omitempty"`

	AveragePool *AveragePoolAttrs `json:"average_pool,omitempty"`

	Integer   bool            `json:"integer,omitempty"` // of an Input: its elements are row numbers, for Embeddings alone
	Embedding *EmbeddingAttrs `json:"embedding,omitempty"`
	ReduceSum *ReduceSumAttrs `json:"reduce_sum,omitempty"`
	Scale     *ScaleAttrs     `json:"scale,omitempty"`
	LeakyReLU *LeakyReLUAttrs `json:"leaky_relu,omitempty"`

	Place Place `json:"-"` // of the call that made it, for messages; decides nothing
}

// Place is a line of the model file, or of a module that it imports.
type Place struct {
	Module string // the module's file, such as shop/blocks.py; "" of the model file itself
	Line   int    // 1-based; 0 when unknown
}

// String formats as "line 12 of the model file".
func (p Place) String() string {
	if p.Module == "" {
		return fmt.Sprintf("line %d of the model file", p.Line)
	}
	return fmt.Sprintf("line %d of %s", p.Line, p.Module)
}

// Conv2DAttrs has a kernel [KernelH, KernelW, in, Filters], stride 1 and "valid" padding unless said otherwise.
// A fused activation is a ReLU node of its own behind this one.
type Conv2DAttrs struct {
	Filters int    `json:"filters"`
	KernelH int    `json:"kernel_h"`
	KernelW int    `json:"kernel_w"`
	StrideH int    `json:"stride_h"`
	StrideW int    `json:"stride_w"`
	Padding string `json:"padding"` // "valid" or "same"
	UseBias bool   `json:"use_bias"`
}

// DenseAttrs has a kernel [in, Units].
type DenseAttrs struct {
	Units   int  `json:"units"`
	UseBias bool `json:"use_bias"`
}

// BatchNormAttrs normalizes over the last axis.
type BatchNormAttrs struct {
	Momentum float64 `json:"momentum"`
	Epsilon  float64 `json:"epsilon"`
	Scale    bool    `json:"scale"`
	Center   bool    `json:"center"`
	// TrainingAlways records a `training=True` in the call. Training honours it (as it does anyway); evaluation,
	// prediction and the saved model use inference mode all the same, and `elastic-trainer model` says so.
	TrainingAlways bool `json:"training_always"`
}

// MaxPoolAttrs has windows that may overlap. Of a window that reaches beyond the image, with "same" padding, only what
// is inside counts.
type MaxPoolAttrs struct {
	PoolH   int    `json:"pool_h"`
	PoolW   int    `json:"pool_w"`
	StrideH int    `json:"stride_h"`
	StrideW int    `json:"stride_w"`
	Padding string `json:"padding,omitempty"` // "same"; "" is "valid"
}

// AveragePoolAttrs is as MaxPoolAttrs; the mean is over the pixels that count.
type AveragePoolAttrs struct {
	PoolH   int    `json:"pool_h"`
	PoolW   int    `json:"pool_w"`
	StrideH int    `json:"stride_h"`
	StrideW int    `json:"stride_w"`
	Padding string `json:"padding,omitempty"` // "same"; "" is "valid"
}

// DropoutAttrs has a Rate in [0, 1).
type DropoutAttrs struct {
	Rate           float64 `json:"rate"`
	TrainingAlways bool    `json:"training_always"`
}

// LeakyReLUAttrs multiplies what is below 0 by Alpha, which is not negative, rounded to float32.
type LeakyReLUAttrs struct {
	Alpha float64 `json:"alpha"`
}

// EmbeddingAttrs has a table [InputDim, OutputDim]; an input of shape […] gives an output of shape […, OutputDim].
type EmbeddingAttrs struct {
	InputDim  int `json:"input_dim"`
	OutputDim int `json:"output_dim"`
	// Stddev is that of initial values from a truncated normal distribution; 0 is uniform ones.
	Stddev float64 `json:"stddev,omitempty"`
}

// ReduceSumAttrs sums over Axes axes from axis From on, of a shape without the batch dimension.
type ReduceSumAttrs struct {
	From     int  `json:"from"`
	Axes     int  `json:"axes"`
	KeepDims bool `json:"keep_dims"` // they stay, with size 1
}

// ScaleAttrs multiplies by Value, rounded to float32.
type ScaleAttrs struct {
	Value float64 `json:"value"`
}

// LossKind names a loss over a minibatch; every loss is the mean over its records.
type LossKind string

// The losses. The first takes logits [n, classes] and integer labels [n]; the others take one output and one target for
// each record.
const (
	SparseSoftmaxCrossEntropy LossKind = "sparse_softmax_cross_entropy"
	SigmoidCrossEntropy       LossKind = "sigmoid_cross_entropy" // of logits and targets 0 or 1
	MeanSquaredError          LossKind = "mean_squared_error"
)

// MetricKind names a metric.
type MetricKind string

// The metrics. Each goes with the losses of its kind of output: Accuracy with logits of classes, BinaryAccuracy and AUC
// with the logit of a yes, SquaredError with the loss of that name.
const (
	// Accuracy is the share of records whose largest output (the first of equals) is the label.
	Accuracy MetricKind = "accuracy"
	// BinaryAccuracy is the share of records whose logit is above the threshold where the target is 1, and not above it
	// where the target is 0.
	BinaryAccuracy MetricKind = "binary_accuracy"
	// AUC is the area under the ROC curve of the logit's sigmoid, at Keras' 200 thresholds.
	AUC MetricKind = "auc"
	// SquaredError is the mean of the records' squared errors.
	SquaredError MetricKind = "mean_squared_error"
)

// MetricOf is the metric that is reported of a loss where a model file names none: the share of right answers where
// there are any.
func MetricOf(l LossKind) MetricKind {
	switch l {
	case SigmoidCrossEntropy:
		return BinaryAccuracy
	case MeanSquaredError:
		return SquaredError
	}
	return Accuracy
}

// Metric is a metric under the name that the model file gave it.
type Metric struct {
	Name      string     `json:"name"`
	Kind      MetricKind `json:"kind"`
	Threshold float64    `json:"threshold,omitempty"` // of BinaryAccuracy, of logits
}

// Model is a whole model file.
type Model struct {
	Name      string    `json:"name"`
	Nodes     []Node    `json:"nodes"` // in creation order, which is topological; weights are initialized in it
	Output    int       `json:"output"`
	Loss      LossKind  `json:"loss"`
	Optimizer Optimizer `json:"optimizer"`
	Metrics   []Metric  `json:"metrics,omitempty"`
	Feed      Feed      `json:"feed"`

	// SumOfLosses means that the gradient of a minibatch is that of the sum of its records' losses, not of their mean. The
	// gradient of a step is the mean of its minibatches', each weighted with its number of records.
	SumOfLosses bool `json:"sum_of_losses,omitempty"`
	// LearningRates replaces the optimizer's learning rate; nil keeps it.
	LearningRates *LearningRates `json:"learning_rates,omitempty"`
}

// LearningRates is a schedule that a model file computes.
type LearningRates struct {
	At     func(step int64) (float64, error) `json:"-"`      // of the step with that number, from 0
	Digest string                            `json:"digest"` // the SHA-256 of its source text, for the lineage
}

// DType is the type of a feature's elements in a record.
type DType string

// The element types of record features.
const (
	Float32 DType = "float32"
	Int64   DType = "int64"
	Int32   DType = "int32"
	Uint8   DType = "uint8"
	String  DType = "string" // bytes, as many as there are; only a tf_example holds them
)

// Feature is one named, typed, shaped value of a record. The order of a model's features is the order of the
// `bytes` codec.
type Feature struct {
	Name  string `json:"name"`
	DType DType  `json:"dtype"`
	Shape []int  `json:"shape"`
}

// Elements is the number of values in the feature.
func (f Feature) Elements() int {
	n := 1
	for _, d := range f.Shape {
		n *= d
	}
	return n
}

// Transform is one rounded float32 operation applied to every element, in order.
type Transform struct {
	Op    string  `json:"op"` // "divide", "multiply", "add", "subtract"
	Value float64 `json:"value"`
}

// Column defines how one feature becomes one model input: converted to float32, then transformed, elements in order;
// that of an integer input is the numbers as they are, and has no transforms. An input that is made of several
// features, or by steps, has Parts instead of a Feature.
type Column struct {
	Feature    string      `json:"feature,omitempty"`
	Transforms []Transform `json:"transforms,omitempty"`
	Integer    bool        `json:"integer,omitempty"` // the input is

	Parts []Part `json:"parts,omitempty"`
	// Weights means that the input is not the parts' values but their weights in a sum: 0 of those that are missing, and
	// of the others 1 ("sum"), one by their number ("mean") or by its root ("sqrtn"), in a record.
	Weights string `json:"weights,omitempty"`
	// Sparse means for an integer input that has Weights beside it that numbers below 0 are missing.
	Sparse bool `json:"sparse,omitempty"`
}

// Part is the elements of one feature, each after steps; the parts of a column are one behind the other.
type Part struct {
	Feature string `json:"feature"`
	Steps   []Step `json:"steps,omitempty"`
}

// Step makes one value of another. A value is text, a float32, an int64, or missing, which every step but OneHot leaves
// as it is, and which in the end is 0.
type Step struct {
	Op         string    `json:"op"`
	Value      float64   `json:"value,omitempty"`
	Count      int64     `json:"count,omitempty"`
	Text       string    `json:"text,omitempty"`
	Words      []string  `json:"words,omitempty"`
	Boundaries []float64 `json:"boundaries,omitempty"`
}

// The steps.
const (
	ToFloat    = "to_float"   // numbers to float32
	ToInteger  = "to_integer" // numbers to int64, towards 0
	ToText     = "to_text"    // int64 in decimal
	ParseFloat = "parse_float"
	ParseInt   = "parse_int"
	Divide     = "divide" // by Value, and so on: one rounded float32 operation
	MultiplyBy = "multiply"
	AddTo      = "add"
	SubtractBy = "subtract"
	Offset     = "offset"    // of int64, by Count
	Ignore     = "ignore"    // missing where it is Text, or Value
	Replace    = "replace"   // text "" by Text
	Hash       = "hash"      // FarmHash's Fingerprint64 of text, modulo Count
	Lookup     = "lookup"    // text's place in Words; of others Count numbers behind them by their hash, or missing where Count is 0
	Bucketize  = "bucketize" // how many Boundaries (as float32, none below the one before) are not above the number
	Round      = "round"     // to the nearest int64, of two the even one
	Log        = "log"       // in float64, to the base Value or e where that is 0, rounded as Round does
	InRange    = "in_range"  // Value where it is not in 0 to Count−1
	OneHot     = "one_hot"   // Count floats, 1 at the place that the number says
	NotZero    = "not_zero"  // 1 or 0
)

// Feed defines how records become a minibatch. Features includes the label. Exactly one of Columns (traced from
// `feed` or `dataset_fn`: one per model input, in order) and Function (an `input_fn` over numpy, run on real
// values) decides the inputs.
type Feed struct {
	// Raw leaves records as they are stored, for a script that decodes them itself; nothing else is set then.
	Raw bool `json:"raw,omitempty"`

	Features []Feature `json:"features"`
	Columns  []Column  `json:"columns,omitempty"`
	Label    string    `json:"label"`

	// Function runs an input_fn on the decoded values of a minibatch's records. FunctionDigest identifies what it
	// computes (the SHA-256 of its source text), for the lineage.
	Function       func(records []Example) (inputs [][]float32, labels []int32, err error) `json:"-"`
	FunctionDigest string                                                                  `json:"function_digest,omitempty"`
}

// Example is one record's decoded values, in the order of Feed.Features.
type Example []Value

// Value holds a feature's elements in exactly one of its slices, by its DType (Int32 and Int64 both in Ints).
type Value struct {
	Floats  []float32
	Ints    []int64
	Bytes   []byte
	Strings [][]byte
}

// Batch is a minibatch as the network takes it.
type Batch struct {
	N      int
	Inputs [][]float32 // one per Input node, in node order; N × elements, records one behind the other
	// Integers has those of the integer inputs at their places, which are empty in Inputs; nil where there are none.
	Integers [][]int32
	// Of the two one is N long and the other empty: Targets where the label is a float32.
	Labels  []int32
	Targets []float32
	// Records are set instead of all of these where the feed is raw. They are not to be changed.
	Records [][]byte
}
