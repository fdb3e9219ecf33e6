package nn_test

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/graph"
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

// at goes on from that node.
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
	s := b.shape()
	return b.add("average_pooling2d", graph.Node{Op: graph.AveragePool, Shape: []int{(s[0]-h)/sh + 1, (s[1]-w)/sw + 1, s[2]}, AveragePool: &graph.AveragePoolAttrs{
		PoolH: h, PoolW: w, StrideH: sh, StrideW: sw,
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
	n.Line = len(b.m.Nodes) + 10
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

// batch makes records that a model can learn: a noisy pattern per class.
func batch(m *graph.Model, n int, seed uint64) *graph.Batch {
	size := 1
	for _, d := range m.Nodes[0].Shape {
		size *= d
	}
	classes := max(2, m.Nodes[m.Output].Shape[0])
	rng := rand.New(rand.NewPCG(seed, 1))
	b := &graph.Batch{N: n, Inputs: [][]float32{make([]float32, n*size)}, Labels: make([]int32, n)}
	for r := range n {
		label := rng.IntN(classes)
		b.Labels[r] = int32(label)
		for i := range size {
			v := 0.5 * rng.Float32()
			if (i/3+label*5)%7 < 3 {
				v += 0.5
			}
			b.Inputs[0][r*size+i] = v
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
