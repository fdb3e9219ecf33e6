package modelfile

import (
	"errors"
	"fmt"
	"slices"

	"go.starlark.net/starlark"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
)

// feedName is the newest of the three functions that make inputs of records which the file defines, or "".
func (l *loader) feedName() string {
	for _, name := range []string{"feed", "dataset_fn", "input_fn"} {
		if l.globals[name] != nil {
			return name
		}
	}
	return ""
}

// feed finds out how records become inputs.
func (l *loader) feed(m *graph.Model, _ bool) error {
	name := l.feedName()
	if name == "input_fn" {
		f, err := l.contractFunction(name, "")
		if err != nil {
			return err
		}
		return l.inputFunction(m, f)
	}
	for _, other := range []string{"dataset_fn", "input_fn"} {
		if l.globals[other] != nil && other != name {
			add(&l.session.report.Notices, l.placeOf(other), "%s is not used, because the file defines %s", other, name)
		}
	}
	return l.traceFeed(m, name)
}

// traced is what feed(dataset, mode[, metadata]) makes of a traced record; label is nil where there is none.
func (l *loader) traced(name string) (features, label starlark.Value, err error) {
	if name == "" {
		return l.defaultFeed()
	}
	f, err := l.contractFunction(name, "")
	if err != nil {
		return nil, nil, err
	}
	args := []starlark.Value{
		dataset{element: &symbol{op: opRecord}}, starlark.String(l.opt.Mode), unknown{"metadata", "is not available: there is no data reader that knows it"},
	}
	if n := f.NumParams(); n != 2 && n != 3 || f.HasVarargs() || f.HasKwargs() {
		return nil, nil, l.refuse(name, "%s takes %d parameters; (dataset, mode) or (dataset, mode, metadata) is wanted", name, n)
	}
	v, err := l.call(f, name, args[:f.NumParams()]...)
	if err != nil {
		return nil, nil, err
	}
	d, ok := v.(dataset)
	if !ok {
		return nil, nil, l.refuse(name, "%s returns %s; the mapped dataset is wanted", name, printed(v))
	}
	if pair, ok := d.element.(starlark.Tuple); ok && len(pair) == 2 {
		return pair[0], pair[1], nil
	}
	return d.element, nil, nil
}

// defaultLabel is the feature that is the label where a file does not say how records become inputs.
const defaultLabel = "label"

// defaultFeed takes the features that are called like the model's inputs. ElasticDL's readers of tables do the same for
// files without feed; of other files it is more likely that feed was forgotten.
func (l *loader) defaultFeed() (features, label starlark.Value, err error) {
	if l.built == nil || !l.built.byKey {
		return nil, nil, &Error{Msg: "the file defines none of feed, dataset_fn and input_fn: nothing says how records become inputs"}
	}
	g := l.built.layers
	d := starlark.NewDict(len(l.built.inputs))
	for _, in := range l.built.inputs {
		f := graph.Feature{Name: in.key, DType: graph.Float32, Shape: g.nodes[in.node].Shape}
		switch {
		case g.text[in.node]:
			f.DType = graph.String
		case g.nodes[in.node].Integer:
			f.DType = graph.Int64
		}
		if err := l.session.schema.declare(f); err != nil {
			return nil, nil, err
		}
		if err := d.SetKey(starlark.String(in.key), featureSymbol(f)); err != nil {
			return nil, nil, err
		}
	}
	f := graph.Feature{Name: defaultLabel, DType: graph.Int64}
	add(&l.session.report.Notices, graph.Place{}, "the file defines no feed: a record's features are the model's inputs by their names, and its label is the int64 feature %q", defaultLabel)
	if l.opt.Mode == Prediction {
		return d, nil, nil
	}
	return d, featureSymbol(f), l.session.schema.declare(f)
}

func featureSymbol(f graph.Feature) *symbol {
	return &symbol{op: opFeature, feature: f.Name, dtype: dtype(f.DType), dims: f.Shape}
}

// labelRank is how many axes a minibatch's labels have; 0 where that is not known before training.
func (l *loader) labelRank() int {
	name := l.feedName()
	if name == "input_fn" {
		return 0
	}
	_, label, err := l.traced(name)
	s, ok := label.(*symbol)
	if err != nil || !ok {
		return 0
	}
	return 1 + len(dimsOfTrace(s))
}

// dimsOfTrace is the shape that a traced feature has in one record.
func dimsOfTrace(s *symbol) []int {
	for s.op != opFeature {
		if s.op == opReshape {
			n, ok := elements(dimsOfTrace(s.args[0]))
			if shape, err := resolveShape(s.dims, n); ok && err == nil {
				return shape
			}
			return s.dims
		}
		if len(s.args) == 0 {
			return nil
		}
		next := s.args[0]
		if next.op == opNumber && len(s.args) > 1 {
			next = s.args[1]
		}
		s = next
	}
	return s.dims
}

