package nn

import (
	"fmt"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/graph"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/kernel"
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
		if l.strideH == 1 && l.strideW == 1 {
			l.pad = l.kernelW - 1
		}
		if l.border != (border{}) {
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
	c.arena.reserve(&l.blockSum, kernel.MaxBlocks*l.sumSize())

	c.forward = append(c.forward, operation{true, l.forward})
	c.infer = append(c.infer, operation{true, l.forward})
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

// chunkRows is how many image rows of dW's factors stay in the first cache level at a time.
const chunkRows = 4

func (l *conv) kernelGradient(t *thread, s span, dw []float32) {
	in, dy := l.image(t, s), l.dy.record(t, 0)
	inWidth, dyWidth := l.paddedW()*l.inC, (l.outW+2*l.pad)*l.outC
	for y := 0; y < l.outH; y += chunkRows {
		l.n.kernel.Gemm(kernel.Gemm{
			M: l.kernelW * l.inC, N: l.outC, Segments: min(chunkRows, l.outH-y), K: l.outW,
			A: in[y*l.strideH*inWidth:], ARow: 1, AStep: l.strideW * l.inC, ASegment: l.strideH * inWidth,
			B: dy[y*dyWidth+l.pad*l.outC:], BRow: l.outC, BSegment: dyWidth,
			C: dw, CRow: l.outC,
			Load:   !s.first || y > 0,
			Repeat: l.kernelH, ARepeat: inWidth, CRepeat: l.kernelW * l.inC * l.outC,
		})
	}
}

// inputGradient makes the gradient of the image, whose border is thrown away.
func (l *conv) inputGradient(t *thread, s span) {
	dIn := l.dIn.record(t, s.from)
	dst := dIn
	if l.border.gradient != nil {
		dst = l.border.gradient.record(t, 0)
	}
	if l.strideH == 1 && l.strideW == 1 {
		l.correlate(dst, l.dy.record(t, 0))
	} else {
		l.spread(dst, l.dy.record(t, 0))
	}
	if l.border.gradient != nil {
		l.crop(dIn, dst)
	}
}

// correlate is a full correlation of dy with the turned kernel: chains in the order of dy's pixels.
func (l *conv) correlate(dIn, dy []float32) {
	panel, k := l.panelIn, l.kernelW*l.outC
	dyWidth, dInWidth := (l.outW+2*l.pad)*l.outC, l.paddedW()*l.inC
	for y := 0; y < l.paddedH(); {
		from, to := max(0, y-l.kernelH+1), min(l.outH, y+1) // rows of dy that row y of the input had a part in
		rows := 1
		if y == l.kernelH-1 && to-from == l.kernelH {
			rows = l.outH - l.kernelH + 1 // all rows to which the whole kernel applies
		}
		l.n.kernel.Gemm(kernel.Gemm{
			M: l.paddedW(), N: l.inC, Segments: to - from, K: k,
			A: dy[from*dyWidth:], ARow: l.outC, AStep: 1, ASegment: dyWidth,
			B: l.packedReverse[(l.kernelH-1-y+from)*k*panel:], BRow: panel, BSegment: k * panel, BPanel: l.kernelH * k * panel,
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
