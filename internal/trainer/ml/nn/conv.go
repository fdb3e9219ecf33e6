package nn

import (
	"fmt"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/kernel"
)

// conv is a convolution over NHWC, and the ReLU behind it if there is one. Images are never unfolded: rows of the image
// are segments of a strided matrix product. With "same" padding the image is copied into one with a border of zeros.
type conv struct {
	n                     *Network
	in, out               *tensor
	dIn, dOut             *tensor // dIn: nil if nothing before needs it
	inH, inW, inC         int
	outH, outW, outC      int
	kernelH, kernelW      int
	strideH, strideW      int
	border                border
	relu, bias            bool
	weightParam           Param
	biasParam             Param
	panelOut, panelIn     int       // widths of the panels: the kernel set's, or all columns if they are fewer
	packed, packedReverse []float32 // the kernel in panels; turned by 180° with channels exchanged, for dIn

	// dy is the masked gradient of the output, per thread. When dIn is wanted of a convolution without strides it has
	// kernelW−1 zero columns left and right: they are multiplied like data. Rows outside of it are skipped.
	dy       tensor
	pad      int
	written  bool      // the layer behind writes dy itself
	dyPanels tensor    // per thread: dy without its zeros in panels, for the kernel's gradient; empty where dy is one panel
	blockSum []float32 // per block: the kernel's and the bias' gradient
}

func (c *compiler) addConv(node, next *graph.Node) error {
	a := node.Conv2D
	switch {
	case a == nil:
		return fmt.Errorf("its attributes are missing")
	case len(c.shape) != 3:
		return fmt.Errorf("the input has shape %v; a convolution takes height, width and channels", c.shape)
	case a.Padding != "valid" && a.Padding != "same":
		return fmt.Errorf("padding %q does not exist; there are \"valid\" and \"same\"", a.Padding)
	case a.KernelH < 1 || a.KernelW < 1 || a.Filters < 1 || a.StrideH < 1 || a.StrideW < 1:
		return fmt.Errorf("a kernel of %d×%d with %d filters and strides %d×%d is none", a.KernelH, a.KernelW, a.Filters, a.StrideH, a.StrideW)
	}
	l := &conv{
		n: c.n, in: c.value, inH: c.shape[0], inW: c.shape[1], inC: c.shape[2], outC: a.Filters,
		kernelH: a.KernelH, kernelW: a.KernelW, strideH: a.StrideH, strideW: a.StrideW, bias: a.UseBias,
	}
	if a.Padding == "same" {
		l.border = c.sameBorder(l)
	}
	if l.paddedH() < l.kernelH || l.paddedW() < l.kernelW {
		return fmt.Errorf("a kernel of %d×%d does not fit an image of %d×%d", a.KernelH, a.KernelW, l.inH, l.inW)
	}
	l.outH, l.outW = (l.paddedH()-l.kernelH)/l.strideH+1, (l.paddedW()-l.kernelW)/l.strideW+1
	if err := wantShape(node, l.outH, l.outW, l.outC); err != nil {
		return err
	}
	if next != nil && next.Op == graph.ReLU {
		l.relu, c.relu = true, true
	}
	if c.trainable {
		l.dIn = c.gradient
		if l.unstrided() {
			l.pad = l.kernelW - 1
		} else if l.border != (border{}) {
			l.border.gradient = &tensor{size: l.border.image.size, perThread: true}
			c.gradients = append(c.gradients, l.border.gradient)
		}
	}
	l.weightParam = c.variable(node.Name+"/kernel", false, l.kernelH, l.kernelW, l.inC, l.outC)
	if l.bias {
		l.biasParam = c.variable(node.Name+"/bias", false, l.outC)
	}
	c.output(l.outH * l.outW * l.outC)
	c.conv = l
	l.out, l.dOut = c.value, c.gradient

	l.panelOut, l.panelIn = min(c.n.kernel.Panel, l.outC), min(c.n.kernel.Panel, l.inC)
	c.arena.reserve(&l.packed, kernel.PackedSize(l.kernelH*l.kernelW*l.inC, l.outC, l.panelOut))
	for ky := range l.kernelH {
		c.pack = append(c.pack, func() { l.pack(ky) })
	}
	if l.dIn != nil {
		c.arena.reserve(&l.packedReverse, kernel.PackedSize(l.kernelH*l.kernelW*l.outC, l.inC, l.panelIn))
		for ky := range l.kernelH {
			c.prepare = append(c.prepare, func() { l.packReverse(ky) })
		}
	}
	l.dy = tensor{size: l.outH * (l.outW + 2*l.pad) * l.outC, perThread: true}
	c.gradients = append(c.gradients, &l.dy)
	if l.outC > l.panelOut && l.outC >= manyChannels {
		l.dyPanels = tensor{size: kernel.PackedSize(l.outH*l.outW, l.outC, l.panelOut), perThread: true}
		c.gradients = append(c.gradients, &l.dyPanels)
	}
	c.arena.reserve(&l.blockSum, kernel.MaxBlocks*l.sumSize())

	c.compute(l.forward)
	c.backward = append(c.backward, backwardStep{before: []operation{{true, l.backward}}})
	c.final = append(c.final, c.n.sumOfBlocks(&l.blockSum, l.weightParam.Offset, l.sumSize()))
	return nil
}

