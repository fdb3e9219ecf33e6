package modelfile

import (
	"fmt"
	"math"
	"slices"

	"go.starlark.net/starlark"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/graph"
)

// model finds the model: what custom_model() returns, or the module's variable of May 2019, which also decides the
// order of loss's parameters.
func (l *loader) model() (m *kerasModel, early bool, err error) {
	v, early := l.globals["model"], true
	where := "the variable model"
	if f, ok := l.globals["custom_model"]; ok {
		early, where = false, "custom_model()"
		if v, err = l.call(f, where); err != nil {
			return nil, false, err
		}
	}
	switch v := v.(type) {
	case nil:
		return nil, false, &Error{Msg: "the file defines neither custom_model() nor a variable model: there is nothing to train"}
	case *kerasModel:
		return v, early, nil
	case unknown:
		return nil, false, &Error{Line: l.lineOf("custom_model", "model"), Msg: where + ": " + v.use().Error()}
	}
	return nil, false, &Error{Line: l.lineOf("custom_model", "model"), Msg: fmt.Sprintf("%s is %s, not a tf.keras.Model", where, printed(v))}
}

// lineOf is the line where the first of the names that exists is defined, or 0.
func (l *loader) lineOf(names ...string) int {
	for _, name := range names {
		if f, ok := l.globals[name].(*starlark.Function); ok {
			return int(f.Position().Line)
		}
		for _, s := range l.parts {
			if first := s.lines[0]; len(first) > 1 && first[0].is(name) && first[1].is("=") {
				return s.line()
			}
		}
	}
	return 0
}

// refuse is an error about what a function of the contract gave.
func (l *loader) refuse(name, format string, args ...any) error {
	return &Error{Line: l.lineOf(name), Msg: fmt.Sprintf(format, args...)}
}

// call calls a function of the contract.
func (l *loader) call(f starlark.Value, name string, args ...starlark.Value) (starlark.Value, error) {
	c, ok := f.(starlark.Callable)
	if !ok {
		return nil, fmt.Errorf("%s is %s, not a function", name, printed(f))
	}
	return starlark.Call(l.thread, c, args, nil)
}

// contractFunction finds a function that the file must define.
func (l *loader) contractFunction(name, purpose string) (*starlark.Function, error) {
	switch f := l.globals[name].(type) {
	case *starlark.Function:
		return f, nil
	case nil:
		return nil, &Error{Msg: fmt.Sprintf("the file does not define %s, %s", name, purpose)}
	default:
		return nil, l.refuse(name, "%s is %s, not a function", name, printed(f))
	}
}

// outputAndLabels are the two arguments of a loss or metric in the order in which f takes them: the parameter called
// labels takes the labels; without one, files with a variable model take (output, labels) and later ones (labels,
// predictions).
func outputAndLabels(f *starlark.Function, early bool) ([]starlark.Value, error) {
	if f.NumParams() != 2 || f.HasVarargs() || f.HasKwargs() {
		return nil, fmt.Errorf("%s takes %d parameters; labels and predictions are wanted", f.Name(), f.NumParams())
	}
	output, labels := &symbol{op: opOutput, dtype: float32Type}, &symbol{op: opLabels}
	first, _ := f.Param(0)
	second, _ := f.Param(1)
	if second == "labels" || first != "labels" && early {
		return []starlark.Value{output, labels}, nil
	}
	return []starlark.Value{labels, output}, nil
}

