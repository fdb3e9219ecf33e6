package modelfile

import (
	"errors"
	"fmt"
	"slices"

	"go.starlark.net/starlark"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
)

// featureSpec is what FixedLenFeature and numeric_column return: the type and shape of a feature, and a column's key.
type featureSpec struct {
	key   string
	dtype graph.DType
	shape []int
}

func (f featureSpec) String() string        { return fmt.Sprintf("feature %s%s", f.dtype, shapeText(f.shape)) }
func (f featureSpec) Type() string          { return "feature" }
func (f featureSpec) Freeze()               {}
func (f featureSpec) Truth() starlark.Bool  { return true }
func (f featureSpec) Hash() (uint32, error) { return starlark.String(f.String()).Hash() }

// record is one serialized record in an input_fn: parse_single_example decodes it.
type record struct{ values graph.Example }

func (record) String() string        { return "record" }
func (record) Type() string          { return "record" }
func (record) Freeze()               {}
func (record) Truth() starlark.Bool  { return true }
func (record) Hash() (uint32, error) { return 0, errors.New("a record cannot be a key") }

// featureTypes are the element types that records can have.
var featureTypes = map[dtype]graph.DType{
	float32Type: graph.Float32, int64Type: graph.Int64, int32Type: graph.Int32, uint8Type: graph.Uint8,
	stringType: graph.String,
}

// feedFunctions declare and decode features.
func feedFunctions() map[string]starlark.Value {
	values := map[string]starlark.Value{}
	for _, name := range []string{"io.FixedLenFeature", "FixedLenFeature"} {
		values["tensorflow."+name] = function(signature{
			name: "tf." + name, positional: []string{"shape", "dtype"}, only: map[string][]starlark.Value{"default_value": none},
		}, func(_ *starlark.Thread, a *arguments) (starlark.Value, error) {
			return a.feature("")
		})
	}
	for _, name := range []string{"io.parse_single_example", "parse_single_example"} {
		values["tensorflow."+name] = parseFunction("tf." + name)
	}
	values["tensorflow.feature_column.numeric_column"] = function(signature{
		name: "tf.feature_column.numeric_column", positional: []string{"key", "shape", "default_value", "dtype"},
		only: map[string][]starlark.Value{"default_value": none, "normalizer_fn": none},
	}, func(_ *starlark.Thread, a *arguments) (starlark.Value, error) {
		return a.feature(a.text("key", ""))
	})
	return values
}

// feature reads shape and dtype, with numeric_column's defaults for a column.
func (a *arguments) feature(key string) (starlark.Value, error) {
	f := featureSpec{key: key, dtype: graph.Float32, shape: []int{1}}
	if key == "" || a.has("shape") {
		f.shape = a.dims("shape", 1)
	}
	if key == "" || a.has("dtype") {
		d, known := asDtype(a.values["dtype"])
		recordType, ok := featureTypes[d]
		if !known || !ok {
			a.wrong("dtype", "float32, int64, int32, uint8 or string")
		}
		f.dtype = recordType
	}
	if _, ok := elements(f.shape); !ok {
		a.fail("shape %s is too large", shapeText(f.shape))
	}
	return f, a.err
}

// parseFunction is tf.io.parse_single_example: it declares what records hold, and decodes one.
func parseFunction(name string) starlark.Value {
	sig := signature{name: name, positional: []string{"serialized", "features"}, keywords: []string{"name"}, only: map[string][]starlark.Value{"example_names": none}}
	return function(sig, func(t *starlark.Thread, a *arguments) (starlark.Value, error) {
		description, ok := a.values["features"].(*starlark.Dict)
		if !ok {
			a.wrong("features", "a dict of tf.io.FixedLenFeature")
			return nil, a.err
		}
		s := sessionOf(t)
		parsed := starlark.NewDict(description.Len())
		for _, item := range description.Items() {
			key, isText := item[0].(starlark.String)
			spec, isSpec := item[1].(featureSpec)
			if u, isUnknown := item[1].(unknown); isUnknown {
				return nil, u.use()
			}
			if !isText || key == "" || !isSpec {
				return nil, fmt.Errorf("%s: %s: %s is not a tf.io.FixedLenFeature under a name", name, printed(item[0]), printed(item[1]))
			}
			f := graph.Feature{Name: string(key), DType: spec.dtype, Shape: spec.shape}
			if err := s.declareFeature(f); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			v, err := s.decode(a.values["serialized"], f)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			if err := parsed.SetKey(key, v); err != nil {
				return nil, err
			}
		}
		return parsed, nil
	})
}

// declareFeature notes a feature while the file is loaded; on real records the schema is settled.
func (s *session) declareFeature(f graph.Feature) error {
	if s.report != nil {
		return s.schema.declare(f)
	}
	have, _, ok := s.schema.find(f.Name)
	if !ok || have.DType != f.DType || !slices.Equal(have.Shape, f.Shape) {
		return fmt.Errorf("feature %q as %s%s was not declared when the model file was loaded", f.Name, f.DType, shapeText(f.Shape))
	}
	return nil
}

