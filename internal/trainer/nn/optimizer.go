package nn

import (
	"fmt"
	"math"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/graph"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/kernel"
)

// optimizer is an update rule made ready. Its slots are arrays as long as the trainable variables, which stand behind the
// moving statistics in the state: whoever has the state can go on.
type optimizer struct {
	slots []slot
	// update makes the weights of the next step; t counts the updates from 1.
	update func(w, g []float32, slots [][]float32, t int64)
}

// slot is what an optimizer keeps of every weight.
type slot struct {
	name    string // as Keras names it
	initial float32
}

func newOptimizer(set kernel.Set, o graph.Optimizer) (*optimizer, error) {
	if !(o.LearningRate > 0) || math.IsInf(o.LearningRate, 0) {
		return nil, fmt.Errorf("optimizer %s: the learning rate must be a number above 0", o)
	}
	for name, share := range map[string]float64{"momentum": o.Momentum, "beta_1": o.Beta1, "beta_2": o.Beta2, "rho": o.Rho} {
		if !(share >= 0 && share <= 1) || share == 1 && name != "momentum" {
			return nil, fmt.Errorf("optimizer %s: %s must be a number from 0 to below 1", o, name)
		}
	}
	if !(o.Epsilon >= 0 && o.Initial >= 0) {
		return nil, fmt.Errorf("optimizer %s: a number below 0 where a root is taken", o)
	}
	rate, momentum, epsilon := float32(o.LearningRate), float32(o.Momentum), float32(o.Epsilon)
	rho, rest := float32(o.Rho), float32(1-o.Rho)
	switch {
	case o.Kind == graph.SGD && o.Momentum == 0:
		return &optimizer{nil, func(w, g []float32, _ [][]float32, _ int64) { set.SGD(w, g, rate) }}, nil
	case o.Kind == graph.SGD:
		rule := kernel.Momentum
		if o.Nesterov {
			rule = kernel.Nesterov
		}
		return &optimizer{[]slot{{"momentum", 0}}, func(w, g []float32, s [][]float32, _ int64) {
			rule(w, s[0], g, rate, momentum)
		}}, nil
	case o.Kind == graph.Adam:
		return &optimizer{[]slot{{"m", 0}, {"v", 0}}, func(w, g []float32, s [][]float32, t int64) {
			kernel.Adam(w, s[0], s[1], g, kernel.NewAdamStep(o.LearningRate, o.Beta1, o.Beta2, o.Epsilon, t))
		}}, nil
	case o.Kind == graph.AdaGrad:
		return &optimizer{[]slot{{"accumulator", float32(o.Initial)}}, func(w, g []float32, s [][]float32, _ int64) {
			kernel.AdaGrad(w, s[0], g, rate, epsilon)
		}}, nil
	case o.Kind == graph.RMSProp && o.Momentum == 0:
		return &optimizer{[]slot{{"rms", 0}}, func(w, g []float32, s [][]float32, _ int64) {
			kernel.RMSProp(w, s[0], g, rate, rho, rest, epsilon)
		}}, nil
	case o.Kind == graph.RMSProp:
		return &optimizer{[]slot{{"rms", 0}, {"momentum", 0}}, func(w, g []float32, s [][]float32, _ int64) {
			kernel.RMSPropMomentum(w, s[0], s[1], g, rate, rest, momentum, epsilon)
		}}, nil
	}
	return nil, fmt.Errorf("optimizer %q is not implemented; implemented: %s, %s, %s, %s", o.Kind, graph.SGD, graph.Adam, graph.AdaGrad, graph.RMSProp)
}

// slotOf is slot i of the state.
func (n *Network) slotOf(state []float32, i int) []float32 {
	return state[n.trainable+n.stats+i*n.trainable:][:n.trainable]
}

// optimize updates the weights at step, which counts from 0.
func (n *Network) optimize(state, gradient []float32, step int64) {
	for i := range n.slots {
		n.slots[i] = n.slotOf(state, i)
	}
	n.optimizer.update(state[:n.trainable], gradient, n.slots, step+1)
}
