package modelfile

import (
	"fmt"
	"strings"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
)

// importedName is a name that an import statement binds, and the dotted path that it stands for.
type importedName struct {
	name, path string
	line       int
	fallback   bool // it stands in `except ImportError:`
}

// The targets of the assignments that `raise X` and `assert X` become, as long as the words, so that columns stay. The
// guard pass turns the assignments into what they mean.
const (
	raiseMarker  = "__r_"
	assertMarker = "__as_"
)

// unsupported are the words and operators that only Python has, with what to write instead.
var unsupported = map[string]string{
	"try":      "exceptions cannot be caught in a model file",
	"except":   "exceptions cannot be caught in a model file",
	"finally":  "exceptions cannot be caught in a model file",
	"with":     "context managers cannot be run; a model file has nothing to open",
	"yield":    "generators cannot be run; build a list",
	"nonlocal": "functions cannot assign to names of an outer function; return the value",
	"del":      "names cannot be deleted; leave the statement out",
	"async":    "asynchronous code cannot be run",
	"await":    "asynchronous code cannot be run",
	"class":    "only classes at the top of the file are implemented; move it there",
	"load":     "the name is reserved, and a model file cannot read other files",
	":=":       "write an assignment of its own",
	"->":       "leave type annotations out",
	"...":      "leave the ellipsis out",
	"<>":       "write !=",
	"@=":       "write tf.matmul",
	"**=":      "write the product out",
}

// rewriter turns the logical lines of the statements that are kept into Starlark, token for token at the same line and
// column, and collects what imports bind.
type rewriter struct {
	report  *Report
	imports []importedName
	heads   map[int]classHead // of the classes at the top of the file, by line
	shared  map[string]bool   // names that functions declare global
	marks   map[[2]int]bool   // where they stand, by line and column
	catches bool              // the lines at hand are those of an `except ImportError:`
}

// replacement of a token in the output; tokens that are not in the map stay, "" removes one.
type edits map[int]string

func (r *rewriter) problem(s *statement, t token, format string, args ...any) {
	s.problems = append(s.problems, &Error{Line: t.line, Column: t.col, Msg: fmt.Sprintf(format, args...)})
}

// line rewrites one logical line of a statement.
func (r *rewriter) line(s *statement, line logicalLine) edits {
	e := edits{}
	if line[0].is("@") {
		r.decorator(s, line, e)
		return e
	}
	body := 0
	if line[0].is("class") && line.indent() == 1 {
		body = r.class(s, line, e)
	}
	for i := body; i < len(line); i++ {
		t := line[i]
		starts := i == 0 || t.depth == 0 && (line[i-1].is(";") || line[i-1].is(":"))
		isAttribute := i > 0 && line[i-1].is(".")
		switch {
		case starts && (t.is("import") || t.is("from")):
			end := statementEnd(line, i)
			r.importStatement(s, line[i:end])
			e[i] = "pass"
			for j := i + 1; j < end; j++ {
				e[j] = ""
			}
			i = end - 1
		case starts && t.is("global"):
			end := statementEnd(line, i)
			e[i] = "pass"
			for j := i + 1; j < end; j++ {
				e[j] = ""
			}
			i = end - 1
		case t.kind == nameToken && r.shared[t.text] && !isAttribute && !isKeyword(line, i) && !s.hides(t.text):
			r.marks[[2]int{t.line, t.col}] = true
		case starts && t.is("raise"):
			if i+1 == statementEnd(line, i) {
				r.problem(s, t, "`raise` without an exception: exceptions cannot be caught in a model file")
			}
			e[i] = raiseMarker + "="
		case starts && t.is("assert"):
			e[i] = assertMarker + "="
		case t.kind == stringToken:
			i = r.stringLiteral(s, line, i, e)
		case t.is("is"):
			r.identity(s, line, i, e)
		case t.is("from"):
			r.problem(s, t, "`raise … from …` cannot be run; raise the exception alone")
		case t.is("for") && t.bracket == "(":
			r.problem(s, t, "a generator expression cannot be run; write a list: [… for … in …]")
		case t.is("**") && !isStarArgument(line, i):
			r.problem(s, t, "the power operator ** cannot be run; write the product out")
		case t.is("@"):
			r.problem(s, t, "the operator @ cannot be run; write a Dense layer")
		case t.is(raiseMarker) || t.is(assertMarker):
			r.problem(s, t, "the name %s is reserved; use another", t.text)
		case t.kind != stringToken && unsupported[t.text] != "" && (!isAttribute || t.is("load")):
			r.problem(s, t, "`%s`: %s", t.text, unsupported[t.text])
		}
	}
	return e
}