// decode is the value of a feature of a traced or a real record.
func (s *session) decode(serialized starlark.Value, f graph.Feature) (starlark.Value, error) {
	switch r := serialized.(type) {
	case *symbol:
		if r.op == opRecord {
			return featureSymbol(f), nil
		}
	case record:
		if f.DType == graph.String {
			return nil, fmt.Errorf("feature %q is text, which input_fn cannot use here; write feed(dataset, mode, metadata)", f.Name)
		}
		if r.values == nil { // the probe of Load: what is not declared yet has no value yet
			a, err := newArray(s, dtype(f.DType), f.Shape)
			return eager{withOrigin(a, f.Name)}, err
		}
		_, i, _ := s.schema.find(f.Name)
		return s.featureValue(f, r.values[i])
	}
	return nil, fmt.Errorf("%s is not a serialized record", printed(serialized))
}

func withOrigin(a *array, name string) *array {
	if a != nil {
		a.origin = &origin{feature: name, dtype: a.dtype, bytes: a.size() * a.dtype.bytes()}
	}
	return a
}

// featureValue makes a tensor of a decoded feature.
func (s *session) featureValue(f graph.Feature, v graph.Value) (starlark.Value, error) {
	a, err := newArray(s, dtype(f.DType), f.Shape)
	if err != nil {
		return nil, err
	}
	n := len(v.Floats) + len(v.Ints) + len(v.Bytes)
	if n != a.size() {
		return nil, fmt.Errorf("feature %q has %d elements in a record, and shape %s", f.Name, n, shapeText(f.Shape))
	}
	for k := range n {
		switch {
		case v.Floats != nil && a.dtype.float():
			a.f[k] = float64(v.Floats[k])
		case v.Ints != nil && !a.dtype.float():
			a.setInt(k, v.Ints[k])
		case v.Bytes != nil && !a.dtype.float():
			a.i[k] = int64(v.Bytes[k])
		default:
			return nil, fmt.Errorf("feature %q of a record does not hold %s", f.Name, f.DType)
		}
	}
	return eager{withOrigin(a, f.Name)}, nil
}

// dataset is the argument of feed: what map makes of one record. Where its records come from and in which order is
// the schedule's business.
type dataset struct {
	element starlark.Value
	batched bool
}

func (d dataset) String() string        { return "dataset" }
func (d dataset) Type() string          { return "dataset" }
func (d dataset) Freeze()               {}
func (d dataset) Truth() starlark.Bool  { return true }
func (d dataset) Hash() (uint32, error) { return 0, errors.New("a dataset cannot be a key") }

// schedules are the methods that change order and grouping, which the schedule decides.
var schedules = map[string]struct {
	sig    signature
	reason string
}{
	"shuffle":  {signature{name: "shuffle", positional: []string{"buffer_size", "seed", "reshuffle_each_iteration"}}, "the schedule shuffles"},
	"batch":    {signature{name: "batch", positional: []string{"batch_size", "drop_remainder"}}, "the schedule makes the minibatches"},
	"repeat":   {signature{name: "repeat", positional: []string{"count"}}, "the job says how many epochs there are"},
	"prefetch": {signature{name: "prefetch", positional: []string{"buffer_size"}}, "the trainer reads ahead by itself"},
}

// Attr offers map and the methods that have no effect.
func (d dataset) Attr(name string) (starlark.Value, error) {
	if name == "map" {
		sig := signature{name: "dataset.map", positional: []string{"map_func", "num_parallel_calls"}}
		return method(name, sig, func(t *starlark.Thread, a *arguments) (starlark.Value, error) {
			f, ok := a.values["map_func"].(starlark.Callable)
			if !ok {
				a.wrong("map_func", "a function")
				return nil, a.err
			}
			if d.batched {
				return nil, errors.New("dataset.map behind batch is not implemented; map single records")
			}
			args, many := d.element.(starlark.Tuple)
			if !many {
				args = starlark.Tuple{d.element}
			}
			v, err := starlark.Call(t, f, args, nil)
			return dataset{element: v}, err
		}), nil
	}
	sched, ok := schedules[name]
	if !ok {
		return nil, noAttribute(d, name)
	}
	return starlark.NewBuiltin(name, func(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		a, err := sched.sig.bind(args, kwargs)
		if err != nil {
			return nil, err
		}
		amount := ""
		if first := a.values[sched.sig.positional[0]]; first != nil {
			amount = printed(first)
		}
		sessionOf(t).notice(t, "%s(%s) has no effect: %s", name, amount, sched.reason)
		return dataset{d.element, d.batched || name == "batch"}, nil
	}), nil
}

// AttrNames lists the methods for messages.
func (d dataset) AttrNames() []string {
	return []string{"batch", "map", "prefetch", "repeat", "shuffle"}
}

