package graph

import "fmt"

// OptimizerKind names an update rule.
type OptimizerKind string

// The update rules are those of TF 2.0's tf.keras.optimizers (optimizer_v2); internal/trainer/ml/kernel has them to the
// bit.
const (
	SGD     OptimizerKind = "sgd"
	Adam    OptimizerKind = "adam"
	AdaGrad OptimizerKind = "adagrad"
	RMSProp OptimizerKind = "rmsprop"
	AdaMax  OptimizerKind = "adamax"
)

// Optimizer is an update rule with its numbers. Those that the rule does not have are 0.
type Optimizer struct {
	Kind         OptimizerKind `json:"kind"`
	LearningRate float64       `json:"learning_rate"`

	Momentum float64 `json:"momentum,omitempty"` // SGD, RMSProp; 0 is none
	Nesterov bool    `json:"nesterov,omitempty"` // SGD with momentum
	Beta1    float64 `json:"beta_1,omitempty"`   // Adam, AdaMax
	Beta2    float64 `json:"beta_2,omitempty"`   // Adam, AdaMax
	Rho      float64 `json:"rho,omitempty"`      // RMSProp
	Epsilon  float64 `json:"epsilon,omitempty"`  // Adam, AdaGrad, RMSProp, AdaMax
	Initial  float64 `json:"initial_accumulator_value,omitempty"`
}

// String is the rule with the numbers that it has: "sgd, learning rate 0.1, momentum 0.9".
func (o Optimizer) String() string {
	s := fmt.Sprintf("%s, learning rate %v", o.Kind, o.LearningRate)
	for _, n := range []struct {
		name  string
		value float64
	}{
		{"beta_1", o.Beta1}, {"beta_2", o.Beta2}, {"rho", o.Rho}, {"initial accumulator", o.Initial}, {"epsilon", o.Epsilon}, {"momentum", o.Momentum},
	} {
		if n.value != 0 {
			s += fmt.Sprintf(", %s %v", n.name, n.value)
		}
	}
	if o.Nesterov {
		s += ", Nesterov"
	}
	return s
}
