package modelfile

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
)

// FuzzLoad feeds anything to Load: it answers with a model whose parts fit together or with a refusal that names a line
// of the file, and it ends.
func FuzzLoad(f *testing.F) {
	files, err := filepath.Glob("testdata/*.py")
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range files {
		src, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(src))
	}
	scripts, err := filepath.Glob("testdata/refusals/*")
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range scripts {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		for _, c := range strings.Split(string(text), "\n\n") {
			head, rest, _ := strings.Cut(strings.TrimLeft(c, "\n"), "\n")
			if strings.HasPrefix(head, "#") {
				head, rest, _ = strings.Cut(rest, "\n")
			}
			input, _, _ := strings.Cut(rest, "\n----")
			f.Add(assemble(head, input))
		}
	}
	for _, main := range []string{zooMain, strings.Replace(zooMain, "of.mean", "of.nothing", 1)} {
		f.Add(main + "\n" + bundleOf(zoo))
	}
	// As much memory as files have, so that fuzzing under a limit of the process shows that it holds, and less time.
	small := limits{steps: 1e6, memory: defaultLimits.memory, sequenceSize: defaultLimits.sequenceSize, integerBits: 1024}
	f.Fuzz(func(t *testing.T, src string) {
		m, _, err := Load("m.py", []byte(src), Options{limits: small})
		if err != nil {
			var refused *Error
			if !errors.As(err, &refused) || refused.Msg == "" {
				t.Fatalf("error %#v", err)
			}
			texts := map[string]string{"m.py": src}
			if _, modules, err := unbundle(src); err == nil {
				for _, m := range modules {
					texts[m.file()] = m.text
				}
			}
			text, known := texts[refused.File]
			if lines := strings.Count(lineEnds.Replace(text), "\n") + 1; !known || refused.Line < 0 || refused.Line > lines+1 {
				t.Fatalf("line %d of %d of %s: %s", refused.Line, lines, refused.File, refused.Msg)
			}
			return
		}
		checkModel(t, m)
		checkPositions(t, src)
	})
}

// bundleOf are modules as they stand behind a model file.
func bundleOf(modules map[string]string) string {
	text := ""
	for _, name := range slices.Sorted(maps.Keys(modules)) {
		text += bundleMarker + name + "\n" + modules[name]
	}
	return text
}

// checkModel checks what the compiler requires of every model.
func checkModel(t *testing.T, m *graph.Model) {
	t.Helper()
	names := map[string]bool{}
	inputs := 0
	for i, n := range m.Nodes {
		if names[n.Name] {
			t.Errorf("the name %q is used twice", n.Name)
		}
		names[n.Name] = true
		if size, ok := elements(n.Shape); !ok || size < 1 {
			t.Errorf("node %d has shape %v", i, n.Shape)
		}
		merges := slices.Contains([]graph.Op{graph.Add, graph.Multiply, graph.Concatenate, graph.Subtract}, n.Op)
		later := slices.ContainsFunc(n.Inputs, func(in int) bool { return in < 0 || in >= i })
		if later || (len(n.Inputs) > 1) != merges || (n.Op == graph.Input) != (len(n.Inputs) == 0) {
			t.Errorf("node %d, a %s, has inputs %v", i, n.Op, n.Inputs)
		}
		for _, in := range n.Inputs {
			if m.Nodes[in].Integer != (n.Op == graph.Embedding) {
				t.Errorf("node %d, a %s, takes %v", i, n.Op, m.Nodes[in])
			}
		}
		if n.Op == graph.Input {
			if m.Feed.Function == nil && m.Feed.Columns[inputs].Integer != n.Integer {
				t.Errorf("column %+v of input %v", m.Feed.Columns[inputs], n)
			}
			inputs++
		}
	}
	if m.Output != len(m.Nodes)-1 {
		t.Errorf("output %d of %d nodes", m.Output, len(m.Nodes))
	}
	if (len(m.Feed.Columns) == inputs) == (m.Feed.Function != nil) {
		t.Errorf("feed %+v", m.Feed)
	}
	if !(m.Optimizer.LearningRate > 0) {
		t.Errorf("learning rate %v", m.Optimizer.LearningRate)
	}
	if len(graph.Canonical(m)) == 0 {
		t.Error("no canonical text")
	}
}