// traceColumn reads how a feature becomes an input: a chain of conversions, numbers and free reshapes behind a feature.
// casts says that the input's only reader converts integers by itself.
func traceColumn(v starlark.Value, schema *schema, want graph.Node, casts bool) (graph.Column, error) {
	if want.Integer {
		return traceRows(v, schema, want)
	}
	s, ok := v.(*symbol)
	if !ok {
		return graph.Column{}, fmt.Errorf("the feature of input %s is %s, not something made of a record", want.Name, printed(v))
	}
	if whole := s.dtype == int32Type || s.dtype == int64Type || s.dtype == uint8Type; s.dtype != float32Type && (!whole || !casts) {
		return graph.Column{}, fmt.Errorf("the feature of input %s is %s of type %s; tf.cast it to tf.float32", want.Name, s, s.dtype)
	}
	var chain []graph.Transform
	whole := s
	for s.op != opFeature {
		next, step, err := transformOf(s)
		if err != nil {
			return graph.Column{}, fmt.Errorf("the feature of input %s is %s: %w", want.Name, whole, err)
		}
		if step != nil {
			chain = append(chain, *step)
		}
		s = next
	}
	slices.Reverse(chain)
	f, _, _ := schema.find(s.feature)
	return graph.Column{Feature: s.feature, Transforms: chain}, checkElements(f, want)
}

var transformNames = map[string]string{opDivide: "divide", opMultiply: "multiply", opAdd: "add", opSubtract: "subtract"}

// transformOf takes the last operation off a traced feature.
func transformOf(s *symbol) (*symbol, *graph.Transform, error) {
	switch s.op {
	case opReshape: // the elements stay in order
		return s.args[0], nil, reshapeKeeps(s)
	case opCast:
		in := s.args[0]
		if s.dtype != float32Type {
			return nil, nil, fmt.Errorf("a cast to %s on the way is not implemented", s.dtype)
		}
		if in.dtype == float64Type || in.dtype == boolType {
			return nil, nil, fmt.Errorf("a cast from %s is not implemented", in.dtype)
		}
		return in, nil, nil
	}
	name, ok := transformNames[s.op]
	if !ok {
		return nil, nil, fmt.Errorf("%s is not implemented in a feed", s.op)
	}
	x, y := s.args[0], s.args[1]
	if x.op == opNumber && (s.op == opMultiply || s.op == opAdd) {
		x, y = y, x
	}
	switch {
	case y.op != opNumber || x.op == opNumber:
		return nil, nil, errors.New("only operations of a feature and a number are implemented, the feature first")
	case x.dtype != float32Type:
		return nil, nil, fmt.Errorf("arithmetic on %s is not implemented; tf.cast it to tf.float32 first", x.dtype)
	case s.op == opDivide && float32(y.number) == 0:
		return nil, nil, errors.New("it divides by zero")
	}
	return x, &graph.Transform{Op: name, Value: y.number}, nil
}

// reshapeKeeps checks a reshape of a feature as far as its shape is known.
func reshapeKeeps(s *symbol) error {
	known := s.args[0]
	for known.op != opFeature && known.op != opReshape {
		if len(known.args) == 0 {
			return nil
		}
		if known.args[0].op == opNumber {
			known = known.args[1]
		} else {
			known = known.args[0]
		}
	}
	for _, d := range known.dims {
		if d < 0 { // an inner reshape with -1 is checked on its own
			return nil
		}
	}
	n, ok := elements(known.dims)
	if !ok {
		return fmt.Errorf("shape %s is too large", shapeText(known.dims))
	}
	_, err := resolveShape(s.dims, n)
	return err
}

// traceLabel reads which feature is the label: one number, cast or reshaped.
func traceLabel(v starlark.Value, schema *schema, loss graph.LossKind) (string, error) {
	s, ok := v.(*symbol)
	if !ok {
		return "", fmt.Errorf("the label is %s, not something made of a record", printed(v))
	}
	number, toInteger := loss != graph.SparseSoftmaxCrossEntropy, false
	whole := s
	for {
		integer := s.op == opCast && (s.dtype == int32Type || s.dtype == int64Type)
		float := s.op == opCast && s.dtype == float32Type && number
		if s.op != opReshape && !integer && !float {
			break
		}
		toInteger = toInteger || integer
		s = s.args[0]
	}
	if s.op != opFeature {
		return "", fmt.Errorf("the label is %s; only a feature, cast to an integer type or reshaped, is implemented", whole)
	}
	f, _, _ := schema.find(s.feature)
	return f.Name, checkLabel(f, number && !toInteger)
}

// checkLabel checks a label's feature; number says that it may be a float.
func checkLabel(f graph.Feature, number bool) error {
	if f.Elements() != 1 || f.DType == graph.String || f.DType == graph.Float32 && !number {
		return fmt.Errorf("the label %q is %s%s; one integer is wanted", f.Name, f.DType, shapeText(f.Shape))
	}
	return nil
}
