package truth

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// A Situation is the existing objects, and the job that is planned then.
type Situation struct {
	Name string
	// Setup is parts, each of which settles before the next one is applied.
	Setup [][]*unstructured.Unstructured
	// Job is the file that is forecast and then applied.
	Job []*unstructured.Unstructured
}

// The files of a situation in its folder.
const (
	SetupFile = "setup.yaml"
	JobFile   = "job.yaml"
	// then is the line between two parts of a setup.
	then = "#THEN"
)

// Load reads a situation from its folder, which names it.
func Load(dir string) (*Situation, error) {
	setup, err := os.ReadFile(filepath.Join(dir, SetupFile))
	if err != nil {
		return nil, err
	}
	job, err := os.ReadFile(filepath.Join(dir, JobFile))
	if err != nil {
		return nil, err
	}
	s, err := Parse(setup, job)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	s.Name = filepath.Base(dir)
	return s, nil
}

// Parse reads a situation from the text of its files.
func Parse(setup, job []byte) (*Situation, error) {
	s := &Situation{}
	for part := range strings.SplitSeq("\n"+string(setup), "\n"+then) {
		objects, err := parse([]byte(part))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", SetupFile, err)
		}
		if len(objects) > 0 {
			s.Setup = append(s.Setup, objects)
		}
	}
	var err error
	if s.Job, err = parse(job); err != nil {
		return nil, fmt.Errorf("%s: %w", JobFile, err)
	}
	if len(s.Job) == 0 {
		return nil, fmt.Errorf("%s: there is no object in it", JobFile)
	}
	return s, nil
}

func parse(text []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		object := &unstructured.Unstructured{}
		if err := utilyaml.Unmarshal(document, &object.Object); err != nil {
			return nil, err
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}

// Has reports whether one of the situation's objects is of one of these kinds.
func (s *Situation) Has(kinds []string) bool {
	return slices.ContainsFunc(s.objects(), func(object *unstructured.Unstructured) bool {
		return slices.Contains(kinds, object.GetKind())
	})
}

// Clone is a copy of its own.
func (s *Situation) Clone() *Situation {
	clone := &Situation{Name: s.Name, Job: cloned(s.Job)}
	for _, part := range s.Setup {
		clone.Setup = append(clone.Setup, cloned(part))
	}
	return clone
}

func cloned(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	copies := make([]*unstructured.Unstructured, len(objects))
	for i, object := range objects {
		copies[i] = object.DeepCopy()
	}
	return copies
}

// Save writes a situation into a folder, which is made.
func (s *Situation) Save(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	setup, job := s.Texts()
	return errors.Join(
		os.WriteFile(filepath.Join(dir, SetupFile), []byte(setup), 0o644),
		os.WriteFile(filepath.Join(dir, JobFile), []byte(job), 0o644),
	)
}

// Texts are the situation's two files.
func (s *Situation) Texts() (setup, job string) {
	parts := make([]string, len(s.Setup))
	for i, part := range s.Setup {
		parts[i] = text(part)
	}
	return strings.Join(parts, then+"\n"), text(s.Job)
}

func text(objects []*unstructured.Unstructured) string {
	documents := make([]string, len(objects))
	for i, object := range objects {
		documents[i] = document(object)
	}
	return strings.Join(documents, "---\n")
}

// widest is the largest width of a value that is written in one line.
const widest = 120

// document is an object in YAML, in as few lines as are easily read: whatever fits into a line is in one.
func document(object *unstructured.Unstructured) string {
	var node yaml.Node
	if err := node.Encode(object.Object); err != nil {
		panic(fmt.Sprintf("truth: an object that was read cannot be written: %v", err))
	}
	fold(&node, 0, true)
	var b bytes.Buffer
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	if err := errors.Join(encoder.Encode(&node), encoder.Close()); err != nil {
		panic(fmt.Sprintf("truth: an object that was read cannot be written: %v", err))
	}
	return b.String()
}

// fold puts what is short into one line each, from a column on.
func fold(node *yaml.Node, column int, outermost bool) {
	if !outermost && node.Kind != yaml.ScalarNode && column+width(node) <= widest {
		node.Style = yaml.FlowStyle
		return
	}
	for i, child := range node.Content {
		at := column + 2
		if node.Kind == yaml.MappingNode && i%2 == 1 {
			at = column + len(node.Content[i-1].Value) + 2
		}
		if child.Kind != yaml.ScalarNode && at+width(child) > widest {
			at = column + 2
		}
		fold(child, at, false)
	}
}

// width is how many columns a node has in one line.
func width(node *yaml.Node) int {
	if node.Kind == yaml.ScalarNode {
		return len(node.Value) + 2
	}
	columns := 2
	for _, child := range node.Content {
		columns += width(child) + 1
	}
	return columns
}
