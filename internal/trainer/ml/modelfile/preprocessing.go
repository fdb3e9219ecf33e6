package modelfile

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
)

// preprocessing is a layer of elasticdl_preprocessing, which has no variables.
type preprocessing struct {
	name  string
	attrs starlark.StringDict
	call  func(s *session, input starlark.Value) (starlark.Value, error)
}

func (p *preprocessing) String() string        { return p.name }
func (p *preprocessing) Type() string          { return "layer" }
func (p *preprocessing) Name() string          { return p.name }
func (p *preprocessing) Freeze()               {}
func (p *preprocessing) Truth() starlark.Bool  { return true }
func (p *preprocessing) Hash() (uint32, error) { return 0, errors.New("a layer cannot be a key") }
func (p *preprocessing) AttrNames() []string   { return p.attrs.Keys() }

// Attr is an argument that the layer was made with.
func (p *preprocessing) Attr(name string) (starlark.Value, error) {
	if v, ok := p.attrs[name]; ok {
		return v, nil
	}
	return nil, noAttribute(p, name)
}

// CallInternal applies the layer.
func (p *preprocessing) CallInternal(t *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	a, err := signature{name: p.name, positional: []string{"inputs"}}.bind(args, kwargs)
	if err != nil {
		return nil, err
	}
	if !a.has("inputs") {
		a.wrong("inputs", "")
		return nil, a.err
	}
	s := sessionOf(t)
	if s.layers == nil {
		return nil, fmt.Errorf("%s is called outside of the model", p.name)
	}
	if err := s.spend(callBytes); err != nil {
		return nil, err
	}
	s.at = placeOf(t)
	v, err := p.call(s, a.values["inputs"])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.name, err)
	}
	return v, nil
}

// elementwisePreprocessing applies to one input what `of` makes of it.
func elementwisePreprocessing(of func(m *madeFeature) (*madeFeature, error)) func(*session, starlark.Value) (starlark.Value, error) {
	return func(s *session, input starlark.Value) (starlark.Value, error) {
		m, err := s.madeOf(input)
		if err != nil {
			return nil, err
		}
		if m, err = of(m); err != nil {
			return nil, err
		}
		return m.symbol("preprocessed"), nil
	}
}

// asText is text, or whole numbers in decimal.
func asText(m *madeFeature) (*madeFeature, error) {
	switch m.dtype {
	case stringType:
		return m, nil
	case float32Type:
		return nil, errors.New("float32 numbers as text are not implemented; give the input dtype=tf.int64 or tf.string")
	}
	return m.then(stringType, graph.Step{Op: graph.ToText}), nil
}

// hashed puts text or whole numbers into buckets.
func hashed(m *madeFeature, buckets int) (*madeFeature, error) {
	m, err := asText(m)
	if err != nil {
		return nil, err
	}
	return m.then(int64Type, graph.Step{Op: graph.Hash, Count: int64(buckets)}), nil
}

func bucketized(m *madeFeature, boundaries []float64) (*madeFeature, error) {
	if m.dtype == stringType {
		return nil, errors.New("its input is text; make numbers of it first, by ToNumber")
	}
	return m.then(int64Type, graph.Step{Op: graph.Bucketize, Boundaries: boundaries}), nil
}

func lookedUpIn(m *madeFeature, words []string, others int) (*madeFeature, error) {
	if m.dtype != stringType {
		return nil, fmt.Errorf("its input is %s; a vocabulary is of text", m.dtype)
	}
	out := m.then(int64Type, graph.Step{Op: graph.Lookup, Words: words, Count: int64(others)})
	out.sparse = m.sparse || others == 0
	return out, nil
}

// words reads a list of different strings.
func (a *arguments) words(name string) []string {
	var out []string
	if list, ok := a.values[name].(starlark.Iterable); ok {
		for v := range starlark.Elements(list) {
			w, isText := v.(starlark.String)
			if !isText {
				out = nil
				break
			}
			if slices.Contains(out, string(w)) {
				a.fail("%s has %s twice", name, w)
			}
			out = append(out, string(w))
		}
	}
	if len(out) == 0 {
		a.wrong(name, "a list of strings (files of words are not implemented; write the words in the model file)")
	}
	return out
}

// boundaries reads ascending numbers.
func (a *arguments) boundaries(name string) []float64 {
	var out []float64
	if list, ok := a.values[name].(starlark.Iterable); ok {
		for v := range starlark.Elements(list) {
			x, isNumber := asNumber(v)
			if !isNumber || len(out) > 0 && !(float32(out[len(out)-1]) <= float32(x)) {
				out = nil
				break
			}
			out = append(out, x)
		}
	}
	if len(out) == 0 {
		a.wrong(name, "a list of ascending numbers")
	}
	return out
}

