package modelfile

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
)

// featureColumn is a column of tf.feature_column besides numeric_column's.
type featureColumn struct {
	fn      string // as files write it
	name    string // as TensorFlow has it, by which DenseFeatures sorts
	buckets int
	parts   []columnPart // of a categorical one

	// Of a dense one: the categorical column that it is made of.
	of        *featureColumn
	dimension int // of an embedding; 0: one number for each bucket
	combiner  string
	stddev    float64
}

// columnPart is a feature and what makes a number of it.
type columnPart struct {
	key     string
	dtype   dtype // that the feature must have; "" is any number
	steps   []graph.Step
	missing bool // the number may be missing
}

func (c *featureColumn) String() string        { return c.fn + " " + c.name }
func (c *featureColumn) Type() string          { return "feature column" }
func (c *featureColumn) Freeze()               {}
func (c *featureColumn) Truth() starlark.Bool  { return true }
func (c *featureColumn) Hash() (uint32, error) { return starlark.String(c.name).Hash() }

// categorical reads an argument that is a categorical column.
func (a *arguments) categorical(name string) *featureColumn {
	c, ok := a.values[name].(*featureColumn)
	if !ok || c.parts == nil {
		a.wrong(name, "a categorical column of tf.feature_column")
		return &featureColumn{}
	}
	return c
}

// columnFunctions are those of tf.feature_column, and ElasticDL's own.
func columnFunctions() map[string]starlark.Value {
	values := map[string]starlark.Value{}
	add := func(path string, sig signature, of func(a *arguments, c *featureColumn)) {
		sig.name = display(path)
		values[path] = function(sig, func(_ *starlark.Thread, a *arguments) (starlark.Value, error) {
			c := &featureColumn{fn: sig.name}
			of(a, c)
			return c, a.err
		})
	}
	const tf = "tensorflow.feature_column."
	add(tf+"categorical_column_with_hash_bucket", signature{positional: []string{"key", "hash_bucket_size", "dtype"}}, func(a *arguments, c *featureColumn) {
		c.buckets = a.integer("hash_bucket_size", 1, maxDimension)
		c.keyed(a, graph.Step{Op: graph.Hash, Count: int64(c.buckets)})
	})
	vocabulary := signature{
		positional: []string{"key", "vocabulary_list", "dtype", "default_value", "num_oov_buckets"},
		only:       map[string][]starlark.Value{"default_value": {starlark.MakeInt(-1), starlark.None}, "dtype": {starlark.None, dtypeValue{stringType}}},
	}
	add(tf+"categorical_column_with_vocabulary_list", vocabulary, func(a *arguments, c *featureColumn) {
		words, others := a.words("vocabulary_list"), 0
		if a.has("num_oov_buckets") {
			others = a.integer("num_oov_buckets", 0, maxDimension)
		}
		c.buckets = len(words) + others
		c.keyed(a, graph.Step{Op: graph.Lookup, Words: words, Count: int64(others)})
	})
	add(tf+"categorical_column_with_identity", signature{positional: []string{"key", "num_buckets", "default_value"}}, func(a *arguments, c *featureColumn) {
		c.buckets = a.integer("num_buckets", 1, maxDimension)
		part := columnPart{key: a.text("key", ""), dtype: int64Type, missing: true, steps: []graph.Step{{Op: graph.Ignore, Value: -1}}}
		if !a.none("default_value") {
			part.steps = append(part.steps, graph.Step{Op: graph.InRange, Count: int64(c.buckets), Value: float64(a.integer("default_value", 0, c.buckets-1))})
		}
		c.name, c.parts = part.key, []columnPart{part}
	})
	add(tf+"bucketized_column", signature{positional: []string{"source_column", "boundaries"}}, func(a *arguments, c *featureColumn) {
		source, ok := a.values["source_column"].(featureSpec)
		if !ok || source.key == "" || !slices.Equal(source.shape, []int{1}) {
			a.wrong("source_column", "a tf.feature_column.numeric_column of one number")
		}
		boundaries := a.boundaries("boundaries")
		c.name, c.buckets = source.key+"_bucketized", len(boundaries)+1
		c.parts = []columnPart{{key: source.key, steps: []graph.Step{{Op: graph.ToFloat}, {Op: graph.Bucketize, Boundaries: boundaries}}}}
	})
	add("elasticdl_preprocessing.feature_column.feature_column.concatenated_categorical_column", signature{positional: []string{"categorical_columns"}}, func(a *arguments, c *featureColumn) {
		list, _ := a.values["categorical_columns"].(*starlark.List)
		if list == nil || list.Len() == 0 {
			a.wrong("categorical_columns", "a list of categorical columns")
			return
		}
		var names []string
		for v := range list.Elements() {
			part, ok := v.(*featureColumn)
			if !ok || part.parts == nil {
				a.wrong("categorical_columns", "a list of categorical columns")
				return
			}
			for _, p := range part.parts {
				p.steps = append(slices.Clip(p.steps), graph.Step{Op: graph.Offset, Count: int64(c.buckets)})
				c.parts = append(c.parts, p)
			}
			if c.buckets += part.buckets; c.buckets > maxDimension || len(c.parts) > maxParts {
				a.fail("%d columns with %d buckets are too many", len(c.parts), c.buckets)
				return
			}
			names = append(names, part.name)
		}
		slices.Sort(names)
		c.name = strings.Join(names, "_C_")
	})
	add(tf+"indicator_column", signature{positional: []string{"categorical_column"}}, func(a *arguments, c *featureColumn) {
		c.of = a.categorical("categorical_column")
		c.name = c.of.name + "_indicator"
		if len(c.of.parts) != 1 {
			a.wrong("categorical_column", "a column of one feature")
		}
	})
	embedding := signature{
		positional: []string{"categorical_column", "dimension", "combiner"},
		only: map[string][]starlark.Value{
			"initializer": none, "max_norm": none, "trainable": trueOnly, "ckpt_to_load_from": none, "tensor_name_in_ckpt": none,
		},
	}
	for _, path := range []string{tf + "embedding_column", "elasticdl.python.elasticdl.feature_column.feature_column.embedding_column"} {
		add(path, embedding, func(a *arguments, c *featureColumn) {
			c.of, c.dimension = a.categorical("categorical_column"), a.integer("dimension", 1, maxDimension)
			c.name = c.of.name + "_embedding"
			c.combiner = a.combiner()
			c.stddev = 1 / math.Sqrt(float64(max(c.dimension, 1)))
		})
	}
	for _, name := range []string{"crossed_column", "shared_embeddings", "weighted_categorical_column", "sequence_numeric_column", "categorical_column_with_vocabulary_file"} {
		alternative := map[string]string{
			"crossed_column":                          "hash the joined text in a feature of its own, when the records are written",
			"shared_embeddings":                       "give each column an embedding_column of its own, or put them together by concatenated_categorical_column",
			"categorical_column_with_vocabulary_file": "write the words in the model file, with categorical_column_with_vocabulary_list",
		}[name]
		alternative = cmp.Or(alternative, "columns of one number or word for each record are")
		values[tf+name] = unknown{"tf.feature_column." + name, "is not implemented; " + alternative}
	}
	values["tensorflow.keras.layers.DenseFeatures"] = denseFeatures()
	return values
}

