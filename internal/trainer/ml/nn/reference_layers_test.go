package nn_test

import (
	"math"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
)

// smooth is an elementwise function whose derivative is one of its output.
func smooth(x []float64, f, slope func(float64) float64) ([]float64, func([]float64) []float64) {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = f(v)
	}
	return y, func(dy []float64) []float64 {
		dx := make([]float64, len(x))
		for i, d := range dy {
			dx[i] = d * slope(y[i])
		}
		return dx
	}
}

func leakyReLU(alpha float64, x []float64) ([]float64, func([]float64) []float64) {
	slope := func(v float64) float64 {
		if v > 0 {
			return 1
		}
		return alpha
	}
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = slope(v) * v
	}
	return y, func(dy []float64) []float64 {
		dx := make([]float64, len(x))
		for i, d := range dy {
			dx[i] = slope(x[i]) * d
		}
		return dx
	}
}

func softmax(x []float64, classes int) ([]float64, func([]float64) []float64) {
	y := make([]float64, len(x))
	for from := 0; from < len(x); from += classes {
		sum := 0.0
		for i := range classes {
			sum += math.Exp(x[from+i])
		}
		for i := range classes {
			y[from+i] = math.Exp(x[from+i]) / sum
		}
	}
	return y, func(dy []float64) []float64 {
		dx := make([]float64, len(x))
		for i := range dx {
			for k := i / classes * classes; k < (i/classes+1)*classes; k++ { // the whole Jacobian
				slope := -y[k] * y[i]
				if k == i {
					slope += y[i]
				}
				dx[i] += slope * dy[k]
			}
		}
		return dx
	}
}

func averagePool(node graph.Node, x []float64, in []int, n int) ([]float64, func([]float64) []float64) {
	a := graph.AveragePoolAttrs{PoolH: in[0], PoolW: in[1], StrideH: 1, StrideW: 1}
	out := []int{1, 1, in[2]}
	if node.AveragePool != nil {
		a, out = *node.AveragePool, node.Shape
	}
	y := make([]float64, n*out[0]*out[1]*out[2])
	top, left := before(a.Padding, in[0], a.PoolH, a.StrideH), before(a.Padding, in[1], a.PoolW, a.StrideW)
	each := func(f func(xi, yi int)) {
		for i := range y {
			c, ox, oy, b := i%out[2], i/out[2]%out[1], i/out[2]/out[1]%out[0], i/out[2]/out[1]/out[0]
			for ky := range a.PoolH {
				for kx := range a.PoolW {
					if iy, ix := oy*a.StrideH+ky-top, ox*a.StrideW+kx-left; iy >= 0 && iy < in[0] && ix >= 0 && ix < in[1] {
						f(((b*in[0]+iy)*in[1]+ix)*in[2]+c, i)
					}
				}
			}
		}
	}
	count := make([]float64, len(y))
	each(func(_, yi int) { count[yi]++ })
	each(func(xi, yi int) { y[yi] += x[xi] / count[yi] })
	return y, func(dy []float64) []float64 {
		dx := make([]float64, len(x))
		each(func(xi, yi int) { dx[xi] += dy[yi] / count[yi] })
		return dx
	}
}

func merge(node graph.Node, xs [][]float64, shapes [][]int) ([]float64, func([]float64) [][]float64) {
	if node.Op == graph.Concatenate {
		return concatenate(xs, shapes)
	}
	if node.Op == graph.Subtract {
		y, minus := scale(-1, xs[1])
		for i, v := range xs[0] {
			y[i] += v
		}
		return y, func(dy []float64) [][]float64 { return [][]float64{dy, minus(dy)} }
	}
	y := append([]float64(nil), xs[0]...)
	for _, x := range xs[1:] {
		for i, v := range x {
			if node.Op == graph.Add {
				y[i] += v
			} else {
				y[i] *= v
			}
		}
	}
	return y, func(dy []float64) [][]float64 {
		var all [][]float64
		for k := range xs {
			d := append([]float64(nil), dy...)
			for other, x := range xs {
				for i := range d {
					if node.Op == graph.Multiply && other != k {
						d[i] *= x[i]
					}
				}
			}
			all = append(all, d)
		}
		return all
	}
}

func concatenate(xs [][]float64, shapes [][]int) ([]float64, func([]float64) [][]float64) {
	var y []float64
	var from [][2]int // of each element: operand and place in it
	last := func(k int) int { return shapes[k][len(shapes[k])-1] }
	for row := range len(xs[0]) / last(0) {
		for k, x := range xs {
			for i := row * last(k); i < (row+1)*last(k); i++ {
				y, from = append(y, x[i]), append(from, [2]int{k, i})
			}
		}
	}
	return y, func(dy []float64) [][]float64 {
		all := make([][]float64, len(xs))
		for k, x := range xs {
			all[k] = make([]float64, len(x))
		}
		for i, d := range dy {
			all[from[i][0]][from[i][1]] = d
		}
		return all
	}
}

// embedding takes row numbers as floats; its gradient is of the whole table.
func (r *reference) embedding(node graph.Node, ids []float64) ([]float64, func([]float64) []float64) {
	name, width := node.Name+"/embeddings", node.Embedding.OutputDim
	table := r.params[name]
	var y []float64
	for _, id := range ids {
		y = append(y, table[int(id)*width:][:width]...)
	}
	return y, func(dy []float64) []float64 {
		d := make([]float64, len(table))
		for i, v := range dy {
			d[int(ids[i/width])*width+i%width] += v
		}
		r.grads[name] = d
		return make([]float64, len(ids))
	}
}

func reduceSum(node graph.Node, x []float64, shape []int) ([]float64, func([]float64) []float64) {
	a := node.ReduceSum
	count, width := 1, 1
	for i, d := range shape {
		switch {
		case i >= a.From+a.Axes:
			width *= d
		case i >= a.From:
			count *= d
		}
	}
	place := func(i int) int { return i/(count*width)*width + i%width }
	y := make([]float64, len(x)/count)
	for i, v := range x {
		y[place(i)] += v
	}
	return y, func(dy []float64) []float64 {
		dx := make([]float64, len(x))
		for i := range dx {
			dx[i] = dy[place(i)]
		}
		return dx
	}
}

// broadcast repeats every value.
func broadcast(width int, x []float64) ([]float64, func([]float64) []float64) {
	y := make([]float64, len(x)*width)
	for i := range y {
		y[i] = x[i/width]
	}
	return y, func(dy []float64) []float64 {
		dx := make([]float64, len(x))
		for i, d := range dy {
			dx[i/width] += d
		}
		return dx
	}
}

func scale(factor float64, x []float64) ([]float64, func([]float64) []float64) {
	times := func(x []float64) []float64 {
		y := make([]float64, len(x))
		for i, v := range x {
			y[i] = v * factor
		}
		return y
	}
	return times(x), times
}
