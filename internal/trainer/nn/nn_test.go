package nn_test

import (
	"math"
	"testing"

	"go.uber.org/goleak"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/graph"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/kernel"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/nn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func compile(t testing.TB, m *graph.Model, set kernel.Set, threads, maxBatch int) *nn.Network {
	t.Helper()
	n, err := nn.Compile(m, nn.Options{Kernel: set, Threads: threads, MaxBatch: maxBatch})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	return n
}

// small holds every operation, with channels that fill no vector.
func small() *graph.Model {
	return model(11, 9).reshape(11, 9, 1).conv(5, 3, 2).relu().conv(19, 2, 3).relu().
		batchNorm().maxPool(2, 2).dropout(0.25).flatten().dense(17).batchNorm().relu().dropout(0.5).dense(7).build()
}

var testModels = map[string]func() *graph.Model{
	"all operations": small,
	"a convolution without ReLU before pooling, with rows that no window takes": func() *graph.Model {
		return model(8, 8, 2).batchNorm().conv(8, 3, 3).maxPool(2, 3).relu().flatten().dense(4).build()
	},
	"wide and narrow dense layers only": func() *graph.Model {
		return model(13).dense(33).relu().dropout(0.1).dense(16).relu().dense(5).build()
	},
	"dropout and ReLU of the input itself": func() *graph.Model {
		return model(6, 6, 3).dropout(0.3).relu().conv(4, 1, 1).relu().dropout(0.2).conv(4, 2, 2).batchNorm().relu().flatten().dense(3).build()
	},
}

func TestGradient(t *testing.T) {
	for name, build := range testModels {
		t.Run(name+": gradient, loss and statistics are those of the float64 reference", func(t *testing.T) {
			m := build()
			n := compile(t, m, kernel.Portable(), 1, 17)
			state := randomState(n)
			for _, records := range []int{1, 2, 9, 17} {
				compareWithReference(t, m, n, state, batch(m, records, uint64(records)))
			}
		})
	}
}

// randomState is Init, with biases, gammas and betas that are not 0 and 1.
func randomState(n *nn.Network) []float32 {
	state := make([]float32, n.StateSize())
	n.Init(state, 3)
	for _, p := range n.Params() {
		if len(p.Shape) == 1 {
			for i := range p.Size {
				state[p.Offset+i] += 0.2 + 0.3*float32(math.Sin(float64(i+p.Offset)))
			}
		}
	}
	return state
}

func compareWithReference(t *testing.T, m *graph.Model, n *nn.Network, state []float32, b *graph.Batch) {
	t.Helper()
	const stepRecords, step, worker, seed = 40, 1234, 3, 77
	out := make([]float32, n.StateSize())
	got, err := n.Gradient(state, b, stepRecords, step, worker, seed, out)
	if err != nil {
		t.Fatal(err)
	}
	ref := newReference(m, n.Export(state))
	ref.seed, ref.step, ref.worker = seed, step, worker
	ref.run(b, 1.0/stepRecords)
	if math.Abs(got.LossSum-ref.loss) > 1e-5*(1+math.Abs(ref.loss)) || got.Correct != ref.correct || got.Records != b.N {
		t.Errorf("%d records: result %+v, reference: loss %v, correct %d", b.N, got, ref.loss, ref.correct)
	}
	for _, g := range n.Export(out) {
		want := ref.grads[g.Name]
		if want == nil {
			want = ref.stats[g.Name]
		}
		if len(want) != len(g.Data) {
			t.Fatalf("%s: %d values, reference has %d", g.Name, len(g.Data), len(want))
		}
		if e, norm := distance(g.Data, want); e > 2e-5*norm+1e-6 {
			t.Errorf("%d records: %s differs from the reference by %.2g, its norm is %.2g", b.N, g.Name, e, norm)
		}
	}
	evaluated, err := n.Evaluate(state, b)
	if err != nil {
		t.Fatal(err)
	}
	ref.infer = true
	ref.run(b, 0)
	if math.Abs(evaluated.LossSum-ref.loss) > 1e-5*(1+math.Abs(ref.loss)) || evaluated.Correct != ref.correct {
		t.Errorf("%d records: evaluation %+v, reference: loss %v, correct %d", b.N, evaluated, ref.loss, ref.correct)
	}
}

func distance(got []float32, want []float64) (distance, norm float64) {
	for i, w := range want {
		d := float64(got[i]) - w
		distance += d * d
		norm += w * w
	}
	return math.Sqrt(distance), math.Sqrt(norm)
}

func TestMNISTSize(t *testing.T) {
	n := compile(t, mnist(), kernel.Portable(), 1, 10)
	if n.TrainableSize() != 111_114 || n.StatsSize() != 128 {
		t.Errorf("%d trainable parameters and %d statistics, the tutorial's network has 111,114 and 128", n.TrainableSize(), n.StatsSize())
	}
}

func BenchmarkGradient(b *testing.B) {
	for _, set := range kernel.Available() {
		for _, records := range []int{10, 64} {
			b.Run(set.Name+"/batch="+map[int]string{10: "10", 64: "64"}[records], func(b *testing.B) {
				m := mnist()
				n := compile(b, m, set, 1, records)
				state, out := make([]float32, n.StateSize()), make([]float32, n.StateSize())
				n.Init(state, 1)
				data := batch(m, records, 1)
				step := int64(0)
				for b.Loop() {
					if _, err := n.Gradient(state, data, records, step, 0, 1, out); err != nil {
						b.Fatal(err)
					}
					if err := n.Apply(state, out[:n.TrainableSize()], nil, step); err != nil {
						b.Fatal(err)
					}
					step++
				}
				b.ReportMetric(float64(records)*float64(b.N)/b.Elapsed().Seconds(), "records/s")
			})
		}
	}
}
