package modelfile

import (
	"fmt"
	"math"
	"slices"

	"go.starlark.net/starlark"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
)

// model finds the model: what custom_model() returns, the module's variable of May 2019, which also decides the order
// of loss's parameters, or the class that is the model.
func (l *loader) model() (m *kerasModel, early bool, err error) {
	v, early := l.globals["model"], true
	where, at := "the variable model", []string{"custom_model", "model"}
	if f, ok := l.globals["custom_model"]; ok {
		early, where = false, "custom_model()"
		if v, err = l.call(f, where); err != nil {
			return nil, false, err
		}
	} else if v == nil {
		early = false
		c, err := l.modelClass()
		if err != nil {
			return nil, false, err
		}
		where, at = c.name+"()", []string{c.name}
		if v, err = l.call(c, where); err != nil {
			return nil, false, err
		}
	}
	switch v := v.(type) {
	case *kerasModel:
		return v, early, nil
	case *object:
		if v.class.builtin == modelBase {
			m, err := l.subclassed(v, early)
			return m, early, err
		}
	case *sequential:
		m, err := l.subclassed(v, early)
		return m, early, err
	case unknown:
		return nil, false, refuseAt(l.placeOf(at...), "%s: %s", where, v.use())
	}
	return nil, false, refuseAt(l.placeOf(at...), "%s is %s, not a tf.keras.Model", where, printed(v))
}

// modelClass is the class that is the model of a file that has neither custom_model() nor a variable model.
func (l *loader) modelClass() (*class, error) {
	var found []*class
	for _, s := range modelClasses(l.parts) {
		if c, ok := l.globals[s.name].(*class); ok && c.builtin == modelBase {
			if c.name == "CustomModel" {
				return c, nil
			}
			found = append(found, c)
		}
	}
	switch len(found) {
	case 0:
		return nil, &Error{Msg: "the file defines neither custom_model(), nor a class of tf.keras.Model, nor a variable model: there is nothing to train"}
	case 1:
		return found[0], nil
	}
	return nil, refuseAt(l.placeOf(found[1].name), "the classes %s and %s are both models; call the one that is to be trained CustomModel, or define custom_model()", found[0].name, found[1].name)
}

// placeOf is where the first of the names that exists is defined.
func (l *loader) placeOf(names ...string) graph.Place {
	for _, name := range names {
		if f, ok := l.globals[name].(*starlark.Function); ok {
			return placeIn(l.file, f.Position())
		}
		if _, ok := l.globals[name].(*class); ok {
			for _, s := range l.parts {
				if s.kind == classStatement && s.name == name {
					return graph.Place{Line: s.line()}
				}
			}
		}
		for _, s := range l.parts {
			if first := s.lines[0]; len(first) > 1 && first[0].is(name) && first[1].is("=") {
				return graph.Place{Line: s.line()}
			}
		}
	}
	return graph.Place{}
}

// refuseAt is a refusal by a line.
func refuseAt(at graph.Place, format string, args ...any) *Error {
	return &Error{File: at.Module, Line: at.Line, Msg: fmt.Sprintf(format, args...)}
}