// sumSize is the length of the kernel's and the bias' gradient, which are neighbours in the state.
func (l *conv) sumSize() int { return l.weightParam.Size + l.biasParam.Size }

func (l *conv) pack(ky int) {
	w, rows := l.n.weights(l.weightParam), l.kernelH*l.kernelW*l.inC
	for row := ky * l.kernelW * l.inC; row < (ky+1)*l.kernelW*l.inC; row++ {
		kernel.Pack(l.packed, w[row*l.outC:][:l.outC], row, rows, l.panelOut)
	}
}

// packReverse: reverse[KH−1−ky][KW−1−kx][co][ci] = w[ky][kx][ci][co].
func (l *conv) packReverse(ky int) {
	w, rows, panel := l.n.weights(l.weightParam), l.kernelH*l.kernelW*l.outC, l.panelIn
	for kx := range l.kernelW {
		at := ((l.kernelH-1-ky)*l.kernelW + l.kernelW - 1 - kx) * l.outC
		for ci := range l.inC {
			to := l.packedReverse[ci/panel*panel*rows+at*panel+ci%panel:]
			for co, v := range w[((ky*l.kernelW+kx)*l.inC+ci)*l.outC:][:l.outC] {
				to[co*panel] = v
			}
		}
	}
}

func (l *conv) unstrided() bool { return l.strideH == 1 && l.strideW == 1 }

func (l *conv) forward(t *thread, s span) {
	panel := l.panelOut
	g := kernel.Gemm{
		M: l.outW, N: l.outC, Segments: l.kernelH, K: l.kernelW * l.inC,
		A: l.image(t, s), ARow: l.strideW * l.inC, AStep: 1, ASegment: l.paddedW() * l.inC,
		B: l.packed, BRow: panel, BSegment: l.kernelW * l.inC * panel, BPanel: l.kernelH * l.kernelW * l.inC * panel,
		C: l.out.record(t, s.from), CRow: l.outC,
		ReLU:   l.relu,
		Repeat: l.outH, ARepeat: l.strideH * l.paddedW() * l.inC, CRepeat: l.outW * l.outC,
	}
	if l.bias {
		g.Bias = l.n.weights(l.biasParam)
	}
	l.n.kernel.Gemm(g)
}

// dyRow is row y of dy without its padding.
func (l *conv) dyRow(t *thread, y int) []float32 {
	width := l.outW + 2*l.pad
	return l.dy.record(t, 0)[(y*width+l.pad)*l.outC:][:l.outW*l.outC]
}

func (l *conv) backward(t *thread, s span) {
	if !l.written {
		out, dOut := l.out.record(t, s.from), l.dOut.record(t, s.from)
		row := l.outW * l.outC
		for y := range l.outH {
			if l.relu {
				l.n.kernel.ReLUBack(l.dyRow(t, y), dOut[y*row:][:row], out[y*row:][:row])
			} else {
				copy(l.dyRow(t, y), dOut[y*row:][:row])
			}
		}
	}
	sum := l.blockSum[s.block*l.sumSize():][:l.sumSize()]
	if l.bias {
		db := sum[l.weightParam.Size:]
		if s.first {
			clear(db)
		}
		for y := range l.outH {
			l.n.kernel.ColumnSum(db, l.dyRow(t, y))
		}
	}
	l.kernelGradient(t, s, sum[:l.weightParam.Size])
	if l.dIn != nil {
		l.inputGradient(t, s)
	}
}

