package modelfile

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"
)

// A model file may import others of the same model zoo. It travels with them as one text, its bundle: the file itself,
// and behind it each module after a line that names it. Jobs, flags and the provider know nothing of this.
const bundleMarker = "# elastic-trainer: module "

// maxModules bounds a bundle.
const maxModules = 64

// module is a file that a model file imports.
type module struct {
	name    string // dotted, as it is imported
	text    string
	globals starlark.StringDict // when it has been run
	running bool
	done    bool
}

// file is the module's name in messages.
func (m *module) file() string { return strings.ReplaceAll(m.name, ".", "/") + ".py" }

// unbundle separates a model file from the modules behind it.
func unbundle(src string) (main string, modules []*module, _ *Error) {
	parts := strings.Split("\n"+src, "\n"+bundleMarker)
	main = strings.TrimPrefix(parts[0], "\n") // parts[0] is empty if the text begins with the line of a module
	line := strings.Count(parts[0], "\n")
	for _, part := range parts[1:] {
		line++ // the module's own line
		name, text, _ := strings.Cut(part, "\n")
		name = strings.TrimSpace(name)
		if name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.") != "" {
			return "", nil, &Error{Line: line, Msg: fmt.Sprintf("%q is no name of a module", name)}
		}
		if slices.ContainsFunc(modules, func(m *module) bool { return m.name == name }) || len(modules) == maxModules {
			return "", nil, &Error{Line: line, Msg: fmt.Sprintf("module %s is there twice, or there are more than %d modules", name, maxModules)}
		}
		modules = append(modules, &module{name: name, text: text})
		line += strings.Count(part, "\n")
	}
	return main, modules, nil
}

// frameworks are packages whose source is no part of a model, wherever it is.
var frameworks = []string{"tensorflow", "keras", "numpy", "torch", "elasticdl", "elasticdl_client", "elasticdl_preprocessing", "elasticai_api", "deepctr"}

// Bundle is a model file with the modules that it imports, and those that these import. find gives the text of a module
// by its dotted name, and reports whether there is one; it is called for those that are not among what model files have
// anyway. A file that imports none is as it was.
func Bundle(src []byte, find func(name string) (text []byte, found bool, err error)) ([]byte, error) {
	main, modules, refused := unbundle(string(src))
	if refused != nil || len(modules) > 0 {
		return src, nil //nolint:nilerr // it is a bundle already, or Load says what is wrong
	}
	var bundle []*module
	known := newFacade()
	texts := []string{main}
	for len(texts) > 0 {
		lines, err := tokenize(texts[0])
		texts = texts[1:]
		if err != nil {
			continue
		}
		for _, name := range importedModules(lines, known) {
			if slices.ContainsFunc(bundle, func(m *module) bool { return m.name == name }) {
				continue
			}
			if root, _, _ := strings.Cut(name, "."); slices.Contains(frameworks, root) {
				continue
			}
			text, found, err := find(name)
			if err != nil {
				return nil, err
			}
			if found && len(bundle) < maxModules {
				bundle = append(bundle, &module{name: name, text: string(text)})
				texts = append(texts, string(text))
			}
		}
	}
	if len(bundle) == 0 {
		return src, nil
	}
	out := strings.TrimSuffix(main, "\n") + "\n"
	for _, m := range bundle {
		out += bundleMarker + m.name + "\n" + strings.TrimSuffix(m.text, "\n") + "\n"
	}
	return []byte(out), nil
}

// importedModules are the names under which a file's import statements may mean modules that are not known.
func importedModules(lines []logicalLine, known *facade) []string {
	var names []string
	for _, line := range lines {
		if !line[0].is("import") && !line[0].is("from") {
			continue
		}
		r := rewriter{report: &Report{}}
		s := &statement{lines: []logicalLine{line}}
		r.importStatement(s, line)
		for _, i := range r.imports {
			path := i.path
			if line[0].is("import") && len(line) > 1 {
				path = ""
				for _, t := range line[1:] {
					if t.is("as") || t.is(",") {
						break
					}
					path += t.text
				}
				path += "." // the whole of it is a module
			}
			if _, missing := known.lookup(strings.TrimSuffix(path, ".")).(unknown); !missing {
				continue
			}
			if at := strings.LastIndexByte(path, '.'); at > 0 {
				names = append(names, path[:at])
			}
			if line[0].is("from") {
				names = append(names, path)
			}
		}
	}
	return names
}

