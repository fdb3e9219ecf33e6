package nn

import (
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/kernel"
)

// pooledNorm is a max-pooling that a batchNorm has taken along, because its windows tile the image: what is normalized
// is never stored, and its gradient, three quarters of it zeros for windows of 2×2, never spread out. The bits are
// those of the two layers, but for the sign of a dγ that is zero.
type pooledNorm struct {
	row       kernel.Pool
	rows      int // of outputs
	inputRow  int // floats of a row of the image
	outputRow int
	arg       []int32 // per record and output
	at        *tensor // the x that was the largest
}

// takePool returns nil if the layer behind is no pooling that can be fused.
func (c *compiler) takePool(next *graph.Node) *pooledNorm {
	if next == nil || next.Op != graph.MaxPool || next.MaxPool == nil || len(c.shape) != 3 {
		return nil
	}
	a := next.MaxPool
	height, width, channels := c.shape[0], c.shape[1], c.shape[2]
	if a.PoolH < 1 || a.PoolW < 1 || a.StrideH != a.PoolH || a.StrideW != a.PoolW || height%a.PoolH != 0 || width%a.PoolW != 0 {
		return nil
	}
	c.pooled = true
	rows, outputs := height/a.PoolH, width/a.PoolW
	return &pooledNorm{
		row:  kernel.Pool{Outputs: outputs, Channels: channels, Height: a.PoolH, Width: a.PoolW, Stride: a.PoolW, InputRowPixels: width},
		rows: rows, inputRow: width * channels, outputRow: outputs * channels,
		at: &tensor{size: rows * outputs * channels},
	}
}

func (l *batchNorm) forwardPooled(t *thread, s span) {
	p := l.pool
	in, out, at, arg := l.in.record(t, s.from), l.out.record(t, s.from), p.at.record(t, s.from), p.arg[s.from*p.at.size:]
	for y := range p.rows {
		from := y * p.outputRow
		l.n.kernel.BatchNormMaxPool(p.row, out[from:], arg[from:], at[from:], in[y*p.row.Height*p.inputRow:], l.mean, l.scale, l.shift)
	}
}

func (l *batchNorm) sumGradientsPooled(t *thread, s span) {
	p := l.pool
	l.n.kernel.PooledProducts(
		p.row, p.rows, l.block(l.sums, s), l.block(l.products, s), l.dOut.record(t, s.from), p.at.record(t, s.from),
		p.arg[s.from*p.at.size:], l.mean,
	)
}

func (l *batchNorm) backwardPooled(t *thread, s span) {
	p := l.pool
	in, dOut, arg := l.in.record(t, s.from), l.dOut.record(t, s.from), p.arg[s.from*p.at.size:]
	back := l.n.kernel.BatchNormBackPooled
	if l.below != nil && l.below.relu {
		back = l.n.kernel.BatchNormReLUBackPooled
	}
	for y := range p.rows * p.row.Height {
		var dst []float32
		if l.below != nil {
			dst = l.below.dyRow(t, y)
		} else {
			dst = l.dIn.record(t, s.from)[y*p.inputRow:][:p.inputRow]
		}
		from := y / p.row.Height * p.outputRow
		back(p.row, y%p.row.Height, dst, dOut[from:], arg[from:], in[y*p.inputRow:], l.mean, l.scale, l.offset, l.slope)
	}
}
