package nn

import (
	"fmt"
	"slices"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
)

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
