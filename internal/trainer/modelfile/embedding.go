package modelfile

import (
	"fmt"
	"slices"

	"go.starlark.net/starlark"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/graph"
)

func embeddingLayer() starlark.Value {
	sig := signature{
		name: "tf.keras.layers.Embedding", positional: []string{"input_dim", "output_dim"}, keywords: []string{"input_length"},
		only: map[string][]starlark.Value{
			"embeddings_initializer": {starlark.String("uniform")}, "embeddings_regularizer": none, "activity_regularizer": none,
			"embeddings_constraint": none, "mask_zero": falseOnly,
		},
	}
	return constructor(sig, "embedding", func(a *arguments, l *layer) {
		e := &graph.EmbeddingAttrs{InputDim: a.integer("input_dim", 1, maxDimension), OutputDim: a.integer("output_dim", 1, maxDimension)}
		length := 0
		if !a.none("input_length") {
			length = a.integer("input_length", 1, maxDimension)
		}
		if _, ok := elements([]int{e.InputDim, e.OutputDim}); !ok {
			a.fail("a table of %d rows of %d is too large", e.InputDim, e.OutputDim)
		}
		l.looksUp = true
		l.node.Op, l.node.Embedding = graph.Embedding, e
		l.complete = func(n *graph.Node, in []int) error {
			if length != 0 && (len(in) != 1 || in[0] != length) {
				return fmt.Errorf("input_length=%d, and the input has shape %s", length, shapeText(in))
			}
			n.Shape = append(slices.Clone(in), e.OutputDim)
			return nil
		}
	})
}

// lookedUp makes an input of the model one of row numbers, as Keras' Embedding does that converts what it is given.
func (g *layerGraph) lookedUp(in *symbol) error {
	node := &g.nodes[in.layer]
	if node.Op != graph.Input {
		return fmt.Errorf("it is called with %s; only a tf.keras.Input can choose rows", in)
	}
	node.Integer = true
	return nil
}

// checkIntegers refuses a model that computes with row numbers.
func checkIntegers(nodes []graph.Node) error {
	for _, n := range nodes {
		for _, from := range n.Inputs {
			if in := nodes[from]; in.Integer && n.Op != graph.Embedding {
				return fmt.Errorf("layer %s (line %d) takes input %s, whose numbers are rows for Embedding layers alone; make another Input of the same feature for it", n.Name, n.Line, in.Name)
			}
		}
	}
	return nil
}

// traceRows reads which feature's whole numbers an integer input takes: as they are, reshaped, or cast to another type that
// holds them.
func traceRows(v starlark.Value, schema *schema, want graph.Node) (graph.Column, error) {
	s, ok := v.(*symbol)
	if !ok {
		return graph.Column{}, fmt.Errorf("the feature of input %s is %s, not something made of a record", want.Name, printed(v))
	}
	whole := s
	for s.op != opFeature {
		switch {
		case s.op == opReshape:
			if err := reshapeKeeps(s); err != nil {
				return graph.Column{}, fmt.Errorf("the feature of input %s is %s: %w", want.Name, whole, err)
			}
		case s.op == opCast && (s.dtype == int32Type || s.dtype == int64Type || s.dtype == float32Type):
		default:
			return graph.Column{}, fmt.Errorf("the feature of input %s is %s; the row numbers of an Embedding are a feature of integers as it is, cast or reshaped", want.Name, whole)
		}
		s = s.args[0]
	}
	f, _, _ := schema.find(s.feature)
	if f.DType == graph.Float32 {
		return graph.Column{}, fmt.Errorf("feature %q of input %s is float32; the row numbers of an Embedding are integers", f.Name, want.Name)
	}
	return graph.Column{Feature: f.Name, Integer: true}, checkElements(f, want)
}

// checkElements refuses a feature of another size than its input's.
func checkElements(f graph.Feature, want graph.Node) error {
	if inputs, _ := elements(want.Shape); f.Elements() != inputs {
		return fmt.Errorf("feature %q has shape %s, %d elements, and input %s has shape %s, %d elements",
			f.Name, shapeText(f.Shape), f.Elements(), want.Name, shapeText(want.Shape), inputs)
	}
	return nil
}
