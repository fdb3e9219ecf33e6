package nn

import (
	"fmt"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/graph"
)

// averagePool is the mean over windows, which may overlap, or over the whole image. A window is added up in the order of
// its pixels (ky, kx), from the first, and divided once; the gradient is divided once and added to the pixels in the order
// of the outputs.
type averagePool struct {
	n                *Network
	in, out          *tensor
	dIn, dOut        *tensor
	width, channels  int // of the input
	outH, outW       int
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
	shape := []int{channels}
	if node.Op == graph.AveragePool {
		if a = node.AveragePool; a == nil {
			return fmt.Errorf("its attributes are missing")
		}
		if a.PoolH < 1 || a.PoolW < 1 || a.PoolH > height || a.PoolW > width || a.StrideH < 1 || a.StrideW < 1 {
			return fmt.Errorf("a window of %d×%d with strides %d×%d does not fit an image of %d×%d", a.PoolH, a.PoolW, a.StrideH, a.StrideW, height, width)
		}
		shape = []int{(height-a.PoolH)/a.StrideH + 1, (width-a.PoolW)/a.StrideW + 1, channels}
	}
	if err := wantShape(node, shape...); err != nil {
		return err
	}
	l := &averagePool{
		n: c.n, in: c.value, width: width, channels: channels, outH: (height-a.PoolH)/a.StrideH + 1, outW: (width-a.PoolW)/a.StrideW + 1,
		poolH: a.PoolH, poolW: a.PoolW, strideH: a.StrideH, strideW: a.StrideW,
	}
	if c.trainable {
		l.dIn = c.gradient
		l.share = &tensor{size: channels, perThread: true}
		c.gradients = append(c.gradients, l.share)
	}
	c.output(l.outH * l.outW * channels)
	l.out, l.dOut = c.value, c.gradient
	c.forward = append(c.forward, operation{true, l.forward})
	c.infer = append(c.infer, operation{true, l.forward})
	if l.dIn != nil {
		c.backward = append(c.backward, backwardStep{before: []operation{{true, l.backward}}})
	}
	return nil
}

// windows calls do with every output pixel and every pixel of its window; first marks the first of a window, last the last.
func (l *averagePool) windows(do func(out, in int, first, last bool)) {
	for oy := range l.outH {
		for ox := range l.outW {
			for ky := range l.poolH {
				for kx := range l.poolW {
					pixel := (oy*l.strideH+ky)*l.width + ox*l.strideW + kx
					do((oy*l.outW+ox)*l.channels, pixel*l.channels, ky == 0 && kx == 0, ky == l.poolH-1 && kx == l.poolW-1)
				}
			}
		}
	}
}

func (l *averagePool) forward(t *thread, s span) {
	x, y := l.in.record(t, s.from), l.out.record(t, s.from)
	count := float32(l.poolH * l.poolW)
	l.windows(func(out, in int, first, last bool) {
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
	count := float32(l.poolH * l.poolW)
	clear(dx)
	l.windows(func(out, in int, first, _ bool) {
		if first {
			for c, d := range dy[out:][:l.channels] {
				share[c] = d / count
			}
		}
		l.n.kernel.Add(dx[in:][:l.channels], share)
	})
}
