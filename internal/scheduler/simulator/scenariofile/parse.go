package scenariofile

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// maxBytes bounds a scenario file: five thousand jobs written one by one. More of them come by repeat or from a trace.
const maxBytes = 2 << 20

// Problem is something wrong in a file.
type Problem struct {
	File         string
	Line, Column int    // from 1
	Path         string // what it is about, "jobs[0].gang.pods"; "" for the file
	Text         string
}

func (p Problem) String() string {
	if p.Path == "" {
		return fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, p.Text)
	}
	return fmt.Sprintf("%s:%d:%d: %s %s", p.File, p.Line, p.Column, p.Path, p.Text)
}

// Error is what is wrong with a scenario, in the order of the file.
type Error struct{ Problems []Problem }

// maxReported is how many problems an error's text contains.
const maxReported = 20

func (e *Error) Error() string {
	var lines []string
	for i, p := range e.Problems {
		if i == maxReported {
			lines = append(lines, fmt.Sprintf("and %d more", len(e.Problems)-maxReported))
			break
		}
		lines = append(lines, p.String())
	}
	return strings.Join(lines, "\n")
}

// ReadFile reads the scenario in a file. Paths in it are relative to the file.
func ReadFile(path string) (*Scenario, error) {
	f, err := os.Open(filepath.Clean(path))
	if err != nil {
		return nil, fmt.Errorf("read the scenario: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read the scenario %s: %w", path, err)
	}
	s, err := Parse(path, text)
	if err == nil && s.Trace != nil {
		s.Trace.relativeTo(filepath.Dir(path))
	}
	return s, err
}

// Parse reads a scenario. name is the file's, for messages. Everything that is left out has its default in the result.
// The error is an *Error.
func Parse(name string, text []byte) (*Scenario, error) {
	d := &decoder{file: name, places: map[string]place{}}
	s := &Scenario{}
	if root := d.tree(text); root != nil {
		d.value(root, reflect.ValueOf(s).Elem(), "")
		if len(d.problems) == 0 {
			check(d, s)
		}
	}
	if len(d.problems) > 0 {
		slices.SortStableFunc(d.problems, func(a, b Problem) int {
			return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
		})
		return nil, &Error{d.problems}
	}
	return s, nil
}

// tree is the file's only document; nil after a problem.
func (d *decoder) tree(text []byte) *yaml.Node {
	if len(text) > maxBytes {
		d.problem("", "is larger than %d bytes; repeat equal jobs with `repeat`, or give them as a trace", maxBytes)
		return nil
	}
	if at, what := unreadable(text); what != "" {
		d.places[""] = position(text, at)
		d.problem("", "%s; a scenario is YAML in UTF-8", what)
		return nil
	}
	documents := yaml.NewDecoder(bytes.NewReader(text))
	var document, second yaml.Node
	switch err := documents.Decode(&document); {
	case errors.Is(err, io.EOF):
		d.problem("", "is empty; a scenario needs at least nodes and jobs")
		return nil
	case err != nil:
		d.syntax(text, err)
		return nil
	}
	switch err := documents.Decode(&second); {
	case err == nil:
		d.places[""] = place{second.Line, second.Column}
		d.problem("", "has a second document; a scenario is one")
		return nil
	case !errors.Is(err, io.EOF):
		d.syntax(text, err)
		return nil
	}
	return document.Content[0]
}

// unreadable finds the first byte that is not valid in a text.
func unreadable(text []byte) (at int, what string) {
	for at < len(text) {
		r, size := utf8.DecodeRune(text[at:])
		switch {
		case r == utf8.RuneError && size <= 1:
			return at, "is not UTF-8"
		case r < ' ' && r != '\n' && r != '\t' && r != '\r', r == 0x7f:
			return at, fmt.Sprintf("has a control character (%#02x)", r)
		}
		at += size
	}
	return 0, ""
}

func position(text []byte, at int) place {
	before := text[:at]
	return place{1 + bytes.Count(before, []byte("\n")), at - bytes.LastIndexByte(before, '\n')}
}

// syntax reports text that is not YAML. The parser gives the line; the column is that of the line's first letter.
func (d *decoder) syntax(text []byte, err error) {
	message := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 1
	if rest, ok := strings.CutPrefix(message, "line "); ok {
		if number, what, ok := strings.Cut(rest, ": "); ok {
			if n, err := strconv.Atoi(number); err == nil {
				line, message = n, what
			}
		}
	}
	at := place{line: line, column: 1}
	if lines := bytes.Split(text, []byte("\n")); line <= len(lines) {
		at.column = 1 + len(lines[line-1]) - len(bytes.TrimLeft(lines[line-1], " \t"))
	}
	d.places[""] = at
	d.problem("", "is not YAML: %s", message)
}