// keyed makes a column of one feature of text, or of whole numbers in decimal.
func (c *featureColumn) keyed(a *arguments, step graph.Step) {
	part := columnPart{key: a.text("key", ""), dtype: stringType, missing: true, steps: []graph.Step{{Op: graph.Ignore}, step}}
	if d, ok := asDtype(a.values["dtype"]); ok && (d == int64Type || d == int32Type) {
		part.dtype, part.steps = int64Type, []graph.Step{{Op: graph.Ignore, Value: -1}, {Op: graph.ToText}, step}
	} else if !a.none("dtype") && (!ok || d != stringType) {
		a.wrong("dtype", "tf.string, tf.int32 or tf.int64")
	}
	if part.key == "" {
		a.wrong("key", "the name of a feature")
	}
	c.name, c.parts = part.key, []columnPart{part}
}

// combiner reads how the rows of several numbers become one.
func (a *arguments) combiner() string {
	c := a.text("combiner", "mean")
	if !slices.Contains([]string{"mean", "sum", "sqrtn"}, c) {
		a.wrong("combiner", `"mean", "sum" or "sqrtn"`)
	}
	return c
}

// denseLayerOfColumns is a tf.keras.layers.DenseFeatures.
type denseLayerOfColumns struct {
	preprocessing
	columns []starlark.Value
}

