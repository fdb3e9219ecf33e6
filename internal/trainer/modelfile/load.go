// Package modelfile reads the model files of ElasticDL's users as they are: Python that builds a Keras functional model
// and defines loss, optimizer, feed (or dataset_fn, or input_fn) and eval_metrics_fn.
//
// It rewrites the few constructs that only Python has, lets go.starlark.net run the rest behind a facade of tensorflow and
// a little numpy, and records what the file builds as a graph.Model. It promises that nothing is ignored: an argument, a
// value or an operation that it does not implement is refused with file, line and what to write instead, because a model
// that is silently another one trains to another result. Code that training never reaches may hold anything.
//
// A file's code runs within a limit of steps and array sizes that stops honest mistakes; it has no access to files, to
// the network or to the clock. Whether a graph can be compiled is for internal/trainer/nn to say, and what the records
// in a data set really hold for internal/trainer/data.
package modelfile

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"go.starlark.net/resolve"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/graph"
)

// Mode is what a model is loaded for; feed sees it as ElasticDL's Mode.
type Mode string

// The modes. In Prediction, records need no label, and the model's Feed.Label may be empty.
const (
	Training   Mode = modeTraining
	Evaluation Mode = modeEvaluation
	Prediction Mode = modePrediction
)

// Options of Load.
type Options struct {
	// LearningRate replaces the default of the file's optimizer(lr); nil keeps it.
	LearningRate *float64
	// Mode is Training unless said otherwise.
	Mode Mode

	limits limits // zero means defaultLimits; tests set smaller ones
}

// Load runs the model file src, which filename names in messages, and returns what it builds and what there is to say
// about it. A refusal is an *Error.
func Load(filename string, src []byte, opt Options) (*graph.Model, *Report, error) {
	if opt.Mode == "" {
		opt.Mode = Training
	}
	if opt.limits == (limits{}) {
		opt.limits = defaultLimits
	}
	report := &Report{}
	text, imports, parts, refused := translate(string(src), report)
	if refused != nil {
		refused.File = filename
		return nil, nil, refused
	}
	l := &loader{
		file: filename, opt: opt, parts: parts,
		session: &session{limits: opt.limits, report: report, layers: newLayerGraph(), schema: &schema{}},
	}
	l.thread = l.session.thread(filename)
	model, err := l.load(text, imports)
	if err != nil {
		return nil, nil, l.locate(err)
	}
	slices.SortStableFunc(report.Notices, func(a, b Message) int { return a.Line - b.Line })
	return model, report, nil
}

// loader runs one model file.
type loader struct {
	file    string
	opt     Options
	parts   []*statement
	session *session
	thread  *starlark.Thread
	globals starlark.StringDict
}

