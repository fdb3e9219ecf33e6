package nn

import (
	"fmt"
	"math"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/kernel"
)

// addActivation is a sigmoid, a tanh or a softmax over the last axis, computed in float64 and rounded once, or a leaky
// ReLU: x × α where x is not above 0. Their gradients are made from the output, which therefore stays as it is:
//   - sigmoid: dy × (y × (1 − y)), tanh: dy × (1 − (y × y)), in rounded float32 operations;
//   - softmax: y × (dy − Σ y·dy), in float64, the sum in order, and rounded once;
//   - leaky ReLU: dy where y is above 0, which it is where x was, and dy × α elsewhere.
func (c *compiler) addActivation(node *graph.Node) error {
	if err := wantShape(node, c.shape...); err != nil {
		return err
	}
	if len(c.shape) == 0 {
		return fmt.Errorf("the input has no axis")
	}
	row := c.shape[len(c.shape)-1]
	c.readOnly = true // the layer before may need its output: a ReLU for its gradient
	in, dIn := c.inPlace()
	c.readOnly = true // and this one needs its own
	out, dOut := c.value, c.gradient
	forward, backward := sigmoid, sigmoidBack
	switch node.Op {
	case graph.Tanh:
		forward, backward = tanh, tanhBack
	case graph.Softmax:
		exps := make([][]float64, c.n.options.Threads)
		for i := range exps {
			exps[i] = make([]float64, row)
		}
		forward, backward = softmax(exps), softmaxBack(row)
	case graph.LeakyReLU:
		switch {
		case node.LeakyReLU == nil:
			return fmt.Errorf("its attributes are missing")
		case !(node.LeakyReLU.Alpha >= 0) || math.IsInf(node.LeakyReLU.Alpha, 0):
			return fmt.Errorf("alpha %v is not a number from 0", node.LeakyReLU.Alpha)
		}
		alpha := float32(node.LeakyReLU.Alpha)
		forward, backward = leakyReLU(alpha), leakyReLUBack(alpha)
	}
	c.compute(func(t *thread, s span) { forward(t, out.record(t, s.from), in.record(t, s.from)) })
	c.back(func(t *thread, s span) {
		backward(dIn.record(t, s.from), dOut.record(t, s.from), out.record(t, s.from))
	})
	return nil
}

func sigmoid(_ *thread, dst, x []float32) {
	for i, v := range x {
		dst[i] = float32(kernel.Sigmoid(float64(v)))
	}
}

func sigmoidBack(dst, dy, y []float32) {
	for i, v := range y {
		dst[i] = dy[i] * float32(v*(1-v))
	}
}

func tanh(_ *thread, dst, x []float32) {
	for i, v := range x {
		dst[i] = float32(kernel.Tanh(float64(v)))
	}
}

func tanhBack(dst, dy, y []float32) {
	for i, v := range y {
		dst[i] = dy[i] * (1 - float32(v*v))
	}
}

func leakyReLU(alpha float32) func(_ *thread, dst, x []float32) {
	return func(_ *thread, dst, x []float32) {
		for i, v := range x {
			if !(v > 0) {
				v *= alpha
			}
			dst[i] = v
		}
	}
}

func leakyReLUBack(alpha float32) func(dst, dy, y []float32) {
	return func(dst, dy, y []float32) {
		for i, d := range dy {
			if !(y[i] > 0) {
				d *= alpha
			}
			dst[i] = d
		}
	}
}

// softmax takes an array as long as a row per thread.
func softmax(exps [][]float64) func(t *thread, dst, x []float32) {
	return func(t *thread, dst, x []float32) {
		e := exps[t.id]
		for len(x) > 0 {
			sum := exponentials(e, x[:len(e)])
			for i, v := range e {
				dst[i] = float32(v / sum)
			}
			dst, x = dst[len(e):], x[len(e):]
		}
	}
}

func softmaxBack(row int) func(dst, dy, y []float32) {
	return func(dst, dy, y []float32) {
		for ; len(y) > 0; dst, dy, y = dst[row:], dy[row:], y[row:] {
			sum := 0.0
			for i, v := range y[:row] {
				sum += float64(float64(v) * float64(dy[i]))
			}
			for i, v := range y[:row] {
				dst[i] = float32(float64(v) * (float64(dy[i]) - sum))
			}
		}
	}
}

// exponentials fills e with exp(z − max), and returns their sum, in order.
func exponentials(e []float64, z []float32) (sum float64) {
	largest := z[0]
	for _, v := range z {
		if v > largest {
			largest = v
		}
	}
	for i, v := range z {
		e[i] = kernel.Exp(float64(v) - float64(largest))
		sum += e[i]
	}
	return sum
}
