// Package skypilot reads SkyPilot's task files. It rejects unknown keys, with their line, and keys that SkyPilot knows
// but a task on one cluster cannot support, unless ignoring the key changes nothing but cost or convenience: then it
// adds a warning. No key is ignored silently.
package skypilot

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/task"
	"github.com/elastic-training/terraform-provider-elastic/internal/spelling"
)

const (
	// maxBytes is more than any ConfigMap could hold of a file.
	maxBytes = task.MaxConfigMapBytes
	// maxNodes bounds what aliases make of a small file.
	maxNodes = 5_000
)

// Given is what a caller says beside the file, as SkyPilot's command line does, so that the file may leave it open.
type Given struct {
	Workdir bool            // the files of the working directory
	Envs    map[string]bool // variables of envs with a value
	Secrets map[string]bool // variables of secrets with a reference or a value
	// AnySecret: whatever variables of secrets the file has are given, by names that are not known here.
	AnySecret bool
	// AnyEnv: so are whatever variables of envs have no value.
	AnyEnv bool
}

// Problem is something wrong in a line of the file, or something in it that has no effect.
type Problem struct {
	Line    int // from 1
	Message string
}

// Error lists all that is wrong with a file.
type Error struct {
	File     string
	Problems []Problem
}

func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = fmt.Sprintf("%s:%d: %s", e.File, p.Line, p.Message)
	}
	return strings.Join(lines, "\n")
}

// Parse reads a task file. What the file leaves open is zero in the task, except one node. The error is an *Error with
// every problem found; file is what it calls the file. The warnings are what the file says without effect.
func Parse(file string, text []byte, given Given) (t task.Task, warnings []Problem, err error) {
	p := &parser{given: given, left: maxNodes, task: task.Task{NumNodes: 1}, present: map[string]*yaml.Node{}}
	if root := p.document(text); root != nil {
		p.top(root)
		p.check()
	}
	if len(p.problems) > 0 {
		slices.SortStableFunc(p.problems, func(a, b Problem) int { return a.Line - b.Line })
		return task.Task{}, nil, &Error{File: file, Problems: p.problems}
	}
	slices.SortStableFunc(p.warnings, func(a, b Problem) int { return a.Line - b.Line })
	return p.task, p.warnings, nil
}

type parser struct {
	given    Given
	task     task.Task
	problems []Problem
	warnings []Problem
	left     int                   // nodes that may still be read
	present  map[string]*yaml.Node // the values of the file's keys and of those of resources
	envs     map[string]string
	pods     bool // resources name Kubernetes, so that an image is a container's
}

// check finds in a value what the task would refuse, while its line is known.
func (p *parser) check() {
	for _, problem := range p.task.Problems() {
		if problem.Field == "env" { // the attribute's name; the file has SkyPilot's
			problem.Field = "envs"
		}
		if n := p.present[problem.Field]; n != nil && slices.Contains([]string{"cpus", "memory", "envs", "volumes", "num_nodes"}, problem.Field) {
			p.refuse(n, "%s", problem)
		}
	}
}

// refuse reports a problem once, however often it is met.
func (p *parser) refuse(at *yaml.Node, format string, args ...any) {
	if problem := (Problem{at.Line, fmt.Sprintf(format, args...)}); !slices.Contains(p.problems, problem) {
		p.problems = append(p.problems, problem)
	}
}

func (p *parser) warn(at *yaml.Node, format string, args ...any) {
	p.warnings = append(p.warnings, Problem{at.Line, fmt.Sprintf(format, args...)})
}

// document is the file's only document, or nil where there is none that can be read.
func (p *parser) document(text []byte) *yaml.Node {
	start := &yaml.Node{Line: 1}
	if len(text) > maxBytes {
		p.refuse(start, "the file has %d bytes; at most %d are read", len(text), maxBytes)
		return nil
	}
	d := yaml.NewDecoder(bytes.NewReader(text))
	var doc, next yaml.Node
	if err := d.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			p.refuse(start, "the file is empty; a task says at least what to run")
		} else {
			p.noYAML(err)
		}
		return nil
	}
	switch err := d.Decode(&next); {
	case err == nil:
		p.refuse(&next, "a second document begins; SkyPilot would run a pipeline of tasks: make a file and an elastic_task of each")
		return nil
	case !errors.Is(err, io.EOF):
		p.noYAML(err)
		return nil
	}
	if len(doc.Content) != 1 {
		p.refuse(start, "the file is empty; a task says at least what to run")
		return nil
	}
	return doc.Content[0]
}