// preprocessingFunctions are the layers of elasticdl_preprocessing, under the module of each and under layers.
func preprocessingFunctions() map[string]starlark.Value {
	values := map[string]starlark.Value{}
	add := func(module, name string, sig signature, of func(a *arguments) func(*session, starlark.Value) (starlark.Value, error)) {
		sig.name = name
		sig.keywords = append(sig.keywords, "name")
		v := function(sig, func(_ *starlark.Thread, a *arguments) (starlark.Value, error) {
			attrs := starlark.StringDict{}
			maps.Copy(attrs, a.values)
			return &preprocessing{name: name, attrs: attrs, call: of(a)}, nil
		})
		const path = "elasticdl_preprocessing.layers."
		values[path+name], values[path+module+"."+name] = v, v
	}
	add("hashing", "Hashing", signature{positional: []string{"num_bins"}}, func(a *arguments) func(*session, starlark.Value) (starlark.Value, error) {
		bins := a.integer("num_bins", 1, maxDimension)
		return elementwisePreprocessing(func(m *madeFeature) (*madeFeature, error) { return hashed(m, bins) })
	})
	add("index_lookup", "IndexLookup", signature{positional: []string{"vocabulary", "num_oov_tokens"}}, func(a *arguments) func(*session, starlark.Value) (starlark.Value, error) {
		words, others := a.words("vocabulary"), 1
		if a.has("num_oov_tokens") {
			others = a.integer("num_oov_tokens", 1, maxDimension)
		}
		return elementwisePreprocessing(func(m *madeFeature) (*madeFeature, error) { return lookedUpIn(m, words, others) })
	})
	add("discretization", "Discretization", signature{positional: []string{"bins"}}, func(a *arguments) func(*session, starlark.Value) (starlark.Value, error) {
		bins := a.boundaries("bins")
		return elementwisePreprocessing(func(m *madeFeature) (*madeFeature, error) { return bucketized(m, bins) })
	})
	add("normalizer", "Normalizer", signature{positional: []string{"subtractor", "divisor"}}, func(a *arguments) func(*session, starlark.Value) (starlark.Value, error) {
		subtractor, divisor := a.number("subtractor"), a.number("divisor")
		if float32(divisor) == 0 {
			a.wrong("divisor", "a number that is not 0")
		}
		return elementwisePreprocessing(func(m *madeFeature) (*madeFeature, error) {
			if m.dtype == stringType {
				return nil, errors.New("its input is text; make numbers of it first, by ToNumber")
			}
			return m.then(
				float32Type, graph.Step{Op: graph.ToFloat}, graph.Step{Op: graph.SubtractBy, Value: subtractor},
				graph.Step{Op: graph.Divide, Value: divisor},
			), nil
		})
	})
	add("round_identity", "RoundIdentity", signature{positional: []string{"num_buckets", "default_value"}}, func(a *arguments) func(*session, starlark.Value) (starlark.Value, error) {
		inRange := a.inRange("num_buckets")
		return elementwisePreprocessing(func(m *madeFeature) (*madeFeature, error) {
			switch m.dtype {
			case float32Type:
				return m.then(int64Type, graph.Step{Op: graph.Round}, inRange), nil
			case stringType:
				return nil, errors.New("its input is text; make numbers of it first, by ToNumber")
			}
			return m.then(int64Type, inRange), nil
		})
	})
	add("log_round", "LogRound", signature{positional: []string{"num_bins", "default_value", "base"}}, func(a *arguments) func(*session, starlark.Value) (starlark.Value, error) {
		inRange, logarithm := a.inRange("num_bins"), graph.Step{Op: graph.Log}
		if !a.none("base") {
			if logarithm.Value = a.number("base"); logarithm.Value <= 1 {
				a.wrong("base", "a number above 1")
			}
		}
		return elementwisePreprocessing(func(m *madeFeature) (*madeFeature, error) {
			if m.dtype == stringType {
				return nil, errors.New("its input is text; make numbers of it first, by ToNumber")
			}
			return m.then(int64Type, logarithm, inRange), nil
		})
	})
	add("to_number", "ToNumber", signature{positional: []string{"out_type", "default_value"}}, func(a *arguments) func(*session, starlark.Value) (starlark.Value, error) {
		d := a.dtype("out_type")
		number := a.number("default_value")
		return func(s *session, input starlark.Value) (starlark.Value, error) {
			m, err := s.madeOf(input)
			if err != nil {
				return nil, err
			}
			replaced := m.then(m.dtype, graph.Step{Op: graph.Replace, Text: fmt.Sprint(number)})
			if m.dtype != stringType {
				return s.castMade(input.(*symbol), d)
			}
			return parsed(replaced, d)
		}
	})
	add("to_sparse", "ToSparse", signature{positional: []string{"ignore_value"}}, func(a *arguments) func(*session, starlark.Value) (starlark.Value, error) {
		given := a.values["ignore_value"]
		return elementwisePreprocessing(func(m *madeFeature) (*madeFeature, error) { return sparseOf(m, given) })
	})
	add("concatenate_with_offset", "ConcatenateWithOffset", signature{positional: []string{"offsets", "axis"}, only: map[string][]starlark.Value{"axis": {starlark.MakeInt(-1), starlark.MakeInt(1)}}},
		func(a *arguments) func(*session, starlark.Value) (starlark.Value, error) {
			var offsets []int
			if !a.none("offsets") {
				offsets = a.offsets("offsets")
			}
			return func(s *session, input starlark.Value) (starlark.Value, error) {
				return concatenateWithOffset(s, offsets, input)
			}
		})
	values["elasticdl_preprocessing.layers.SparseEmbedding"] = sparseEmbeddingLayer()
	values["elasticdl_preprocessing.layers.sparse_embedding.SparseEmbedding"] = values["elasticdl_preprocessing.layers.SparseEmbedding"]
	return values
}

