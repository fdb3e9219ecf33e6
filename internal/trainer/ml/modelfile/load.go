// Package modelfile reads unmodified model files of ElasticDL: Python code that builds a Keras functional model and
// defines loss, optimizer, feed (or dataset_fn, or input_fn) and eval_metrics_fn.
//
// It rewrites the few constructs that only Python has, runs the rest in go.starlark.net with a facade of tensorflow and
// parts of numpy, and records the model as a graph.Model. Nothing is ignored: an argument, a value or an operation that
// is not implemented is an error with file, line and an alternative, because a different model would train to a
// different result. Code that training never reaches is not restricted.
//
// A file's code runs with limits of steps and memory, which are counted where values are created (meter.go), so every
// machine accepts or rejects the same files. The code has no access to files, to the network or to the clock.
// internal/trainer/ml/nn decides whether a graph can be compiled, and internal/trainer/data reads the records of a data
// set.
package modelfile

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.starlark.net/resolve"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
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
	opt.Mode = cmp.Or(opt.Mode, Training)
	if opt.limits == (limits{}) {
		opt.limits = defaultLimits
	}
	report := &Report{}
	main, modules, refused := unbundle(string(src))
	if refused != nil {
		refused.File = filename
		return nil, nil, refused
	}
	l := &loader{
		file: filename, opt: opt, modules: modules, shared: &sharedValues{values: starlark.StringDict{}},
		session: &session{limits: opt.limits, report: report, layers: newLayerGraph(), schema: &schema{}},
	}
	translated, refused := translate(main, nil, report)
	if refused != nil {
		refused.File = filename
		return nil, nil, refused
	}
	l.parts = translated.parts
	l.thread = l.session.thread(filename)
	model, err := l.load(translated)
	if err != nil {
		return nil, nil, l.locate(err)
	}
	l.shared.Freeze()
	slices.SortStableFunc(report.Notices, func(a, b Message) int {
		return cmp.Or(cmp.Compare(a.At.Module, b.At.Module), a.At.Line-b.At.Line)
	})
	return model, report, nil
}

// loader runs one model file, with the modules of the same model zoo that it imports.
type loader struct {
	file    string
	opt     Options
	parts   []*statement
	modules []*module
	facade  *facade
	shared  *sharedValues
	session *session
	thread  *starlark.Thread
	globals starlark.StringDict
	built   *kerasModel
	forms   *outputForms // when the loss is known
}