// refuse is an error about what a function of the contract gave.
func (l *loader) refuse(name, format string, args ...any) error {
	return refuseAt(l.placeOf(name), format, args...)
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
func outputAndLabels(f *starlark.Function, early bool, output starlark.Value) ([]starlark.Value, error) {
	if f.NumParams() != 2 || f.HasVarargs() || f.HasKwargs() {
		return nil, fmt.Errorf("%s takes %d parameters; labels and predictions are wanted", f.Name(), f.NumParams())
	}
	labels := &symbol{op: opLabels}
	first, _ := f.Param(0)
	second, _ := f.Param(1)
	if second == "labels" || first != "labels" && early {
		return []starlark.Value{output, labels}, nil
	}
	return []starlark.Value{labels, output}, nil
}

// predictions are the model's outputs as loss and metrics take them: one, or a dict.
func (l *loader) predictions() (starlark.Value, error) {
	keys := l.built.outputs.keys
	if len(keys) == 1 && keys[0] == "" {
		return &symbol{op: opOutput, dtype: float32Type}, nil
	}
	d := starlark.NewDict(len(keys))
	for _, key := range keys {
		if err := d.SetKey(starlark.String(key), &symbol{op: opOutput, output: key, dtype: float32Type}); err != nil {
			return nil, err
		}
	}
	return d, nil
}

func (l *loader) loss(m *graph.Model, early bool) error {
	f, err := l.contractFunction("loss", "the function of labels and predictions that training makes small")
	if err != nil {
		return err
	}
	output, err := l.predictions()
	if err != nil {
		return err
	}
	args, err := outputAndLabels(f, early, output)
	if err != nil {
		return l.refuse("loss", "%s", err)
	}
	v, err := l.call(f, "loss", args...)
	if err != nil {
		return err
	}
	l.forms = &outputForms{built: l.built, labelRank: l.labelRank(), trusting: l.opt.Mode == Prediction, main: -1}
	s, ok := v.(*symbol)
	var found foundLoss
	if ok {
		found, ok = l.forms.lossOf(s)
	}
	if !ok {
		return l.refuse("loss", "loss returns %s; %s", printed(v), losses)
	}
	if err := l.built.cut(found.out); err != nil {
		return err
	}
	l.forms.main = found.out.layer
	m.Nodes, m.Output, m.Loss, m.SumOfLosses = l.built.nodes, l.built.output, found.kind, found.sum
	if found.sum {
		add(&l.session.report.Notices, l.placeOf("loss"), "loss returns one value for each record: the gradient is that of their sum, as in ElasticDL; tf.reduce_mean makes it independent of the minibatch's size")
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

// callbacks runs callbacks(): of what it makes a schedule of the learning rate is implemented, and the rest is refused
// by name, because a callback that is ignored trains another model.
func (l *loader) callbacks(m *graph.Model, _ bool) error {
	if err := l.dataReader(); err != nil {
		return err
	}
	f, ok := l.globals["callbacks"]
	if !ok {
		return nil
	}
	v, err := l.call(f, "callbacks()")
	if err != nil {
		return err
	}
	list, ok := v.(starlark.Iterable)
	if !ok {
		return l.refuse("callbacks", "callbacks() returns %s; a list of callbacks is wanted", printed(v))
	}
	for c := range starlark.Elements(list) {
		schedule, ok := c.(*rateSchedule)
		switch {
		case !ok:
			return l.refuse("callbacks", "callbacks() returns %s; only elasticdl.python.elasticdl.callbacks.LearningRateScheduler is implemented", printed(c))
		case m.LearningRates != nil:
			return l.refuse("callbacks", "callbacks() returns two schedules of the learning rate; one is implemented")
		case l.opt.LearningRate != nil:
			return l.refuse("callbacks", "the job gives the learning rate %v, and callbacks() a schedule of it; leave one of them out", *l.opt.LearningRate)
		}
		m.LearningRates = &graph.LearningRates{At: schedule.at(l.file, l.opt.limits), Digest: l.digest("callbacks")}
		if _, err := m.LearningRates.At(0); err != nil {
			return err
		}
	}
	return nil
}

// metrics reads eval_metrics_fn() of functions, or eval_metrics_fn(predictions, labels) of values.
func (l *loader) metrics(m *graph.Model, early bool) error {
	const eval = "eval_metrics_fn"
	name := eval
	if l.globals[name] == nil {
		kind := graph.MetricOf(m.Loss)
		m.Metrics = []graph.Metric{{Name: string(kind), Kind: kind}}
		add(&l.session.report.Notices, graph.Place{}, "the file defines no eval_metrics_fn; %s is reported", kind)
		return nil
	}
	f, err := l.contractFunction(name, "")
	if err != nil {
		return err
	}
	var args []starlark.Value
	if f.NumParams() > 0 {
		output, err := l.predictions()
		if err != nil {
			return err
		}
		if args, err = outputAndLabels(f, early, output); err != nil {
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
		if ofOne, ok := item[1].(*starlark.Dict); ok && slices.Contains(l.built.outputs.keys, string(key)) {
			for _, inner := range ofOne.Items() {
				name, ok := inner[0].(starlark.String)
				if !ok {
					return l.refuse(eval, "%s: the name %s of a metric is not a string", eval, printed(inner[0]))
				}
				if err := l.metric(m, early, string(name), string(key), inner[1]); err != nil {
					return err
				}
			}
			continue
		}
		if err := l.metric(m, early, string(key), "", item[1]); err != nil {
			return err
		}
	}
	return nil
}

// metric adds a metric of the output with a key.
func (l *loader) metric(m *graph.Model, early bool, name, output string, v starlark.Value) error {
	if f, ok := v.(*starlark.Function); ok {
		var predictions starlark.Value = &symbol{op: opOutput, output: output, dtype: float32Type}
		if output == "" {
			var err error
			if predictions, err = l.predictions(); err != nil {
				return err
			}
		}
		args, err := outputAndLabels(f, early, predictions)
		if err != nil {
			return refuseAt(placeIn(l.file, f.Position()), "metric %q: %s", name, err)
		}
		if v, err = l.call(f, name, args...); err != nil {
			return err
		}
	}
	found, err := l.forms.metricOf(v, output)
	if err != nil {
		return l.refuse("eval_metrics_fn", "metric %q %s", name, err)
	}
	if found.Kind == graph.Accuracy && m.Loss == graph.SigmoidCrossEntropy {
		add(&l.session.report.Warnings, l.placeOf("eval_metrics_fn"), "metric %q: argmax of one value for each record is always 0, so that this is the share of records with label 0; tf.round(predictions) or predictions > 0.5 is what a probability predicts", name)
		found = graph.Metric{Kind: graph.BinaryAccuracy, Threshold: math.MaxFloat32}
	}
	if with := metricsWith(m.Loss); !slices.Contains(with, found.Kind) {
		return l.refuse("eval_metrics_fn", "metric %q is %s, which does not go with the loss %s; %s does", name, found.Kind, m.Loss, kinds(with))
	}
	for _, have := range m.Metrics {
		if have.Name == name {
			return l.refuse("eval_metrics_fn", "two metrics have the name %q; give one of them another", name)
		}
	}
	found.Name = name
	m.Metrics = append(m.Metrics, found)
	return nil
}