// inRange reads the range of LogRound and RoundIdentity.
func (a *arguments) inRange(count string) graph.Step {
	s := graph.Step{Op: graph.InRange, Count: int64(a.integer(count, 1, maxDimension))}
	if a.has("default_value") {
		s.Value = float64(a.integer("default_value", 0, maxDimension))
	}
	return s
}

func (a *arguments) offsets(name string) []int {
	list, ok := intList(a.values[name])
	if !ok || len(list) == 0 {
		a.wrong(name, "a list of integers, or None")
	}
	return list
}

// parsed is tf.strings.to_number.
func parsed(m *madeFeature, d dtype) (starlark.Value, error) {
	switch {
	case m.dtype != stringType:
		return nil, fmt.Errorf("its input is %s, not text", m.dtype)
	case d == float32Type:
		return m.then(d, graph.Step{Op: graph.ParseFloat}).symbol("to_number"), nil
	case d == int32Type || d == int64Type:
		return m.then(int64Type, graph.Step{Op: graph.ParseInt}).symbol("to_number"), nil
	}
	return nil, fmt.Errorf("numbers of type %s are not implemented; float32, int32 and int64 are", d)
}

// sparseOf leaves out what is equal to a value.
func sparseOf(m *madeFeature, ignored starlark.Value) (*madeFeature, error) {
	if m.sparse {
		return m, nil
	}
	ignore := graph.Step{Op: graph.Ignore}
	if m.dtype == int32Type || m.dtype == int64Type {
		ignore.Value = -1
	}
	if ignored != nil && ignored != starlark.None {
		text, isText := ignored.(starlark.String)
		number, isNumber := asNumber(ignored)
		if isText != (m.dtype == stringType) || !isText && !isNumber {
			return nil, fmt.Errorf("ignore_value=%s of an input of %s", printed(ignored), m.dtype)
		}
		ignore.Text, ignore.Value = string(text), number
	}
	out := m.then(m.dtype, ignore)
	out.sparse = true
	return out, nil
}

func concatenateWithOffset(s *session, offsets []int, input starlark.Value) (starlark.Value, error) {
	list, isList := input.(*starlark.List)
	if !isList {
		if tuple, ok := input.(starlark.Tuple); ok {
			list = starlark.NewList(tuple)
		} else if offsets != nil {
			return input, nil // as the layer does
		} else {
			return nil, fmt.Errorf("%s is no list", printed(input))
		}
	}
	all, made := s.madeList(list)
	switch {
	case !made && offsets == nil:
		return concatenateLayers(s, list, "concatenate_with_offset")
	case !made && len(all) != list.Len():
		return nil, errors.New("only row numbers, which preprocessing makes of inputs, can have an offset")
	case offsets != nil && len(offsets) != len(all):
		return nil, fmt.Errorf("%d offsets are given for %d inputs", len(offsets), len(all))
	}
	for i := range all {
		if offsets != nil && offsets[i] != 0 {
			all[i] = all[i].then(all[i].dtype, graph.Step{Op: graph.Offset, Count: int64(offsets[i])})
		}
	}
	m, err := concatenated(all)
	if err != nil {
		return nil, err
	}
	return m.symbol("concatenated"), nil
}

// concatenateLayers puts the outputs of layers one behind the other.
func concatenateLayers(s *session, list *starlark.List, snake string) (starlark.Value, error) {
	l := &layer{fn: snake}
	merging(l, graph.Concatenate)
	l.node.Name = s.layers.name(snake, "")
	var inputs []*symbol
	for v := range list.Elements() {
		x, ok := v.(*symbol)
		if !ok || x.op != opLayer && x.op != opMade {
			return nil, fmt.Errorf("%s is no output of a layer", printed(v))
		}
		inputs = append(inputs, x)
	}
	if len(inputs) == 1 {
		return inputs[0], nil
	}
	return s.layers.apply(l, inputs, s.at)
}

