package nn

import (
	"fmt"
	"slices"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
)

// addReduceSum sums over neighbouring axes: from the first element on, in order. The gradient goes to all of them.
func (c *compiler) addReduceSum(node *graph.Node) error {
	a := node.ReduceSum
	switch {
	case a == nil:
		return fmt.Errorf("its attributes are missing")
	case a.From < 0 || a.Axes < 1 || a.From+a.Axes > len(c.shape):
		return fmt.Errorf("a sum over %d axes from axis %d of shape %v", a.Axes, a.From, c.shape)
	}
	before, summed, behind := c.shape[:a.From], c.shape[a.From:a.From+a.Axes], c.shape[a.From+a.Axes:]
	var kept []int
	if a.KeepDims {
		kept = slices.Repeat([]int{1}, a.Axes)
	}
	if err := wantShape(node, slices.Concat(before, kept, behind)...); err != nil {
		return err
	}
	count, width := elements(summed), elements(behind)
	n, in, dIn := c.n, c.value, c.gradient
	c.output(elements(before) * width)
	out, dOut := c.value, c.gradient
	c.compute(func(t *thread, s span) {
		x := in.record(t, s.from)
		for y := out.record(t, s.from); len(y) > 0; y = y[width:] {
			copy(y[:width], x)
			for i := 1; i < count; i++ {
				n.kernel.Add(y[:width], x[i*width:][:width])
			}
			x = x[count*width:]
		}
	})
	c.back(func(t *thread, s span) {
		dx := dIn.record(t, s.from)
		for dy := dOut.record(t, s.from); len(dy) > 0; dy = dy[width:] {
			for i := range count {
				copy(dx[i*width:], dy[:width])
			}
			dx = dx[count*width:]
		}
	})
	return nil
}

// addScale multiplies by a number, in both directions.
func (c *compiler) addScale(node *graph.Node) error {
	if node.Scale == nil || !finite(node.Scale.Value) {
		return fmt.Errorf("its factor is missing or not finite")
	}
	if err := wantShape(node, c.shape...); err != nil {
		return err
	}
	factor := float32(node.Scale.Value)
	c.readOnly = true // the layer before may need its output: a ReLU for its gradient
	in, dIn := c.inPlace()
	out, dOut := c.value, c.gradient
	c.compute(func(t *thread, s span) {
		y := out.record(t, s.from)
		for i, v := range in.record(t, s.from) {
			y[i] = v * factor
		}
	})
	c.back(func(t *thread, s span) {
		dx := dIn.record(t, s.from)
		for i, v := range dOut.record(t, s.from) {
			dx[i] = v * factor
		}
	})
	return nil
}

// addBroadcast repeats each of the values, whose last axis has size 1. A value's gradient is the sum of its copies',
// from the first on.
func (c *compiler) addBroadcast(node *graph.Node) error {
	last := len(c.shape) - 1
	if last < 0 || c.shape[last] != 1 || len(node.Shape) != len(c.shape) || !slices.Equal(node.Shape[:last], c.shape[:last]) {
		return fmt.Errorf("shape %v cannot be repeated along the last axis to %v", c.shape, node.Shape)
	}
	width := node.Shape[last]
	in, dIn := c.value, c.gradient
	c.output(elements(node.Shape))
	out, dOut := c.value, c.gradient
	c.compute(func(t *thread, s span) {
		y := out.record(t, s.from)
		for i, v := range in.record(t, s.from) {
			row := y[i*width:][:width]
			for k := range row {
				row[k] = v
			}
		}
	})
	c.back(func(t *thread, s span) {
		dy := dOut.record(t, s.from)
		for i := range dIn.record(t, s.from) {
			sum := float32(0)
			for _, v := range dy[i*width:][:width] {
				sum += v
			}
			dIn.record(t, s.from)[i] = sum
		}
	})
	return nil
}