func (l *loader) load(translated *translation) (*graph.Model, error) {
	var err error
	l.facade = newFacade()
	if l.globals, err = l.execute(l.file, translated); err != nil {
		return nil, err
	}
	built, early, err := l.model()
	if err != nil {
		return nil, err
	}
	l.built = built
	l.session.layers = nil // what is called from here on cannot change the model
	m := &graph.Model{Name: built.name}
	for _, step := range []func(*graph.Model, bool) error{l.loss, l.optimizer, l.metrics, l.callbacks, l.feed} {
		if err := step(m, early); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// execute runs a file's top-level statements and gives what they bind.
func (l *loader) execute(file string, translated *translation) (starlark.StringDict, error) {
	options := &syntax.FileOptions{Set: true, While: true, TopLevelControl: true, GlobalReassign: true}
	tree, err := options.Parse(file, translated.text, 0)
	if err != nil {
		return nil, err
	}
	markShared(tree, translated.shared)
	if err := convertClasses(tree, translated.heads); err != nil {
		return nil, err
	}
	if err := checkNesting(tree); err != nil {
		return nil, err
	}
	insertGuards(tree)
	insertMeters(tree)

	predeclared := guards()
	for _, more := range []starlark.StringDict{meters(), builtins()} {
		maps.Copy(predeclared, more)
	}
	predeclared[sharedHome] = l.shared
	imports := starlark.StringDict{}
	for _, i := range translated.imports {
		v, err := l.imported(i.path)
		if err != nil {
			return nil, err
		}
		have, twice := imports[i.name]
		if _, missing := have.(unknown); twice && i.fallback {
			if missing {
				imports[i.name] = v
			}
			continue
		}
		if _, taken := predeclared[i.name]; twice && have.String() != v.String() || taken {
			return nil, &Error{Line: i.line, Msg: fmt.Sprintf("the import of %s gives the name %s a second meaning", i.path, i.name)}
		}
		imports[i.name] = v
	}
	maps.Copy(predeclared, imports)
	defined := slices.Clone(contractNames)
	inMain := map[string]bool{}
	for _, s := range translated.parts {
		for _, name := range s.binds {
			if s.kind == mainStatement {
				inMain[name] = true
			} else {
				defined = append(defined, name)
			}
		}
	}
	program, err := starlark.FileProgram(tree, func(name string) bool {
		if _, known := predeclared[name]; !known {
			if starlark.Universe.Has(name) {
				return false
			}
			missing := undefined(name, defined)
			if inMain[name] {
				missing.reason = "is bound in the block of `if __name__ == \"__main__\"` alone, which is not run when the file is imported; move it out of the block"
			}
			predeclared[name] = missing
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	globals, err := program.Init(l.thread, predeclared)
	if err != nil {
		return nil, err
	}
	if name := notFreezable(globals); name != "" {
		l.globals = globals // for the line
		return nil, l.refuse(name, "the value of %s is nested or shared in more than %d levels, or is a nested function that names itself; "+
			"a model file cannot keep it", name, maxFreezeDepth)
	}
	globals.Freeze()                       // functions are called many times and by many threads: they may not talk through globals
	for _, i := range translated.imports { // imports are bound before everything else here, and in their place in Python
		if _, twice := globals[i.name]; twice {
			return nil, &Error{Line: i.line, Msg: fmt.Sprintf("the file imports the name %s and defines it too; rename one of them", i.name)}
		}
	}
	all := maps.Clone(globals) // in Python a module has what it imports
	for name, v := range imports {
		if _, ofFacade := v.(namespace); !ofFacade {
			all[name] = v
		}
	}
	return all, nil
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
		if refused.File != "" {
			out.File = refused.File
		}
	case errors.As(err, &parse):
		out.Line, out.Column, out.Msg = int(parse.Pos.Line), int(parse.Pos.Col), explainSyntax(parse.Msg)
		out.File = parse.Pos.Filename()
	case errors.As(err, &unresolved) && len(unresolved) > 0:
		at := unresolved[0].Pos
		out.File, out.Line, out.Column, out.Msg = at.Filename(), int(at.Line), int(at.Col), unresolved[0].Msg
	case errors.As(err, &failed):
		out.Msg = explainFailure(failed.Msg)
		for _, frame := range slices.Backward(failed.CallStack) {
			if at := frame.Pos; at.Line > 0 { // a built-in function's has none
				out.File, out.Line, out.Column = at.Filename(), int(at.Line), int(at.Col)
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
	return msg + " (model files are run as Starlark, the part of Python without exceptions and generators)"
}

// explainFailure does the same for messages of the interpreter.
func explainFailure(msg string) string {
	msg = strings.TrimPrefix(msg, "Starlark computation cancelled: ")
	switch {
	case strings.Contains(msg, "invalid call of non-function (traced value)"):
		return "a tensor is called as if it was a layer; leave the call out (a tf.keras.Input is a tensor), or call a layer of tf.keras.layers"
	case strings.Contains(msg, "invalid slice operand traced value"):
		return "a slice of a traced value is not implemented; declare a feature for each part in tf.io.parse_single_example (of a CSV file, the features are columns)"
	case strings.Contains(msg, "called recursively"):
		return msg + "; recursion is not implemented in model files, write a loop"
	case strings.Contains(msg, "frozen"):
		return msg + ": functions cannot change what belongs to the whole module; return the value"
	}
	return msg
}
