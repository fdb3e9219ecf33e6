package nn_test

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
)

// modelBuilder builds layers the way a model file does, each behind the one before unless `at` says otherwise.
type modelBuilder struct {
	m     graph.Model
	names map[string]int
	head  int // the node that the next layer takes
}

func model(shape ...int) *modelBuilder {
	b := &modelBuilder{names: map[string]int{}}
	b.m = graph.Model{
		Name: "test", Loss: graph.SparseSoftmaxCrossEntropy,
		Optimizer: graph.Optimizer{Kind: graph.SGD, LearningRate: 0.01},
	}
	b.m.Nodes = []graph.Node{{Op: graph.Input, Name: "input", Shape: shape}}
	return b
}

func (b *modelBuilder) shape() []int { return b.m.Nodes[b.head].Shape }

// at continues from that node.
func (b *modelBuilder) at(node int) *modelBuilder {
	b.head = node
	return b
}

// merge makes one of the last node and others.
func (b *modelBuilder) merge(op graph.Op, others ...int) *modelBuilder {
	shape := slices.Clone(b.shape())
	for _, o := range others {
		if op == graph.Concatenate {
			other := b.m.Nodes[o].Shape
			shape[len(shape)-1] += other[len(other)-1]
		}
	}
	inputs := append([]int{b.head}, others...)
	b.add(string(op), graph.Node{Op: op, Shape: shape})
	b.m.Nodes[b.head].Inputs = inputs
	return b
}

func (b *modelBuilder) activation(op graph.Op) *modelBuilder {
	return b.add(string(op), graph.Node{Op: op, Shape: b.shape()})
}

func (b *modelBuilder) averagePool(h, w, sh, sw int) *modelBuilder {
	return b.averagePoolWith(h, w, sh, sw, "")
}

// poolWith is the shape behind windows with strides and padding.
func (b *modelBuilder) poolWith(h, w, sh, sw int, padding string) []int {
	s := b.shape()
	if padding == "same" {
		return []int{(s[0] + sh - 1) / sh, (s[1] + sw - 1) / sw, s[2]}
	}
	return []int{(s[0]-h)/sh + 1, (s[1]-w)/sw + 1, s[2]}
}

func (b *modelBuilder) maxPoolWith(h, w, sh, sw int, padding string) *modelBuilder {
	return b.add("max_pooling2d", graph.Node{Op: graph.MaxPool, Shape: b.poolWith(h, w, sh, sw, padding), MaxPool: &graph.MaxPoolAttrs{
		PoolH: h, PoolW: w, StrideH: sh, StrideW: sw, Padding: padding,
	}})
}

func (b *modelBuilder) averagePoolWith(h, w, sh, sw int, padding string) *modelBuilder {
	return b.add("average_pooling2d", graph.Node{Op: graph.AveragePool, Shape: b.poolWith(h, w, sh, sw, padding), AveragePool: &graph.AveragePoolAttrs{
		PoolH: h, PoolW: w, StrideH: sh, StrideW: sw, Padding: padding,
	}})
}

func (b *modelBuilder) globalAveragePool() *modelBuilder {
	return b.add("global_average_pooling2d", graph.Node{Op: graph.GlobalAveragePool, Shape: b.shape()[2:]})
}

func (b *modelBuilder) add(base string, n graph.Node) *modelBuilder {
	n.Name = base
	if k := b.names[base]; k > 0 {
		n.Name = fmt.Sprintf("%s_%d", base, k)
	}
	b.names[base]++
	n.Inputs = []int{b.head}
	n.Place.Line = len(b.m.Nodes) + 10
	b.m.Nodes = append(b.m.Nodes, n)
	b.head = len(b.m.Nodes) - 1
	b.m.Output = b.head
	return b
}

func (b *modelBuilder) reshape(shape ...int) *modelBuilder {
	return b.add("reshape", graph.Node{Op: graph.Reshape, Shape: shape})
}

