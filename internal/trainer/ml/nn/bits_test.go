package nn_test

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/gradient"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/kernel"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/nn"
)

func hash(x []float32) string {
	h := sha256.New()
	if err := binary.Write(h, binary.LittleEndian, x); err != nil {
		panic(err)
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:12])
}

func TestEqualBits(t *testing.T) {
	for name, build := range testModels {
		t.Run(name+": a gradient has the same bits with any kernel and number of threads", func(t *testing.T) {
			m := build()
			type variant struct {
				name string
				n    *nn.Network
			}
			var variants []variant
			for _, set := range kernel.Available() {
				for threads := 1; threads <= 3; threads++ {
					variants = append(variants, variant{fmt.Sprintf("%s, %d threads", set.Name, threads), compile(t, m, set, threads, 17)})
				}
			}
			state := randomState(variants[0].n)
			out, rows := gradientBuffer(variants[0].n), rowsBuffer(variants[0].n)
			for records := 1; records <= 17; records++ {
				b := batch(m, records, uint64(records))
				var want nn.Result
				var wantHash string
				for _, v := range variants {
					got, err := v.n.Gradient(state, b, 20, int64(1000*records), 1, 7, out, rows)
					if err != nil {
						t.Fatal(err)
					}
					bits := hash(scattered(v.n, out, rows))
					if wantHash == "" {
						want, wantHash = got.Clone(), bits
					}
					if !reflect.DeepEqual(got, want) || bits != wantHash {
						t.Fatalf("%d records: %s: result %+v, gradient %s; %s: %+v, %s", records, v.name, got, bits, variants[0].name, want, wantHash)
					}
				}
			}
		})
	}
}

func TestShapes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := func(name string, from, to int) int { return rapid.IntRange(from, to).Draw(t, name) }
		b := model(size("height", 4, 9), size("width", 4, 9), size("channels", 1, 20))
		if rapid.Bool().Draw(t, "first convolution") {
			b.conv(size("first filters", 1, 20), size("first kernel height", 1, 2), size("first kernel width", 1, 2)).relu()
		}
		padding := rapid.SampledFrom([]string{"valid", "same"}).Draw(t, "padding")
		b.convWith(size("filters", 1, 40), size("kernel height", 1, 3), size("kernel width", 1, 3), size("rows to the next", 1, 3), size("columns to the next", 1, 3), padding)
		if rapid.Bool().Draw(t, "ReLU") {
			b.relu()
		}
		if rapid.Bool().Draw(t, "BatchNorm") {
			b.batchNorm()
		}
		m := b.flatten().dense(size("units", 2, 40)).build()
		data := batch(m, size("records", 1, 12), 5)
		var want string
		for _, set := range kernel.Available() {
			n, err := nn.Compile(m, nn.Options{Kernel: set, Threads: size("threads", 1, 2), MaxBatch: data.N})
			if err != nil {
				t.Fatal(err)
			}
			state, out := randomState(n), gradientBuffer(n)
			_, err = n.Gradient(state, data, data.N, 0, 0, 1, out, nil)
			n.Close()
			if err != nil {
				t.Fatal(err)
			}
			if want == "" {
				want = hash(out)
				ref := newReference(m, n.Export(state))
				ref.run(data, 1/float64(data.N))
				total := 0.0 // a bias before BatchNorm has a gradient of rounding errors of this
				for _, w := range ref.grads {
					for _, v := range w {
						total += v * v
					}
				}
				for _, g := range n.Export(out) {
					if w, ok := ref.grads[g.Name]; ok {
						if e, norm := distance(g.Data, w); e > 1e-4*norm+1e-5*math.Sqrt(total) {
							t.Fatalf("%s differs from the reference by %.2g, its norm is %.2g", g.Name, e, norm)
						}
					}
				}
			}
			if hash(out) != want {
				t.Fatalf("%s has other bits", set.Name)
			}
		}
	})
}

// train does steps of K = 2 virtual workers with 5 records each.
func train(t testing.TB, m *graph.Model, set kernel.Set, threads, steps int) (state []float32, losses []float64) {
	n := compile(t, m, set, threads, 5)
	state = make([]float32, n.StateSize())
	n.Init(state, 1)
	var outs [2][]float32
	var sums [2]gradient.Sum
	for v := range outs {
		outs[v] = gradientBuffer(n)
		sums[v] = gradient.Sum{Dense: outs[v][:n.TrainableSize()], Rows: rowsBuffer(n)}
	}
	for step := range int64(steps) {
		loss := 0.0
		var stats [][]float32
		for v := range outs {
			r, err := n.Gradient(state, batch(m, 5, uint64(step%3)*2+uint64(v)), 10, step, v, 1, outs[v], sums[v].Rows)
			if err != nil {
				t.Fatal(err)
			}
			loss += r.LossSum / 10
			stats = append(stats, outs[v][n.TrainableSize():])
		}
		sums[0].Add(sums[1], set.Add)
		if err := n.Apply(state, sums[0], stats, step); err != nil {
			t.Fatal(err)
		}
		losses = append(losses, loss)
	}
	return state, losses
}

