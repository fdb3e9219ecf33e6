package nn

import (
	"fmt"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/kernel"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/metric"
)

// loss is the last layer: the sum of the records' losses, in float64, and the derivative by the output.
type loss struct {
	n      *Network
	z, dz  *tensor
	record recordLoss
	count  func(counts []int64, r int, z []float32) // adds record r with output z
	sums   [kernel.MaxBlocks]float64
	values []float64 // of the records
	counts [kernel.MaxBlocks][]int64
	total  []int64
}

// recordLoss is the loss of record r with output z. It fills dz, unless that is nil, with the derivative times the
// run's start.
type recordLoss func(t *thread, r int, z, dz []float32) float64

func (c *compiler) addLoss() error {
	n := c.n
	metrics := metric.New(n.model)
	l := &loss{n: n, z: c.value, dz: c.gradient, total: make([]int64, metrics.Size()), values: make([]float64, n.options.MaxBatch)}
	for block := range l.counts {
		l.counts[block] = make([]int64, metrics.Size())
	}
	l.count = func(counts []int64, r int, z []float32) { metrics.Targeted(counts, z[0], n.target(r)) }
	switch kind := n.model.Loss; kind {
	case graph.SparseSoftmaxCrossEntropy:
		l.record = n.softmaxLoss(l.z.size)
		l.count = func(counts []int64, r int, z []float32) { metrics.Labelled(counts, z, int(n.labels[r])) }
		n.classes = l.z.size
	case graph.SigmoidCrossEntropy, graph.MeanSquaredError:
		if l.z.size != 1 {
			return fmt.Errorf("the output %q has %d values; the loss %s takes one", c.nodes[len(c.nodes)-1].Name, l.z.size, kind)
		}
		l.record = n.sigmoidLoss
		if kind == graph.MeanSquaredError {
			l.record = n.squaredError
		}
	default:
		return fmt.Errorf("loss %q is not implemented; implemented: %s, %s, %s", kind, graph.SparseSoftmaxCrossEntropy, graph.SigmoidCrossEntropy, graph.MeanSquaredError)
	}
	l.dz.perThread = false // made for a block at once
	n.loss = l
	c.forward = append(c.forward, operation{false, func(t *thread, s span) { l.run(t, s, true) }})
	c.infer = append(c.infer, operation{false, func(t *thread, s span) { l.run(t, s, false) }})
	return nil
}

func (l *loss) run(t *thread, s span, training bool) {
	if l.n.run.unanswered {
		return
	}
	sum, counts := 0.0, l.counts[s.block]
	clear(counts)
	for r := s.from; r < s.to; r++ {
		var dz []float32
		if training {
			dz = l.dz.record(t, r)
		}
		z := l.z.record(t, r)
		l.values[r] = l.record(t, r, z, dz)
		sum += l.values[r]
		l.count(counts, r, z)
	}
	l.sums[s.block] = sum
}

func (l *loss) result(records int) Result {
	clear(l.total)
	result := Result{Counts: l.total}
	for block := range kernel.Blocks(records) {
		result.Add(Result{LossSum: l.sums[block], Counts: l.counts[block]})
	}
	result.Records = records
	return result
}

// softmaxLoss is the sparse softmax cross-entropy: log Σ exp(z − max) + max − z[label], in float64, classes in order.
// Its derivative by z is float32(p − [label]) × the run's start.
func (n *Network) softmaxLoss(classes int) recordLoss {
	perThread := make([][]float64, n.options.Threads)
	for i := range perThread {
		perThread[i] = make([]float64, classes)
	}
	return func(t *thread, r int, z, dz []float32) float64 {
		exps, label := perThread[t.id], int(n.labels[r])
		best := 0
		for c, v := range z {
			if v > z[best] {
				best = c
			}
		}
		denominator := exponentials(exps, z)
		for c := range dz {
			p := exps[c] / denominator
			if c == label {
				p--
			}
			dz[c] = float32(p) * n.run.start
		}
		return kernel.Log(denominator) + (float64(z[best]) - float64(z[label]))
	}
}

// target is what the output of record r should be.
func (n *Network) target(r int) float32 {
	if len(n.targets) > 0 {
		return n.targets[r]
	}
	return float32(n.labels[r])
}

// sigmoidLoss is TensorFlow's stable form of the cross-entropy of a logit: (max(z, 0) − z·y) + log(1 + e^−|z|), in
// float64. Its derivative by z is float32(sigmoid(z) − y) × the run's start.
func (n *Network) sigmoidLoss(_ *thread, r int, z, dz []float32) float64 {
	x, y := float64(z[0]), float64(n.target(r))
	if dz != nil {
		dz[0] = float32(kernel.Sigmoid(x)-y) * n.run.start
	}
	positive, size := x, x
	if !(x > 0) {
		positive, size = 0, -x
	}
	return (positive - float64(x*y)) + kernel.Log(1+kernel.Exp(-size))
}

// squaredError is (z − y)², in float64. Its derivative by z is float32(2(z − y)) × the run's start.
func (n *Network) squaredError(_ *thread, r int, z, dz []float32) float64 {
	d := float64(z[0]) - float64(n.target(r))
	if dz != nil {
		dz[0] = float32(2*d) * n.run.start
	}
	return float64(d * d)
}
