package modelfile

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// namespace is a module or a part of one: tf, tf.keras.layers.
type namespace struct {
	path   string // as registered: tensorflow.keras.layers
	facade *facade
}

func (n namespace) String() string        { return display(n.path) }
func (n namespace) Type() string          { return "module" }
func (n namespace) Freeze()               {}
func (n namespace) Truth() starlark.Bool  { return true }
func (n namespace) Hash() (uint32, error) { return starlark.String(n.path).Hash() }
func (n namespace) AttrNames() []string   { return n.facade.members(n.path) }

func (n namespace) Attr(name string) (starlark.Value, error) {
	return n.facade.lookup(n.path + "." + name), nil
}

// unknown stands for a name that nobody here can give a meaning to. Having it does no harm (most of what a file
// imports, it uses only where training never comes); using it in any way fails with the reason.
type unknown struct {
	path   string // as the file may write it
	reason string
}

func (u unknown) use() error            { return errors.New(u.path + " " + u.reason) }
func (u unknown) String() string        { return u.path }
func (u unknown) Type() string          { return u.path }
func (u unknown) Name() string          { return u.path }
func (u unknown) Freeze()               {}
func (u unknown) Truth() starlark.Bool  { return true }
func (u unknown) Hash() (uint32, error) { return 0, u.use() }
func (u unknown) AttrNames() []string   { return nil }

func (u unknown) Attr(name string) (starlark.Value, error) {
	if len(u.path) > maxTraceBytes { // a name that a loop makes longer and longer
		return u, nil
	}
	return unknown{u.path + "." + name, u.reason}, nil
}

func (u unknown) CallInternal(*starlark.Thread, starlark.Tuple, []starlark.Tuple) (starlark.Value, error) {
	return nil, u.use()
}

func (u unknown) Get(starlark.Value) (starlark.Value, bool, error) { return nil, false, u.use() }
func (u unknown) SetKey(_, _ starlark.Value) error                 { return u.use() }
func (u unknown) SetField(string, starlark.Value) error            { return u.use() }

func (u unknown) Binary(syntax.Token, starlark.Value, starlark.Side) (starlark.Value, error) {
	return nil, u.use()
}

// facade is everything that imports can reach, by full dotted path.
type facade struct {
	values map[string]starlark.Value
	spaces map[string]bool // prefixes of values
}

// aliases are the other paths under which TensorFlow offers the same things.
var aliases = []struct{ from, to string }{
	{"tensorflow.python.keras", "tensorflow.keras"},
	{"tensorflow.compat.v1", "tensorflow"},
	{"tensorflow.compat.v2", "tensorflow"},
	{"keras", "tensorflow.keras"},
}

func newFacade() *facade {
	f := &facade{values: map[string]starlark.Value{}, spaces: map[string]bool{}}
	for _, part := range []map[string]starlark.Value{
		layerFunctions(), tensorFunctions(), optimizerFunctions(), lossFunctions(), metricFunctions(), feedFunctions(),
		arrayFunctions(), typeValues(), preprocessingFunctions(), columnFunctions(), textFunctions(), otherFunctions(),
	} {
		for path, v := range part {
			f.values[path] = v
			for i := range path {
				if path[i] == '.' {
					f.spaces[path[:i]] = true
				}
			}
		}
	}
	return f
}

func canonicalPath(path string) string {
	for _, a := range aliases {
		if path == a.from || strings.HasPrefix(path, a.from+".") {
			return a.to + path[len(a.from):]
		}
	}
	return path
}

// lookup resolves a path to a function, a value, a namespace or an unknown.
func (f *facade) lookup(path string) starlark.Value {
	path = canonicalPath(path)
	if v, ok := f.values[path]; ok {
		return v
	}
	if f.spaces[path] || slices.ContainsFunc(aliases, func(a struct{ from, to string }) bool {
		return a.from == path || strings.HasPrefix(a.from, path+".")
	}) {
		return namespace{path, f}
	}
	if root, _, _ := strings.Cut(path, "."); root == "deepctr" {
		return unknown{path, "cannot be used: package deepctr is not available to model files; build the network from tf.keras.layers, as the built-in models deepfm and wide_deep do"}
	}
	parent := strings.TrimSuffix(path, "."+path[strings.LastIndexByte(path, '.')+1:])
	if !f.spaces[parent] {
		return unknown{path, fmt.Sprintf("cannot be used: module %q is not available to model files, which have tensorflow and numpy", parent)}
	}
	return unknown{display(path), fmt.Sprintf("is not implemented; %s has %s", display(parent), strings.Join(f.members(parent), ", "))}
}

// members are the names directly below a path that have a meaning, sorted.
func (f *facade) members(path string) []string {
	var names []string
	for p, v := range f.values {
		_, meaningless := v.(unknown)
		if rest, ok := strings.CutPrefix(p, path+"."); ok && !meaningless {
			name, _, _ := strings.Cut(rest, ".")
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// display writes a path as model files do.
func display(path string) string {
	for long, short := range map[string]string{"tensorflow": "tf", "numpy": "np"} {
		if path == long || strings.HasPrefix(path, long+".") {
			return short + path[len(long):]
		}
	}
	return path
}

// undefined explains a name that the file neither defines nor imports.
func undefined(name string, defined []string) unknown {
	reason := "is not defined in this file"
	switch {
	case name == "open":
		reason = "cannot be used: model files cannot open files; the trainer reads the records"
	case slices.Contains(pythonBuiltins, name):
		reason = "is a function of Python that model files do not have here"
	default:
		for _, d := range defined {
			if strings.EqualFold(d, name) || strings.Trim(d, "_") == strings.Trim(name, "_") {
				reason += fmt.Sprintf("; did you mean %s?", d)
				break
			}
		}
	}
	return unknown{name, reason}
}

var pythonBuiltins = []string{
	"__import__", "bytearray", "callable", "classmethod", "compile", "complex", "delattr", "divmod", "eval", "exec", "filter",
	"format", "frozenset", "globals", "help", "id", "input", "issubclass", "iter", "locals", "map", "memoryview", "next",
	"object", "pow", "property", "round", "setattr", "slice", "staticmethod", "super", "vars",
}
