package nn

import (
	"fmt"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/kernel"
)

// inPlace makes the tensors of a layer that may overwrite its input, and returns the input and its gradient: other
// arrays only when the input must stay as it is.
func (c *compiler) inPlace() (in, dIn *tensor) {
	in, dIn = c.value, c.gradient
	if c.readOnly {
		c.output(in.size)
	}
	c.conv = nil
	return in, dIn
}

// addReLU is a ReLU that no convolution has taken along.
func (c *compiler) addReLU(node *graph.Node) error {
	if err := wantShape(node, c.shape...); err != nil {
		return err
	}
	if c.relu {
		c.relu = false
		return nil
	}
	n := c.n
	in, dIn := c.inPlace()
	out, dOut := c.value, c.gradient
	c.compute(func(t *thread, s span) {
		n.kernel.ReLU(out.record(t, s.from), in.record(t, s.from))
	})
	c.back(func(t *thread, s span) {
		n.kernel.ReLUBack(dIn.record(t, s.from), dOut.record(t, s.from), out.record(t, s.from))
	})
	return nil
}

// addDropout multiplies by a mask of 0 and 1/(1 − rate) in training; in inference it is nothing.
func (c *compiler) addDropout(node *graph.Node) error {
	a := node.Dropout
	switch {
	case a == nil:
		return fmt.Errorf("its attributes are missing")
	case !(a.Rate >= 0 && a.Rate < 1):
		return fmt.Errorf("rate %v is not in [0, 1)", a.Rate)
	}
	if err := wantShape(node, c.shape...); err != nil {
		return err
	}
	number := c.dropouts
	c.dropouts++
	n := c.n
	in, dIn := c.inPlace()
	out, dOut := c.value, c.gradient
	mask := &tensor{size: out.size}
	c.arena.reserve(&mask.data, n.options.MaxBatch*mask.size)
	c.forward = append(c.forward, operation{true, func(t *thread, s span) {
		m := mask.record(t, s.from)
		which := kernel.NewMask(n.run.seed, n.run.step, n.run.virtualWorker, number, a.Rate)
		n.kernel.DropoutMask(m, which, uint64(s.from)*uint64(mask.size))
		n.kernel.Mul(out.record(t, s.from), in.record(t, s.from), m)
	}})
	if in != out {
		c.infer = append(c.infer, operation{true, func(t *thread, s span) {
			copy(out.record(t, s.from), in.record(t, s.from))
		}})
	}
	c.back(func(t *thread, s span) {
		n.kernel.Mul(dIn.record(t, s.from), dOut.record(t, s.from), mask.record(t, s.from))
	})
	return nil
}
