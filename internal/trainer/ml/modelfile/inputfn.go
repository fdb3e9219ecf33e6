package modelfile

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
)

// inputFunction makes Feed.Function of input_fn(records), which runs on real values. What records hold is declared by
// feature_columns() and label_columns(), or by the parse_single_example calls of input_fn itself, which a run on two
// records of zeros brings to light.
func (l *loader) inputFunction(m *graph.Model, f *starlark.Function) error {
	if f.NumParams() != 1 || f.HasVarargs() || f.HasKwargs() {
		return l.refuse("input_fn", "input_fn takes %d parameters; (records) is wanted", f.NumParams())
	}
	switch {
	case len(l.built.inputs) > 1:
		return l.refuse("input_fn", "input_fn makes one input, and the model has %d; write feed(dataset, mode, metadata)", len(l.built.inputs))
	case len(l.built.layers.made) > 0:
		return l.refuse("input_fn", "input_fn makes one input, and the model preprocesses its inputs; write feed(dataset, mode, metadata)")
	case m.Nodes[0].Integer:
		return l.refuse("input_fn", "input_fn makes an input of numbers, and %s is one of row numbers; write feed(dataset, mode, metadata)", m.Nodes[0].Name)
	}
	fn, labels, err := l.newInputFunction(f)
	if err != nil {
		return err
	}
	fn.input = m.Nodes[0]
	before := l.session.spent
	if _, _, err := fn.run(l.session, l.thread, make([]graph.Example, 2)); err != nil {
		return err
	}
	fn.probed = l.session.spent - before
	m.Feed = graph.Feed{Features: slices.Clone(fn.schema.features), Function: fn.call, FunctionDigest: l.digest("input_fn")}
	if m.Feed.Label, err = l.label(labels); err != nil {
		return err
	}
	return nil
}

// probeInputFunction is the features that input_fn makes of two records of zeros.
func (l *loader) probeInputFunction() (starlark.Value, error) {
	f, err := l.contractFunction("input_fn", "")
	if err != nil {
		return nil, err
	}
	if f.NumParams() != 1 || f.HasVarargs() || f.HasKwargs() {
		return nil, l.refuse("input_fn", "input_fn takes %d parameters; (records) is wanted", f.NumParams())
	}
	fn, _, err := l.newInputFunction(f)
	if err != nil {
		return nil, err
	}
	pair, err := fn.values(l.session, l.thread, make([]graph.Example, 2))
	if err != nil {
		return nil, err
	}
	return pair[0], nil
}

// newInputFunction reads the columns that the file declares, and gives those of the label.
func (l *loader) newInputFunction(f *starlark.Function) (*inputFn, []featureSpec, error) {
	columns, err := l.columns("feature_columns")
	if err != nil {
		return nil, nil, err
	}
	labels, err := l.columns("label_columns")
	if err != nil {
		return nil, nil, err
	}
	if len(columns) > 0 && len(labels) != 1 {
		return nil, nil, l.refuse("label_columns", "label_columns() declares %d columns; one label is wanted", len(labels))
	}
	for _, c := range append(columns, labels...) {
		if err := l.session.schema.declare(graph.Feature{Name: c.key, DType: c.dtype, Shape: c.shape}); err != nil {
			return nil, nil, l.refuse("feature_columns", "%s", err)
		}
	}
	fn := &inputFn{f: f, file: l.file, schema: l.session.schema, asDict: len(columns) > 0, limits: l.opt.limits}
	for _, c := range columns {
		fn.keys = append(fn.keys, c.key)
	}
	return fn, labels, nil
}

