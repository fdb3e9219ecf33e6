package nn_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/gradient"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/kernel"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/nn"
)

var testOptimizers = []graph.Optimizer{
	{Kind: graph.SGD, LearningRate: 0.1},
	{Kind: graph.SGD, LearningRate: 0.1, Momentum: 0.9},
	{Kind: graph.SGD, LearningRate: 0.1, Momentum: 0.9, Nesterov: true},
	{Kind: graph.Adam, LearningRate: 0.01, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-7},
	{Kind: graph.AdaGrad, LearningRate: 0.1, Initial: 0.1, Epsilon: 1e-7},
	{Kind: graph.RMSProp, LearningRate: 0.01, Rho: 0.9, Epsilon: 1e-7},
	{Kind: graph.RMSProp, LearningRate: 0.01, Rho: 0.9, Momentum: 0.5, Epsilon: 1e-7},
	{Kind: graph.AdaMax, LearningRate: 0.01, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-7},
}

// referenceUpdate is one update of one weight in float64, from the papers' formulas; slots are kept between calls.
func referenceUpdate(o graph.Optimizer, w, g float64, s *[2]float64, t int) float64 {
	switch o.Kind {
	case graph.Adam:
		s[0] = o.Beta1*s[0] + (1-o.Beta1)*g
		s[1] = o.Beta2*s[1] + (1-o.Beta2)*g*g
		rate := o.LearningRate * math.Sqrt(1-math.Pow(o.Beta2, float64(t))) / (1 - math.Pow(o.Beta1, float64(t)))
		return w - rate*s[0]/(math.Sqrt(s[1])+o.Epsilon)
	case graph.AdaMax:
		s[0] = o.Beta1*s[0] + (1-o.Beta1)*g
		s[1] = math.Max(o.Beta2*s[1], math.Abs(g))
		return w - o.LearningRate/(1-math.Pow(o.Beta1, float64(t)))*s[0]/(s[1]+o.Epsilon)
	case graph.AdaGrad:
		s[0] += g * g
		return w - o.LearningRate*g/(math.Sqrt(s[0])+o.Epsilon)
	case graph.RMSProp:
		s[0] = o.Rho*s[0] + (1-o.Rho)*g*g
		if o.Momentum == 0 {
			return w - o.LearningRate*g/(math.Sqrt(s[0])+o.Epsilon)
		}
		s[1] = o.Momentum*s[1] + o.LearningRate*g/math.Sqrt(s[0]+o.Epsilon)
		return w - s[1]
	}
	s[0] = o.Momentum*s[0] - o.LearningRate*g
	if o.Nesterov {
		return w + o.Momentum*s[0] - o.LearningRate*g
	}
	return w + s[0]
}

func TestOptimizers(t *testing.T) {
	for _, o := range testOptimizers {
		t.Run(o.String()+": twenty updates are those of its formula in float64", func(t *testing.T) {
			m := small()
			m.Optimizer = o
			n := compile(t, m, kernel.Portable(), 1, 1)
			state := randomState(n)
			want, slots := make([]float64, n.TrainableSize()), make([][2]float64, n.TrainableSize())
			for i := range want {
				want[i], slots[i][0] = float64(state[i]), o.Initial
			}
			g := make([]float32, n.TrainableSize())
			for step := range 20 {
				for i := range g {
					g[i] = float32(math.Sin(float64(i*7+step*3))) * float32(i%5)
					want[i] = referenceUpdate(o, want[i], float64(g[i]), &slots[i], step+1)
				}
				if err := n.Apply(state, gradient.Sum{Dense: g}, nil, int64(step)); err != nil {
					t.Fatal(err)
				}
			}
			for i, w := range want {
				if math.Abs(float64(state[i])-w) > 1e-5*(1+math.Abs(w)) {
					t.Fatalf("weight %d is %v, want %v", i, state[i], w)
				}
			}
		})
		t.Run(o.String()+": steps have one hash with any kernel, and training resumes from a state alone", func(t *testing.T) {
			m := small()
			m.Optimizer = o
			want := ""
			for _, set := range kernel.Available() {
				state, losses := train(t, m, set, 2, 6)
				if losses[5] >= losses[0] {
					t.Errorf("the loss went from %v to %v", losses[0], losses[5])
				}
				if want == "" {
					want = hash(state)
				}
				if hash(state) != want {
					t.Errorf("%s ends in state %s, %s in %s", set.Name, hash(state), kernel.Available()[0].Name, want)
				}
			}
		})
	}
}

