package nn

import (
	"fmt"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/kernel"
)

// narrow is the number of outputs below which a Dense layer's kernel is held transposed and its forward pass is dot
// products in lanes (rules 3 and 4 of numerics).
const narrow = 16

// dense is out = in·W + b. Its weights are [in, out], or [out, in] when it is narrow.
type dense struct {
	n           *Network
	in, out     *tensor
	dIn, dOut   *tensor
	inputs      int
	units       int
	bias        bool
	weightParam Param
	biasParam   Param
	transposed  []float32 // [out, in], for dIn of a layer that is not narrow
	biasSum     []float32 // of a block
}

func (c *compiler) addDense(node *graph.Node) (form string, err error) {
	a := node.Dense
	switch {
	case a == nil:
		return "", fmt.Errorf("its attributes are missing")
	case len(c.shape) != 1:
		return "", fmt.Errorf("the input has shape %v; only a flat one is implemented", c.shape)
	case a.Units < 1:
		return "", fmt.Errorf("it has %d units", a.Units)
	}
	l := &dense{n: c.n, in: c.value, inputs: c.shape[0], units: a.Units, bias: a.UseBias}
	if err := wantShape(node, l.units); err != nil {
		return "", err
	}
	if c.trainable {
		l.dIn = c.gradient
		l.dIn.perThread = false // made for a block at once
	}
	isNarrow := l.units < narrow
	l.weightParam = c.variable(node.Name+"/kernel", isNarrow, l.inputs, l.units)
	if l.bias {
		l.biasParam = c.variable(node.Name+"/bias", false, l.units)
	}
	c.output(l.units)
	l.out, l.dOut = c.value, c.gradient
	l.dOut.perThread = false // read once more when all blocks are done
	c.arena.reserve(&l.biasSum, l.units)
	if l.dIn != nil && !isNarrow {
		c.arena.reserve(&l.transposed, l.inputs*l.units)
		c.prepare = append(c.prepare, l.transpose)
	}
	c.forward = append(c.forward, operation{false, l.forward})
	c.infer = append(c.infer, operation{false, l.forward})
	if l.dIn != nil {
		c.backward = append(c.backward, backwardStep{before: []operation{{false, l.inputGradient}}})
	}
	c.final = append(c.final, l.gradients())
	if isNarrow {
		return "16 lanes", nil
	}
	return "fma chain", nil
}

func (l *dense) forward(_ *thread, s span) {
	x, out := l.in.records(s.from, s.to), l.out.records(s.from, s.to)
	w, rows := l.n.weights(l.weightParam), s.to-s.from
	var bias []float32
	if l.bias {
		bias = l.n.weights(l.biasParam)
	}
	if !l.weightParam.Transposed {
		l.n.kernel.Gemm(kernel.Gemm{
			M: rows, N: l.units, Segments: 1, K: l.inputs,
			A: x, ARow: l.inputs, AStep: 1,
			B: w, BRow: l.units,
			C: out, CRow: l.units, Bias: bias,
		})
		return
	}
	l.n.kernel.Dot(kernel.Dot{
		Rows: rows, Columns: l.units, K: l.inputs,
		X: x, XRow: l.inputs, W: w, WRow: l.inputs, Out: out, OutRow: l.units,
	})
	for row := out; l.bias && len(row) > 0; row = row[l.units:] {
		for j, b := range bias {
			row[j] += b
		}
	}
}

func (l *dense) transpose() {
	w := l.n.weights(l.weightParam)
	for j := range l.units {
		to := l.transposed[j*l.inputs:][:l.inputs]
		for i := range to {
			to[i] = w[i*l.units+j]
		}
	}
}

func (l *dense) inputGradient(_ *thread, s span) {
	w := l.transposed
	if l.weightParam.Transposed {
		w = l.n.weights(l.weightParam)
	}
	l.n.kernel.Gemm(kernel.Gemm{
		M: s.to - s.from, N: l.inputs, Segments: 1, K: l.units,
		A: l.dOut.records(s.from, s.to), ARow: l.units, AStep: 1,
		B: w, BRow: l.inputs,
		C: l.dIn.records(s.from, s.to), CRow: l.inputs,
	})
}

// gradientRows is how many inputs' weight gradients are a unit of work.
const gradientRows = 1024

// gradients is the phase that makes the gradients of the variables, for all blocks at once: unit 0 is the bias', each
// of the others has some of the inputs.
func (l *dense) gradients() phase {
	return phase{
		units: func(*Network) int { return 1 + (l.inputs+gradientRows-1)/gradientRows },
		run: func(_ *thread, unit int) {
			if unit == 0 {
				l.biasGradient()
				return
			}
			from := (unit - 1) * gradientRows
			l.kernelGradient(from, min(from+gradientRows, l.inputs))
		},
	}
}

func (l *dense) kernelGradient(from, to int) {
	records := l.n.run.records
	dw := l.n.gradient(l.weightParam)
	x, dy := l.in.records(0, records)[from:], l.dOut.records(0, records)
	g := kernel.GemmBlocks{
		M: to - from, N: l.units, Records: records,
		A: x, ARow: 1, AStep: l.inputs,
		B: dy, BRow: l.units,
		C: dw[from*l.units:], CRow: l.units,
	}
	if l.weightParam.Transposed {
		g.M, g.N = g.N, g.M
		g.A, g.AStep, g.B, g.BRow = g.B, g.BRow, g.A, g.AStep
		g.C, g.CRow = dw[from:], l.inputs
	}
	l.n.kernel.GemmBlocks(g)
}

func (l *dense) biasGradient() {
	if !l.bias {
		return
	}
	db, records := l.n.gradient(l.biasParam), l.n.run.records
	for block := range kernel.Blocks(records) {
		from, to := kernel.Block(records, block)
		sum := db
		if block > 0 {
			sum = l.biasSum
		}
		clear(sum)
		l.n.kernel.ColumnSum(sum, l.dOut.records(from, to))
		if block > 0 {
			l.n.kernel.Add(db, sum)
		}
	}
}
