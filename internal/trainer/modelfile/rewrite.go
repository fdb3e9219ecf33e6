package modelfile

import (
	"fmt"
	"strings"
)

// importedName is a name that an import statement binds, and the dotted path that it stands for.
type importedName struct {
	name, path string
	line       int
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
	"global":   "functions cannot assign to module names; return the value",
	"nonlocal": "functions cannot assign to names of an outer function; return the value",
	"del":      "names cannot be deleted; leave the statement out",
	"async":    "asynchronous code cannot be run",
	"await":    "asynchronous code cannot be run",
	"class":    "classes cannot be run: build the model from tf.keras.layers in custom_model()",
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
	for i := 0; i < len(line); i++ {
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

// statementEnd is the index behind the simple statement that starts at i.
func statementEnd(line logicalLine, i int) int {
	for ; i < len(line); i++ {
		if line[i].is(";") && line[i].depth == 0 {
			return i
		}
	}
	return i
}

// isStarArgument says whether the ** at i passes or takes keyword arguments.
func isStarArgument(line logicalLine, i int) bool {
	if i == 0 {
		return false
	}
	before := line[i-1]
	return before.is("lambda") || (before.is("(") || before.is(",")) && line[i].bracket == "("
}

// decorator drops @tf.function, which changes how TensorFlow runs a function and not what it computes.
func (r *rewriter) decorator(s *statement, line logicalLine, e edits) {
	text := ""
	for i, t := range line {
		text += t.text
		e[i] = ""
	}
	if text != "@tf.function" {
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
	if !none {
		r.problem(s, line[i], "`is` compares with None only; write ==")
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
		add(&r.report.Notices, first.line, "the names of `from %s import *` are not known here", module)
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
	r.imports = append(r.imports, importedName{alias, path, first.line})
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

// translate rewrites a Python model file as Starlark in which every token that is kept stands where it stood. It
// returns the source, what imports bind, and the statements.
func translate(src string, report *Report) (string, []importedName, []*statement, *Error) {
	lines, err := tokenize(src)
	if err != nil {
		return "", nil, nil, err
	}
	all, err := statements(lines)
	if err != nil {
		return "", nil, nil, err
	}
	perStatement := make([][]edits, len(all))
	importsOf := make([][]importedName, len(all))
	for i, s := range all {
		r := rewriter{report: report}
		for _, line := range s.lines {
			perStatement[i] = append(perStatement[i], r.line(s, line))
		}
		importsOf[i] = r.imports
	}
	if err := skipUnreachable(all, report); err != nil {
		return "", nil, nil, err
	}
	w := emitter{line: 1, col: 1}
	var imports []importedName
	for i, s := range all {
		if s.skipped {
			continue
		}
		imports = append(imports, importsOf[i]...)
		for j, line := range s.lines {
			w.logicalLine(line, perStatement[i][j])
		}
	}
	w.out.WriteByte('\n')
	return w.out.String(), imports, all, nil
}