const (
	// chunkRows is how many image rows of dW's factors stay in the first cache level at a time, chunkPixels how many
	// pixels where rows are shorter.
	chunkRows   = 4
	chunkPixels = 64

	// manyChannels is where it pays to have dy in panels: pixels that are a power of two of bytes apart share a few lines
	// of the cache.
	manyChannels = 128
)

func (l *conv) kernelGradient(t *thread, s span, dw []float32) {
	in, inWidth := l.image(t, s), l.paddedW()*l.inC
	g := kernel.Gemm{
		M: l.kernelW * l.inC, N: l.outC, K: l.outW,
		ARow: 1, AStep: l.strideW * l.inC, ASegment: l.strideH * inWidth,
		BRow: l.outC, BSegment: (l.outW + 2*l.pad) * l.outC,
		C: dw, CRow: l.outC,
		Repeat: l.kernelH, ARepeat: inWidth, CRepeat: l.kernelW * l.inC * l.outC,
	}
	dy := l.dy.record(t, 0)[l.pad*l.outC:]
	if l.dyPanels.size > 0 {
		dy = l.dyPanels.record(t, 0)
		for y := range l.outH {
			for x, row := 0, l.dyRow(t, y); x < l.outW; x++ {
				kernel.Pack(dy, row[x*l.outC:][:l.outC], y*l.outW+x, l.outH*l.outW, l.panelOut)
			}
		}
		g.BRow, g.BSegment, g.BPanel = l.panelOut, l.outW*l.panelOut, l.outH*l.outW*l.panelOut
	}
	rows := max(chunkRows, chunkPixels/l.outW)
	for y := 0; y < l.outH; y += rows {
		g.Segments, g.Load = min(rows, l.outH-y), !s.first || y > 0
		g.A, g.B = in[y*l.strideH*inWidth:], dy[y*g.BSegment:]
		l.n.kernel.Gemm(g)
	}
}

// inputGradient makes the gradient of the input.
func (l *conv) inputGradient(t *thread, s span) {
	dIn, dy := l.dIn.record(t, s.from), l.dy.record(t, 0)
	switch {
	case l.unstrided():
		l.correlate(dIn, dy)
	case l.border.gradient == nil:
		l.spread(dIn, dy)
	default:
		dImage := l.border.gradient.record(t, 0)
		l.spread(dImage, dy)
		l.crop(dIn, dImage)
	}
}

// correlate is a full correlation of dy with the turned kernel, of which the border of the image is left out: chains in
// the order of dy's pixels.
func (l *conv) correlate(dIn, dy []float32) {
	panel, k := l.panelIn, l.kernelW*l.outC
	dyWidth, dInWidth := (l.outW+2*l.pad)*l.outC, l.inW*l.inC
	for y := 0; y < l.inH; {
		at := l.border.top + y                                // the row of the image with its border
		from, to := max(0, at-l.kernelH+1), min(l.outH, at+1) // rows of dy that it had a part in
		rows := 1
		if to-from == l.kernelH {
			rows = min(l.outH-at, l.inH-y) // all rows to which the whole kernel applies
		}
		l.n.kernel.Gemm(kernel.Gemm{
			M: l.inW, N: l.inC, Segments: to - from, K: k,
			A: dy[from*dyWidth+l.border.left*l.outC:], ARow: l.outC, AStep: 1, ASegment: dyWidth,
			B: l.packedReverse[(l.kernelH-1-at+from)*k*panel:], BRow: panel, BSegment: k * panel, BPanel: l.kernelH * k * panel,
			C: dIn[y*dInWidth:], CRow: l.inC,
			Repeat: rows, ARepeat: dyWidth, CRepeat: dInWidth,
		})
		y += rows
	}
}

func wantShape(node *graph.Node, shape ...int) error {
	if fmt.Sprint(node.Shape) != fmt.Sprint(shape) {
		return fmt.Errorf("the graph says that its output has shape %v, it has %v", node.Shape, shape)
	}
	return nil
}
