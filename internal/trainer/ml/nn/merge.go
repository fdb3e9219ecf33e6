package nn

import (
	"fmt"
	"slices"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
)

// merge makes one value of several. Sums and products are made operand by operand, in order.
type merge struct {
	n         *Network
	in        []*tensor
	dIn       []*tensor // nil where no gradient is needed
	out, dOut *tensor
	widths    []int // of each operand's last axis, for Concatenate
	width     int   // of the output's
}

func (c *compiler) addMerge(node *graph.Node, operands []point) error {
	l := &merge{n: c.n}
	shape, size := slices.Clone(operands[0].shape), 0
	last := len(shape) - 1
	trainable := false
	for _, p := range operands {
		same := len(p.shape) == len(shape) && slices.Equal(p.shape[:last], shape[:last])
		if !same || node.Op != graph.Concatenate && p.shape[last] != shape[last] {
			return fmt.Errorf("the shapes %v and %v of its inputs do not fit", operands[0].shape, p.shape)
		}
		l.in, l.dIn = append(l.in, p.value), append(l.dIn, nil)
		if p.trainable {
			l.dIn[len(l.dIn)-1], trainable = p.gradient, true
		}
		l.widths = append(l.widths, p.shape[last])
		l.width += p.shape[last]
		size += p.value.size
	}
	if node.Op == graph.Concatenate {
		shape[last] = l.width
	} else {
		size = operands[0].value.size
	}
	if err := wantShape(node, shape...); err != nil {
		return err
	}
	c.output(size)
	c.trainable = trainable
	l.out, l.dOut = c.value, c.gradient
	forward, backward := l.concatenate, l.split
	switch node.Op {
	case graph.Add:
		forward, backward = l.add, l.copyGradient
	case graph.Multiply:
		forward, backward = l.multiply, l.multiplyGradient
	case graph.Subtract:
		forward, backward = l.subtract, l.subtractGradient
	}
	c.compute(forward)
	c.back(backward)
	return nil
}

func (l *merge) add(t *thread, s span) {
	out := l.out.record(t, s.from)
	copy(out, l.in[0].record(t, s.from))
	for _, in := range l.in[1:] {
		l.n.kernel.Add(out, in.record(t, s.from))
	}
}

func (l *merge) copyGradient(t *thread, s span) {
	for _, d := range l.dIn {
		if d != nil {
			copy(d.record(t, s.from), l.dOut.record(t, s.from))
		}
	}
}

func (l *merge) subtract(t *thread, s span) {
	out, b := l.out.record(t, s.from), l.in[1].record(t, s.from)
	for i, a := range l.in[0].record(t, s.from) {
		out[i] = a - b[i]
	}
}

func (l *merge) subtractGradient(t *thread, s span) {
	dOut := l.dOut.record(t, s.from)
	if d := l.dIn[0]; d != nil {
		copy(d.record(t, s.from), dOut)
	}
	if d := l.dIn[1]; d != nil {
		dst := d.record(t, s.from)
		for i, v := range dOut {
			dst[i] = -v
		}
	}
}

func (l *merge) multiply(t *thread, s span) {
	out := l.out.record(t, s.from)
	copy(out, l.in[0].record(t, s.from))
	for _, in := range l.in[1:] {
		l.n.kernel.Mul(out, out, in.record(t, s.from))
	}
}

// multiplyGradient: an operand's is dy × the others, in their order.
func (l *merge) multiplyGradient(t *thread, s span) {
	for i, d := range l.dIn {
		if d == nil {
			continue
		}
		dst := d.record(t, s.from)
		copy(dst, l.dOut.record(t, s.from))
		for other, in := range l.in {
			if other != i {
				l.n.kernel.Mul(dst, dst, in.record(t, s.from))
			}
		}
	}
}

func (l *merge) concatenate(t *thread, s span) {
	at := 0
	for i, in := range l.in {
		x, out := in.record(t, s.from), l.out.record(t, s.from)
		for row := 0; row*l.widths[i] < len(x); row++ {
			copy(out[row*l.width+at:][:l.widths[i]], x[row*l.widths[i]:])
		}
		at += l.widths[i]
	}
}

func (l *merge) split(t *thread, s span) {
	at := 0
	for i, d := range l.dIn {
		if d != nil {
			dst, dOut := d.record(t, s.from), l.dOut.record(t, s.from)
			for row := 0; row*l.widths[i] < len(dst); row++ {
				copy(dst[row*l.widths[i]:][:l.widths[i]], dOut[row*l.width+at:])
			}
		}
		at += l.widths[i]
	}
}
