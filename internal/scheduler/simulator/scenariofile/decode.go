package scenariofile

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// decoder fills Go values from a tree of YAML nodes, strictly: by the types' JSON names, without unknown or repeated
// fields, without aliases, and without conversion from numbers to strings. It records the position of every value
// for the later checks.
type decoder struct {
	file     string
	places   map[string]place // by path, "jobs[0].gang.pods"
	problems []Problem
}

// place is where a value begins in a file, from 1.
type place struct{ line, column int }

// problem records that the value at a path, or the nearest value above it that is in the file, is
// wrong.
func (d *decoder) problem(path, format string, args ...any) {
	at, written := d.places[path], path
	for at.line == 0 && written != "" {
		written = above(written)
		at = d.places[written]
	}
	d.problems = append(d.problems, Problem{File: d.file, Line: max(at.line, 1), Column: max(at.column, 1), Path: path, Text: fmt.Sprintf(format, args...)})
}

// above is the path of the value that contains the one at a path.
func above(path string) string {
	return path[:max(strings.LastIndexAny(path, ".["), 0)]
}

func below(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

var (
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
	jsonUnmarshaler = reflect.TypeFor[json.Unmarshaler]()
)

// value fills v from a node.
func (d *decoder) value(n *yaml.Node, v reflect.Value, path string) {
	d.places[path] = place{n.Line, n.Column}
	switch {
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		d.problem(path, "uses a YAML anchor or alias; write the value out")
		return
	case n.Kind == yaml.ScalarNode && n.Tag == "!!null":
		return // as if it were left out
	}
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		d.value(n, v.Elem(), path)
		return
	}
	if t := reflect.PointerTo(v.Type()); t.Implements(jsonUnmarshaler) || t.Implements(textUnmarshaler) {
		d.scalar(n, v, path)
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		d.structure(n, v, path)
	case reflect.Slice:
		if !d.is(n, yaml.SequenceNode, "a list", path) {
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
		for i, item := range n.Content {
			d.value(item, v.Index(i), fmt.Sprintf("%s[%d]", path, i))
		}
	case reflect.Map:
		d.mapping(n, v, path)
	default:
		d.plain(n, v, path)
	}
}

func (d *decoder) is(n *yaml.Node, kind yaml.Kind, wanted, path string) bool {
	if n.Kind == kind {
		return true
	}
	found := map[yaml.Kind]string{yaml.SequenceNode: "a list", yaml.MappingNode: "a mapping", yaml.ScalarNode: strconv.Quote(brief(n.Value))}[n.Kind]
	d.problem(path, "is %s where %s is wanted", found, wanted)
	return false
}

// brief is a text that is short enough for a message.
func brief(text string) string {
	if runes := []rune(text); len(runes) > 40 {
		return string(runes[:37]) + "…"
	}
	return text
}

// structure fills a struct by its fields' JSON names.
func (d *decoder) structure(n *yaml.Node, v reflect.Value, path string) {
	if !d.is(n, yaml.MappingNode, "a mapping", path) {
		return
	}
	fields := map[string]reflect.Value{}
	gather(v, fields)
	seen := map[string]bool{}
	for i := 0; i < len(n.Content); i += 2 {
		key := n.Content[i]
		name := below(path, brief(key.Value))
		field, known := fields[key.Value]
		switch {
		case key.Kind != yaml.ScalarNode || !known:
			d.places[name] = place{key.Line, key.Column}
			names := make([]string, 0, len(fields))
			for f := range fields {
				names = append(names, f)
			}
			slices.Sort(names)
			d.problem(name, "is not known here; known are %s", strings.Join(names, ", "))
		case seen[key.Value]:
			d.places[name] = place{key.Line, key.Column}
			d.problem(name, "is here twice")
		default:
			seen[key.Value] = true
			d.value(n.Content[i+1], field, name)
		}
	}
}

// gather collects the fields of a struct, those of embedded ones among them.
func gather(v reflect.Value, fields map[string]reflect.Value) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			gather(v.Field(i), fields)
		case name != "" && name != "-":
			fields[name] = v.Field(i)
		}
	}
}

func (d *decoder) mapping(n *yaml.Node, v reflect.Value, path string) {
	if !d.is(n, yaml.MappingNode, "a mapping", path) {
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for i := 0; i < len(n.Content); i += 2 {
		key, at := reflect.New(v.Type().Key()).Elem(), below(path, brief(n.Content[i].Value))
		before := len(d.problems)
		d.value(n.Content[i], key, at)
		if len(d.problems) > before {
			continue
		}
		if v.MapIndex(key).IsValid() {
			d.problem(at, "is here twice")
			continue
		}
		element := reflect.New(v.Type().Elem()).Elem()
		d.value(n.Content[i+1], element, at)
		v.SetMapIndex(key, element)
	}
}

// scalar fills a type that reads its own text: a duration, a quantity.
func (d *decoder) scalar(n *yaml.Node, v reflect.Value, path string) {
	if !d.is(n, yaml.ScalarNode, "a single value", path) {
		return
	}
	var err error
	switch u := v.Addr().Interface().(type) {
	case encoding.TextUnmarshaler:
		err = u.UnmarshalText([]byte(n.Value))
	case json.Unmarshaler:
		text := []byte(n.Value)
		if n.Tag != "!!int" {
			if text, err = json.Marshal(n.Value); err != nil {
				break
			}
		}
		err = u.UnmarshalJSON(text)
	}
	if err != nil {
		d.problem(path, "is %q: %v", brief(n.Value), err)
	}
}

// plain fills a text, a number or a truth value.
func (d *decoder) plain(n *yaml.Node, v reflect.Value, path string) {
	if !d.is(n, yaml.ScalarNode, "a single value", path) {
		return
	}
	wrong := func(wanted string) { d.problem(path, "is %s where %s is wanted", brief(n.Value), wanted) }
	switch v.Kind() {
	case reflect.String:
		if n.Tag != "!!str" {
			wrong("a text (put it in quotes)")
			return
		}
		v.SetString(n.Value)
	case reflect.Bool:
		if n.Tag != "!!bool" {
			wrong("true or false")
			return
		}
		v.SetBool(strings.EqualFold(n.Value, "true"))
	case reflect.Int, reflect.Int32, reflect.Int64:
		i, err := strconv.ParseInt(n.Value, 10, v.Type().Bits())
		if err != nil || n.Tag != "!!int" {
			wrong("a whole number")
			return
		}
		v.SetInt(i)
	case reflect.Uint64:
		i, err := strconv.ParseUint(n.Value, 10, 64)
		if err != nil || n.Tag != "!!int" {
			wrong("a whole number that is not negative")
			return
		}
		v.SetUint(i)
	default:
		panic(fmt.Sprintf("scenario: a field of kind %s at %s", v.Kind(), path)) // types of ours that no file can change
	}
}
