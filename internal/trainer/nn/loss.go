package nn

import "github.com/elastic-training/terraform-provider-elastic/internal/trainer/kernel"

// softmaxLoss is the sparse softmax cross-entropy: per record log Σ exp(z − max) + max − z[label], in float64, classes
// in order. Its derivative by z is float32(p − [label]) × the run's start.
type softmaxLoss struct {
	n       *Network
	z, dz   *tensor
	exps    [][]float64 // per thread
	sums    [kernel.MaxBlocks]float64
	correct [kernel.MaxBlocks]int
}

func (c *compiler) addLoss() {
	l := &softmaxLoss{n: c.n, z: c.value, dz: c.gradient}
	l.dz.perThread = false // made for a block at once
	for range c.n.options.Threads {
		l.exps = append(l.exps, make([]float64, l.z.size))
	}
	c.n.loss = l
	c.forward = append(c.forward, operation{false, func(t *thread, s span) { l.run(t, s, true) }})
	c.infer = append(c.infer, operation{false, func(t *thread, s span) { l.run(t, s, false) }})
}

func (l *softmaxLoss) run(t *thread, s span, training bool) {
	sum, correct := 0.0, 0
	exps := l.exps[t.id]
	for r := s.from; r < s.to; r++ {
		z, label := l.z.record(t, r), int(l.n.labels[r])
		best := 0
		for c, v := range z {
			if v > z[best] {
				best = c
			}
		}
		if best == label {
			correct++
		}
		largest, denominator := float64(z[best]), 0.0
		for c, v := range z {
			exps[c] = kernel.Exp(float64(v) - largest)
			denominator += exps[c]
		}
		sum += kernel.Log(denominator) + (largest - float64(z[label]))
		if !training {
			continue
		}
		dz := l.dz.record(t, r)
		for c, e := range exps {
			p := e / denominator
			if c == label {
				p--
			}
			dz[c] = float32(p) * l.n.run.start
		}
	}
	l.sums[s.block], l.correct[s.block] = sum, correct
}

func (l *softmaxLoss) result(records int) Result {
	result := Result{Records: records}
	for block := range kernel.Blocks(records) {
		result.LossSum += l.sums[block]
		result.Correct += l.correct[block]
	}
	return result
}
