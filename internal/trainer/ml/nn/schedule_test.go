package nn_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/gradient"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/kernel"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/nn"
)

// compiled is a model ready for minibatches, and its first state.
func compiled(t *testing.T, m *graph.Model, records int) (*nn.Network, []float32) {
	t.Helper()
	n, err := nn.Compile(m, nn.Options{Kernel: kernel.Portable(), MaxBatch: records})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	state := make([]float32, n.StateSize())
	n.Init(state, 1)
	return n, state
}

func gradientOf(t *testing.T, n *nn.Network, state []float32, b *graph.Batch, of int) []float32 {
	t.Helper()
	out := make([]float32, n.TrainableSize()+n.StatsSize())
	if _, err := n.Gradient(state, b, of, 0, 0, 1, out, make([]gradient.Rows, len(n.Tables()))); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestTheGradientOfASumOfLossesIsThatOfTheirMeanTimesTheMinibatchsRecords(t *testing.T) {
	mean := model(5).dense(1).loss(graph.SigmoidCrossEntropy).build()
	sum := *mean
	sum.SumOfLosses = true
	b := batch(mean, 4, 1)
	one, state := compiled(t, mean, 4)
	many, _ := compiled(t, &sum, 4)
	for _, step := range []int{4, 8} { // the minibatch is the whole step, or half of it
		want := gradientOf(t, one, state, b, step)
		for i, v := range gradientOf(t, many, state, b, step) {
			if math.Abs(float64(v-4*want[i])) > 1e-6 {
				t.Errorf("element %d of %d is %v; four times %v is wanted", i, step, v, want[i])
			}
		}
	}
}

func TestALearningRateFollowsItsSchedule(t *testing.T) {
	for name, o := range map[string]graph.Optimizer{
		"gradient descent": {Kind: graph.SGD, LearningRate: 0.5},
		"Adam":             {Kind: graph.Adam, LearningRate: 0.5, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-7},
	} {
		t.Run(name, func(t *testing.T) {
			rates := []float64{0.25, 0.125}
			scheduled := model(5).dense(3).build()
			scheduled.Optimizer = o
			scheduled.LearningRates = &graph.LearningRates{At: func(step int64) (float64, error) {
				if step >= int64(len(rates)) {
					return 0, errors.New("it ends here")
				}
				return rates[step], nil
			}}
			n, state := compiled(t, scheduled, 4)
			sum := gradient.Sum{Dense: gradientOf(t, n, state, batch(scheduled, 4, 1), 4)}
			for step, rate := range rates {
				constant := model(5).dense(3).build()
				constant.Optimizer = o
				constant.Optimizer.LearningRate = rate
				other, _ := compiled(t, constant, 4)
				want := slices.Clone(state)
				if err := errors.Join(other.Apply(want, sum, nil, int64(step)), n.Apply(state, sum, nil, int64(step))); err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(state, want) {
					t.Errorf("step %d with the rate %v: %v, want %v", step, rate, state, want)
				}
			}
			if err := n.Apply(state, sum, nil, 2); err == nil || !strings.Contains(err.Error(), "update of step 2: the schedule of the learning rate: it ends here") {
				t.Errorf("a schedule that fails: %v", err)
			}
		})
	}
}

func TestATableMayBeginWithATruncatedNormalDistribution(t *testing.T) {
	m := model(1).ids(1).embedding(500, 8).flatten().dense(2).build()
	for i := range m.Nodes {
		if m.Nodes[i].Op == graph.Embedding {
			m.Nodes[i].Embedding.Stddev = 0.25
		}
	}
	n, state := compiled(t, m, 1)
	for _, p := range n.Params() {
		if p.Name != "embedding/embeddings" {
			continue
		}
		squares, largest := 0.0, 0.0
		for _, v := range state[p.Offset:][:p.Size] {
			squares += float64(v) * float64(v)
			largest = max(largest, math.Abs(float64(v)))
		}
		if variance := squares / float64(p.Size) / (0.25 * 0.25); largest > 0.5001 || largest < 0.45 || math.Abs(variance-0.774) > 0.05 {
			t.Errorf("the largest value is %v, and the variance %v of that of the distribution that is cut off at two deviations", largest, variance)
		}
		return
	}
	t.Error("there is no table")
}