func TestOptimizerRefusals(t *testing.T) {
	for name, o := range map[string]graph.Optimizer{
		"an unknown optimizer":      {Kind: "lamb", LearningRate: 1},
		"no learning rate":          {Kind: graph.SGD},
		"a NaN as momentum":         {Kind: graph.SGD, LearningRate: 1, Momentum: math.NaN()},
		"a beta of 1":               {Kind: graph.Adam, LearningRate: 1, Beta1: 1},
		"a negative accumulator":    {Kind: graph.AdaGrad, LearningRate: 1, Initial: -1},
		"an epsilon that is no one": {Kind: graph.RMSProp, LearningRate: 1, Epsilon: math.NaN()},
	} {
		t.Run(name+" is refused with a sentence", func(t *testing.T) {
			m := small()
			m.Optimizer = o
			n, err := nn.Compile(m, nn.Options{Kernel: kernel.Portable(), MaxBatch: 1})
			if err == nil {
				n.Close()
				t.Fatal("accepted")
			}
			t.Log(err)
		})
	}
	t.Run("a gradient whose square is infinite is refused and names the slot", func(t *testing.T) {
		m := small()
		m.Optimizer = graph.Optimizer{Kind: graph.Adam, LearningRate: 0.1, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-7}
		n := compile(t, m, kernel.Portable(), 1, 1)
		state, g := make([]float32, n.StateSize()), make([]float32, n.TrainableSize())
		n.Init(state, 1)
		g[3] = 1e30
		if err := n.Apply(state, gradient.Sum{Dense: g}, nil, 12); !errors.Is(err, nn.ErrNotFinite) || !strings.Contains(err.Error(), "v of weight 3") {
			t.Error(err)
		}
	})
}

func TestTheStateHoldsTheOptimizersSlots(t *testing.T) {
	for _, o := range testOptimizers {
		t.Run(o.String(), func(t *testing.T) {
			m := small()
			m.Optimizer = o
			n := compile(t, m, kernel.Portable(), 1, 1)
			slots := map[graph.OptimizerKind]int{graph.SGD: 0, graph.Adam: 2, graph.AdaGrad: 1, graph.RMSProp: 1, graph.AdaMax: 2}[o.Kind]
			if o.Momentum > 0 {
				slots++
			}
			if want := n.TrainableSize()*(1+slots) + n.StatsSize(); n.StateSize() != want {
				t.Errorf("a state of %d floats, %d slots make %d", n.StateSize(), slots, want)
			}
			state := make([]float32, n.StateSize())
			n.Init(state, 1)
			for i, v := range state[n.TrainableSize()+n.StatsSize():] {
				if v != float32(o.Initial) {
					t.Fatalf("slot element %d begins as %v", i, v)
				}
			}
		})
	}
}

func TestPower(t *testing.T) {
	for _, x := range []float64{0.9, 0.999, 0.5, 0} {
		for _, n := range []int64{0, 1, 2, 3, 10, 1000, 1 << 20} {
			t.Run(fmt.Sprintf("%v to the power of %d", x, n), func(t *testing.T) {
				if got, want := kernel.Power(x, n), math.Pow(x, float64(n)); math.Abs(got-want) > 1e-13*want {
					t.Errorf("%v, want %v", got, want)
				}
			})
		}
	}
}