func (l *loader) loss(m *graph.Model, early bool) error {
	f, err := l.contractFunction("loss", "the function of labels and predictions that training makes small")
	if err != nil {
		return err
	}
	args, err := outputAndLabels(f, early)
	if err != nil {
		return l.refuse("loss", "%s", err)
	}
	v, err := l.call(f, "loss", args...)
	if err != nil {
		return err
	}
	s, ok := v.(*symbol)
	if ok {
		m.Loss, ok = lossOf(s, m.Nodes[m.Output].Shape)
	}
	if !ok {
		return l.refuse("loss", "loss returns %s; %s", printed(v), losses)
	}
	shape := m.Nodes[m.Output].Shape
	switch {
	case m.Loss == graph.SparseSoftmaxCrossEntropy && len(shape) != 1:
		return l.refuse("loss", "the model's output has shape %s; the loss wants one value for each class", shapeText(shape))
	case m.Loss != graph.SparseSoftmaxCrossEntropy && (len(shape) != 1 || shape[0] != 1):
		return l.refuse("loss", "the model's output has shape %s; the loss wants one value, as of tf.keras.layers.Dense(1)", shapeText(shape))
	}
	return nil
}

func (l *loader) optimizer(m *graph.Model, _ bool) error {
	f, err := l.contractFunction("optimizer", "the function that makes the optimizer")
	if err != nil {
		return err
	}
	var args []starlark.Value
	override := l.opt.LearningRate
	if override != nil && !(*override > 0 && !math.IsInf(*override, 0)) {
		return fmt.Errorf("the learning rate %v is not a number above 0", *override)
	}
	switch {
	case f.NumParams() > 0 && override != nil:
		args = append(args, starlark.Float(*override))
	case f.NumParams() > 0 && f.ParamDefault(0) == nil && !f.HasVarargs() && !f.HasKwargs():
		name, _ := f.Param(0)
		return l.refuse("optimizer", "optimizer(%s) has no default; give a learning rate to the job", name)
	}
	v, err := l.call(f, "optimizer", args...)
	if err != nil {
		return err
	}
	o, ok := v.(optimizer)
	if !ok {
		return l.refuse("optimizer", "optimizer returns %s; an optimizer of tf.optimizers is wanted", printed(v))
	}
	m.Optimizer = o.Optimizer
	if override != nil && m.Optimizer.LearningRate != *override {
		return l.refuse("optimizer", "optimizer makes %v of the learning rate %v that the job gives; return the rate as it is", o, *override)
	}
	return nil
}

// callbacks runs callbacks() so that what it makes is refused by name: a learning-rate schedule that is ignored trains
// another model.
func (l *loader) callbacks(*graph.Model, bool) error {
	if f := l.globals["custom_data_reader"]; f != nil {
		return l.refuse("custom_data_reader", "custom_data_reader is not implemented: the trainer reads RecordIO, TFRecord, IDX and CSV files itself")
	}
	f, ok := l.globals["callbacks"]
	if !ok {
		return nil
	}
	v, err := l.call(f, "callbacks()")
	if err != nil {
		return err
	}
	if starlark.Len(v) != 0 {
		return l.refuse("callbacks", "callbacks() returns %s; callbacks are not implemented", printed(v))
	}
	return nil
}

// metrics reads eval_metrics_fn() of functions, or eval_metrics_fn(predictions, labels) of values.
func (l *loader) metrics(m *graph.Model, early bool) error {
	const name = "eval_metrics_fn"
	if l.globals[name] == nil {
		kind := graph.MetricOf(m.Loss)
		m.Metrics = []graph.Metric{{Name: string(kind), Kind: kind}}
		add(&l.session.report.Notices, 0, "the file defines no eval_metrics_fn; %s is reported", kind)
		return nil
	}
	f, err := l.contractFunction(name, "")
	if err != nil {
		return err
	}
	var args []starlark.Value
	if f.NumParams() > 0 {
		if args, err = outputAndLabels(f, early); err != nil {
			return l.refuse(name, "%s", err)
		}
	}
	v, err := l.call(f, name, args...)
	if err != nil {
		return err
	}
	dict, ok := v.(*starlark.Dict)
	if !ok {
		return l.refuse(name, "%s returns %s; a dict of metrics is wanted", name, printed(v))
	}
	for _, item := range dict.Items() {
		key, ok := item[0].(starlark.String)
		if !ok {
			return l.refuse(name, "%s: the name %s of a metric is not a string", name, printed(item[0]))
		}
		if err := l.metric(m, early, string(key), item[1]); err != nil {
			return err
		}
	}
	return nil
}