// isKeyword reports whether a name is that of an argument.
func isKeyword(line logicalLine, i int) bool {
	return line[i].depth > 0 && i+1 < len(line) && line[i+1].is("=")
}

// statementEnd is the index behind the simple statement that starts at i.
func statementEnd(line logicalLine, i int) int {
	for ; i < len(line); i++ {
		if line[i].is(";") && line[i].depth == 0 {
			return i
		}
	}
	return i
}

// isStarArgument reports whether the ** at i passes or takes keyword arguments.
func isStarArgument(line logicalLine, i int) bool {
	if i == 0 {
		return false
	}
	before := line[i-1]
	return before.is("lambda") || (before.is("(") || before.is(",")) && line[i].bracket == "("
}

// class turns the head of a class into that of a function, and keeps the bases. It returns the index of the colon.
func (r *rewriter) class(s *statement, line logicalLine, e edits) int {
	colon := 1
	for colon < len(line) && (!line[colon].is(":") || line[colon].depth != 0) {
		colon++
	}
	if colon == len(line) || colon < 2 || line[1].kind != nameToken {
		r.problem(s, line[0], "this class statement cannot be understood")
		return colon
	}
	head := classHead{name: line[1].text, line: line[1].line}
	for i := 3; i < colon-1; i++ { // between the brackets
		e[i] = ""
		head.bases = append(head.bases, line[i])
		if line[i].is("=") {
			r.problem(s, line[i], "keywords of a class statement (metaclass) are not implemented; leave them out")
		}
	}
	e[0] = "def"
	if colon == 2 {
		e[colon] = "():"
	}
	r.heads[head.line] = head
	return colon + 1
}

// decorator drops @tf.function, which changes how TensorFlow runs a function and not what it computes, and
// elasticdl_preprocessing's @declare_model_inputs, which only notes the names of inputs.
func (r *rewriter) decorator(s *statement, line logicalLine, e edits) {
	text := ""
	for i, t := range line {
		text += t.text
		e[i] = ""
	}
	if text != "@tf.function" && !strings.HasPrefix(text, "@declare_model_inputs(") {
		r.problem(s, line[0], "the decorator %s cannot be run; leave it out", text)
	}
}

// identity rewrites `is None` and `is not None` as comparisons; other operands have no identity here.
func (r *rewriter) identity(s *statement, line logicalLine, i int, e edits) {
	operand := i + 1
	e[i] = "=="
	if operand < len(line) && line[operand].is("not") {
		e[i], e[operand] = "!=", ""
		operand++
	}
	none := operand < len(line) && line[operand].is("None") || i > 0 && line[i-1].is("None")
	isType := operand+2 < len(line) && (line[operand].is("tf") || line[operand].is("np")) && line[operand+1].is(".")
	if !none && !isType {
		r.problem(s, line[i], "`is` compares with None and types such as tf.string only; write ==")
	}
}

// stringLiteral checks the literal at i and joins the literals that follow it, as Python does. It returns the index of
// the last one.
func (r *rewriter) stringLiteral(s *statement, line logicalLine, i int, e edits) int {
	last := i
	for last+1 < len(line) && line[last+1].kind == stringToken {
		last++
	}
	joined := ""
	for j := i; j <= last; j++ {
		prefix, quote := stringStart(line[j].text)
		switch p := strings.ToLower(line[j].text[:prefix]); {
		case strings.Contains(p, "f"):
			r.problem(s, line[j], "f-strings cannot be run; write \"… {} …\".format(…)")
			return last
		case last > i && (len(quote) == 3 || p != "" && p != "u"):
			r.problem(s, line[j], "only plain string literals are joined when they stand side by side; write + between them")
			return last
		case p == "u":
			e[j] = line[j].text[1:]
			prefix = 0
		}
		text := line[j].text
		if e[j] != "" {
			text = e[j]
		}
		if last == i {
			return last
		}
		joined += requote(text[prefix+1 : len(text)-1])
		e[j] = ""
	}
	e[i] = `"` + joined + `"`
	return last
}

// requote escapes the double quotes in the body of a literal that may have stood in single quotes.
func requote(body string) string {
	var out strings.Builder
	for i := 0; i < len(body); i++ {
		if body[i] == '"' {
			out.WriteByte('\\')
		}
		out.WriteByte(body[i])
		if body[i] == '\\' && i+1 < len(body) {
			i++
			out.WriteByte(body[i])
		}
	}
	return out.String()
}

