package nn

import "github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/kernel"

// border is the zeros around the image of a convolution with "same" padding.
type border struct {
	top, left, bottom, right int
	image                    *tensor // with its border, per thread
	gradient                 *tensor // likewise, of a layer with strides; nil if nothing before it needs that
}

// sameAround is TensorFlow's "same" padding along an axis: as much as makes the output ⌈in/stride⌉ large, the odd one
// behind.
func sameAround(in, window, stride int) (before, behind int) {
	all := max(0, ((in+stride-1)/stride-1)*stride+window-in)
	return all / 2, all - all/2
}

// sameBorder is the border of a convolution with "same" padding.
func (c *compiler) sameBorder(l *conv) border {
	var b border
	b.top, b.bottom = sameAround(l.inH, l.kernelH, l.strideH)
	b.left, b.right = sameAround(l.inW, l.kernelW, l.strideW)
	if b == (border{}) {
		return b
	}
	b.image = &tensor{size: (b.top + l.inH + b.bottom) * (b.left + l.inW + b.right) * l.inC, perThread: true}
	c.gradients = append(c.gradients, b.image)
	return b
}

func (l *conv) paddedH() int { return l.border.top + l.inH + l.border.bottom }
func (l *conv) paddedW() int { return l.border.left + l.inW + l.border.right }

// image is the input with its border, which nothing writes: it stays zero.
func (l *conv) image(t *thread, s span) []float32 {
	in := l.in.record(t, s.from)
	if l.border.image == nil {
		return in
	}
	image := l.border.image.record(t, 0)
	l.eachRow(func(inside, padded int) { copy(image[padded:], in[inside:][:l.inW*l.inC]) })
	return image
}

// crop takes the gradient of the input out of the image's.
func (l *conv) crop(dIn, dImage []float32) {
	l.eachRow(func(inside, padded int) { copy(dIn[inside:][:l.inW*l.inC], dImage[padded:]) })
}

// eachRow gives the places of the rows in the input and in the image with its border.
func (l *conv) eachRow(do func(inside, padded int)) {
	for y := range l.inH {
		do(y*l.inW*l.inC, ((l.border.top+y)*l.paddedW()+l.border.left)*l.inC)
	}
}

// spread makes the gradient of the image of a convolution with strides: for every position of the kernel, from its last
// to its first, the pixels that it was applied to take dy × kernel. So the chain of a pixel is in the order of dy's
// pixels, and only those are in it that had a part.
func (l *conv) spread(dIn, dy []float32) {
	clear(dIn)
	panel := l.panelIn
	for position := range l.kernelH * l.kernelW {
		last := l.kernelH*l.kernelW - 1 - position
		ky, kx := last/l.kernelW, last%l.kernelW
		l.n.kernel.Gemm(kernel.Gemm{
			M: l.outW, N: l.inC, Segments: 1, K: l.outC,
			A: dy, ARow: l.outC, AStep: 1,
			B: l.packedReverse[position*l.outC*panel:], BRow: panel, BPanel: l.kernelH * l.kernelW * l.outC * panel,
			C: dIn[(ky*l.paddedW()+kx)*l.inC:], CRow: l.strideW * l.inC,
			Load:   true,
			Repeat: l.outH, ARepeat: l.outW * l.outC, CRepeat: l.strideH * l.paddedW() * l.inC,
		})
	}
}