func (l *loader) load(text string, imports []importedName) (*graph.Model, error) {
	if err := l.execute(text, imports); err != nil {
		return nil, err
	}
	built, early, err := l.model()
	if err != nil {
		return nil, err
	}
	l.session.layers = nil // what is called from here on cannot change the model
	m := &graph.Model{Name: built.name, Nodes: built.nodes, Output: built.output}
	for _, step := range []func(*graph.Model, bool) error{l.loss, l.optimizer, l.metrics, l.callbacks, l.feed} {
		if err := step(m, early); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// execute runs the file's top-level statements.
func (l *loader) execute(text string, imports []importedName) error {
	options := &syntax.FileOptions{Set: true, While: true, TopLevelControl: true, GlobalReassign: true}
	tree, err := options.Parse(l.file, text, 0)
	if err != nil {
		return err
	}
	insertGuards(tree)

	predeclared := guards()
	for name, v := range builtins() {
		predeclared[name] = v
	}
	facade := newFacade()
	for _, i := range imports {
		v := facade.lookup(i.path)
		if have, twice := predeclared[i.name]; twice && have.String() != v.String() {
			return &Error{Line: i.line, Msg: fmt.Sprintf("the import of %s gives the name %s a second meaning", i.path, i.name)}
		}
		predeclared[i.name] = v
	}
	defined := slices.Clone(contractNames)
	for _, s := range l.parts {
		defined = append(defined, s.binds...)
	}
	program, err := starlark.FileProgram(tree, func(name string) bool {
		if _, known := predeclared[name]; !known {
			if starlark.Universe.Has(name) {
				return false
			}
			predeclared[name] = undefined(name, defined)
		}
		return true
	})
	if err != nil {
		return err
	}
	l.globals, err = program.Init(l.thread, predeclared)
	l.globals.Freeze() // functions are called many times and by many threads: they may not talk through globals
	return err
}

// locate turns an error of any stage into an *Error with the innermost line of the file.
func (l *loader) locate(err error) *Error {
	out := &Error{File: l.file, Msg: err.Error()}
	var refused *Error
	var parse syntax.Error
	var unresolved resolve.ErrorList
	var failed *starlark.EvalError
	switch {
	case errors.As(err, &refused):
		out.Line, out.Column, out.Msg = refused.Line, refused.Column, refused.Msg
	case errors.As(err, &parse):
		out.Line, out.Column, out.Msg = int(parse.Pos.Line), int(parse.Pos.Col), explainSyntax(parse.Msg)
	case errors.As(err, &unresolved) && len(unresolved) > 0:
		out.Line, out.Column, out.Msg = int(unresolved[0].Pos.Line), int(unresolved[0].Pos.Col), unresolved[0].Msg
	case errors.As(err, &failed):
		out.Msg = explainFailure(failed.Msg)
		for _, frame := range slices.Backward(failed.CallStack) {
			if frame.Pos.Filename() == l.file && frame.Pos.Line > 0 {
				out.Line, out.Column = int(frame.Pos.Line), int(frame.Pos.Col)
				break
			}
		}
	}
	return out
}

// explainSyntax adds to a message of Starlark's parser what a writer of Python needs to know.
func explainSyntax(msg string) string {
	if strings.Contains(msg, "does not associate") {
		return "a chained comparison cannot be run; write `a < b and b < c`"
	}
	return msg + " (model files are run as Starlark, the part of Python without classes, exceptions and generators)"
}

// explainFailure does the same for messages of the interpreter.
func explainFailure(msg string) string {
	msg = strings.TrimPrefix(msg, "Starlark computation cancelled: ")
	switch {
	case strings.Contains(msg, "called recursively"):
		return msg + "; recursion is not implemented in model files, write a loop"
	case strings.Contains(msg, "frozen"):
		return msg + ": functions cannot change what belongs to the whole module; return the value"
	}
	return msg
}

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
	if !ok || !isMeanLoss(s) {
		return l.refuse("loss", "loss returns %s; only tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, output)) is implemented", printed(v))
	}
	if shape := m.Nodes[m.Output].Shape; len(shape) != 1 {
		return l.refuse("loss", "the model's output has shape %s; the loss wants one value for each class", shapeText(shape))
	}
	m.Loss = graph.SparseSoftmaxCrossEntropy
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
	o, ok := v.(sgd)
	if !ok {
		return l.refuse("optimizer", "optimizer returns %s; only SGD is implemented", printed(v))
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
		m.Metrics = []graph.Metric{{Name: "accuracy", Kind: graph.Accuracy}}
		add(&l.session.report.Notices, 0, "the file defines no eval_metrics_fn; accuracy is reported")
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
	s, ok := v.(*symbol)
	if !ok || !isAccuracy(s) {
		return l.refuse("eval_metrics_fn", "metric %q is %s; only accuracy, tf.equal(tf.argmax(predictions, 1), labels), is implemented", key, printed(v))
	}
	m.Metrics = append(m.Metrics, graph.Metric{Name: key, Kind: graph.Accuracy})
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
		if m.Feed.Label, err = traceLabel(pair[1], l.session.schema); err != nil {
			return l.refuse(name, "%s: %s", name, err)
		}
	} else if l.opt.Mode != Prediction {
		return l.refuse(name, "%s maps a record to %s; (features, label) is wanted in mode %q", name, printed(features), l.opt.Mode)
	}
	input := m.Nodes[0]
	feature, err := single(features)
	if err != nil {
		return l.refuse(name, "%s: %s", name, err)
	}
	column, err := traceColumn(feature, l.session.schema, input)
	if err != nil {
		return l.refuse(name, "%s: %s", name, err)
	}
	if column.Feature == m.Feed.Label {
		return l.refuse(name, "%s: feature %q is both the input and the label", name, column.Feature)
	}
	m.Feed.Columns = []graph.Column{column}
	return nil
}

// single takes the one feature out of a dict, list or tuple: the models here have one input.
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
