package zoo_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/kernel"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/modelfile"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/nn"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/zoo"
)

// load is the graph of a built-in model, about which there should be nothing to say.
func load(t *testing.T, name string) *graph.Model {
	t.Helper()
	built, err := zoo.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	m, report, err := modelfile.Load(built.FileName(), built.Source, modelfile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Warnings) > 0 || len(report.Notices) > 0 {
		t.Errorf("%s: %v %v", name, report.Warnings, report.Notices)
	}
	return m
}

// parameters are the numbers that Keras' model.summary() prints for the same layers: trainable and not.
var parameters = map[string]struct{ trainable, fixed int }{
	"mnist":   {111_114, 128},
	"cifar10": {308_394, 896},
	"resnet":  {273_066, 1_376}, // Keras' cifar10_resnet example, n = 3, version 1: 274,442 in total
	"iris":    {193, 0},

	"deepfm":     {5383*16 + 5383 + 160*64 + 64 + 64 + 1, 0},
	"census_dnn": {(9+16+7+15+6+5+2+42)*8 + (64+4)*16 + 16 + 16*16 + 16 + 16 + 1, 0},
	"wide_deep":  {(9+16+7+15+6+5+2+42)*(8+1) + (64+4)*32 + 32 + 32*16 + 16 + 16 + 1, 0},
}

func TestEveryModelCompilesAndHasAsManyParametersAsInKeras(t *testing.T) {
	for _, name := range zoo.Names() {
		t.Run(name, func(t *testing.T) {
			m := load(t, name)
			n, err := nn.Compile(m, nn.Options{Kernel: kernel.Portable(), Threads: 1, MaxBatch: 1})
			if err != nil {
				t.Fatal(err)
			}
			defer n.Close()
			want, known := parameters[name]
			trainable := n.TrainableSize()
			for _, table := range n.Tables() {
				trainable += table.Rows * table.Width
			}
			if !known || trainable != want.trainable || n.StatsSize() != want.fixed {
				t.Errorf("%d trainable and %d other parameters, Keras has %+v (known: %v)", trainable, n.StatsSize(), want, known)
			}
			built, err := zoo.Load(name)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasSuffix(built.Summary, ".") || strings.ContainsAny(built.Summary, `"#`) {
				t.Errorf("the file's first line is no sentence about the model: %q", built.Summary)
			}
		})
	}
}

func TestANameThatThereIsNotIsRefusedWithThoseThatThereAre(t *testing.T) {
	for _, name := range []string{"", "minst", "../zoo/mnist", "mnist.py", "zoo.go"} {
		_, err := zoo.Load(name)
		if zoo.Has(name) || err == nil || !strings.Contains(err.Error(), "cifar10, ") || !strings.Contains(err.Error(), "mnist") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestTheAPINamesEveryBuiltInModel(t *testing.T) {
	if files, names := zoo.Names(), trainingjob.BuiltInModels(); !slices.Equal(files, names) {
		t.Errorf("there are files of %q, and trainingjob.BuiltInModels() is %q", files, names)
	}
}

func TestTheExamplesAndTheBuiltInModelsAreTheSameNetworks(t *testing.T) {
	for name, path := range map[string]string{
		"mnist": "../../../../examples/models/mnist_functional_api.py", "cifar10": "../../../../examples/models/cifar10_functional_api.py",
	} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		example, _, err := modelfile.Load(path, text, modelfile.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if builtIn := load(t, name); string(graph.Canonical(builtIn)) != string(graph.Canonical(example)) {
			t.Errorf("%s: %s and the built-in model differ: a job with the one would not resume from a checkpoint of the other", name, path)
		}
	}
}
