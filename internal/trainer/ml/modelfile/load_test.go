package modelfile

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/gradient"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/kernel"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/nn"
)

// rewriting is package datadriven's flag: -rewrite rewrites the golden files as it does the refusals.
func rewriting() bool { return flag.Lookup("rewrite").Value.String() == "true" }

// tableOf prints a model for golden files: what decides its result, readable, one fact a line.
func tableOf(m *graph.Model, r *Report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "model %s\n", m.Name)
	for i, n := range m.Nodes {
		fmt.Fprintf(&b, "%3d %-10s %-22s %-14s <- %v", i, n.Op, n.Name, shapeText(n.Shape), n.Inputs)
		fields := reflect.ValueOf(n)
		for i := range fields.NumField() {
			if attributes := fields.Field(i); attributes.Kind() == reflect.Pointer && !attributes.IsNil() {
				fmt.Fprintf(&b, " %+v", attributes.Elem())
			}
		}
		if n.Integer {
			b.WriteString(" rows")
		}
		fmt.Fprintf(&b, " line %d\n", n.Place.Line)
	}
	fmt.Fprintf(&b, "output %d\nloss %s\noptimizer %+v\n", m.Output, m.Loss, m.Optimizer)
	for _, metric := range m.Metrics {
		fmt.Fprintf(&b, "metric %s = %s\n", metric.Name, metric.Kind)
	}
	for _, f := range m.Feed.Features {
		fmt.Fprintf(&b, "feature %s %s%s\n", f.Name, f.DType, shapeText(f.Shape))
	}
	if m.SumOfLosses {
		b.WriteString("sum of losses\n")
	}
	if m.LearningRates != nil {
		fmt.Fprintf(&b, "learning rates %.12s…\n", m.LearningRates.Digest)
	}
	for _, c := range m.Feed.Columns {
		if c.Parts != nil {
			fmt.Fprintf(&b, "column rows=%t sparse=%t weights=%q\n", c.Integer, c.Sparse, c.Weights)
			for _, p := range c.Parts {
				fmt.Fprintf(&b, "  %s", p.Feature)
				for _, s := range p.Steps {
					fmt.Fprintf(&b, " %+v", s)
				}
				b.WriteByte('\n')
			}
			continue
		}
		if c.Integer {
			fmt.Fprintf(&b, "column %s as rows\n", c.Feature)
			continue
		}
		fmt.Fprintf(&b, "column %s %v\n", c.Feature, c.Transforms)
	}
	if m.Feed.Function != nil {
		fmt.Fprintf(&b, "column by input_fn %.12s…\n", m.Feed.FunctionDigest)
	}
	fmt.Fprintf(&b, "label %q\n", m.Feed.Label)
	for _, n := range r.Notices {
		fmt.Fprintf(&b, "notice: %s\n", n)
	}
	for _, w := range r.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", w)
	}
	return b.String()
}

