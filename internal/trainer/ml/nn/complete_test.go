package nn_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
)

// TestAllThatAGraphMayHoldIsTested compares what the tests' models are made of with the constants of package graph: the
// reference and PyTorch prove nothing of a layer that is in no model.
func TestAllThatAGraphMayHoldIsTested(t *testing.T) {
	tested := map[string]map[string]bool{"Op": {}, "OptimizerKind": {}, "LossKind": {}}
	for _, build := range testModels {
		m := build()
		tested["LossKind"][string(m.Loss)] = true
		for _, node := range m.Nodes {
			tested["Op"][string(node.Op)] = true
		}
	}
	for _, o := range testOptimizers {
		tested["OptimizerKind"][string(o.Kind)] = true
	}
	declared := constantsOfGraph(t)
	for kind, seen := range tested {
		if len(declared[kind]) == 0 {
			t.Errorf("package graph has no constant of type %s", kind)
		}
		for _, value := range slices.Sorted(maps.Keys(declared[kind])) {
			if !seen[value] {
				t.Errorf("%s %q is in no model or optimizer of the tests: add it to testModels or testOptimizers", kind, value)
			}
		}
	}
}

// constantsOfGraph are the values of package graph's constants by their type.
func constantsOfGraph(t *testing.T) map[string]map[string]bool {
	t.Helper()
	files, err := filepath.Glob("../graph/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("package graph: %v, %v", files, err)
	}
	values := map[string]map[string]bool{}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 {
				return true
			}
			kind, typed := spec.Type.(*ast.Ident)
			literal, plain := spec.Values[0].(*ast.BasicLit)
			if !typed || !plain || literal.Kind != token.STRING {
				return true
			}
			value, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			if values[kind.Name] == nil {
				values[kind.Name] = map[string]bool{}
			}
			values[kind.Name][value] = true
			return true
		})
	}
	return values
}