// imported is what an import statement's path means: something of a module of the bundle, or of what model files have.
func (l *loader) imported(path string) (starlark.Value, error) {
	parts := strings.Split(path, ".")
	for n := len(parts); n > 0; n-- {
		name := strings.Join(parts[:n], ".")
		at := slices.IndexFunc(l.modules, func(m *module) bool { return m.name == name })
		if at < 0 {
			continue
		}
		m := l.modules[at]
		if err := l.runModule(m); err != nil {
			return nil, err
		}
		var v starlark.Value = moduleValue{m}
		for _, attr := range parts[n:] {
			h, ok := v.(starlark.HasAttrs)
			if !ok {
				return nil, fmt.Errorf("%s of %s has no attributes", v, path)
			}
			var err error
			if v, err = h.Attr(attr); err != nil {
				return nil, err
			}
		}
		return v, nil
	}
	v := l.facade.lookup(path)
	if u, ok := v.(unknown); ok && strings.HasPrefix(path, "model_zoo.") {
		u.reason = "cannot be used: its file is not with the model file; keep it below a folder model_zoo beside or above the model file, and give a job the output of `elastic-trainer model FILE --source`, which has both"
		v = u
	}
	return v, nil
}

// runModule runs a module's statements, once.
func (l *loader) runModule(m *module) error {
	switch {
	case m.done:
		return nil
	case m.running:
		return fmt.Errorf("module %s imports itself, by way of others", m.name)
	}
	m.running = true
	roots := []string{}
	for _, other := range append([]*module{{text: l.text()}}, l.modules...) {
		lines, err := tokenize(other.text)
		if err != nil {
			continue
		}
		for _, line := range lines {
			if line[0].is("from") || line[0].is("import") {
				for _, t := range line[1:] {
					if t.kind == nameToken {
						roots = append(roots, t.text)
					}
				}
			}
			for i, t := range line { // module.name
				if i > 0 && line[i-1].is(".") && t.kind == nameToken {
					roots = append(roots, t.text)
				}
			}
		}
	}
	translated, refused := translate(m.text, roots, &Report{})
	if refused != nil {
		refused.File = m.file()
		return refused
	}
	globals, err := l.execute(m.file(), translated)
	if err != nil {
		var refused *Error
		if errors.As(err, &refused) && refused.File == "" {
			refused.File = m.file()
		}
		return err
	}
	m.globals, m.done = globals, true
	return nil
}

// text is the tokens of the model file, as far as names go.
func (l *loader) text() string {
	var b strings.Builder
	for _, s := range l.parts {
		for _, line := range s.lines {
			for _, t := range line {
				if t.kind != stringToken {
					b.WriteString(t.text + " ")
				}
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// moduleValue is a module of the bundle.
type moduleValue struct{ m *module }

func (v moduleValue) String() string        { return "module " + v.m.name }
func (v moduleValue) Type() string          { return "module" }
func (v moduleValue) Freeze()               {}
func (v moduleValue) Truth() starlark.Bool  { return true }
func (v moduleValue) Hash() (uint32, error) { return starlark.String(v.m.name).Hash() }
func (v moduleValue) AttrNames() []string   { return v.m.globals.Keys() }

// Attr is what the module binds.
func (v moduleValue) Attr(name string) (starlark.Value, error) {
	if x, ok := v.m.globals[name]; ok {
		return x, nil
	}
	return nil, fmt.Errorf("module %s has no %s", v.m.name, name)
}

// sharedValues are the names that functions declare global.
type sharedValues struct {
	values starlark.StringDict
	frozen bool
}

func (v *sharedValues) String() string        { return "names of the module" }
func (v *sharedValues) Type() string          { return "module" }
func (v *sharedValues) Truth() starlark.Bool  { return true }
func (v *sharedValues) Hash() (uint32, error) { return 0, errors.New("a module cannot be a key") }
func (v *sharedValues) AttrNames() []string   { return v.values.Keys() }

// Freeze ends the time in which functions can set the names: those that are called in training run at the same time.
func (v *sharedValues) Freeze() {
	if !v.frozen {
		v.frozen = true
		v.values.Freeze()
	}
}

// Attr is the value that was set last.
func (v *sharedValues) Attr(name string) (starlark.Value, error) {
	if x, ok := v.values[name]; ok {
		return x, nil
	}
	return nil, fmt.Errorf("the global name %s has no value yet", name)
}

// SetField sets a name.
func (v *sharedValues) SetField(name string, x starlark.Value) error {
	if v.frozen {
		return fmt.Errorf("cannot set the global name %s in training", name)
	}
	v.values[name] = x
	return nil
}
