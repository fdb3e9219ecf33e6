package nn

import (
	"fmt"
	"math"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/gradient"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/kernel"
)

// optimizer is an update rule made ready. Its slots are arrays as long as the trainable variables, which stand behind
// the moving statistics in the state, and behind each table arrays as long as that: with the state alone training can
// resume.
type optimizer struct {
	slots []slot
	rates *graph.LearningRates // nil: the rate stays as it is
	rate  float64              // of the step at hand
	// update makes the weights of the next step; t counts the updates from 1.
	update func(w, g []float32, slots [][]float32, t int64)
	// updateTable does the same for a whole table w and its slots where TF 2.0 has other rules for rows than for dense
	// gradients; nil: update is applied to each of the rows, and what is not among them stays as it is.
	updateTable func(w []float32, slots [][]float32, rows gradient.Rows, t int64)
	walks       bool // updateTable changes rows of w that are not among rows
}

// slot is what an optimizer keeps of every weight.
type slot struct {
	name    string // as Keras names it
	initial float32
}

func newOptimizer(set kernel.Set, o graph.Optimizer, rates *graph.LearningRates) (*optimizer, error) {
	made, err := newRule(set, o)
	if err != nil {
		return nil, err
	}
	made.rates, made.rate = rates, o.LearningRate
	return made, nil
}

// at makes the optimizer ready for a step.
func (o *optimizer) at(step int64) error {
	if o.rates == nil {
		return nil
	}
	rate, err := o.rates.At(step)
	if err == nil && (!(rate > 0) || math.IsInf(rate, 0)) {
		err = fmt.Errorf("the learning rate %v is not a number above 0", rate)
	}
	if err != nil {
		return fmt.Errorf("the schedule of the learning rate: %w", err)
	}
	o.rate = rate
	return nil
}

// newRule makes an update rule whose learning rate is that of the optimizer at the step.
func newRule(set kernel.Set, o graph.Optimizer) (made *optimizer, _ error) {
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
	made = &optimizer{}
	rate := func() float32 { return float32(made.rate) }
	momentum, epsilon := float32(o.Momentum), float32(o.Epsilon)
	rho, rest := float32(o.Rho), float32(1-o.Rho)
	switch {
	case o.Kind == graph.SGD && o.Momentum == 0:
		*made = optimizer{update: func(w, g []float32, _ [][]float32, _ int64) { set.SGD(w, g, rate()) }}
	case o.Kind == graph.SGD:
		rule := set.Momentum
		if o.Nesterov {
			rule = kernel.Nesterov
		}
		*made = optimizer{slots: []slot{{"momentum", 0}}, update: func(w, g []float32, s [][]float32, _ int64) {
			rule(w, s[0], g, rate(), momentum)
		}}
	case o.Kind == graph.Adam:
		step := func(t int64) kernel.AdamStep {
			return kernel.NewAdamStep(made.rate, o.Beta1, o.Beta2, o.Epsilon, t)
		}
		*made = optimizer{
			slots:  []slot{{"m", 0}, {"v", 0}},
			update: func(w, g []float32, s [][]float32, t int64) { set.Adam(w, s[0], s[1], g, step(t)) },
			updateTable: func(w []float32, s [][]float32, r gradient.Rows, t int64) {
				set.AdamRows(w, s[0], s[1], r.Index, r.Values, step(t))
			},
			walks: true,
		}
	case o.Kind == graph.AdaMax:
		step := func(t int64) kernel.AdaMaxStep {
			return kernel.NewAdaMaxStep(made.rate, o.Beta1, o.Beta2, o.Epsilon, t)
		}
		*made = optimizer{
			slots:  []slot{{"m", 0}, {"v", 0}},
			update: func(w, g []float32, s [][]float32, t int64) { kernel.AdaMax(w, s[0], s[1], g, step(t)) },
			updateTable: func(w []float32, s [][]float32, r gradient.Rows, t int64) {
				kernel.AdaMaxRows(w, s[0], s[1], r.Index, r.Values, step(t))
			},
		}
	case o.Kind == graph.AdaGrad:
		*made = optimizer{slots: []slot{{"accumulator", float32(o.Initial)}}, update: func(w, g []float32, s [][]float32, _ int64) {
			kernel.AdaGrad(w, s[0], g, rate(), epsilon)
		}}
	case o.Kind == graph.RMSProp && o.Momentum == 0:
		*made = optimizer{
			slots:  []slot{{"rms", 0}},
			update: func(w, g []float32, s [][]float32, _ int64) { kernel.RMSProp(w, s[0], g, rate(), rho, rest, epsilon) },
			updateTable: func(w []float32, s [][]float32, r gradient.Rows, _ int64) {
				kernel.RMSPropRows(w, s[0], r.Index, r.Values, rate(), rho, rest, epsilon)
			},
		}
	case o.Kind == graph.RMSProp:
		*made = optimizer{
			slots: []slot{{"rms", 0}, {"momentum", 0}},
			update: func(w, g []float32, s [][]float32, _ int64) {
				kernel.RMSPropMomentum(w, s[0], s[1], g, rate(), rest, momentum, epsilon)
			},
			updateTable: func(w []float32, s [][]float32, r gradient.Rows, _ int64) {
				kernel.RMSPropMomentumRows(w, s[0], s[1], r.Index, r.Values, rate(), rho, rest, momentum, epsilon)
			},
		}
	default:
		return nil, fmt.Errorf("optimizer %q is not implemented", o.Kind)
	}
	return made, nil
}

// slotOf is slot i of the state.
func (n *Network) slotOf(state []float32, i int) []float32 {
	return state[n.trainable+n.stats+i*n.trainable:][:n.trainable]
}

// optimize updates the weights at step, which counts from 0.
func (n *Network) optimize(state []float32, sum gradient.Sum, step int64) error {
	if err := n.optimizer.at(step); err != nil {
		return err
	}
	for i := range n.slots {
		n.slots[i] = n.slotOf(state, i)
	}
	n.optimizer.update(state[:n.trainable], sum.Dense, n.slots, step+1)
	for i, e := range n.embeddings {
		n.optimizeTable(state, e, sum.Rows[i], step+1)
	}
	return nil
}

// optimizeTable updates a table for the t-th time.
func (n *Network) optimizeTable(state []float32, e *embedding, rows gradient.Rows, t int64) {
	if n.optimizer.updateTable != nil {
		for i := range n.slots {
			n.slots[i] = e.slotOf(state, i)
		}
		n.optimizer.updateTable(e.weights(state), n.slots, rows, t)
		return
	}
	for k, row := range rows.Index {
		for i := range n.slots {
			n.slots[i] = e.row(e.slotOf(state, i), row)
		}
		n.optimizer.update(e.row(e.weights(state), row), rows.Values[k*e.width:][:e.width], n.slots, t)
	}
}