// traceFeed reads from a trace how records become the network's inputs.
func (l *loader) traceFeed(m *graph.Model, name string) error {
	features, label, err := l.traced(name)
	if err != nil {
		return err
	}
	m.Feed = graph.Feed{Features: l.session.schema.features}
	switch {
	case label != nil:
		if m.Feed.Label, err = traceLabel(label, l.session.schema, m.Loss); err != nil {
			return l.refuse(name, "%s: %s", name, err)
		}
	case l.opt.Mode != Prediction:
		return l.refuse(name, "%s maps a record to %s; (features, label) is wanted in mode %q", name, printed(features), l.opt.Mode)
	}
	byInput, err := l.featuresByInput(features)
	if err != nil {
		return l.refuse(name, "%s: %s", name, err)
	}
	for i, n := range m.Nodes {
		if n.Op != graph.Input {
			continue
		}
		column, err := l.column(byInput, i, n)
		if err != nil {
			return l.refuse(name, "%s: %s", name, err)
		}
		used := []string{column.Feature}
		for _, p := range column.Parts {
			used = append(used, p.Feature)
		}
		if m.Feed.Label != "" && slices.Contains(used, m.Feed.Label) {
			return l.refuse(name, "%s: feature %q is both the input and the label", name, m.Feed.Label)
		}
		m.Feed.Columns = append(m.Feed.Columns, column)
	}
	return nil
}

// column is how the input that is a node of the network is made of the features.
func (l *loader) column(byInput map[int]starlark.Value, node int, n graph.Node) (graph.Column, error) {
	g, at := l.built.layers, l.built.origin[node]
	made := g.made[at]
	if made == nil {
		return traceColumn(byInput[at], l.session.schema, n, g.casts[at])
	}
	c := graph.Column{Integer: n.Integer, Weights: made.weights, Sparse: made.sparse && n.Integer}
	for _, p := range made.parts {
		in := g.nodes[p.source]
		feature, d, steps, err := traceSteps(byInput[p.source], in.Name)
		if err != nil {
			return c, err
		}
		f, _, _ := l.session.schema.find(feature)
		if f.Elements() != p.elements {
			return c, fmt.Errorf("feature %q has shape %s, %d elements, and input %s has shape %s, %d elements", f.Name, shapeText(f.Shape), f.Elements(), in.Name, shapeText(in.Shape), p.elements)
		}
		switch declared := g.dtypes[p.source]; {
		case (d == stringType) != (declared == stringType) || d.float() && !declared.float():
			return c, fmt.Errorf("the feature of input %s is %s, and the input takes %s", in.Name, d, declared)
		case !d.float() && declared == float32Type:
			steps = append(steps, graph.Step{Op: graph.ToFloat})
		}
		c.Parts = append(c.Parts, graph.Part{Feature: feature, Steps: append(steps, p.steps...)})
	}
	return c, nil
}

// traceSteps reads how a feature becomes what preprocessing starts from.
func traceSteps(v starlark.Value, input string) (feature string, d dtype, steps []graph.Step, err error) {
	s, ok := v.(*symbol)
	if !ok {
		return "", "", nil, fmt.Errorf("the feature of input %s is %s, not something made of a record", input, printed(v))
	}
	whole, d := s, s.dtype
	for s.op != opFeature {
		step := graph.Step{}
		switch {
		case s.op == opReshape:
			err = reshapeKeeps(s)
		case s.op == opCast && s.args[0].dtype == stringType:
			err = errors.New("text cannot be cast")
		case s.op == opCast && s.dtype == float32Type:
			step.Op = graph.ToFloat
		case s.op == opCast && (s.dtype == int32Type || s.dtype == int64Type):
			step.Op = graph.ToInteger
		default:
			var next *graph.Transform
			if _, next, err = transformOf(s); err == nil && next != nil {
				step = graph.Step{Op: next.Op, Value: next.Value}
			}
		}
		if err != nil {
			return "", "", nil, fmt.Errorf("the feature of input %s is %s: %w", input, whole, err)
		}
		if step.Op != "" {
			steps = append(steps, step)
		}
		next := s.args[0]
		if next.op == opNumber {
			next = s.args[1]
		}
		s = next
	}
	slices.Reverse(steps)
	return s.feature, d, steps, nil
}

