package modelfile

import (
	"strings"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
)

func TestOptimizers(t *testing.T) {
	tested := map[string]bool{}
	for text, want := range map[string]graph.Optimizer{
		"tf.optimizers.SGD()":                                        {Kind: graph.SGD, LearningRate: 0.01},
		"tf.optimizers.SGD(0.5, 0.9)":                                {Kind: graph.SGD, LearningRate: 0.5, Momentum: 0.9},
		"tf.keras.optimizers.SGD(0.5, momentum=0.9, nesterov=True)":  {Kind: graph.SGD, LearningRate: 0.5, Momentum: 0.9, Nesterov: true},
		"tf.keras.optimizers.SGD(0.5, nesterov=True)":                {Kind: graph.SGD, LearningRate: 0.5},
		"tf.optimizers.Adam()":                                       {Kind: graph.Adam, LearningRate: 0.001, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-7},
		"tf.keras.optimizers.Adam(0.1, 0.8, 0.99, 1e-8)":             {Kind: graph.Adam, LearningRate: 0.1, Beta1: 0.8, Beta2: 0.99, Epsilon: 1e-8},
		"tf.keras.optimizers.Adamax(0.1, beta_2=0.99)":               {Kind: graph.AdaMax, LearningRate: 0.1, Beta1: 0.9, Beta2: 0.99, Epsilon: 1e-7},
		"tf.optimizers.Adagrad()":                                    {Kind: graph.AdaGrad, LearningRate: 0.001, Initial: 0.1, Epsilon: 1e-7},
		"tf.keras.optimizers.RMSprop()":                              {Kind: graph.RMSProp, LearningRate: 0.001, Rho: 0.9, Epsilon: 1e-7},
		"tf.keras.optimizers.RMSprop(lr=0.2, momentum=0.5, rho=0.8)": {Kind: graph.RMSProp, LearningRate: 0.2, Rho: 0.8, Momentum: 0.5, Epsilon: 1e-7},
	} {
		for name := range optimizerClasses {
			tested[name] = tested[name] || strings.Contains(text, "."+name+"(")
		}
		t.Run(text+" has Keras' numbers", func(t *testing.T) {
			m, _, err := Load("m.py", []byte(assemble("optimizer", "def optimizer():\n    return "+text)), Options{})
			if err != nil {
				t.Fatal(err)
			}
			if m.Optimizer != want {
				t.Errorf("got %s, want %s", m.Optimizer, want)
			}
		})
	}
	for name, seen := range tested {
		if !seen {
			t.Errorf("%s is in no row", name)
		}
	}
}
