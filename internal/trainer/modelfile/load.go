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
	built   *kerasModel
}

func (l *loader) load(text string, imports []importedName) (*graph.Model, error) {
	if err := l.execute(text, imports); err != nil {
		return nil, err
	}
	built, early, err := l.model()
	if err != nil {
		return nil, err
	}
	l.built = built
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
	if err != nil {
		return err
	}
	for _, i := range imports { // imports are bound before everything else here, and in their place in Python
		if _, twice := l.globals[i.name]; twice {
			return &Error{Line: i.line, Msg: fmt.Sprintf("the file imports the name %s and defines it too; rename one of them", i.name)}
		}
	}
	return nil
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
