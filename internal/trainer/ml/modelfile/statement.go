package modelfile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
)

// contractNames are the names that ElasticDL looks for in a model file. Everything that training runs is reached from
// them or from the statements at the top of the file.
var contractNames = []string{
	"model", "custom_model", "loss", "optimizer", "feed", "dataset_fn", "input_fn", "eval_metrics_fn",
	"feature_columns", "label_columns", "callbacks", "custom_data_reader",
}

type statementKind int

const (
	otherStatement statementKind = iota
	defStatement
	classStatement
	mainStatement // if __name__ == "__main__":
	importStatement
	tryImportStatement // try: import … except ImportError: import …
)

// statement is one top-level statement: the logical lines from one that starts in column 1 to the next.
type statement struct {
	kind     statementKind
	name     string // of a def or class
	lines    []logicalLine
	binds    []string // the top-level names that it binds, as far as reachability needs them
	problems []*Error // constructs that cannot be run
	skipped  bool     // nothing reaches it: it is blanked
}

func (s *statement) line() int { return s.lines[0][0].line }

// names calls yield for every name that the statement mentions; attributes and keywords of calls are not names.
func (s *statement) names(yield func(string)) {
	for _, line := range s.lines {
		for i, t := range line {
			attribute := i > 0 && line[i-1].is(".")
			keyword := t.depth > 0 && i+1 < len(line) && line[i+1].is("=")
			if t.kind == nameToken && !attribute && !keyword {
				yield(t.text)
			}
		}
	}
}

// statements groups logical lines into top-level statements.
func statements(lines []logicalLine) ([]*statement, *Error) {
	var all []*statement
	decorated := false
	for _, line := range lines {
		first := line[0]
		continues := line.indent() > 1 || decorated ||
			slices.ContainsFunc([]string{"else", "elif", "except", "finally"}, first.is)
		if continues && len(all) == 0 {
			return nil, &Error{Line: first.line, Column: first.col, Msg: "unexpected indentation"}
		}
		if !continues {
			all = append(all, &statement{})
		}
		last := all[len(all)-1]
		last.lines = append(last.lines, line)
		decorated = first.is("@") && line.indent() == 1
	}
	for _, s := range all {
		s.classify()
	}
	return all, nil
}

func (s *statement) classify() {
	head := s.lines[0]
	for _, line := range s.lines { // behind the decorators
		if head = line; !line[0].is("@") {
			break
		}
	}
	switch {
	case (head[0].is("def") || head[0].is("class")) && len(head) > 1:
		s.kind, s.name = defStatement, head[1].text
		if head[0].is("class") {
			s.kind = classStatement
		}
		s.binds = []string{s.name}
	case head[0].is("if") && len(head) > 4 && head[2].is("==") && (head[1].is("__name__") || head[3].is("__name__")):
		s.kind = mainStatement
		for _, line := range s.lines[1:] {
			s.binds = append(s.binds, boundNames(line)...)
		}
	case head[0].is("import") || head[0].is("from"):
		s.kind = importStatement
	case head[0].is("try") && s.importsAlone():
		s.kind = tryImportStatement
	}
}

// importsAlone reports whether a try statement only finds out which of several modules is there.
func (s *statement) importsAlone() bool {
	for _, line := range s.lines[1:] {
		imports := line.indent() > 1 && (line[0].is("import") || line[0].is("from"))
		catches := line[0].is("except") && len(line) == 3 && (line[1].is("ImportError") || line[1].is("ModuleNotFoundError"))
		if !imports && !catches {
			return false
		}
	}
	return true
}

// sharedNames are the names that functions declare global.
func sharedNames(all []*statement) map[string]bool {
	names := map[string]bool{}
	for _, s := range all {
		for name := range s.globals() {
			names[name] = true
		}
	}
	return names
}

// globals are the names that a statement's functions declare global.
func (s *statement) globals() map[string]bool {
	names := map[string]bool{}
	for _, line := range s.lines {
		if line[0].is("global") {
			for _, t := range line[1:] {
				if t.kind == nameToken {
					names[t.text] = true
				}
			}
		}
	}
	return names
}

// hides reports whether a function has a parameter or a variable of that name for itself.
func (s *statement) hides(name string) bool {
	if s.kind != defStatement && s.kind != classStatement || s.globals()[name] {
		return false
	}
	for i, line := range s.lines {
		for k, t := range line {
			parameter := t.is(name) && t.depth == 1 && (line[0].is("def") && k > 1 || i == 0)
			assigned := t.is(name) && t.depth == 0 && k+1 < len(line) && line[k+1].is("=")
			if parameter || assigned {
				return true
			}
		}
	}
	return false
}

