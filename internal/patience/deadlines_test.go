package patience_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// exceptions are the files, below the repository's root, with durations that are not for what must happen, and why.
var exceptions = map[string]string{
	"e2e/training/chaos_linux_test.go":                    "a job that stands still says why within some time: real processes have no virtual one",
	"internal/scheduler/forecast/bench_certainty_test.go": "a benchmark counts the forecasts that are certain within the provider's default timeout",
}

// TestNoTestHasADeadlineOfItsOwn reads all tests, and the helpers of tests: files that import "testing".
func TestNoTestHasADeadlineOfItsOwn(t *testing.T) {
	const root = "../../"
	skipped := []string{"testdata", "bin", "dist", "node_modules", ".git"}
	positions, folders, used := token.NewFileSet(), map[string][]*ast.File{}, map[string]bool{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains(skipped, entry.Name()):
			return filepath.SkipDir
		case entry.IsDir() || filepath.Ext(path) != ".go":
			return nil
		}
		file, err := parser.ParseFile(positions, path, nil, parser.SkipObjectResolution)
		folders[filepath.Dir(path)] = append(folders[filepath.Dir(path)], file)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, files := range folders {
		for _, found := range deadlines(positions, files) {
			path := strings.TrimPrefix(filepath.ToSlash(found.Filename), root)
			if used[path] = true; exceptions[path] == "" {
				t.Errorf("%s:%d: a test has a deadline of its own; take patience.Medium, Short or Long", path, found.Line)
			}
		}
	}
	for path, reason := range exceptions {
		if !used[path] {
			t.Errorf("%s has no deadline any more: take it (%s) out of the exceptions", path, reason)
		}
	}
}

func TestEveryFormOfADeadlineIsFound(t *testing.T) {
	const before = "package p\nimport \"testing\"\nconst limit = 5*time.Second\nvar c = config{slow: time.Minute}\nfunc f() {\n"
	for source, want := range map[string]int{ // the number of deadlines
		`context.WithTimeout(ctx, 5*time.Second)`:                                                1,
		`context.WithTimeoutCause(ctx, 3*limit, cause)`:                                          1,
		`context.WithDeadline(ctx, time.Now().Add(time.Second))`:                                 1,
		`context.WithTimeout(ctx, c.slow)`:                                                       1,
		`wait := time.Hour; context.WithTimeout(ctx, wait)`:                                      1,
		`connection.SetReadDeadline(time.Now().Add(limit))`:                                      1,
		`timer := time.NewTimer(limit)`:                                                          1,
		`wait.PollUntilContextTimeout(ctx, 1, limit, true, look)`:                                1,
		`for end := time.Now().Add(limit); time.Now().Before(end); {}`:                           1,
		`for { if time.Since(began) > limit { return } }`:                                        1,
		`select { case <-time.After(limit): t.Fatal("late") }`:                                   1,
		`select { case <-time.After(limit): return errors.New("late") }`:                         1,
		`late := time.After(limit)`:                                                              1,
		`synctest.Test(t, nil); context.WithTimeout(ctx, limit)`:                                 1,
		`synctest.Test(t, func(t *testing.T) { context.WithTimeout(ctx, limit) })`:               0,
		`context.WithTimeout(ctx, limit+patience.Medium)`:                                        0,
		`context.WithTimeout(ctx, given)`:                                                        0,
		`select { case <-time.After(limit): }`:                                                   0,
		`object.Expires = time.Now().Add(limit)`:                                                 0,
		`end := time.Now().Add(limit); for _, o := range all { if o.Before(end) { panic(o) } }`:  0,
		`for i := 0; i < 3; i++ { if o[i].Before(time.Unix(0, 0).Add(limit)) { panic("old") } }`: 0,
	} {
		positions := token.NewFileSet()
		file, err := parser.ParseFile(positions, "p_test.go", before+source+"\n}", 0)
		if err != nil {
			t.Fatal(err)
		}
		if found := deadlines(positions, []*ast.File{file}); len(found) != want || want > 0 && found[0].Line != 6 {
			t.Errorf("%s: found at %v", source, found)
		}
	}
}

// deadlines are those of tests in the files of one folder.
func deadlines(positions *token.FileSet, files []*ast.File) (found []token.Position) {
	ofPackage := names{}
	for _, file := range files {
		for _, declaration := range file.Decls {
			_, isFunction := declaration.(*ast.FuncDecl)
			ofPackage.define(declaration, !isFunction)
		}
	}
	for _, file := range files {
		testing := func(i *ast.ImportSpec) bool { return i.Path.Value == `"testing"` }
		name := positions.Position(file.Pos()).Filename
		if !strings.HasSuffix(name, "_test.go") && !slices.ContainsFunc(file.Imports, testing) {
			continue
		}
		for _, declaration := range file.Decls {
			known := maps.Clone(ofPackage)
			known.define(declaration, true)
			ast.Inspect(declaration, func(node ast.Node) bool {
				if known.isDeadline(node) {
					found = append(found, positions.Position(node.Pos()))
				}
				return !isCall(node, "synctest", "Test")
			})
		}
	}
	return found
}

