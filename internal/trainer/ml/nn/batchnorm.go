package nn

import (
	"fmt"
	"log/slog"
	"math"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/kernel"
)

// batchNorm normalizes over the last axis: in training with the mean and variance of the minibatch, which need
// barriers, in inference with the moving ones. The order of its operations is in kernel's package comment.
type batchNorm struct {
	n                   *Network
	in, out             *tensor
	dIn, dOut           *tensor
	below               *conv // made the input: dIn goes straight to it
	channels            int
	pixels              int         // per record
	pool                *pooledNorm // the layer behind; nil: done by itself
	name                string
	warned              bool // about a single value
	image               bool
	epsilon             float64
	momentumRest        float32 // 1 − momentum
	gamma, beta         Param
	hasGamma, hasBeta   bool
	movingMean, movingV *Param

	sums, products              []float32 // per block
	mean, variance, inverse     []float32
	scale, shift                []float32
	betaGradient, gammaGradient []float32
	offset, slope               []float32
}

func (c *compiler) addBatchNorm(node, next *graph.Node) error {
	a := node.BatchNorm
	if a == nil {
		return fmt.Errorf("its attributes are missing")
	}
	channels := c.shape[len(c.shape)-1]
	l := &batchNorm{
		n: c.n, name: node.Name, in: c.value, below: c.conv, channels: channels, pixels: c.value.size / channels, image: len(c.shape) == 3,
		epsilon: a.Epsilon, momentumRest: float32(1 - a.Momentum), hasGamma: a.Scale, hasBeta: a.Center,
	}
	if err := wantShape(node, c.shape...); err != nil {
		return err
	}
	if c.trainable {
		l.dIn = c.gradient
		if l.below != nil {
			l.below.written = true
		}
	}
	if l.hasGamma {
		l.gamma = c.variable(node.Name+"/gamma", false, channels)
	}
	if l.hasBeta {
		l.beta = c.variable(node.Name+"/beta", false, channels)
	}
	l.movingMean = c.statistic(node.Name+"/moving_mean", channels)
	l.movingV = c.statistic(node.Name+"/moving_variance", channels)
	size := c.value.size
	if l.pool = c.takePool(next); l.pool != nil {
		size = l.pool.at.size
		c.arena.reserve(&l.pool.at.data, c.n.options.MaxBatch*size)
		c.ints = append(c.ints, intReservation{&l.pool.arg, c.n.options.MaxBatch * size})
	}
	c.output(size)
	l.out, l.dOut = c.value, c.gradient
	l.dOut.perThread = false // read in two phases
	c.arena.reserve(&l.sums, kernel.MaxBlocks*channels)
	c.arena.reserve(&l.products, kernel.MaxBlocks*channels)
	for _, v := range []*[]float32{&l.mean, &l.variance, &l.inverse, &l.scale, &l.shift, &l.betaGradient, &l.gammaGradient, &l.offset, &l.slope} {
		c.arena.reserve(v, channels)
	}
	c.n.batchNorms = append(c.n.batchNorms, l)

	forward, sumGradients, backward := l.forward, l.sumGradients, l.backward
	if l.pool != nil {
		forward, sumGradients, backward = l.forwardPooled, l.sumGradientsPooled, l.backwardPooled
	}
	c.phases = append(c.phases,
		c.n.overBlocks(append(c.forward, operation{true, l.sum}), l.finishMean),
		c.n.overBlocks([]operation{{true, l.sumSquares}}, l.finishVariance))
	c.forward = []operation{{true, forward}}
	c.infer = append(c.infer, operation{true, forward})
	step := backwardStep{before: []operation{{true, sumGradients}}, barrier: l.finishGradients}
	if l.dIn != nil {
		step.behind = []operation{{true, backward}}
	}
	c.backward = append(c.backward, step)
	return nil
}

func (l *batchNorm) block(sums []float32, s span) []float32 {
	sum := sums[s.block*l.channels:][:l.channels]
	if s.first {
		clear(sum)
	}
	return sum
}

func (l *batchNorm) sum(t *thread, s span) {
	l.n.kernel.ColumnSum(l.block(l.sums, s), l.in.record(t, s.from))
}

func (l *batchNorm) sumSquares(t *thread, s span) {
	l.n.kernel.ColumnSquares(l.block(l.sums, s), l.in.record(t, s.from), l.mean)
}

