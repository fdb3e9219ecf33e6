package nn

import (
	"fmt"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/graph"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/kernel"
)

// maxPool takes the first largest element of windows that do not overlap.
type maxPool struct {
	n         *Network
	in, out   *tensor
	dIn, dOut *tensor
	row       kernel.Pool
	rows      int
	inputRow  int // floats from one row of windows to the next
	outputRow int
	gaps      bool    // parts of the input belong to no window
	arg       []int32 // per record and output: position in the window
}

func (c *compiler) addMaxPool(node *graph.Node) error {
	a := node.MaxPool
	switch {
	case a == nil:
		return fmt.Errorf("its attributes are missing")
	case len(c.shape) != 3:
		return fmt.Errorf("the input has shape %v; pooling takes height, width and channels", c.shape)
	case a.PoolH < 1 || a.PoolW < 1 || a.PoolH > c.shape[0] || a.PoolW > c.shape[1]:
		return fmt.Errorf("a window of %d×%d does not fit an image of %d×%d", a.PoolH, a.PoolW, c.shape[0], c.shape[1])
	case a.StrideH < a.PoolH || a.StrideW < a.PoolW:
		return fmt.Errorf("windows of %d×%d that overlap (strides %d×%d) are not implemented", a.PoolH, a.PoolW, a.StrideH, a.StrideW)
	}
	height, width, channels := c.shape[0], c.shape[1], c.shape[2]
	outH, outW := (height-a.PoolH)/a.StrideH+1, (width-a.PoolW)/a.StrideW+1
	if err := wantShape(node, outH, outW, channels); err != nil {
		return err
	}
	if c.pooled {
		c.pooled = false
		return nil
	}
	l := &maxPool{
		n: c.n, in: c.value,
		row:  kernel.Pool{Outputs: outW, Channels: channels, Height: a.PoolH, Width: a.PoolW, Stride: a.StrideW, InputRowPixels: width},
		rows: outH, inputRow: a.StrideH * width * channels, outputRow: outW * channels,
		gaps: outH*a.PoolH != height || outW*a.PoolW != width,
	}
	if c.trainable {
		l.dIn = c.gradient
	}
	c.output(outH * outW * channels)
	l.out, l.dOut = c.value, c.gradient
	c.ints = append(c.ints, intReservation{&l.arg, c.n.options.MaxBatch * l.out.size})
	c.forward = append(c.forward, operation{true, l.forward})
	c.infer = append(c.infer, operation{true, l.forward})
	if l.dIn != nil {
		c.backward = append(c.backward, backwardStep{before: []operation{{true, l.backward}}})
	}
	return nil
}

func (l *maxPool) forward(t *thread, s span) {
	in, out, arg := l.in.record(t, s.from), l.out.record(t, s.from), l.arg[s.from*l.out.size:]
	for y := range l.rows {
		l.n.kernel.MaxPool(l.row, out[y*l.outputRow:], arg[y*l.outputRow:], in[y*l.inputRow:])
	}
}

func (l *maxPool) backward(t *thread, s span) {
	dIn, dOut, arg := l.dIn.record(t, s.from), l.dOut.record(t, s.from), l.arg[s.from*l.out.size:]
	if l.gaps {
		clear(dIn)
	}
	for y := range l.rows {
		l.n.kernel.MaxPoolBack(l.row, dIn[y*l.inputRow:], dOut[y*l.outputRow:], arg[y*l.outputRow:])
	}
}