// textFunctions are those of TensorFlow that preprocessing layers of users' own are made of.
func textFunctions() map[string]starlark.Value {
	values := map[string]starlark.Value{}
	one := func(path string, sig signature, of func(a *arguments, m *madeFeature) (*madeFeature, error)) {
		sig.name = display(path)
		sig.keywords = append(sig.keywords, "name")
		values[path] = function(sig, func(t *starlark.Thread, a *arguments) (starlark.Value, error) {
			if !a.has("input") {
				a.wrong("input", "")
				return nil, a.err
			}
			m, err := sessionOf(t).madeOf(a.values["input"])
			if err == nil {
				m, err = of(a, m)
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", sig.name, err)
			}
			return m.symbol(sig.name[strings.LastIndexByte(sig.name, '.')+1:]), nil
		})
	}
	for _, path := range []string{"tensorflow.strings.as_string", "tensorflow.as_string"} {
		one(path, signature{positional: []string{"input"}}, func(_ *arguments, m *madeFeature) (*madeFeature, error) { return asText(m) })
	}
	one("tensorflow.strings.to_hash_bucket_fast", signature{positional: []string{"input", "num_buckets"}}, func(a *arguments, m *madeFeature) (*madeFeature, error) {
		buckets := a.integer("num_buckets", 1, maxDimension)
		if m.dtype != stringType {
			return nil, fmt.Errorf("its input is %s; use tf.strings.as_string first", m.dtype)
		}
		if a.err != nil {
			return nil, a.err
		}
		return hashed(m, buckets)
	})
	one("tensorflow.python.ops.math_ops._bucketize", signature{positional: []string{"input", "boundaries"}}, func(a *arguments, m *madeFeature) (*madeFeature, error) {
		boundaries := a.boundaries("boundaries")
		if a.err != nil {
			return nil, a.err
		}
		return bucketized(m, boundaries)
	})
	values["tensorflow.strings.to_number"] = function(signature{name: "tf.strings.to_number", positional: []string{"input", "out_type"}, keywords: []string{"name"}},
		func(t *starlark.Thread, a *arguments) (starlark.Value, error) {
			d := float32Type
			if a.has("out_type") {
				d = a.dtype("out_type")
			}
			if x, ok := a.values["input"].(*symbol); ok && (x.op == opFeature || x.op == opRecord) {
				return nil, errors.New("tf.strings.to_number in a feed is not implemented: give the feature its type in tf.io.FixedLenFeature; cells of CSV files are read with the types of the model's features")
			}
			m, err := sessionOf(t).madeOf(a.values["input"])
			if err != nil {
				return nil, fmt.Errorf("tf.strings.to_number: %w", err)
			}
			return parsed(m, d)
		})
	table := signature{
		name: "lookup_ops.index_table_from_tensor", positional: []string{"vocabulary_list", "num_oov_buckets", "default_value"}, keywords: []string{"name"},
		only: map[string][]starlark.Value{"default_value": {starlark.MakeInt(-1)}},
	}
	values["tensorflow.python.ops.lookup_ops.index_table_from_tensor"] = function(table, func(_ *starlark.Thread, a *arguments) (starlark.Value, error) {
		words, others := a.words("vocabulary_list"), 0
		if a.has("num_oov_buckets") {
			others = a.integer("num_oov_buckets", 0, maxDimension)
		}
		return &lookupTable{words, others}, nil
	})
	return values
}

// lookupTable is what index_table_from_tensor makes.
type lookupTable struct {
	words  []string
	others int
}

func (l *lookupTable) String() string        { return "lookup table" }
func (l *lookupTable) Type() string          { return "lookup table" }
func (l *lookupTable) Freeze()               {}
func (l *lookupTable) Truth() starlark.Bool  { return true }
func (l *lookupTable) Hash() (uint32, error) { return 0, errors.New("a table cannot be a key") }
func (l *lookupTable) AttrNames() []string   { return []string{"lookup"} }

// Attr offers lookup.
func (l *lookupTable) Attr(name string) (starlark.Value, error) {
	if name != "lookup" {
		return nil, noAttribute(l, name)
	}
	return method("lookup", signature{name: "lookup", positional: []string{"keys"}}, func(t *starlark.Thread, a *arguments) (starlark.Value, error) {
		if !a.has("keys") {
			a.wrong("keys", "")
			return nil, a.err
		}
		m, err := sessionOf(t).madeOf(a.values["keys"])
		if err != nil {
			return nil, err
		}
		if m, err = lookedUpIn(m, l.words, l.others); err != nil {
			return nil, err
		}
		return m.symbol("lookup"), nil
	}), nil
}
