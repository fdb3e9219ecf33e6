package nn

import (
	"fmt"
	"math"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/kernel"
)

// maxPool takes the first largest element of windows. With "same" padding the image is copied into one with a border of
// −Inf, which is never larger than an element. The gradient of windows that do not overlap is written once for each
// pixel; otherwise it is added to the pixels in the order of the outputs.
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

	height, width int // of the input
	strideH       int
	top, left     int     // of the border
	image         *tensor // the input with its border, per thread; nil where there is none
	adds          bool    // windows overlap or reach into the border
}

func (c *compiler) addMaxPool(node *graph.Node) error {
	a := node.MaxPool
	switch {
	case a == nil:
		return fmt.Errorf("its attributes are missing")
	case len(c.shape) != 3:
		return fmt.Errorf("the input has shape %v; pooling takes height, width and channels", c.shape)
	}
	height, width, channels := c.shape[0], c.shape[1], c.shape[2]
	w, err := newWindows(graph.AveragePoolAttrs(*a), height, width)
	if err != nil {
		return err
	}
	outH, outW := w.outH, w.outW
	if err := wantShape(node, outH, outW, channels); err != nil {
		return err
	}
	if c.pooled {
		c.pooled = false
		return nil
	}
	l := &maxPool{
		n: c.n, in: c.value,
		row:  kernel.Pool{Outputs: outW, Channels: channels, Height: a.PoolH, Width: a.PoolW, Stride: a.StrideW, InputRowPixels: w.paddedW},
		rows: outH, inputRow: a.StrideH * w.paddedW * channels, outputRow: outW * channels,
		gaps: outH*a.PoolH != height || outW*a.PoolW != width,

		height: height, width: width, strideH: a.StrideH, top: w.top, left: w.left,
		adds: a.StrideH < a.PoolH || a.StrideW < a.PoolW,
	}
	if w.paddedH != height || w.paddedW != width {
		l.adds = true
		l.image = &tensor{size: w.paddedH * w.paddedW * channels, perThread: true}
		c.gradients = append(c.gradients, l.image)
	}
	if c.trainable {
		l.dIn = c.gradient
	}
	c.output(outH * outW * channels)
	l.out, l.dOut = c.value, c.gradient
	c.ints = append(c.ints, intReservation{&l.arg, c.n.options.MaxBatch * l.out.size})
	c.compute(l.forward)
	if l.adds {
		c.back(l.backwardAdding)
	} else {
		c.back(l.backward)
	}
	return nil
}

func (l *maxPool) forward(t *thread, s span) {
	in, out, arg := l.in.record(t, s.from), l.out.record(t, s.from), l.arg[s.from*l.out.size:]
	if l.image != nil {
		in = l.bordered(t, in)
	}
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

// bordered is the image with a border of −Inf.
func (l *maxPool) bordered(t *thread, in []float32) []float32 {
	image := l.image.record(t, 0)
	for i := range image {
		image[i] = float32(math.Inf(-1))
	}
	row := l.width * l.row.Channels
	for y := range l.height {
		copy(image[((l.top+y)*l.row.InputRowPixels+l.left)*l.row.Channels:], in[y*row:][:row])
	}
	return image
}

func (l *maxPool) backwardAdding(t *thread, s span) {
	dIn, dOut, arg := l.dIn.record(t, s.from), l.dOut.record(t, s.from), l.arg[s.from*l.out.size:]
	clear(dIn)
	channels := l.row.Channels
	for i, d := range dOut {
		position, pixel := int(arg[i]), i/channels
		y := pixel/l.row.Outputs*l.strideH + position/l.row.Width - l.top
		x := pixel%l.row.Outputs*l.row.Stride + position%l.row.Width - l.left
		if y < 0 || y >= l.height || x < 0 || x >= l.width {
			continue // a window of −Inf or NaN alone, whose loss is not finite either
		}
		dIn[(y*l.width+x)*channels+i%channels] += d
	}
}

// windows is the geometry of a pooling layer: its outputs, and the border that "same" padding puts around the image.
type windows struct {
	outH, outW       int
	top, left        int
	paddedH, paddedW int // of the image with its border
}

func newWindows(a graph.AveragePoolAttrs, height, width int) (windows, error) {
	w := windows{paddedH: height, paddedW: width}
	switch {
	case a.Padding != "" && a.Padding != "same":
		return w, fmt.Errorf("padding %q does not exist; there are \"\" and \"same\"", a.Padding)
	case a.PoolH < 1 || a.PoolW < 1 || a.StrideH < 1 || a.StrideW < 1:
		return w, fmt.Errorf("a window of %d×%d with strides %d×%d is none", a.PoolH, a.PoolW, a.StrideH, a.StrideW)
	}
	if a.Padding == "same" {
		var bottom, right int
		w.top, bottom = sameAround(height, a.PoolH, a.StrideH)
		w.left, right = sameAround(width, a.PoolW, a.StrideW)
		w.paddedH, w.paddedW = w.top+height+bottom, w.left+width+right
	}
	if a.PoolH > w.paddedH || a.PoolW > w.paddedW {
		return w, fmt.Errorf("a window of %d×%d does not fit an image of %d×%d", a.PoolH, a.PoolW, height, width)
	}
	w.outH, w.outW = (w.paddedH-a.PoolH)/a.StrideH+1, (w.paddedW-a.PoolW)/a.StrideW+1
	return w, nil
}