// columns calls feature_columns() or label_columns(), which a file need not have.
func (l *loader) columns(name string) ([]featureSpec, error) {
	f, ok := l.globals[name]
	if !ok {
		return nil, nil
	}
	v, err := l.call(f, name)
	if err != nil {
		return nil, err
	}
	list, ok := v.(*starlark.List)
	if !ok {
		return nil, l.refuse(name, "%s() returns %s; a list of tf.feature_column.numeric_column is wanted", name, printed(v))
	}
	var specs []featureSpec
	for x := range list.Elements() {
		spec, ok := x.(featureSpec)
		if !ok || spec.key == "" {
			return nil, l.refuse(name, "%s() lists %s; only tf.feature_column.numeric_column is implemented", name, printed(x))
		}
		specs = append(specs, spec)
	}
	return specs, nil
}

// label is the declared label, or the one integer feature that records hold.
func (l *loader) label(declared []featureSpec) (string, error) {
	var candidates []graph.Feature
	for _, f := range l.session.schema.features {
		if len(declared) > 0 && f.Name == declared[0].key || len(declared) == 0 && checkLabel(f, false) == nil {
			candidates = append(candidates, f)
		}
	}
	if len(candidates) != 1 {
		return "", l.refuse("input_fn", "input_fn reads %d features that may be the label (one integer each); name the label in label_columns()", len(candidates))
	}
	if err := checkLabel(candidates[0], false); err != nil {
		return "", l.refuse("label_columns", "%s", err)
	}
	return candidates[0].Name, nil
}