// total adds the blocks' sums in order.
func (l *batchNorm) total(dst, sums []float32) {
	copy(dst, sums[:l.channels])
	for block := 1; block < kernel.Blocks(l.n.run.records); block++ {
		l.n.kernel.Add(dst, sums[block*l.channels:][:l.channels])
	}
}

func (l *batchNorm) count() int { return l.n.run.records * l.pixels }

func (l *batchNorm) finishMean() {
	l.total(l.mean, l.sums)
	for c := range l.mean {
		l.mean[c] /= float32(l.count())
	}
	copy(l.n.run.gradient[l.movingMean.Offset:], l.mean)
}

func (l *batchNorm) finishVariance() {
	l.total(l.variance, l.sums)
	count := l.count()
	moving := l.n.run.gradient[l.movingV.Offset:]
	for c, sum := range l.variance {
		l.variance[c] = sum / float32(count)
		moving[c] = l.variance[c]
		if l.image && count > 1 {
			moving[c] = sum / float32(count-1)
		}
	}
	if l.image && count == 1 && !l.warned {
		l.warned = true
		slog.Warn("the variance of a single value is 0: a minibatch of one record with images of one pixel teaches BatchNorm nothing; use a larger minibatch", "layer", l.name)
	}
	l.coefficients(l.variance)
}

func (l *batchNorm) useMovingStatistics() {
	state := l.n.run.state
	copy(l.mean, state[l.movingMean.Offset:])
	l.coefficients(state[l.movingV.Offset:][:l.channels])
}

// coefficients: inverse = 1/√(variance + ε), scale = γ·inverse, shift = β.
func (l *batchNorm) coefficients(variance []float32) {
	for c, v := range variance {
		l.inverse[c] = float32(1 / math.Sqrt(float64(v)+l.epsilon))
	}
	copy(l.scale, l.inverse)
	if l.hasGamma {
		l.n.kernel.Mul(l.scale, l.n.weights(l.gamma), l.inverse)
	}
	if l.hasBeta {
		copy(l.shift, l.n.weights(l.beta))
	}
}

func (l *batchNorm) forward(t *thread, s span) {
	l.n.kernel.BatchNorm(l.out.record(t, s.from), l.in.record(t, s.from), l.mean, l.scale, l.shift)
}

func (l *batchNorm) sumGradients(t *thread, s span) {
	l.n.kernel.ColumnProducts(l.block(l.sums, s), l.block(l.products, s), l.dOut.record(t, s.from), l.in.record(t, s.from), l.mean)
}

func (l *batchNorm) finishGradients() {
	l.total(l.betaGradient, l.sums)
	l.total(l.gammaGradient, l.products)
	l.n.kernel.Mul(l.gammaGradient, l.gammaGradient, l.inverse)
	count := float64(l.count())
	for c := range l.offset {
		l.offset[c] = l.betaGradient[c] / float32(count)
		l.slope[c] = float32(-(float64(l.inverse[c]) * float64(l.gammaGradient[c]) / count))
	}
	if l.hasGamma {
		copy(l.n.gradient(l.gamma), l.gammaGradient)
	}
	if l.hasBeta {
		copy(l.n.gradient(l.beta), l.betaGradient)
	}
}

func (l *batchNorm) backward(t *thread, s span) {
	in, dOut := l.in.record(t, s.from), l.dOut.record(t, s.from)
	if l.below == nil {
		l.n.kernel.BatchNormBack(l.dIn.record(t, s.from), dOut, in, l.mean, l.scale, l.offset, l.slope)
		return
	}
	back := l.n.kernel.BatchNormBack
	if l.below.relu {
		back = l.n.kernel.BatchNormReLUBack
	}
	row := l.below.outW * l.channels
	for y := range l.below.outH {
		back(l.below.dyRow(t, y), dOut[y*row:][:row], in[y*row:][:row], l.mean, l.scale, l.offset, l.slope)
	}
}

// move is one Keras update: moving ← moving + (1 − momentum)·(batch − moving), three rounded operations.
func (l *batchNorm) move(state, stats []float32, trainable int) {
	for _, p := range []*Param{l.movingMean, l.movingV} {
		moving, batch := state[p.Offset:][:p.Size], stats[p.Offset-trainable:][:p.Size]
		for c := range moving {
			moving[c] += float32(l.momentumRest * (batch[c] - moving[c]))
		}
	}
}
