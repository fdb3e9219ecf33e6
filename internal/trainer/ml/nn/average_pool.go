package nn

import (
	"fmt"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
)

// averagePool is the mean over windows, which may overlap, or over the whole image. A window's pixels that are in the
// image are added up in their order (ky, kx), from the first, and the sum divided once by their number; the gradient is
// divided once and added to the pixels in the order of the outputs.
type averagePool struct {
	windows
	n                *Network
	in, out          *tensor
	dIn, dOut        *tensor
	height, width    int // of the input
	channels         int
	poolH, poolW     int
	strideH, strideW int
	share            *tensor // per thread: one pixel's divided gradient
}

func (c *compiler) addAveragePool(node *graph.Node) error {
	if len(c.shape) != 3 {
		return fmt.Errorf("the input has shape %v; pooling takes height, width and channels", c.shape)
	}
	height, width, channels := c.shape[0], c.shape[1], c.shape[2]
	a := &graph.AveragePoolAttrs{PoolH: height, PoolW: width, StrideH: 1, StrideW: 1}
	if node.Op == graph.AveragePool {
		if a = node.AveragePool; a == nil {
			return fmt.Errorf("its attributes are missing")
		}
	}
	w, err := newWindows(*a, height, width)
	if err != nil {
		return err
	}
	shape := []int{w.outH, w.outW, channels}
	if node.Op == graph.GlobalAveragePool {
		shape = shape[2:]
	}
	if err := wantShape(node, shape...); err != nil {
		return err
	}
	l := &averagePool{
		windows: w, n: c.n, in: c.value, height: height, width: width, channels: channels,
		poolH: a.PoolH, poolW: a.PoolW, strideH: a.StrideH, strideW: a.StrideW,
	}
	if c.trainable {
		l.dIn = c.gradient
		l.share = &tensor{size: channels, perThread: true}
		c.gradients = append(c.gradients, l.share)
	}
	c.output(l.outH * l.outW * channels)
	l.out, l.dOut = c.value, c.gradient
	c.compute(l.forward)
	c.back(l.backward)
	return nil
}

// pixels are those of a window's that are in the image, along one axis.
func pixels(output, stride, before, pool, size int) (from, to int) {
	from = output*stride - before
	return max(from, 0), min(from+pool, size)
}

// each calls do with every output pixel and every pixel of its window; count is their number, first marks the first of
// a window, last the last.
func (l *averagePool) each(do func(out, in int, count float32, first, last bool)) {
	for oy := range l.outH {
		top, bottom := pixels(oy, l.strideH, l.top, l.poolH, l.height)
		for ox := range l.outW {
			left, right := pixels(ox, l.strideW, l.left, l.poolW, l.width)
			count := float32((bottom - top) * (right - left))
			for y := top; y < bottom; y++ {
				for x := left; x < right; x++ {
					do((oy*l.outW+ox)*l.channels, (y*l.width+x)*l.channels, count, y == top && x == left, y == bottom-1 && x == right-1)
				}
			}
		}
	}
}

func (l *averagePool) forward(t *thread, s span) {
	x, y := l.in.record(t, s.from), l.out.record(t, s.from)
	l.each(func(out, in int, count float32, first, last bool) {
		sum, pixel := y[out:][:l.channels], x[in:][:l.channels]
		if first {
			copy(sum, pixel)
		} else {
			l.n.kernel.Add(sum, pixel)
		}
		if last {
			for c := range sum {
				sum[c] /= count
			}
		}
	})
}

func (l *averagePool) backward(t *thread, s span) {
	dx, dy, share := l.dIn.record(t, s.from), l.dOut.record(t, s.from), l.share.record(t, 0)
	clear(dx)
	l.each(func(out, in int, count float32, first, _ bool) {
		if first {
			for c, d := range dy[out:][:l.channels] {
				share[c] = d / count
			}
		}
		l.n.kernel.Add(dx[in:][:l.channels], share)
	})
}