func (b *modelBuilder) conv(filters, kh, kw int) *modelBuilder {
	s := b.shape()
	return b.add("conv2d", graph.Node{Op: graph.Conv2D, Shape: []int{s[0] - kh + 1, s[1] - kw + 1, filters}, Conv2D: &graph.Conv2DAttrs{
		Filters: filters, KernelH: kh, KernelW: kw, StrideH: 1, StrideW: 1, Padding: "valid", UseBias: true,
	}})
}

// convWith is a convolution with strides and padding.
func (b *modelBuilder) convWith(filters, kh, kw, sh, sw int, padding string) *modelBuilder {
	s := b.shape()
	h, w := (s[0]-kh)/sh+1, (s[1]-kw)/sw+1
	if padding == "same" {
		h, w = (s[0]+sh-1)/sh, (s[1]+sw-1)/sw
	}
	return b.add("conv2d", graph.Node{Op: graph.Conv2D, Shape: []int{h, w, filters}, Conv2D: &graph.Conv2DAttrs{
		Filters: filters, KernelH: kh, KernelW: kw, StrideH: sh, StrideW: sw, Padding: padding, UseBias: true,
	}})
}

func (b *modelBuilder) relu() *modelBuilder {
	return b.add("re_lu", graph.Node{Op: graph.ReLU, Shape: b.shape()})
}

func (b *modelBuilder) leakyReLU(alpha float64) *modelBuilder {
	return b.add("leaky_re_lu", graph.Node{Op: graph.LeakyReLU, Shape: b.shape(), LeakyReLU: &graph.LeakyReLUAttrs{Alpha: alpha}})
}

func (b *modelBuilder) batchNorm() *modelBuilder {
	return b.add("batch_normalization", graph.Node{Op: graph.BatchNorm, Shape: b.shape(), BatchNorm: &graph.BatchNormAttrs{
		Momentum: 0.99, Epsilon: 1e-3, Scale: true, Center: true,
	}})
}

func (b *modelBuilder) maxPool(h, w int) *modelBuilder {
	s := b.shape()
	return b.add("max_pooling2d", graph.Node{Op: graph.MaxPool, Shape: []int{s[0] / h, s[1] / w, s[2]}, MaxPool: &graph.MaxPoolAttrs{
		PoolH: h, PoolW: w, StrideH: h, StrideW: w,
	}})
}

func (b *modelBuilder) dropout(rate float64) *modelBuilder {
	return b.add("dropout", graph.Node{Op: graph.Dropout, Shape: b.shape(), Dropout: &graph.DropoutAttrs{Rate: rate}})
}

func (b *modelBuilder) flatten() *modelBuilder {
	size := 1
	for _, d := range b.shape() {
		size *= d
	}
	return b.add("flatten", graph.Node{Op: graph.Flatten, Shape: []int{size}})
}

func (b *modelBuilder) dense(units int) *modelBuilder {
	return b.add("dense", graph.Node{Op: graph.Dense, Shape: []int{units}, Dense: &graph.DenseAttrs{Units: units, UseBias: true}})
}

// ids adds an integer input, to which further layers are added.
func (b *modelBuilder) ids(lookups int) *modelBuilder {
	b.add("ids", graph.Node{Op: graph.Input, Shape: []int{lookups}, Integer: true})
	b.m.Nodes[b.head].Inputs = nil
	return b
}

func (b *modelBuilder) embedding(rows, width int) *modelBuilder {
	return b.add("embedding", graph.Node{Op: graph.Embedding, Shape: append(slices.Clone(b.shape()), width), Embedding: &graph.EmbeddingAttrs{InputDim: rows, OutputDim: width}})
}

func (b *modelBuilder) reduceSum(from, axes int, keep bool) *modelBuilder {
	shape := slices.Clone(b.shape()[:from])
	if keep {
		shape = append(shape, slices.Repeat([]int{1}, axes)...)
	}
	shape = append(shape, b.shape()[from+axes:]...)
	return b.add("reduce_sum", graph.Node{Op: graph.ReduceSum, Shape: shape, ReduceSum: &graph.ReduceSumAttrs{From: from, Axes: axes, KeepDims: keep}})
}

func (b *modelBuilder) broadcast(width int) *modelBuilder {
	shape := slices.Clone(b.shape())
	shape[len(shape)-1] = width
	return b.add("broadcast", graph.Node{Op: graph.Broadcast, Shape: shape})
}

