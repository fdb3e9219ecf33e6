package modelfile

import (
	"fmt"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// The operations of a symbol: what a traced expression is made of.
const (
	opLayer   = "layer"   // the output of a layer
	opMade    = "made"    // what is made of inputs before the network has them
	opOutput  = "output"  // the model's output, in a loss or a metric
	opLabels  = "labels"  // the labels, in a loss or a metric
	opRecord  = "record"  // a serialized record, in feed
	opFeature = "feature" // a decoded feature of a record
	opNumber  = "number"

	opReshape           = "reshape"
	opCast              = "cast"
	opArgmax            = "argmax"
	opEqual             = "equal"
	opGreater           = "greater"
	opReduceMean        = "reduce_mean"
	opSparseXent        = "sparse_softmax_cross_entropy_with_logits"
	opSoftmaxXent       = "softmax_cross_entropy_with_logits"
	opSigmoidXent       = "sigmoid_cross_entropy_with_logits"
	opOneHot            = "one_hot"
	opSquare            = "square"
	opSquaredDifference = "squared_difference"
	opDivide            = "divide"
	opMultiply          = "multiply"
	opAdd               = "add"
	opSubtract          = "subtract"
	opSigmoid           = "sigmoid"
	opRound             = "round"
	opExpandDims        = "expand_dims"
	opSqueeze           = "squeeze"
	opBinaryXent        = "binary_crossentropy" // of probabilities, the mean over the last axis
	opMetric            = "metric"
	maxTraceBytes       = 300
)

// symbol is a value that is known only while training: a node of a traced expression.
type symbol struct {
	op     string
	args   []*symbol
	detail string // of the operation, for print: the shape of a reshape, the type of a cast

	layer   int          // of opLayer: index into the layer graph
	feature string       // of opFeature
	number  float64      // of opNumber
	dtype   dtype        // "" when unknown
	mask    *symbol      // of opLayer: which of the rows that it was looked up with are not 0, or nil
	output  string       // of opOutput: the key under which the model returns it
	made    *madeFeature // of opMade
	metric  *metric      // of opMetric
	dims    []int        // of opLayer, opFeature, opReshape, opArgmax (its axis); without the batch dimension for layers
}

func (s *symbol) Type() string         { return "traced value" }
func (s *symbol) Freeze()              {}
func (s *symbol) Truth() starlark.Bool { return true }
func (s *symbol) Hash() (uint32, error) {
	return 0, fmt.Errorf("%s is known only while training, and cannot be a key", s)
}

// String prints the traced expression, cut off when it is long: shared parts would make it exponential.
func (s *symbol) String() string {
	var b strings.Builder
	s.print(&b)
	text := b.String()
	if len(text) > maxTraceBytes {
		text = text[:maxTraceBytes] + "…"
	}
	return text
}

func (s *symbol) print(b *strings.Builder) {
	if b.Len() > maxTraceBytes {
		return
	}
	switch s.op {
	case opFeature:
		fmt.Fprintf(b, "record[%q]", s.feature)
		return
	case opNumber:
		fmt.Fprintf(b, "%v", s.number)
		return
	case opLayer:
		b.WriteString(s.detail)
		return
	}
	b.WriteString(s.op)
	if len(s.args) == 0 {
		return
	}
	b.WriteByte('(')
	for i, a := range s.args {
		if i > 0 {
			b.WriteString(", ")
		}
		a.print(b)
	}
	if s.detail != "" {
		b.WriteString(", " + s.detail)
	}
	b.WriteByte(')')
}

func (s *symbol) knownOnlyWhileTraining(what string) error {
	return fmt.Errorf("%s of %s: its value is known only while training", what, s)
}

// Attr offers what numpy arrays and tensors offer for values that are not there yet.
func (s *symbol) Attr(name string) (starlark.Value, error) {
	switch name {
	case "shape":
		if s.op != opLayer {
			return nil, s.knownOnlyWhileTraining("the shape")
		}
		shape := starlark.Tuple{starlark.None}
		for _, d := range s.dims {
			shape = append(shape, starlark.MakeInt(d))
		}
		return shape, nil
	case "dtype":
		if s.dtype == "" {
			return nil, s.knownOnlyWhileTraining("the type")
		}
		return dtypeValue{s.dtype}, nil
	case "numpy":
		return nil, s.knownOnlyWhileTraining("numpy()")
	case "flatten":
		return method("flatten", signature{name: "flatten"}, func(*starlark.Thread, *arguments) (starlark.Value, error) {
			return &symbol{op: opReshape, args: []*symbol{s}, detail: "[-1]", dims: []int{-1}, dtype: s.dtype}, nil
		}), nil
	case "astype":
		return method("astype", signature{name: "astype", positional: []string{"dtype"}}, func(_ *starlark.Thread, a *arguments) (starlark.Value, error) {
			d := a.dtype("dtype")
			return &symbol{op: opCast, args: []*symbol{s}, detail: string(d), dtype: d}, a.err
		}), nil
	}
	return nil, noAttribute(s, name)
}

// AttrNames lists the attributes for messages.
func (s *symbol) AttrNames() []string { return []string{"astype", "dtype", "flatten", "shape"} }

// Get refuses indexing with the reason.
func (s *symbol) Get(starlark.Value) (starlark.Value, bool, error) {
	return nil, false, fmt.Errorf("indexing %s is not implemented; declare a feature for each part in tf.io.parse_single_example (of a CSV file, the features are columns)", s)
}

// method makes a method or function of the facade from a signature and what it does.
func method(name string, sig signature, do func(*starlark.Thread, *arguments) (starlark.Value, error)) *starlark.Builtin {
	return starlark.NewBuiltin(name, func(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		if err := sessionOf(t).spend(callBytes); err != nil {
			return nil, err
		}
		a, err := sig.bind(args, kwargs)
		if err != nil {
			return nil, err
		}
		v, err := do(t, a)
		if err == nil {
			err = a.err
		}
		if err != nil {
			return nil, err
		}
		return v, nil
	})
}

// function is method under its full name.
func function(sig signature, do func(*starlark.Thread, *arguments) (starlark.Value, error)) *starlark.Builtin {
	return method(sig.name, sig, do)
}

// arithmetic traces x op y, where at least one of them is a symbol.
func arithmetic(op syntax.Token, x, y starlark.Value) (starlark.Value, error) {
	names := map[syntax.Token]string{syntax.SLASH: opDivide, syntax.STAR: opMultiply, syntax.PLUS: opAdd, syntax.MINUS: opSubtract}
	name, ok := names[op]
	if !ok {
		return nil, fmt.Errorf("the operator %s of %s and %s is not implemented", op, printed(x), printed(y))
	}
	a, aok := asSymbol(x)
	b, bok := asSymbol(y)
	if !aok || !bok {
		return nil, fmt.Errorf("the operator %s of %s and %s is not implemented", op, printed(x), printed(y))
	}
	d := a.dtype
	if a.op == opNumber {
		d = b.dtype
	}
	return &symbol{op: name, args: []*symbol{a, b}, dtype: d}, nil
}

// asSymbol makes an operand of a traced expression from a symbol or a number.
func asSymbol(v starlark.Value) (*symbol, bool) {
	if s, ok := v.(*symbol); ok {
		return s, true
	}
	if f, ok := asNumber(v); ok {
		return &symbol{op: opNumber, number: f}, true
	}
	return nil, false
}
