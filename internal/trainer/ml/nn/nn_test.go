package nn_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/gradient"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/kernel"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/nn"
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
	"BatchNorm with pooling that tiles the image, behind a convolution, behind pooling and of the input": func() *graph.Model {
		return model(12, 12, 3).batchNorm().maxPool(1, 2).conv(9, 1, 1).batchNorm().maxPool(2, 3).maxPool(2, 1).batchNorm().maxPool(3, 2).flatten().dense(4).build()
	},
	"convolutions with strides, with a border, and with both": func() *graph.Model {
		return model(11, 10, 2).convWith(6, 3, 3, 1, 1, "same").relu().convWith(5, 3, 2, 2, 1, "valid").batchNorm().relu().
			convWith(7, 3, 3, 2, 3, "same").relu().convWith(9, 1, 1, 2, 2, "valid").convWith(18, 2, 4, 1, 1, "same").batchNorm().flatten().dense(4).build()
	},
	"activations, each behind a ReLU and before one, in rows of an image and flat": func() *graph.Model {
		return model(5, 4, 3).conv(6, 2, 2).relu().activation(graph.Softmax).relu().conv(5, 1, 1).activation(graph.Tanh).relu().batchNorm().
			activation(graph.Sigmoid).dropout(0.2).relu().flatten().dense(8).activation(graph.Tanh).dense(7).activation(graph.Softmax).dense(5).
			activation(graph.Sigmoid).build()
	},
	"leaky ReLUs behind a convolution, BatchNorm, dropout and each other, one of a value that is taken twice": func() *graph.Model {
		b := model(6, 5, 2).conv(7, 2, 2).leakyReLU(0.3).conv(18, 1, 1).batchNorm().leakyReLU(0.01).dropout(0.2).leakyReLU(0.5)
		x := b.head
		return b.leakyReLU(0).merge(graph.Add, x).relu().flatten().dense(9).leakyReLU(0.2).dense(5).build()
	},
	"averages of windows that tile, overlap and leave gaps, and of the whole image": func() *graph.Model {
		return model(13, 12, 3).averagePool(2, 3, 2, 2).conv(7, 2, 2).averagePool(2, 1, 1, 1).relu().conv(18, 1, 1).averagePool(1, 2, 2, 3).globalAveragePool().dense(4).build()
	},
	"pooling of windows that overlap and that reach beyond the image, behind a convolution, BatchNorm and each other": func() *graph.Model {
		return model(11, 9, 3).conv(9, 2, 2).maxPoolWith(3, 2, 2, 1, "").batchNorm().maxPoolWith(3, 3, 1, 2, "same").averagePoolWith(3, 2, 2, 1, "same").relu().
			maxPoolWith(2, 3, 2, 3, "same").conv(18, 1, 1).averagePoolWith(2, 2, 1, 1, "same").flatten().dense(4).build()
	},
	"residual blocks with BatchNorm on both ways, and pooling behind a value that is taken twice": func() *graph.Model {
		b := model(10, 8, 3).conv(6, 3, 3).batchNorm().relu()
		start := b.head
		b.convWith(9, 3, 3, 2, 2, "same").batchNorm().relu().convWith(9, 3, 3, 1, 1, "same").batchNorm()
		left := b.head
		b.at(start).convWith(9, 1, 1, 2, 2, "valid").batchNorm().merge(graph.Add, left).relu()
		start = b.head
		b.maxPool(2, 1)
		left = b.head
		return b.at(start).averagePool(2, 1, 2, 1).merge(graph.Add, left, left).dropout(0.2).flatten().dense(5).build()
	},
	"products and concatenations of values that go three ways, one of them the input": func() *graph.Model {
		b := model(6, 5, 4)
		b.conv(4, 1, 1).relu()
		x := b.head
		b.activation(graph.Sigmoid)
		gate := b.head
		b.at(x).merge(graph.Multiply, gate, 0)
		product := b.head
		b.at(x).dropout(0.3).relu().merge(graph.Concatenate, product, 0, x).batchNorm().conv(3, 2, 2).reshape(60).relu()
		flat := b.head
		b.dense(60).activation(graph.Tanh).merge(graph.Add, flat).dense(20).dropout(0.1)
		return b.merge(graph.Multiply, b.head).dense(6).build()
	},
	"a logit for each record": func() *graph.Model {
		return model(5, 5, 2).conv(4, 2, 2).relu().flatten().dense(9).activation(graph.Tanh).dense(1).loss(graph.SigmoidCrossEntropy).build()
	},
	"a number for each record": func() *graph.Model {
		return model(11).dense(20).relu().dense(1).loss(graph.MeanSquaredError).build()
	},
	"wide and narrow dense layers only": func() *graph.Model {
		return model(13).dense(33).relu().dropout(0.1).dense(16).relu().dense(5).build()
	},
	"rows of three tables, two of them for one input, beside numbers": func() *graph.Model {
		b := model(4).ids(3)
		ids := b.head
		b.embedding(9, 5)
		rows := b.head
		b.flatten().dense(16).relu()
		deep := b.head
		b.at(ids).embedding(7, 1).reduceSum(0, 2, true).reshape(1)
		linear := b.head
		b.ids(1).embedding(40, 17).flatten().merge(graph.Concatenate, deep, 0)
		b.dropout(0.1).dense(1)
		b.merge(graph.Add, linear)
		first := b.head
		// A factorization machine's pairs: half of (the square of the sum − the sum of the squares).
		b.at(rows).reduceSum(0, 1, false)
		b.merge(graph.Multiply, b.head)
		squared := b.head
		b.at(rows).merge(graph.Multiply, rows).reduceSum(0, 1, false)
		squares := b.head
		b.at(squared).merge(graph.Subtract, squares).scale(0.5).reduceSum(0, 1, true)
		return b.merge(graph.Add, first).loss(graph.SigmoidCrossEntropy).build()
	},
	"values that are repeated along an axis": func() *graph.Model {
		b := model(4, 3)
		x := b.head
		weights := b.reduceSum(1, 1, true).broadcast(3).head
		b.at(x).merge(graph.Multiply, weights)
		weighted := b.flatten().head
		b.at(weights).flatten().dense(1).broadcast(12)
		return b.merge(graph.Subtract, weighted).dense(3).build()
	},
	"sums of axes before, between and behind others, and differences and multiples of values that a ReLU has made": func() *graph.Model {
		b := model(4, 3, 5).conv(6, 1, 1).relu().scale(-1.5)
		x := b.head
		b.reduceSum(1, 1, true)
		rows := b.head
		b.at(x).reduceSum(0, 2, false)
		all := b.head
		b.at(rows).reduceSum(0, 2, false).merge(graph.Subtract, all).scale(0.25)
		sums := b.head
		b.at(x).reduceSum(2, 1, false).flatten().merge(graph.Concatenate, sums)
		return b.dense(5).build()
	},
	"nothing but a table": func() *graph.Model {
		b := &modelBuilder{names: map[string]int{}, m: graph.Model{Name: "test", Loss: graph.MeanSquaredError, Optimizer: graph.Optimizer{Kind: graph.SGD, LearningRate: 0.01}}}
		b.m.Nodes = []graph.Node{{Op: graph.Input, Name: "ids", Shape: []int{2}, Integer: true}}
		return b.embedding(6, 1).reduceSum(0, 2, true).reshape(1).build()
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

// Without layers that look at the whole minibatch it makes no difference but rounding how many virtual workers there
// are.
func TestTheGradientsOfAStepsPartsAddUpToThatOfOneMinibatchAsLargeAsAll(t *testing.T) {
	m := model(9, 8, 2).conv(6, 3, 3).relu().maxPool(2, 2).flatten().dense(18).relu().dense(5).build()
	const parts, size = 4, 5
	n := compile(t, m, kernel.Portable(), 1, parts*size)
	state, whole := randomState(n), batch(m, parts*size, 7)
	want := gradientBuffer(n)
	result, err := n.Gradient(state, whole, parts*size, 3, 0, 1, want, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, loss := make([]float64, len(want)), 0.0
	record := len(whole.Inputs[0]) / whole.N
	for v := range parts {
		lo, hi := v*size, (v+1)*size
		part := &graph.Batch{N: size, Inputs: [][]float32{whole.Inputs[0][lo*record : hi*record]}, Labels: whole.Labels[lo:hi]}
		out := gradientBuffer(n)
		r, err := n.Gradient(state, part, parts*size, 3, v, 1, out, nil)
		if err != nil {
			t.Fatal(err)
		}
		loss += r.LossSum
		for i, g := range out {
			got[i] += float64(g)
		}
	}
	if math.Abs(loss-result.LossSum) > 1e-5*result.LossSum {
		t.Errorf("losses add up to %v, the whole has %v", loss, result.LossSum)
	}
	for i := range got {
		if math.Abs(got[i]-float64(want[i])) > 1e-5*(0.01+math.Abs(float64(want[i]))) {
			t.Fatalf("element %d adds up to %v, the whole has %v", i, got[i], want[i])
		}
	}
}

func TestMNISTGradient(t *testing.T) {
	for _, set := range kernel.Available() {
		t.Run("the tutorial's network with "+set.Name+" has the reference's gradient", func(t *testing.T) {
			m := mnist()
			n := compile(t, m, set, 2, 3)
			compareWithReference(t, m, n, randomState(n), batch(m, 3, 4))
		})
	}
}

func TestCIFAR10(t *testing.T) {
	m, b := cifar10(), batch(cifar10(), 2, 4)
	want := ""
	for _, set := range kernel.Available() {
		t.Run("ElasticDL's CIFAR-10 network with "+set.Name+" has the reference's gradient, to the same bit", func(t *testing.T) {
			n := compile(t, m, set, 2, 2)
			state, out := randomState(n), gradientBuffer(n)
			if want == "" {
				compareWithReference(t, m, n, state, b)
			}
			if _, err := n.Gradient(state, b, 2, 7, 1, 3, out, nil); err != nil {
				t.Fatal(err)
			}
			if want == "" {
				want = hash(out)
			}
			if hash(out) != want {
				t.Errorf("gradient %s, with %s %s", hash(out), kernel.Available()[0].Name, want)
			}
		})
	}
}

// gradientBuffer is what Gradient fills.
func gradientBuffer(n *nn.Network) []float32 { return make([]float32, n.TrainableSize()+n.StatsSize()) }

// rowsBuffer is what else Gradient fills.
func rowsBuffer(n *nn.Network) []gradient.Rows { return make([]gradient.Rows, len(n.Tables())) }

// scattered is a gradient in the layout of a state: rows in their tables, and zeros elsewhere.
func scattered(n *nn.Network, out []float32, rows []gradient.Rows) []float32 {
	state := make([]float32, n.StateSize())
	copy(state, out)
	for i, t := range n.Tables() {
		for k, row := range rows[i].Index {
			copy(state[t.Offset+int(row)*t.Width:], rows[i].Values[k*t.Width:][:t.Width])
		}
	}
	return state
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
	out, rows := gradientBuffer(n), rowsBuffer(n)
	got, err := n.Gradient(state, b, stepRecords, step, worker, seed, out, rows)
	if err != nil {
		t.Fatal(err)
	}
	ref := newReference(m, n.Export(state))
	ref.seed, ref.step, ref.worker = seed, step, worker
	ref.run(b, 1.0/stepRecords)
	if math.Abs(got.LossSum-ref.loss) > 1e-5*(1+math.Abs(ref.loss)) || got.Counts[0] != ref.correct || got.Records != b.N {
		t.Errorf("%d records: result %+v, reference: loss %v, correct %d", b.N, got, ref.loss, ref.correct)
	}
	total := 0.0 // a bias before BatchNorm has a gradient of rounding errors of this
	for _, w := range ref.grads {
		for _, v := range w {
			total += v * v
		}
	}
	for _, g := range n.Export(scattered(n, out, rows)) {
		want := ref.grads[g.Name]
		if want == nil {
			want = ref.stats[g.Name]
		}
		if len(want) != len(g.Data) {
			t.Fatalf("%s: %d values, reference has %d", g.Name, len(g.Data), len(want))
		}
		if e, norm := distance(g.Data, want); e > 2e-5*norm+1e-6*(1+math.Sqrt(total)) {
			t.Errorf("%d records: %s differs from the reference by %.2g, its norm is %.2g", b.N, g.Name, e, norm)
		}
	}
	evaluated, err := n.Evaluate(state, b)
	if err != nil {
		t.Fatal(err)
	}
	ref.infer = true
	ref.run(b, 0)
	if math.Abs(evaluated.LossSum-ref.loss) > 1e-5*(1+math.Abs(ref.loss)) || evaluated.Counts[0] != ref.correct {
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

func TestFiniteDifferences(t *testing.T) {
	// The reference's loss is smooth but for kinks at ReLU and pooling, so steps are tiny and in float64. This proves the
	// reference, which the networks are compared with.
	for name, build := range testModels {
		t.Run(name+": the reference's gradient is the slope of its loss", func(t *testing.T) {
			m := build()
			n := compile(t, m, kernel.Portable(), 1, 3)
			b := batch(m, 3, 9)
			ref := newReference(m, n.Export(randomState(n)))
			ref.run(b, 1)
			grads := ref.grads
			const h = 1e-6
			for _, p := range n.Params() {
				if !p.Trainable {
					continue
				}
				values := ref.params[p.Name]
				for i := 0; i < len(values); i += 1 + len(values)/13 {
					kept := values[i]
					values[i] = kept + h
					ref.run(b, 1)
					up := ref.loss
					values[i] = kept - h
					ref.run(b, 1)
					down := ref.loss
					values[i] = kept
					if slope := (up - down) / (2 * h); math.Abs(slope-grads[p.Name][i]) > 1e-6*(1+math.Abs(slope)) {
						t.Errorf("%s[%d]: slope %v, gradient %v", p.Name, i, slope, grads[p.Name][i])
					}
				}
			}
		})
	}
}

func TestInit(t *testing.T) {
	n := compile(t, mnist(), kernel.Portable(), 1, 1)
	state, again, other := make([]float32, n.StateSize()), make([]float32, n.StateSize()), make([]float32, n.StateSize())
	n.Init(state, 1)
	n.Init(again, 1)
	n.Init(other, 2)
	t.Run("the seed decides all", func(t *testing.T) {
		if hash(state) != hash(again) || hash(state) == hash(other) {
			t.Error(hash(state), hash(again), hash(other))
		}
	})
	for _, v := range n.Export(state) {
		t.Run(v.Name+" begins as in Keras", func(t *testing.T) {
			sum, squares, largest := 0.0, 0.0, 0.0
			for _, x := range v.Data {
				sum += float64(x)
				squares += float64(x) * float64(x)
				largest = max(largest, math.Abs(float64(x)))
			}
			size := float64(len(v.Data))
			switch v.Name {
			case "conv2d/kernel", "conv2d_1/kernel", "dense/kernel":
				limit := map[string]float64{
					"conv2d/kernel": math.Sqrt(6.0 / (9 + 9*32)), "conv2d_1/kernel": math.Sqrt(6.0 / (9*32 + 9*64)), "dense/kernel": math.Sqrt(6.0 / 9226),
				}[v.Name]
				if largest > limit*1.000001 || largest < limit*0.95 || math.Abs(sum/size) > 4*limit/math.Sqrt(3*size) || math.Abs(squares/size/(limit*limit/3)-1) > 0.2 {
					t.Errorf("largest %v, mean %v, mean square %v for a limit of %v", largest, sum/size, squares/size, limit)
				}
			case "batch_normalization/gamma", "batch_normalization/moving_variance":
				if sum != size || squares != size {
					t.Errorf("sum %v, not %v ones", sum, size)
				}
			default:
				if largest != 0 {
					t.Errorf("not zero: %v", largest)
				}
			}
		})
	}
}

func TestExport(t *testing.T) {
	n := compile(t, small(), kernel.Portable(), 1, 1)
	state := randomState(n)
	t.Run("what was exported imports as the same state", func(t *testing.T) {
		back := make([]float32, len(state))
		if err := n.Import(back, n.Export(state)); err != nil {
			t.Fatal(err)
		}
		if hash(back) != hash(state) {
			t.Error("the states differ")
		}
	})
	t.Run("a snapshot restores every float of the state, whatever the optimizer keeps", func(t *testing.T) {
		for _, o := range testOptimizers {
			m := small()
			m.Optimizer = o
			n := compile(t, m, kernel.Portable(), 1, 1)
			state := make([]float32, n.StateSize())
			for i := range state {
				state[i] = float32(1 + i)
			}
			back := make([]float32, len(state))
			if err := n.Restore(back, n.Snapshot(state)); err != nil {
				t.Fatal(err)
			}
			if hash(back) != hash(state) {
				t.Errorf("%s: the states differ: what a checkpoint lacks, a run that continues from it lacks too", o)
			}
		}
	})
	t.Run("a narrow dense kernel is exported as Keras shapes it", func(t *testing.T) {
		for i, p := range n.Params() {
			if !p.Transposed {
				continue
			}
			data := n.Export(state)[i].Data
			in, out := p.Shape[0], p.Shape[1]
			for k := range data {
				if data[k] != state[p.Offset+k%out*in+k/out] {
					t.Fatalf("%s: element %d", p.Name, k)
				}
			}
		}
	})
	t.Run("tensors of another model are refused by name", func(t *testing.T) {
		tensors := n.Export(state)
		if err := n.Import(state, tensors[1:]); err == nil {
			t.Error("a missing tensor was not missed")
		} else {
			t.Log(err)
		}
		tensors[2].Shape = []int{1}
		if err := n.Import(state, tensors); err == nil {
			t.Error("a shape of another model was accepted")
		} else {
			t.Log(err)
		}
	})
}

func TestLayersAreListedWithTheirParametersAndTheFormOfTheirProducts(t *testing.T) {
	n := compile(t, mnist(), kernel.Portable(), 1, 1)
	total, moving, forms := 0, 0, map[string]string{}
	for _, l := range n.Layers() {
		total += l.Params
		moving += l.NonTrainable
		forms[l.Name] = l.Form
	}
	if total != 111_242 || moving != 128 || forms["dense"] != "16 lanes" || forms["conv2d"] != "fma chain" {
		t.Error(total, moving, forms)
	}
}

func TestRefusals(t *testing.T) {
	for name, change := range map[string]func(m *graph.Model){
		"an unknown padding":               func(m *graph.Model) { m.Nodes[2].Conv2D.Padding = "causal" },
		"a stride of nothing":              func(m *graph.Model) { m.Nodes[2].Conv2D.StrideW = 0 },
		"a pooling's padding that is none": func(m *graph.Model) { m.Nodes[7].MaxPool.Padding = "full" },
		"an unknown operation":             func(m *graph.Model) { m.Nodes[3].Op = "selu" },
		"a wrong shape":                    func(m *graph.Model) { m.Nodes[4].Shape = []int{1, 2, 3} },
		"two inputs of a layer":            func(m *graph.Model) { m.Nodes[5].Inputs = []int{3, 4} },
		"one input of a sum":               func(m *graph.Model) { m.Nodes[3].Op = graph.Add },
		"a sum of unequal shapes":          func(m *graph.Model) { m.Nodes[3].Op, m.Nodes[3].Inputs = graph.Add, []int{1, 2} },
		"a layer before its input":         func(m *graph.Model) { m.Nodes[3].Inputs = []int{3} },
		"an unknown loss":                  func(m *graph.Model) { m.Loss = "hinge" },
		"a logit for each class":           func(m *graph.Model) { m.Loss = graph.SigmoidCrossEntropy },
		"an output with an image":          func(m *graph.Model) { m.Output = 7 },
		"missing attributes":               func(m *graph.Model) { m.Nodes[8].Dropout = nil },
		"an impossible drop rate":          func(m *graph.Model) { m.Nodes[8].Dropout.Rate = 1 },
		"a reshape to another size":        func(m *graph.Model) { m.Nodes[1].Shape = []int{11, 9, 2} },
	} {
		t.Run(name+" is refused with a sentence", func(t *testing.T) {
			m := small()
			change(m)
			n, err := nn.Compile(m, nn.Options{Kernel: kernel.Portable(), MaxBatch: 1})
			if err == nil {
				n.Close()
				t.Fatal("accepted")
			}
			t.Log(err)
		})
	}
	n := compile(t, small(), kernel.Portable(), 1, 4)
	state, out := randomState(n), gradientBuffer(n)
	for name, change := range map[string]func(b *graph.Batch){
		"a minibatch larger than the network": func(b *graph.Batch) { *b = *batch(small(), 5, 1) },
		"an empty minibatch":                  func(b *graph.Batch) { b.N = 0 },
		"a label outside the classes":         func(b *graph.Batch) { b.Labels[1] = 7 },
		"a short input":                       func(b *graph.Batch) { b.Inputs[0] = b.Inputs[0][1:] },
	} {
		t.Run(name+" is refused with a sentence", func(t *testing.T) {
			b := batch(small(), 3, 1)
			change(b)
			if _, err := n.Gradient(state, b, 100, 0, 0, 1, out, nil); err == nil {
				t.Fatal("accepted")
			} else {
				t.Log(err)
			}
		})
	}
	for name, c := range map[string]struct {
		loss   graph.LossKind
		change func(b *graph.Batch)
	}{
		"a label that is neither 0 nor 1, for the sigmoid's loss": {graph.SigmoidCrossEntropy, func(b *graph.Batch) { b.Labels[1] = 2 }},
		"a target above 1, for the sigmoid's loss":                {graph.SigmoidCrossEntropy, func(b *graph.Batch) { b.Labels, b.Targets = nil, []float32{0, 1.5, 1} }},
		"labels and targets":                                      {graph.MeanSquaredError, func(b *graph.Batch) { b.Labels = []int32{1, 2, 3} }},
		"targets for classes":                                     {graph.SparseSoftmaxCrossEntropy, func(b *graph.Batch) { b.Labels, b.Targets = nil, []float32{0, 1, 1} }},
	} {
		t.Run(name+" is refused with a sentence", func(t *testing.T) {
			m := model(4).dense(1).loss(c.loss).build()
			n := compile(t, m, kernel.Portable(), 1, 3)
			b := batch(m, 3, 1)
			c.change(b)
			if _, err := n.Gradient(make([]float32, n.StateSize()), b, 3, 0, 0, 1, gradientBuffer(n), nil); err == nil {
				t.Fatal("accepted")
			} else {
				t.Log(err)
			}
		})
	}
	t.Run("a NaN of the input ends in an error that names step and virtual worker", func(t *testing.T) {
		b := batch(small(), 3, 1)
		b.Inputs[0][5] = float32(math.NaN())
		_, err := n.Gradient(state, b, 3, 12, 1, 1, out, nil)
		if !errors.Is(err, nn.ErrNotFinite) || !strings.Contains(err.Error(), "step 12, virtual worker 1") {
			t.Error(err)
		}
	})
	t.Run("an infinite gradient's update is refused and names the variable", func(t *testing.T) {
		grad := make([]float32, n.TrainableSize())
		grad[0] = float32(math.Inf(1))
		if err := n.Apply(append([]float32(nil), state...), gradient.Sum{Dense: grad}, nil, 12); !errors.Is(err, nn.ErrNotFinite) || !strings.Contains(err.Error(), "conv2d/kernel") {
			t.Error(err)
		}
	})
}