// importStatement reads `import a.b as c, d` and `from a.b import (c as d, e)`.
func (r *rewriter) importStatement(s *statement, line logicalLine) {
	malformed := func() {
		r.problem(s, line[0], "this import statement cannot be understood")
	}
	module := ""
	rest := line[1:]
	if line[0].is("from") {
		n := 0
		for n < len(rest) && !rest[n].is("import") {
			module += rest[n].text
			n++
		}
		if n == len(rest) || module == "" {
			malformed()
			return
		}
		rest = rest[n+1:]
	}
	if len(rest) == 0 {
		malformed()
	}
	for len(rest) > 0 {
		n := 0
		for n < len(rest) && !rest[n].is(",") {
			n++
		}
		if !r.importItem(module, rest[:n]) {
			malformed()
			return
		}
		rest = rest[min(n+1, len(rest)):]
	}
}

func (r *rewriter) importItem(module string, item logicalLine) bool {
	path, alias := "", ""
	var first token
	for i := 0; i < len(item); i++ {
		switch t := item[i]; {
		case t.is("(") || t.is(")"):
		case t.is("as") && i+1 < len(item):
			alias = item[i+1].text
			i++
		case t.kind == nameToken || t.is(".") || t.is("*"):
			if path == "" {
				first = t
			}
			path += t.text
		default:
			return false
		}
	}
	switch {
	case path == "": // a trailing comma
		return true
	case path == "*":
		add(&r.report.Notices, graph.Place{Line: first.line}, "the names of `from %s import *` are not known here", module)
		return true
	case module == "" && alias == "": // import a.b binds a
		alias, _, _ = strings.Cut(path, ".")
		path = alias
	case alias == "":
		alias = path
	}
	if module != "" {
		path = strings.TrimSuffix(module, ".") + "." + path
	}
	r.imports = append(r.imports, importedName{alias, path, first.line, r.catches})
	return true
}

// emitter writes tokens at the line and column that they had.
type emitter struct {
	out       strings.Builder
	line, col int
}

func (w *emitter) logicalLine(line logicalLine, e edits) {
	first := true
	for i, t := range line {
		text, edited := e[i]
		if !edited {
			text = t.text
		}
		if text == "" {
			continue
		}
		for w.line < t.line {
			if !first && t.depth == 0 {
				w.out.WriteString(" \\")
			}
			w.out.WriteByte('\n')
			w.line, w.col = w.line+1, 1
		}
		for w.col < t.col {
			w.out.WriteByte(' ')
			w.col++
		}
		first = false
		w.out.WriteString(text)
		w.line += strings.Count(text, "\n")
		tail := text[strings.LastIndexByte(text, '\n')+1:]
		if len(tail) < len(text) {
			w.col = 1
		}
		w.col += len([]rune(tail))
	}
}

// translation is a Python file as Starlark.
type translation struct {
	text    string // in which every token that is kept stands where it stood
	imports []importedName
	parts   []*statement
	heads   map[int]classHead // of the classes, by the line of their names
	shared  map[[2]int]bool   // where names stand that functions declare global
}

// translate rewrites a Python model file as Starlark. roots are the names that are needed besides those that the file's
// own statements use; nil are those of ElasticDL's contract.
func translate(src string, roots []string, report *Report) (*translation, *Error) {
	lines, err := tokenize(src)
	if err != nil {
		return nil, err
	}
	all, err := statements(lines)
	if err != nil {
		return nil, err
	}
	out := &translation{parts: all, heads: map[int]classHead{}, shared: map[[2]int]bool{}}
	shared := sharedNames(all)
	perStatement := make([][]edits, len(all))
	importsOf := make([][]importedName, len(all))
	for i, s := range all {
		r := rewriter{report: report, heads: out.heads, shared: shared, marks: out.shared}
		for _, line := range s.lines {
			if s.kind == tryImportStatement {
				r.catches = r.catches || line[0].is("except")
				if line[0].is("import") || line[0].is("from") {
					r.importStatement(s, line)
				}
				continue
			}
			perStatement[i] = append(perStatement[i], r.line(s, line))
		}
		importsOf[i] = r.imports
	}
	if roots == nil {
		if err := checkForeign(lines, all); err != nil {
			return nil, err
		}
	}
	if err := skipUnreachable(all, roots, report); err != nil {
		return nil, err
	}
	w := emitter{line: 1, col: 1}
	for i, s := range all {
		if s.skipped {
			continue
		}
		out.imports = append(out.imports, importsOf[i]...)
		if s.kind == tryImportStatement {
			continue
		}
		for j, line := range s.lines {
			w.logicalLine(line, perStatement[i][j])
		}
	}
	w.out.WriteByte('\n')
	out.text = w.out.String()
	return out, nil
}