// names are those of constants and variables that a literal duration defines, and, after a dot, of such fields.
type names map[string]bool

// define adds the fields that a declaration defines, and perhaps the variables.
func (n names) define(declaration ast.Node, variables bool) {
	add := func(name, value ast.Expr) {
		if selector, ok := name.(*ast.SelectorExpr); ok {
			n["."+selector.Sel.Name] = n["."+selector.Sel.Name] || n.literal(value)
		} else if name, ok := name.(*ast.Ident); ok && variables {
			n[name.Name] = n[name.Name] || n.literal(value)
		}
	}
	ast.Inspect(declaration, func(node ast.Node) bool {
		switch d := node.(type) {
		case *ast.ValueSpec:
			for i := range min(len(d.Names), len(d.Values)) {
				add(d.Names[i], d.Values[i])
			}
		case *ast.AssignStmt:
			for i := range min(len(d.Lhs), len(d.Rhs)) {
				add(d.Lhs[i], d.Rhs[i])
			}
		case *ast.KeyValueExpr:
			if key, ok := d.Key.(*ast.Ident); ok {
				add(&ast.SelectorExpr{Sel: key}, d.Value)
			}
		}
		return true
	})
}

// literal reports whether a node has a literal duration or a name of one, and no patience.
func (n names) literal(tree ast.Node) bool {
	units := []string{"Nanosecond", "Microsecond", "Millisecond", "Second", "Minute", "Hour"}
	duration, patient := false, false
	ast.Inspect(tree, func(node ast.Node) bool {
		switch e := node.(type) {
		case *ast.SelectorExpr:
			of, _ := e.X.(*ast.Ident)
			patient = patient || of != nil && of.Name == "patience"
			duration = duration || n["."+e.Sel.Name] || of != nil && of.Name == "time" && slices.Contains(units, e.Sel.Name)
			return of == nil
		case *ast.Ident:
			duration = duration || n[e.Name]
		case *ast.FuncLit:
			return false
		}
		return true
	})
	return duration && !patient
}

// isDeadline reports whether a node limits by such a duration how long something may take.
func (n names) isDeadline(node ast.Node) bool {
	expires := func(node ast.Node) bool { return isCall(node, "time", "After") && n.literal(node) }
	switch s := node.(type) {
	case *ast.CallExpr:
		return n.literal(s) && (isCall(s, "context", "WithTimeout", "WithTimeoutCause", "WithDeadline", "WithDeadlineCause") ||
			isCall(s, "", "SetDeadline", "SetReadDeadline", "SetWriteDeadline") || isCall(s, "time", "NewTimer") || isCall(s, "wait", "PollUntilContextTimeout"))
	case *ast.AssignStmt: // a channel to receive from later
		return slices.ContainsFunc(s.Rhs, func(value ast.Expr) bool { return expires(value) })
	case *ast.ForStmt: // it compares the present time, or the time since something
		now := func(node ast.Node) bool { return isCall(node, "time", "Now") }
		return has(s, func(node ast.Node) bool {
			c, ok := node.(*ast.BinaryExpr)
			return isCall(node, "", "After", "Before") && has(node, now) && n.literal(node) ||
				ok && isCall(c.X, "time", "Since") && n.literal(c.Y)
		})
	case *ast.CommClause: // its body fails the test, or returns an error to who does
		return s.Comm != nil && has(s.Comm, expires) && has(&ast.BlockStmt{List: s.Body}, func(node ast.Node) bool {
			name, ok := node.(*ast.Ident)
			return ok && failing.MatchString(name.Name)
		})
	}
	return false
}

var failing = regexp.MustCompile("[Ee]rr|^Fatal|^panic$")

// isCall reports whether a node calls a function of a package, or, of "", a method.
func isCall(node ast.Node, of string, functions ...string) bool {
	call, _ := node.(*ast.CallExpr)
	if call == nil {
		return false
	}
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !slices.Contains(functions, selector.Sel.Name) {
		return false
	}
	name, ok := selector.X.(*ast.Ident)
	return of == "" || ok && name.Name == of
}

// has reports whether a condition holds for any node of a tree.
func has(tree ast.Node, holds func(ast.Node) bool) (found bool) {
	ast.Inspect(tree, func(node ast.Node) bool {
		found = found || node != nil && holds(node)
		return !found
	})
	return found
}