// boundNames are the names that a line of an `if __name__` block binds for the whole module; what it imports, it uses.
func boundNames(line logicalLine) []string {
	var names []string
	for i, t := range line {
		defined := i == 1 && (line[0].is("def") || line[0].is("class"))
		counted := i > 0 && line[0].is("for") && t.kind == nameToken
		if line[0].is("for") && t.is("in") {
			break
		}
		assigned := t.depth == 0 && i+1 < len(line) && line[i+1].is("=")
		if t.kind == nameToken && (defined || counted || assigned) {
			names = append(names, t.text)
		}
	}
	return names
}

// skipUnreachable marks the functions, classes and `if __name__` blocks that training never runs; they are not read,
// so they may hold anything. What is reached and cannot be run is refused.
func skipUnreachable(all []*statement, roots []string, report *Report) *Error {
	reached := map[string]bool{}
	var queue []*statement
	visit := func(name string) {
		if !reached[name] {
			reached[name] = true
			for _, s := range all {
				if slices.Contains(s.binds, name) {
					queue = append(queue, s)
				}
			}
		}
	}
	if roots == nil {
		roots = slices.Clone(contractNames)
		for _, s := range modelClasses(all) {
			roots = append(roots, s.name)
		}
	}
	for _, name := range roots {
		visit(name)
	}
	for _, s := range all {
		if s.kind == otherStatement {
			s.names(visit)
		}
	}
	kept := map[*statement]bool{}
	for len(queue) > 0 {
		s := queue[0]
		queue = queue[1:]
		if !kept[s] {
			kept[s] = true
			s.names(visit)
		}
	}
	for _, s := range all {
		switch {
		case kept[s] && s.kind != mainStatement || s.kind == otherStatement || s.kind == importStatement || s.kind == tryImportStatement:
			if err := s.refusal(); err != nil {
				return err
			}
		case s.kind == mainStatement && s.contractNames(all) != "":
			return &Error{Line: s.line(), Column: 1, Msg: fmt.Sprintf("the block of `if __name__ == \"__main__\"` binds names that training uses (%s), and is not run when the file is imported; move them out of the block", s.contractNames(all))}
		case s.kind == mainStatement && s.hasElse():
			return &Error{Line: s.line(), Column: 1, Msg: "the else branch of `if __name__ == \"__main__\"` would run when the file is imported; write its statements without the if"}
		default:
			s.skipped = true
			switch s.kind {
			case classStatement:
				add(&report.Notices, graph.Place{Line: s.line()}, "class %s is not used by training and was not read", s.name)
			case mainStatement:
				add(&report.Notices, graph.Place{Line: s.line()}, "the block of `if __name__ == \"__main__\"` is not used by training and was not read")
			case defStatement:
				if len(s.problems) > 0 {
					add(&report.Notices, graph.Place{Line: s.line()}, "function %s is not used by training and was not read", s.name)
				}
			}
		}
	}
	return nil
}

// contractNames are those that an `if __name__` block binds, and no other statement does.
func (s *statement) contractNames(all []*statement) string {
	elsewhere := map[string]bool{}
	for _, other := range all {
		if other != s {
			for _, name := range other.assigned() {
				elsewhere[name] = true
			}
		}
	}
	elsewhere["model"] = elsewhere["model"] || elsewhere["custom_model"] || len(modelClasses(all)) > 0
	var names []string
	for _, name := range s.binds {
		if slices.Contains(contractNames, name) && !elsewhere[name] && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// modelClasses are the classes that may be the model of a file without custom_model() and a variable model: ElasticDL's
// users name theirs in --model_def. They are those that are derived from tf.keras.Model and that no other class
// mentions.
func modelClasses(all []*statement) (found []*statement) {
	var candidates []*statement
	mentioned := map[string]bool{}
	for _, s := range all {
		if s.kind != mainStatement && slices.ContainsFunc(s.binds, func(name string) bool { return name == "custom_model" || name == "model" }) || s.kind == otherStatement && assigns(s.lines[0], "model") {
			return nil
		}
		if s.kind != classStatement {
			continue
		}
		s.names(func(name string) {
			if name != s.name {
				mentioned[name] = true
			}
		})
		for i, t := range s.lines[0] {
			if t.is("Model") && i+1 < len(s.lines[0]) && s.lines[0][i+1].is(")") {
				candidates = append(candidates, s)
			}
		}
	}
	for _, s := range candidates {
		if !mentioned[s.name] {
			found = append(found, s)
		}
	}
	return found
}

// assigns reports whether a line assigns to a name.
func assigns(line logicalLine, name string) bool {
	return len(line) > 1 && line[0].is(name) && line[1].is("=")
}

func (s *statement) hasElse() bool {
	return slices.ContainsFunc(s.lines[1:], func(l logicalLine) bool { return l.indent() == 1 })
}

// refusal explains why a statement that training needs cannot be run, or is nil.
func (s *statement) refusal() *Error {
	if len(s.problems) > 0 {
		return s.problems[0]
	}
	return nil
}