func (b *modelBuilder) scale(factor float64) *modelBuilder {
	return b.add("scale", graph.Node{Op: graph.Scale, Shape: b.shape(), Scale: &graph.ScaleAttrs{Value: factor}})
}

func (b *modelBuilder) build() *graph.Model { return &b.m }

func (b *modelBuilder) loss(kind graph.LossKind) *modelBuilder {
	b.m.Loss = kind
	return b
}

// mnist is the tutorial's network.
func mnist() *graph.Model {
	return model(28, 28).reshape(28, 28, 1).conv(32, 3, 3).relu().conv(64, 3, 3).relu().
		batchNorm().maxPool(2, 2).dropout(0.25).flatten().dense(10).build()
}

// cifar10 is ElasticDL's CIFAR-10 network.
func cifar10() *graph.Model {
	b := model(32, 32, 3)
	for i, filters := range []int{32, 64, 128} {
		for range 2 {
			b.convWith(filters, 3, 3, 1, 1, "same").batchNorm().relu()
		}
		b.maxPool(2, 2).dropout([]float64{0.2, 0.3, 0.4}[i])
	}
	return b.flatten().dense(10).build()
}

// resnet20 is the zoo's resnet.
func resnet20() *graph.Model {
	b := model(32, 32, 3).convWith(16, 3, 3, 1, 1, "same").batchNorm().relu()
	for stage, filters := range []int{16, 32, 64} {
		for i := range 3 {
			stride, shortcut := 1, b.head
			if stage > 0 && i == 0 {
				stride = 2
			}
			b.convWith(filters, 3, 3, stride, stride, "same").batchNorm().relu().convWith(filters, 3, 3, 1, 1, "same").batchNorm()
			block := b.head
			b.at(shortcut)
			if stride > 1 {
				b.convWith(filters, 1, 1, stride, stride, "same")
			}
			b.merge(graph.Add, block).relu()
		}
	}
	return b.globalAveragePool().dense(10).build()
}

// batch makes records that a model can learn: a noisy pattern per class, and row numbers that go with it.
func batch(m *graph.Model, n int, seed uint64) *graph.Batch {
	classes := max(2, m.Nodes[m.Output].Shape[0])
	rng := rand.New(rand.NewPCG(seed, 1))
	b := &graph.Batch{N: n, Labels: make([]int32, n)}
	for i, node := range m.Nodes {
		if node.Op == graph.Input {
			fill(b, m, i, classes, rng)
		}
	}
	if m.Loss == graph.MeanSquaredError { // its targets are numbers
		for _, label := range b.Labels {
			b.Targets = append(b.Targets, float32(label)*2.5-rng.Float32())
		}
		b.Labels = nil
	}
	return b
}

// fill makes the values of the next input, node number i; that of the first chooses the labels.
func fill(b *graph.Batch, m *graph.Model, i, classes int, rng *rand.Rand) {
	first, size := len(b.Inputs) == 0, 1
	for _, d := range m.Nodes[i].Shape {
		size *= d
	}
	var floats []float32
	var integers []int32
	for r := range b.N {
		if first {
			b.Labels[r] = int32(rng.IntN(classes))
		}
		label := int(b.Labels[r])
		for k := range size {
			if m.Nodes[i].Integer {
				integers = append(integers, int32((label*3+rng.IntN(3))%tableRows(m, i)))
				continue
			}
			v := 0.5 * rng.Float32()
			if (k/3+label*5)%7 < 3 {
				v += 0.5
			}
			floats = append(floats, v)
		}
	}
	b.Inputs, b.Integers = append(b.Inputs, floats), append(b.Integers, integers)
}

// tableRows is how many rows the smallest of the tables has that input i looks up.
func tableRows(m *graph.Model, i int) int {
	rows := 0
	for _, n := range m.Nodes {
		if n.Op == graph.Embedding && n.Inputs[0] == i && (rows == 0 || n.Embedding.InputDim < rows) {
			rows = n.Embedding.InputDim
		}
	}
	return rows
}
