package modelfile

import (
	"errors"
	"fmt"
	"slices"

	"go.starlark.net/starlark"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
)

// defaultRows is how many rows the table of ElasticDL's Embedding has that is given no input_dim: on its parameter
// servers a row was made when it was looked up first.
const defaultRows = 1 << 16

// embeddingLayer is Keras' Embedding, and ElasticDL's own, which has its table on parameter servers there.
func embeddingLayer(name string, own bool) starlark.Value {
	sig := signature{
		name: name, positional: []string{"input_dim", "output_dim"}, keywords: []string{"input_length", "mask_zero"},
		only: map[string][]starlark.Value{
			"embeddings_initializer": {starlark.String("uniform")}, "embeddings_regularizer": none, "activity_regularizer": none,
			"embeddings_constraint": none,
		},
	}
	if own {
		sig.positional = []string{"output_dim", "input_dim", "embeddings_initializer", "mask_zero", "input_length", "combiner"}
		sig.keywords = nil
		sig.only["combiner"] = none
	}
	return constructor(sig, "embedding", func(a *arguments, l *layer) {
		e := &graph.EmbeddingAttrs{OutputDim: a.integer("output_dim", 1, maxDimension)}
		if own && a.none("input_dim") {
			e.InputDim = defaultRows
			l.note = fmt.Sprintf("Embedding without input_dim has a table of %d rows; row numbers above that are refused in training: give it input_dim", defaultRows)
		} else {
			e.InputDim = a.integer("input_dim", 1, maxDimension)
		}
		length := 0
		if !a.none("input_length") {
			length = a.integer("input_length", 1, maxDimension)
		}
		if _, ok := elements([]int{e.InputDim, e.OutputDim}); !ok {
			a.fail("a table of %d rows of %d is too large", e.InputDim, e.OutputDim)
		}
		l.masksZero = a.has("mask_zero") && a.boolean("mask_zero")
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

// lookedUp makes an input of the model one of row numbers, as Keras' Embedding does that converts what it is given, and
// gives it with its mask.
func (g *layerGraph) lookedUp(l *layer, in *symbol, at graph.Place) (ids []*symbol, mask *symbol, err error) {
	made := in.made
	if in.op == opMade {
		if made.dtype != int64Type && made.dtype != int32Type || made.sparse {
			return nil, nil, fmt.Errorf("it is called with %s, which is %s; row numbers are wanted (those that may be missing are for elasticdl_preprocessing's SparseEmbedding)", in, kindOfMade(made))
		}
		ids = []*symbol{g.takes(made, l.node.Name+"/rows", true, at)}
	} else {
		node := &g.nodes[in.layer]
		if node.Op != graph.Input || g.made[in.layer] != nil || g.text[in.layer] {
			return nil, nil, fmt.Errorf("it is called with %s; only a tf.keras.Input of numbers, or row numbers that preprocessing makes of inputs, can choose rows", in)
		}
		node.Integer = true
		ids = []*symbol{in}
		made = &madeFeature{parts: []madePart{{source: in.layer, elements: product(in.dims)}}, dtype: in.dtype}
	}
	if l.masksZero {
		if len(in.dims) != 1 {
			return nil, nil, fmt.Errorf("mask_zero=True of an input of shape %s is not implemented; of one axis it is", shapeText(in.dims))
		}
		mask = g.takes(made.then(float32Type, graph.Step{Op: graph.NotZero}), g.name("mask", ""), false, at)
	}
	return ids, mask, nil
}

func product(dims []int) int {
	n, _ := elements(dims)
	return n
}

// sparseEmbeddingLayer is elasticdl_preprocessing's SparseEmbedding.
func sparseEmbeddingLayer() starlark.Value {
	sig := signature{
		name: "SparseEmbedding", positional: []string{"input_dim", "output_dim", "embeddings_initializer", "combiner"}, keywords: []string{"name"},
		only: merged(map[string][]starlark.Value{"embeddings_initializer": {starlark.String("uniform")}}),
	}
	return function(sig, func(t *starlark.Thread, a *arguments) (starlark.Value, error) {
		g := sessionOf(t).layers
		if g == nil {
			return nil, fmt.Errorf("%s is made outside of the model; layers are made at the top of the file or in custom_model()", sig.name)
		}
		e := &graph.EmbeddingAttrs{InputDim: a.integer("input_dim", 1, maxDimension), OutputDim: a.integer("output_dim", 1, maxDimension)}
		combiner, given := a.combiner(), ""
		if !a.none("name") {
			given = a.text("name", "")
		}
		if _, ok := elements([]int{e.InputDim, e.OutputDim}); !ok {
			a.fail("a table of %d rows of %d is too large", e.InputDim, e.OutputDim)
		}
		if a.err != nil {
			return nil, a.err
		}
		p := &preprocessing{name: g.name("sparse_embedding", given), attrs: starlark.StringDict{}}
		p.call = func(s *session, input starlark.Value) (starlark.Value, error) {
			m, err := s.madeOf(input)
			switch {
			case err != nil:
				return nil, err
			case !m.sparse || m.dtype == stringType || m.dtype == float32Type:
				return nil, fmt.Errorf("its input is %s; a sparse tensor of row numbers is wanted: put ToSparse() before what makes the numbers", kindOfMade(m))
			case s.layers.called[p]:
				return nil, errors.New("it is called a second time; layers that share their weights are not implemented")
			}
			s.layers.called[p] = true
			return s.layers.lookupSparse(m, p.name, e, combiner, s.at)
		}
		return p, nil
	})
}

// lookupSparse adds the layers that look up the rows of a record that are not missing, and combine them.
func (g *layerGraph) lookupSparse(m *madeFeature, name string, e *graph.EmbeddingAttrs, combiner string, at graph.Place) (*symbol, error) {
	rows, weighted := *m, *m
	weighted.weights = combiner
	ids := g.takes(&rows, name+"/rows", true, at)
	weights := g.takes(&weighted, name+"/weights", false, at)
	n := m.size()
	table := g.append(graph.Node{Op: graph.Embedding, Name: name, Shape: []int{n, e.OutputDim}, Embedding: e, Place: at}, ids)
	columns := g.append(graph.Node{Op: graph.Reshape, Name: name + "/column", Shape: []int{n, 1}, Place: at}, weights)
	if e.OutputDim > 1 {
		columns = g.append(graph.Node{Op: graph.Broadcast, Name: name + "/broadcast", Shape: []int{n, e.OutputDim}, Place: at}, columns)
	}
	product := g.append(graph.Node{Op: graph.Multiply, Name: name + "/weighted", Shape: []int{n, e.OutputDim}, Place: at}, table, columns)
	if n == 1 {
		return g.append(graph.Node{Op: graph.Reshape, Name: name + "/sum", Shape: []int{e.OutputDim}, Place: at}, product), nil
	}
	sum := &graph.ReduceSumAttrs{Axes: 1}
	return g.append(graph.Node{Op: graph.ReduceSum, Name: name + "/sum", Shape: []int{e.OutputDim}, ReduceSum: sum, Place: at}, product), nil
}

// checkNumbers refuses a network that computes with row numbers or with text.
func (m *kerasModel) checkNumbers() error {
	for _, n := range m.nodes {
		for _, from := range n.Inputs {
			in := m.nodes[from]
			if m.layers.text[m.origin[from]] {
				return fmt.Errorf("layer %s (%s) takes input %s, which is text; make numbers of it by a layer such as elasticdl_preprocessing's Hashing or IndexLookup, or a column of tf.feature_column", n.Name, n.Place, in.Name)
			}
			if in.Integer && n.Op != graph.Embedding {
				return fmt.Errorf("layer %s (%s) takes input %s, whose numbers are rows for Embedding layers alone; make another Input of the same feature for it", n.Name, n.Place, in.Name)
			}
		}
	}
	return nil
}

// traceRows reads which feature's whole numbers an integer input takes: as they are, reshaped, or cast to another type
// that holds them.
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