func (l *loader) metric(m *graph.Model, early bool, key string, v starlark.Value) error {
	if f, ok := v.(*starlark.Function); ok {
		args, err := outputAndLabels(f, early)
		if err != nil {
			return &Error{Line: int(f.Position().Line), Msg: fmt.Sprintf("metric %q: %s", key, err)}
		}
		if v, err = l.call(f, key, args...); err != nil {
			return err
		}
	}
	found, ok := metricOf(v, m.Nodes[m.Output].Shape)
	if !ok {
		return l.refuse("eval_metrics_fn", "metric %q is %s; implemented are %s", key, printed(v), implementedMetrics)
	}
	if with := metricsWith(m.Loss); !slices.Contains(with, found.Kind) {
		return l.refuse("eval_metrics_fn", "metric %q is %s, which does not go with the loss %s; %s does", key, found.Kind, m.Loss, kinds(with))
	}
	found.Name = key
	m.Metrics = append(m.Metrics, found)
	return nil
}

// feed finds out how records become inputs, by the newest of the three functions that the file defines.
func (l *loader) feed(m *graph.Model, _ bool) error {
	var found []string
	for _, name := range []string{"feed", "dataset_fn", "input_fn"} {
		if l.globals[name] != nil {
			found = append(found, name)
		}
	}
	if len(found) == 0 {
		return &Error{Msg: "the file defines none of feed, dataset_fn and input_fn: nothing says how records become inputs"}
	}
	for _, name := range found[1:] {
		add(&l.session.report.Notices, l.lineOf(name), "%s is not used, because the file defines %s", name, found[0])
	}
	f, err := l.contractFunction(found[0], "")
	if err != nil {
		return err
	}
	if found[0] == "input_fn" {
		return l.inputFunction(m, f)
	}
	return l.traceFeed(m, f)
}

// traceFeed runs feed(dataset, mode[, metadata]) on a traced record.
func (l *loader) traceFeed(m *graph.Model, f *starlark.Function) error {
	name := f.Name()
	args := []starlark.Value{
		dataset{element: &symbol{op: opRecord}}, starlark.String(l.opt.Mode), unknown{"metadata", "is not available: there is no data reader that knows it"},
	}
	if n := f.NumParams(); n != 2 && n != 3 || f.HasVarargs() || f.HasKwargs() {
		return l.refuse(name, "%s takes %d parameters; (dataset, mode) or (dataset, mode, metadata) is wanted", name, n)
	}
	v, err := l.call(f, name, args[:f.NumParams()]...)
	if err != nil {
		return err
	}
	d, ok := v.(dataset)
	if !ok {
		return l.refuse(name, "%s returns %s; the mapped dataset is wanted", name, printed(v))
	}
	features := d.element
	m.Feed = graph.Feed{Features: l.session.schema.features}
	if pair, ok := features.(starlark.Tuple); ok && len(pair) == 2 {
		features = pair[0]
		if m.Feed.Label, err = traceLabel(pair[1], l.session.schema, m.Loss); err != nil {
			return l.refuse(name, "%s: %s", name, err)
		}
	} else if l.opt.Mode != Prediction {
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
		column, err := traceColumn(byInput[i], l.session.schema, n)
		if err != nil {
			return l.refuse(name, "%s: %s", name, err)
		}
		if column.Feature == m.Feed.Label {
			return l.refuse(name, "%s: feature %q is both the input and the label", name, column.Feature)
		}
		m.Feed.Columns = append(m.Feed.Columns, column)
	}
	return nil
}

// featuresByInput finds what a feed returns for each input, by its place among the nodes: in a dict by the input's name, or the
// one that the dict of inputs gave it; in a list by its place in the list of inputs.
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
