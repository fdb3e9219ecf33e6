package modelfile

import (
	"maps"

	"go.starlark.net/starlark"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
)

// optimizer is what an optimizer's constructor returns.
type optimizer struct{ graph.Optimizer }

func (o optimizer) Type() string          { return "optimizer" }
func (o optimizer) Freeze()               {}
func (o optimizer) Truth() starlark.Bool  { return true }
func (o optimizer) Hash() (uint32, error) { return starlark.String(o.String()).Hash() }

// optimizerClass is an optimizer of TF 2.0's Keras.
type optimizerClass struct {
	positional []string                    // in TensorFlow's order
	only       map[string][]starlark.Value // besides what all optimizers have
	defaults   graph.Optimizer
}

var optimizerClasses = map[string]optimizerClass{
	"SGD": {
		[]string{"learning_rate", "momentum", "nesterov"},
		nil,
		graph.Optimizer{Kind: graph.SGD, LearningRate: 0.01},
	},
	"Adam": {
		[]string{"learning_rate", "beta_1", "beta_2", "epsilon", "amsgrad"},
		map[string][]starlark.Value{"amsgrad": falseOnly},
		graph.Optimizer{Kind: graph.Adam, LearningRate: 0.001, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-7},
	},
	"Adamax": {
		[]string{"learning_rate", "beta_1", "beta_2", "epsilon"},
		nil,
		graph.Optimizer{Kind: graph.AdaMax, LearningRate: 0.001, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-7},
	},
	"Adagrad": {
		[]string{"learning_rate", "initial_accumulator_value", "epsilon"},
		nil,
		graph.Optimizer{Kind: graph.AdaGrad, LearningRate: 0.001, Initial: 0.1, Epsilon: 1e-7},
	},
	"RMSprop": {
		[]string{"learning_rate", "rho", "momentum", "epsilon", "centered"},
		map[string][]starlark.Value{"centered": falseOnly},
		graph.Optimizer{Kind: graph.RMSProp, LearningRate: 0.001, Rho: 0.9, Epsilon: 1e-7},
	},
}

// optimizerFunctions are the classes of tf.optimizers, and TF 1's plain gradient descent.
func optimizerFunctions() map[string]starlark.Value {
	values := map[string]starlark.Value{}
	for name, class := range optimizerClasses {
		only := map[string][]starlark.Value{"decay": {starlark.MakeInt(0), starlark.Float(0)}, "clipnorm": none, "clipvalue": none}
		maps.Copy(only, class.only)
		for _, path := range []string{"tensorflow.optimizers.", "tensorflow.keras.optimizers."} {
			sig := signature{name: display(path + name), positional: class.positional, keywords: []string{"lr", "name"}, only: only}
			values[path+name] = function(sig, func(_ *starlark.Thread, a *arguments) (starlark.Value, error) {
				return a.optimizer(class.defaults), nil
			})
		}
	}
	values["tensorflow.train.GradientDescentOptimizer"] = function(signature{
		name: "tf.train.GradientDescentOptimizer", positional: []string{"learning_rate", "use_locking"}, keywords: []string{"name"},
		only: map[string][]starlark.Value{"use_locking": falseOnly},
	}, func(_ *starlark.Thread, a *arguments) (starlark.Value, error) {
		if !a.has("learning_rate") {
			a.wrong("learning_rate", "")
		}
		return a.optimizer(graph.Optimizer{Kind: graph.SGD}), nil
	})
	return values
}

// optimizer reads an optimizer's numbers; what is absent keeps its default.
func (a *arguments) optimizer(o graph.Optimizer) optimizer {
	number := func(into *float64, name, want string, ok func(float64) bool) {
		if !a.has(name) {
			return
		}
		if *into = a.number(name); a.err == nil && !ok(*into) {
			a.wrong(name, want)
		}
	}
	positive := func(x float64) bool { return x > 0 }
	share := func(x float64) bool { return x >= 0 && x < 1 }
	notNegative := func(x float64) bool { return x >= 0 }
	if a.has("lr") && a.has("learning_rate") {
		a.fail("lr and learning_rate are the same argument; give one of them")
	}
	number(&o.LearningRate, "lr", "a number above 0", positive)
	number(&o.LearningRate, "learning_rate", "a number above 0", positive)
	number(&o.Momentum, "momentum", "a number from 0 to 1", func(x float64) bool { return x >= 0 && x <= 1 })
	number(&o.Beta1, "beta_1", "a number from 0 to below 1", share)
	number(&o.Beta2, "beta_2", "a number from 0 to below 1", share)
	number(&o.Rho, "rho", "a number from 0 to below 1", share)
	number(&o.Epsilon, "epsilon", "a number above 0", positive)
	number(&o.Initial, "initial_accumulator_value", "a number from 0", notNegative)
	// Without momentum Keras does the same with nesterov=True as without.
	o.Nesterov = a.has("nesterov") && a.boolean("nesterov") && o.Momentum != 0
	return optimizer{o}
}