// digest identifies what a function computes: the SHA-256 of its tokens and of all that it reaches in the file, without
// comments and layout.
func (l *loader) digest(name string) string {
	reached := map[string]bool{name: true}
	for grown := true; grown; {
		grown = false
		for _, s := range l.parts {
			if slices.ContainsFunc(s.assigned(), func(n string) bool { return reached[n] }) {
				s.names(func(n string) {
					grown = grown || !reached[n]
					reached[n] = true
				})
			}
		}
	}
	h := sha256.New()
	for _, m := range l.modules {
		h.Write([]byte(m.name + "\n" + m.text + "\n")) //nolint:errcheck // a hash never fails
	}
	for _, s := range l.parts {
		if !slices.ContainsFunc(s.assigned(), func(n string) bool { return reached[n] }) {
			continue
		}
		for _, line := range s.lines {
			texts := []string{fmt.Sprint(line.indent())}
			for _, t := range line {
				texts = append(texts, t.text)
			}
			h.Write([]byte(strings.Join(texts, " ") + "\n")) //nolint:errcheck // a hash never fails
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// assigned are the names that a statement may bind or change: all that it mentions, unless it is a function or a class.
func (s *statement) assigned() []string {
	if s.kind == defStatement || s.kind == classStatement {
		return s.binds
	}
	var names []string
	s.names(func(n string) { names = append(names, n) })
	return names
}

// inputFn runs a file's input_fn. It may run in many goroutines at once: the module is frozen, and every call has a
// thread of its own.
type inputFn struct {
	f      *starlark.Function
	file   string
	schema *schema
	asDict bool     // records are dicts of tensors; otherwise they are serialized
	keys   []string // of the feature columns, in order
	input  graph.Node
	limits limits
	probed int64 // bytes that two records took
}

// call is Feed.Function.
func (fn *inputFn) call(records []graph.Example) ([][]float32, []int32, error) {
	for i, r := range records {
		if len(r) != len(fn.schema.features) {
			return nil, nil, fmt.Errorf("input_fn: record %d has %d features; %d are declared", i, len(r), len(fn.schema.features))
		}
	}
	s := &session{limits: fn.limits.times(len(records), fn.probed), schema: fn.schema}
	inputs, labels, err := fn.run(s, s.thread(fn.file), records)
	if err != nil {
		return nil, nil, (&loader{file: fn.file}).locate(err)
	}
	return [][]float32{inputs}, labels, nil
}

// refuse is an error about what input_fn returns.
func (fn *inputFn) refuse(format string, args ...any) error {
	return refuseAt(placeIn(fn.file, fn.f.Position()), "input_fn: "+format, args...)
}

// values calls input_fn, which returns features and labels. A nil Example stands for a record of zeros.
func (fn *inputFn) values(s *session, t *starlark.Thread, records []graph.Example) (starlark.Tuple, error) {
	list := make([]starlark.Value, len(records))
	for i, r := range records {
		list[i] = record{r}
		if fn.asDict {
			d, err := fn.dict(s, r)
			if err != nil {
				return nil, err
			}
			list[i] = d
		}
	}
	v, err := starlark.Call(t, fn.f, starlark.Tuple{starlark.NewList(list)}, nil)
	if err != nil {
		return nil, err
	}
	pair, ok := v.(starlark.Tuple)
	if !ok || len(pair) != 2 {
		return nil, fn.refuse("it returns %s; (features, labels) is wanted", printed(v))
	}
	return pair, nil
}

// run calls input_fn and reads the network's input and the labels.
func (fn *inputFn) run(s *session, t *starlark.Thread, records []graph.Example) ([]float32, []int32, error) {
	pair, err := fn.values(s, t, records)
	if err != nil {
		return nil, nil, err
	}
	inputs, err := fn.inputs(pair[0], len(records))
	if err != nil {
		return nil, nil, fn.refuse("%s", err)
	}
	labels, err := labelsOf(pair[1], len(records))
	if err != nil {
		return nil, nil, fn.refuse("%s", err)
	}
	return inputs, labels, nil
}

// dict is a record of declared columns, as a dict of tensors.
func (fn *inputFn) dict(s *session, r graph.Example) (*starlark.Dict, error) {
	d := starlark.NewDict(len(fn.schema.features))
	for i, f := range fn.schema.features {
		var v starlark.Value
		var err error
		if r == nil {
			v, err = s.decode(record{}, f)
		} else {
			v, err = s.featureValue(f, r[i])
		}
		if err == nil {
			err = d.SetKey(starlark.String(f.Name), v)
		}
		if err != nil {
			return nil, err
		}
	}
	return d, nil
}

// inputs reads the minibatch's features: n × elements of the input, records one behind the other.
func (fn *inputFn) inputs(v starlark.Value, n int) ([]float32, error) {
	if d, ok := v.(*starlark.Dict); ok && len(fn.keys) > 0 {
		if len(fn.keys) != 1 {
			return nil, fmt.Errorf("feature_columns() declares %d columns, and the model has one input", len(fn.keys))
		}
		x, found, err := d.Get(starlark.String(fn.keys[0]))
		if err != nil || !found {
			return nil, fmt.Errorf("the features have no %q, which feature_columns() declares", fn.keys[0])
		}
		v = x
	}
	v, err := single(v)
	if err != nil {
		return nil, err
	}
	a, err := arrayOf(v, "the feature")
	if err != nil {
		return nil, err
	}
	each, _ := elements(fn.input.Shape)
	if a.size() != n*each || n > 0 && (len(a.shape) == 0 || a.shape[0] != n) {
		return nil, fmt.Errorf("%d records give a %s, and input %s has shape %s", n, a, fn.input.Name, shapeText(fn.input.Shape))
	}
	out := make([]float32, a.size())
	for k := range out {
		out[k] = float32(a.at(k))
	}
	return out, nil
}

func labelsOf(v starlark.Value, n int) ([]int32, error) {
	a, err := arrayOf(v, "the label")
	if err != nil {
		return nil, err
	}
	if a.size() != n || a.dtype.float() {
		return nil, fmt.Errorf("%d records give labels in a %s; one integer each is wanted", n, a)
	}
	out := make([]int32, n)
	for k, x := range a.i {
		if x < math.MinInt32 || x > math.MaxInt32 {
			return nil, fmt.Errorf("label %d does not fit int32", x)
		}
		out[k] = int32(x)
	}
	return out, nil
}

func arrayOf(v starlark.Value, what string) (*array, error) {
	switch v := v.(type) {
	case *array:
		return v, nil
	case eager:
		return v.a, nil
	}
	if err := checkValue(v, what); err != nil {
		return nil, err
	}
	return nil, errors.New(what + " is " + printed(v) + ", not an array")
}