// mnistHash is the state of the tutorial's network after ten steps of train: it changes with NumericsVersion only.
const mnistHash = "a9124a79dc183f53488f8d85"

func TestMNISTSteps(t *testing.T) {
	for _, set := range kernel.Available() {
		for _, threads := range []int{1, 2} {
			if set.Name == "portable" && (threads > 1 || testing.Short()) {
				continue
			}
			t.Run(fmt.Sprintf("ten steps of the tutorial's network with %s and %d threads end in the known state", set.Name, threads), func(t *testing.T) {
				state, losses := train(t, mnist(), set, threads, 10)
				if got := hash(state); got != mnistHash {
					t.Errorf("state %s, want %s", got, mnistHash)
				}
				if losses[9] > losses[0]/2 {
					t.Errorf("the loss went from %v to %v", losses[0], losses[9])
				}
			})
		}
	}
}

func TestNoAllocation(t *testing.T) {
	for name, build := range testModels {
		t.Run(name+": a step allocates nothing", func(t *testing.T) {
			m := build()
			m.Optimizer = graph.Optimizer{Kind: graph.Adam, LearningRate: 0.001, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-7}
			for _, set := range kernel.Available() {
				n := compile(t, m, set, 2, 5)
				state, out := make([]float32, n.StateSize()), gradientBuffer(n)
				n.Init(state, 1)
				b := batch(m, 5, 1)
				sum, stats := gradient.Sum{Dense: out[:n.TrainableSize()], Rows: rowsBuffer(n)}, [][]float32{out[n.TrainableSize():]}
				if allocations := testing.AllocsPerRun(20, func() {
					if _, err := n.Gradient(state, b, 5, 1, 0, 1, out, sum.Rows); err != nil {
						t.Fatal(err)
					}
					if err := n.Apply(state, sum, stats, 1); err != nil {
						t.Fatal(err)
					}
					if _, err := n.Evaluate(state, b); err != nil {
						t.Fatal(err)
					}
				}); allocations != 0 {
					t.Errorf("%s: %v allocations per step", set.Name, allocations)
				}
			}
		})
	}
}

func TestApply(t *testing.T) {
	t.Run("moving statistics take one update per virtual worker, in order", func(t *testing.T) {
		n := compile(t, small(), kernel.Portable(), 1, 5)
		state := randomState(n)
		before := append([]float32(nil), state...)
		stats := make([][]float32, 3)
		for v := range stats {
			stats[v] = make([]float32, n.StatsSize())
			for i := range stats[v] {
				stats[v][i] = float32(v*100 + i)
			}
		}
		if err := n.Apply(state, gradient.Sum{Dense: make([]float32, n.TrainableSize())}, stats, 0); err != nil {
			t.Fatal(err)
		}
		for i := range n.StatsSize() {
			at := n.TrainableSize() + i
			want := before[at]
			for _, s := range stats {
				want += float32(0.01) * (s[i] - want)
			}
			if math.Abs(float64(state[at]-want)) > 1e-5*(1+math.Abs(float64(want))) {
				t.Fatalf("statistic %d is %v, want %v", i, state[at], want)
			}
		}
		for i := range n.TrainableSize() {
			if state[i] != before[i] {
				t.Fatalf("a gradient of zeros changed weight %d", i)
			}
		}
	})
	t.Run("weights move by the rate times the gradient", func(t *testing.T) {
		n := compile(t, small(), kernel.Portable(), 1, 5)
		state, grad := randomState(n), make([]float32, n.TrainableSize())
		for i := range grad {
			grad[i] = float32(i%7) - 3
		}
		before := append([]float32(nil), state...)
		if err := n.Apply(state, gradient.Sum{Dense: grad}, nil, 0); err != nil {
			t.Fatal(err)
		}
		for i, g := range grad {
			if want := before[i] - float32(float32(0.01)*g); state[i] != want {
				t.Fatalf("weight %d is %v, want %v", i, state[i], want)
			}
		}
	})
}