// inputsOfFeatures makes an input of each feature that feed or input_fn gives to a model whose call takes them.
func (l *loader) inputsOfFeatures(early bool) (starlark.Value, []modelInput, error) {
	name := l.feedName()
	var features starlark.Value
	shapes := func(v starlark.Value) ([]int, dtype, error) {
		s, ok := v.(*symbol)
		if !ok || s.op == opRecord {
			return nil, "", fmt.Errorf("%s returns %s, not a feature made of a record", name, printed(v))
		}
		return dimsOfTrace(s), s.dtype, nil
	}
	if name == "" {
		return nil, nil, &Error{Msg: "the file defines none of feed, dataset_fn and input_fn, from which the model's class has its inputs"}
	}
	var err error
	if name != "input_fn" {
		features, _, err = l.traced(name)
	} else if features, err = l.probeInputFunction(); err == nil {
		shapes = func(v starlark.Value) ([]int, dtype, error) {
			a, err := arrayOf(v, "the feature")
			if err != nil || len(a.shape) == 0 {
				return nil, "", errors.Join(err, fmt.Errorf("input_fn returns %s for a feature; an array of one row for each record is wanted", printed(v)))
			}
			return a.shape[1:], float32Type, nil
		}
	}
	if err != nil {
		return nil, nil, err
	}
	g := l.session.layers
	input := func(key string, v starlark.Value) (*symbol, error) {
		dims, d, err := shapes(v)
		if err != nil {
			return nil, l.refuse(name, "%s", err)
		}
		if key == "" {
			g.count["input"] = max(1, g.count["input"])
		}
		in := g.input(graph.Node{Name: g.name("input", key), Shape: nodeShape(dims), Place: l.placeOf(name)}, d)
		in.dims = dims
		return in, nil
	}
	dict, ok := features.(*starlark.Dict)
	if !ok {
		v, err := single(features)
		if err != nil {
			return nil, nil, l.refuse(name, "%s returns %s; a feature, or a dict of them, is wanted", name, printed(features))
		}
		in, err := input("", v)
		if err != nil {
			return nil, nil, err
		}
		return in, []modelInput{{in.detail, in.layer}}, nil
	}
	inputs := starlark.NewDict(dict.Len())
	var made []modelInput
	for _, item := range dict.Items() {
		key, isText := item[0].(starlark.String)
		if !isText || key == "" {
			return nil, nil, l.refuse(name, "%s returns a feature under %s, which is no name", name, printed(item[0]))
		}
		in, err := input(string(key), item[1])
		if err == nil {
			err = inputs.SetKey(key, in)
		}
		if err != nil {
			return nil, nil, err
		}
		made = append(made, modelInput{string(key), in.layer})
		if early && dict.Len() == 1 { // columns were given one by one then
			return in, made, nil
		}
	}
	return inputs, made, nil
}

// featuresByInput finds what a feed returns for each input, by its place in the layer graph: in a dict by the input's
// name, or the one that the dict of inputs gave it; in a list by its place in the list of inputs.
func (l *loader) featuresByInput(features starlark.Value) (map[int]starlark.Value, error) {
	inputs := l.built.inputs
	if len(inputs) == 1 {
		v, err := single(features)
		return map[int]starlark.Value{inputs[0].node: v}, err
	}
	found := map[int]starlark.Value{}
	switch v := features.(type) {
	case *starlark.Dict:
		for _, in := range inputs {
			feature, ok, err := v.Get(starlark.String(in.key))
			if err != nil || !ok {
				return nil, fmt.Errorf("no feature %q is returned for the input of that name", in.key)
			}
			found[in.node] = feature
		}
	case *starlark.List, starlark.Tuple:
		if l.built.byKey {
			return nil, fmt.Errorf("features are returned as a %s, and the model's inputs are a dict; return a dict of the same names", v.Type())
		}
		for i := range min(starlark.Len(v), len(inputs)) {
			found[inputs[i].node] = v.(starlark.Indexable).Index(i)
		}
	}
	if n := starlark.Len(features); n != len(inputs) {
		if n < 0 {
			return nil, fmt.Errorf("the one feature %s is returned, and the model has %d inputs", printed(features), len(inputs))
		}
		return nil, fmt.Errorf("%d features are returned, and the model has %d inputs", n, len(inputs))
	}
	return found, nil
}

// single takes the one feature out of a dict, list or tuple, for a model with one input.
func single(v starlark.Value) (starlark.Value, error) {
	var parts []starlark.Value
	switch v := v.(type) {
	case *starlark.Dict:
		for _, item := range v.Items() {
			parts = append(parts, item[1])
		}
	case *starlark.List:
		parts = slices.Collect(v.Elements())
	case starlark.Tuple:
		parts = v
	default:
		return v, nil
	}
	if len(parts) != 1 {
		return nil, fmt.Errorf("%d features are returned, and the model has one input", len(parts))
	}
	return parts[0], nil
}
