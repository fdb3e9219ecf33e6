// Package zoo contains the built-in models, which users name instead of writing a model file. Each is a model file in
// this folder, NAME.py, so that users can print, copy and change it (`elastic-trainer model NAME --source`).
// internal/trainer/ml/modelfile loads it in the same way as a user's file. The first line of a file describes the
// model.
//
// The package contains only text; its tests load, compile and train every model.
package zoo

import (
	"bytes"
	"embed"
	"fmt"
	"strings"
)

//go:embed *.py
var files embed.FS

const extension = ".py"

// Model is a built-in model.
type Model struct {
	Name    string
	Summary string // a line for lists
	Source  []byte // of the model file FileName
}

// FileName is what the model's file is called, in messages and for copies.
func (m Model) FileName() string { return m.Name + extension }

// Names lists the models in alphabetical order.
func Names() []string {
	entries, err := files.ReadDir(".")
	if err != nil {
		panic("zoo: " + err.Error()) // embedded
	}
	var names []string
	for _, e := range entries { // sorted by name
		names = append(names, strings.TrimSuffix(e.Name(), extension))
	}
	return names
}

// Has reports whether there is a model of that name.
func Has(name string) bool {
	_, err := Load(name)
	return err == nil
}

// Load is the model of that name; the error lists the names that there are.
func Load(name string) (Model, error) {
	source, err := files.ReadFile(name + extension)
	if err != nil {
		return Model{}, fmt.Errorf("there is no built-in model %q; there are %s", name, strings.Join(Names(), ", "))
	}
	first, _, _ := bytes.Cut(source, []byte("\n"))
	return Model{Name: name, Summary: strings.Trim(string(first), `"`), Source: source}, nil
}