// denseFeatures is tf.keras.layers.DenseFeatures.
func denseFeatures() starlark.Value {
	sig := signature{name: "tf.keras.layers.DenseFeatures", positional: []string{"feature_columns"}, keywords: []string{"name"}, only: merged(nil)}
	return function(sig, func(t *starlark.Thread, a *arguments) (starlark.Value, error) {
		g := sessionOf(t).layers
		if g == nil {
			return nil, fmt.Errorf("%s is made outside of the model; layers are made at the top of the file or in custom_model()", sig.name)
		}
		var columns []starlark.Value
		switch v := a.values["feature_columns"].(type) {
		case *starlark.List:
			columns = slices.Collect(v.Elements())
		case starlark.Tuple:
			columns = v
		default:
			if v != nil {
				columns = []starlark.Value{v}
			}
		}
		for _, c := range columns {
			spec, isNumeric := c.(featureSpec)
			column, isColumn := c.(*featureColumn)
			if !isColumn && (!isNumeric || spec.key == "") || isColumn && column.of == nil && !strings.HasSuffix(column.fn, "bucketized_column") {
				return nil, fmt.Errorf("%s: %s is no dense column; put a categorical one into an embedding_column or an indicator_column", sig.name, printed(c))
			}
		}
		if len(columns) == 0 {
			a.wrong("feature_columns", "a list of columns")
		}
		slices.SortStableFunc(columns, func(x, y starlark.Value) int { return strings.Compare(columnName(x), columnName(y)) })
		given := ""
		if !a.none("name") {
			given = a.text("name", "")
		}
		if a.err != nil {
			return nil, a.err
		}
		d := &denseLayerOfColumns{columns: columns}
		d.name = g.name("dense_features", given)
		d.call = d.apply
		return d, nil
	})
}

func columnName(v starlark.Value) string {
	if c, ok := v.(*featureColumn); ok {
		return c.name
	}
	return v.(featureSpec).key
}

// apply puts the columns' values one behind the other.
func (d *denseLayerOfColumns) apply(s *session, input starlark.Value) (starlark.Value, error) {
	features, ok := input.(*starlark.Dict)
	if !ok {
		return nil, fmt.Errorf("it is called with %s; a dict of features is wanted", printed(input))
	}
	if s.layers.called[d] {
		return nil, fmt.Errorf("it is called a second time; layers that share their weights are not implemented")
	}
	s.layers.called[d] = true
	var parts []*symbol
	for _, c := range d.columns {
		v, err := d.column(s, features, c)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", columnName(c), err)
		}
		parts = append(parts, v)
	}
	if len(parts) == 1 {
		return parts[0], nil
	}
	l := &layer{fn: d.name}
	merging(l, graph.Concatenate)
	l.node.Name = d.name
	return s.layers.apply(l, parts, s.at)
}

// column is the value of one column.
func (d *denseLayerOfColumns) column(s *session, features *starlark.Dict, c starlark.Value) (*symbol, error) {
	if spec, numeric := c.(featureSpec); numeric {
		m, x, err := featureOf(s, features, spec.key)
		if err != nil {
			return nil, err
		}
		if m.dtype == stringType {
			return nil, fmt.Errorf("feature %q is text", spec.key)
		}
		if m.dtype == float32Type {
			flat := *x
			flat.dims = s.layers.nodes[x.layer].Shape
			s.layers.casts[x.layer] = true
			return &flat, nil
		}
		return s.layers.takes(m.then(float32Type, graph.Step{Op: graph.ToFloat}), d.name+"/"+spec.key, false, s.at), nil
	}
	column := c.(*featureColumn)
	categorical := column
	if column.of != nil {
		categorical = column.of
	}
	var all []*madeFeature
	for _, p := range categorical.parts {
		m, _, err := featureOf(s, features, p.key)
		if err != nil {
			return nil, err
		}
		if whole := m.dtype == int32Type || m.dtype == int64Type; p.dtype == stringType && m.dtype != stringType || p.dtype == int64Type && !whole || p.dtype == "" && m.dtype == stringType {
			return nil, fmt.Errorf("feature %q is %s, and the column takes %s", p.key, m.dtype, orNumbers(p.dtype))
		}
		made := m.then(int64Type, p.steps...)
		made.sparse = true
		all = append(all, made)
	}
	made, err := concatenated(all)
	if err != nil {
		return nil, err
	}
	name := d.name + "/" + column.name
	if column.dimension == 0 {
		made = made.then(float32Type, graph.Step{Op: graph.OneHot, Count: int64(categorical.buckets)})
		made.sparse = false
		return s.layers.takes(made, name, false, s.at), nil
	}
	return s.layers.lookupSparse(
		made, name, &graph.EmbeddingAttrs{InputDim: categorical.buckets, OutputDim: column.dimension, Stddev: column.stddev},
		column.combiner, s.at,
	)
}

func orNumbers(d dtype) string {
	if d == "" {
		return "numbers"
	}
	return string(d)
}

// featureOf is a feature of a dict by its name.
func featureOf(s *session, features *starlark.Dict, key string) (*madeFeature, *symbol, error) {
	v, ok, err := features.Get(starlark.String(key))
	if err != nil || !ok {
		return nil, nil, fmt.Errorf("the features that the layer is called with have no %q", key)
	}
	m, err := s.madeOf(v)
	if err != nil {
		return nil, nil, err
	}
	return m, v.(*symbol), nil
}