func readFile(t testing.TB, path string) []byte {
	t.Helper()
	src, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// loadFile loads a file that must be accepted.
func loadFile(t *testing.T, path string, opt Options) (*graph.Model, *Report) {
	t.Helper()
	m, r, err := Load(filepath.Base(path), readFile(t, path), opt)
	if err != nil {
		t.Fatal(err)
	}
	return m, r
}

// ownFiles are the model files of this repository: one for each style of ElasticDL's history, and the example.
func ownFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/*.py")
	if err != nil || len(files) < 6 {
		t.Fatalf("the model files in testdata: %v, %v", files, err)
	}
	return append(files, "../../../../examples/models/mnist_functional_api.py", "../../../../examples/models/cifar10_functional_api.py")
}

func TestModelFiles(t *testing.T) {
	for _, path := range ownFiles(t) {
		t.Run(filepath.Base(path)+" gives the model in its golden file", func(t *testing.T) {
			got := tableOf(loadFile(t, path, Options{}))
			golden := filepath.Join("testdata", strings.TrimSuffix(filepath.Base(path), ".py")+".golden")
			if rewriting() {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(string(readFile(t, golden)), got); diff != "" {
				t.Errorf("the model differs (-golden +now; -rewrite rewrites):\n%s", diff)
			}
		})
	}
}

// TestOriginals runs ElasticDL's own files, which are not part of this repository: COMMIT.py (MNIST) and
// cifar10_COMMIT.py in the directory that ELASTICDL_MODELS names.
func TestOriginals(t *testing.T) {
	dir := os.Getenv("ELASTICDL_MODELS")
	if dir == "" {
		t.Skip("ELASTICDL_MODELS names no directory with ElasticDL's model files; its styles are tested with our own files")
	}
	const network = "input image (28, 28)|reshape reshape (28, 28, 1)|conv2d conv2d (26, 26, 32)|relu conv2d/relu (26, 26, 32)|" +
		"conv2d conv2d_1 (24, 24, 64)|relu conv2d_1/relu (24, 24, 64)|batch_norm batch_normalization (24, 24, 64)|" +
		"max_pool max_pooling2d (12, 12, 64)|dropout dropout (12, 12, 64)|flatten flatten (9216)|dense dense (10)"
	t.Run("the CIFAR-10 file of 10d22de8 runs unmodified", func(t *testing.T) { testOriginalCIFAR10(t, dir) })
	first := strings.Replace(network, "input image (28, 28)", "input img (28, 28, 1)", 1)
	for commit, want := range map[string]struct {
		network  string
		rate     float64
		byFn     bool
		warnings int
	}{
		"257948e4": {first, 0.1, true, 1},
		"10d22de8": {network, 0.1, true, 0},
		"aac4beff": {network, 0.1, false, 0},
		"0cbc361a": {network, 0.01, false, 0},
	} {
		t.Run("the file of "+commit+" runs unmodified", func(t *testing.T) {
			m, r := loadFile(t, filepath.Join(dir, commit+".py"), Options{})
			var nodes []string
			for _, n := range m.Nodes {
				nodes = append(nodes, fmt.Sprintf("%s %s %s", n.Op, n.Name, shapeText(n.Shape)))
			}
			if diff := cmp.Diff(want.network, strings.Join(nodes, "|")); diff != "" {
				t.Error(diff)
			}
			if m.Optimizer.LearningRate != want.rate {
				t.Errorf("learning rate %v", m.Optimizer.LearningRate)
			}
			if (m.Feed.Function != nil) != want.byFn || m.Feed.Label != "label" || m.Feed.Features[0].Name != "image" {
				t.Errorf("feed %+v", m.Feed)
			}
			if !want.byFn && fmt.Sprint(m.Feed.Columns) != "[{image [{divide 255}]}]" {
				t.Errorf("columns %v", m.Feed.Columns)
			}
			if len(r.Warnings) != want.warnings {
				t.Errorf("warnings %v", r.Warnings)
			}
		})
	}
}

// testOriginalCIFAR10 runs the functional CIFAR-10 file of 10d22de8: its graph is that of our example, and its
// input_fn's values train it.
func testOriginalCIFAR10(t *testing.T, dir string) {
	m, r := loadFile(t, filepath.Join(dir, "cifar10_10d22de8.py"), Options{})
	example, _ := loadFile(t, "../../../../examples/models/cifar10_functional_api.py", Options{})
	for i := range m.Nodes {
		m.Nodes[i].Place, example.Nodes[i].Place = graph.Place{}, graph.Place{}
	}
	if diff := cmp.Diff(example.Nodes, m.Nodes); diff != "" {
		t.Errorf("the layers (-example +original):\n%s", diff)
	}
	if len(r.Warnings) > 0 || m.Optimizer != example.Optimizer || m.Loss != example.Loss || m.Feed.Function == nil {
		t.Errorf("warnings %v, %s, %s", r.Warnings, m.Optimizer, m.Loss)
	}
	b := &graph.Batch{N: 2}
	records := make([]graph.Example, b.N)
	for i := range records {
		pixels := make([]float32, 32*32*3)
		for p := range pixels {
			pixels[p] = float32((p*7 + i*31) % 256)
		}
		records[i] = graph.Example{{Floats: pixels}, {Ints: []int64{int64(3 + i)}}}
	}
	var err error
	if b.Inputs, b.Labels, err = m.Feed.Function(records); err != nil {
		t.Fatal(err)
	}
	n, err := nn.Compile(m, nn.Options{Kernel: kernel.Available()[0], MaxBatch: b.N})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	if n.TrainableSize() != 308_394 || n.StatsSize() != 896 {
		t.Errorf("%d trainable variables and %d statistics", n.TrainableSize(), n.StatsSize())
	}
	state, grad := make([]float32, n.StateSize()), make([]float32, n.TrainableSize()+n.StatsSize())
	n.Init(state, 1)
	first, err := n.Gradient(state, b, b.N, 0, 0, 1, grad, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Apply(state, gradient.Sum{Dense: grad[:n.TrainableSize()]}, nil, 0); err != nil {
		t.Fatal(err)
	}
	second, err := n.Gradient(state, b, b.N, 0, 0, 1, grad, nil)
	if err != nil || second.LossSum >= first.LossSum {
		t.Errorf("a step took the loss from %v to %v (%v)", first.LossSum, second.LossSum, err)
	}
}

func TestOptions(t *testing.T) {
	t.Run("the job's learning rate replaces the file's", func(t *testing.T) {
		rate := 0.25
		m, _ := loadFile(t, "testdata/last_release.py", Options{LearningRate: &rate})
		if m.Optimizer.LearningRate != 0.25 {
			t.Errorf("learning rate %v", m.Optimizer.LearningRate)
		}
	})
	t.Run("a learning rate of zero is refused", func(t *testing.T) {
		rate := 0.0
		_, _, err := Load("m.py", readFile(t, "testdata/last_release.py"), Options{LearningRate: &rate})
		if err == nil || !strings.Contains(err.Error(), "the learning rate 0 is not a number above 0") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("in prediction records have no label", func(t *testing.T) {
		m, r := loadFile(t, "testdata/september_2019.py", Options{Mode: Prediction})
		if len(m.Feed.Features) != 1 || m.Feed.Label != "" {
			t.Errorf("feed %+v", m.Feed)
		}
		for _, n := range r.Notices {
			if strings.Contains(n.Text, "shuffle") {
				t.Errorf("notice %q, and nothing shuffles in prediction", n)
			}
		}
	})
	t.Run("layout and comments of a file do not change its canonical text", func(t *testing.T) {
		path := "testdata/june_2019_mended.py"
		src := string(readFile(t, path))
		other := "# A comment.\n\n" + strings.ReplaceAll(src, "    image_list = []\n", "\n    # pixels\n    image_list = [ ]  # all\n")
		a, _ := loadFile(t, path, Options{})
		b, _, err := Load("other.py", []byte(other), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if x, y := string(graph.Canonical(a)), string(graph.Canonical(b)); x != y {
			t.Errorf("%s\n%s", x, y)
		}
	})
	t.Run("another constant that input_fn uses changes the canonical text", func(t *testing.T) {
		path := "testdata/june_2019_mended.py"
		other := strings.Replace(string(readFile(t, path)), "[255]", "[256]", 1)
		a, _ := loadFile(t, path, Options{})
		b, _, err := Load("other.py", []byte(other), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if string(graph.Canonical(a)) == string(graph.Canonical(b)) {
			t.Error("the texts are equal")
		}
	})
}