// noYAML reports an error of the YAML library, at the line that it names.
func (p *parser) noYAML(err error) {
	message, line := strings.TrimPrefix(err.Error(), "yaml: "), 1
	if _, scanErr := fmt.Sscanf(message, "line %d: ", &line); scanErr == nil {
		_, message, _ = strings.Cut(message, ": ")
	}
	if strings.HasSuffix(message, "cannot start any token") {
		message += "; a line is indented with spaces, not with a tab, and text that begins with @, ` or % stands in quotes"
	}
	p.refuse(&yaml.Node{Line: max(1, line)}, "this is no YAML: %s", message)
}

// entry is one key of a mapping.
type entry struct {
	key   *yaml.Node
	value *yaml.Node
}

// entries are the keys of a mapping, with those merged in by "<<" that it does not have itself. A key that is there
// twice, or is no plain word, is refused.
func (p *parser) entries(path string, m *yaml.Node) []entry {
	m = p.resolve(m)
	if m == nil || null(m) {
		return nil
	}
	if m.Kind != yaml.MappingNode {
		p.refuse(m, "%s is %s; keys and values are expected", path, kind(m))
		return nil
	}
	var own, merged []entry
	lines := map[string]int{}
	for i := 0; i+1 < len(m.Content); i += 2 {
		key, value := p.resolve(m.Content[i]), p.resolve(m.Content[i+1])
		switch {
		case key == nil || value == nil:
			return nil
		case key.Kind != yaml.ScalarNode:
			p.refuse(key, "a key of %s is %s; a word is expected", path, kind(key))
		case key.Tag == "!!merge":
			sources := []*yaml.Node{value}
			if value.Kind == yaml.SequenceNode {
				sources = value.Content
			}
			for _, source := range sources {
				merged = append(merged, p.entries(path, source)...)
			}
		case lines[key.Value] > 0:
			p.refuse(key, "%s is there twice; the first is in line %d", join(path, key.Value), lines[key.Value])
		default:
			lines[key.Value] = key.Line
			own = append(own, entry{key, value})
		}
	}
	for _, e := range merged {
		if lines[e.key.Value] == 0 {
			lines[e.key.Value] = e.key.Line
			own = append(own, e)
		}
	}
	return own
}

// resolve follows an alias and counts what is read.
func (p *parser) resolve(n *yaml.Node) *yaml.Node {
	if p.left--; p.left < 0 {
		if p.left == -1 {
			p.refuse(n, "the file says too much: its aliases make more than %d values of it", maxNodes)
		}
		return nil
	}
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// handler takes over the value of a key.
type handler func(p *parser, path string, e entry)

// walk hands each key of a mapping to its handler, and refuses the keys that have none.
func (p *parser) walk(path string, m *yaml.Node, handlers map[string]handler) {
	for _, e := range p.entries(path, m) {
		handle, known := handlers[e.key.Value]
		if !known {
			p.unknown(path, e.key, slices.Sorted(maps.Keys(handlers)))
			continue
		}
		p.present[e.key.Value] = e.key
		handle(p, join(path, e.key.Value), e)
	}
}

func (p *parser) unknown(path string, key *yaml.Node, known []string) {
	message := fmt.Sprintf("unknown key %s", join(path, key.Value))
	if len(key.Value) <= 64 { // nothing longer is a slip of the pen
		if meant := spelling.Meant(key.Value, known); meant != "" {
			message += fmt.Sprintf("; did you mean %s?", meant)
		}
	}
	p.refuse(key, "%s", message)
}

// join is a key's path as people write it. The file itself has none.
func join(path, key string) string {
	if len(key) > 64 {
		key = key[:64] + "…"
	}
	if path == "" || path == topPath {
		return key
	}
	return path + "." + key
}

const topPath = "the file"

func kind(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "keys and values"
	case yaml.SequenceNode:
		return "a list"
	case yaml.ScalarNode:
		if null(n) {
			return "empty"
		}
		return "a single value"
	default:
		return "nothing known"
	}
}

func null(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }
