package nn_test

import (
	"math"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/nn"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/philox"
)

// reference is the same model in float64, written from the definitions: loops over indices, no blocking, no fusion.
type reference struct {
	m      *graph.Model
	params map[string][]float64 // in Keras' layout
	grads  map[string][]float64
	stats  map[string][]float64 // batch statistics, as the moving ones take them
	seed   uint64
	step   int64
	worker int
	infer  bool

	loss    float64
	correct int64
}

func newReference(m *graph.Model, tensors []nn.Tensor) *reference {
	r := &reference{m: m, params: map[string][]float64{}}
	for _, t := range tensors {
		v := make([]float64, len(t.Data))
		for i, x := range t.Data {
			v[i] = float64(x)
		}
		r.params[t.Name] = v
	}
	return r
}

// run does forward and backward; weight multiplies the derivative of the sum of losses.
func (r *reference) run(b *graph.Batch, weight float64) {
	r.grads, r.stats = map[string][]float64{}, map[string][]float64{}
	m := r.m
	values, backs := make([][]float64, len(m.Nodes)), make([]func(dy []float64) [][]float64, len(m.Nodes))
	dropouts, inputs := 0, 0
	for i, node := range m.Nodes {
		if node.Op == graph.Input {
			for _, v := range b.Inputs[inputs] {
				values[i] = append(values[i], float64(v))
			}
			if node.Integer {
				for _, id := range b.Integers[inputs] {
					values[i] = append(values[i], float64(id))
				}
			}
			inputs++
			continue
		}
		var operands [][]float64
		var shapes [][]int
		for _, in := range node.Inputs {
			operands, shapes = append(operands, values[in]), append(shapes, m.Nodes[in].Shape)
		}
		values[i], backs[i] = r.layer(node, operands, shapes, b.N, &dropouts)
	}
	gradients := make([][]float64, len(m.Nodes))
	r.loss, r.correct, gradients[m.Output] = r.output(values[m.Output], b, weight)
	for i := len(m.Nodes) - 1; i >= 0; i-- {
		if gradients[i] == nil || backs[i] == nil {
			continue
		}
		for k, d := range backs[i](gradients[i]) {
			in := m.Nodes[i].Inputs[k]
			if gradients[in] == nil {
				gradients[in] = make([]float64, len(values[in]))
			}
			for j, v := range d {
				gradients[in][j] += v
			}
		}
	}
}

// layer computes a node, and gives what makes the gradients of its inputs of its output's.
func (r *reference) layer(node graph.Node, operands [][]float64, shapes [][]int, n int, dropouts *int) ([]float64, func(dy []float64) [][]float64) {
	x, shape := operands[0], shapes[0]
	y, back := x, func(dy []float64) []float64 { return dy }
	switch node.Op {
	case graph.Conv2D:
		y, back = r.conv(node, x, shape, n)
	case graph.Dense:
		y, back = r.dense(node, x, n)
	case graph.BatchNorm:
		y, back = r.batchNorm(node, x)
	case graph.MaxPool:
		y, back = r.maxPool(node, x, shape, n)
	case graph.AveragePool, graph.GlobalAveragePool:
		y, back = averagePool(node, x, shape, n)
	case graph.Dropout:
		y, back = r.dropout(node, x, *dropouts)
		*dropouts++
	case graph.ReLU:
		y, back = relu(x)
	case graph.Sigmoid:
		y, back = smooth(x, func(v float64) float64 { return 1 / (1 + math.Exp(-v)) }, func(y float64) float64 { return y * (1 - y) })
	case graph.Tanh:
		y, back = smooth(x, math.Tanh, func(y float64) float64 { return 1 - y*y })
	case graph.LeakyReLU:
		y, back = leakyReLU(node.LeakyReLU.Alpha, x)
	case graph.Softmax:
		y, back = softmax(x, shape[len(shape)-1])
	case graph.Embedding:
		y, back = r.embedding(node, x)
	case graph.ReduceSum:
		y, back = reduceSum(node, x, shape)
	case graph.Broadcast:
		y, back = broadcast(node.Shape[len(node.Shape)-1], x)
	case graph.Scale:
		y, back = scale(node.Scale.Value, x)
	case graph.Add, graph.Multiply, graph.Concatenate, graph.Subtract:
		return merge(node, operands, shapes)
	}
	return y, func(dy []float64) [][]float64 { return [][]float64{back(dy)} }
}

// output is the loss, the hits, and the derivative of the output.
func (r *reference) output(x []float64, b *graph.Batch, weight float64) (loss float64, correct int64, d []float64) {
	classes := len(x) / b.N
	d = make([]float64, len(x))
	if r.m.Loss != graph.SparseSoftmaxCrossEntropy {
		for n, z := range x {
			y := 0.0
			if len(b.Labels) > 0 {
				y = float64(b.Labels[n])
			} else {
				y = float64(b.Targets[n])
			}
			if r.m.Loss == graph.MeanSquaredError {
				loss += (z - y) * (z - y)
				d[n] = 2 * (z - y) * weight
				continue
			}
			p := 1 / (1 + math.Exp(-z))
			loss -= y*math.Log(p) + (1-y)*math.Log(1-p)
			d[n] = (p - y) * weight
			if (p > 0.5) == (y > 0.5) {
				correct++
			}
		}
		return loss, correct, d
	}
	for n := range b.N {
		z, dz, label := x[n*classes:][:classes], d[n*classes:], int(b.Labels[n])
		sum, best := 0.0, 0
		for c, v := range z {
			sum += math.Exp(v)
			if v > z[best] {
				best = c
			}
		}
		for c, v := range z {
			dz[c] = math.Exp(v) / sum * weight
		}
		dz[label] -= weight
		loss += math.Log(sum) - z[label]
		if best == label {
			correct++
		}
	}
	return loss, correct, d
}

func (r *reference) conv(node graph.Node, x []float64, in []int, n int) ([]float64, func([]float64) []float64) {
	a, out := node.Conv2D, node.Shape
	w, bias := r.params[node.Name+"/kernel"], r.params[node.Name+"/bias"]
	y := make([]float64, n*out[0]*out[1]*out[2])
	top, left := 0, 0
	if a.Padding == "same" { // in TensorFlow's documentation: total padding, half of it before
		top = max(0, (out[0]-1)*a.StrideH+a.KernelH-in[0]) / 2
		left = max(0, (out[1]-1)*a.StrideW+a.KernelW-in[1]) / 2
	}
	each := func(f func(xi, wi, yi int)) {
		for b := range n {
			for oy := range out[0] {
				for ox := range out[1] {
					for ky := range a.KernelH {
						for kx := range a.KernelW {
							iy, ix := oy*a.StrideH+ky-top, ox*a.StrideW+kx-left
							if iy < 0 || iy >= in[0] || ix < 0 || ix >= in[1] {
								continue
							}
							for ci := range in[2] {
								for co := range out[2] {
									f(((b*in[0]+iy)*in[1]+ix)*in[2]+ci, ((ky*a.KernelW+kx)*in[2]+ci)*out[2]+co, ((b*out[0]+oy)*out[1]+ox)*out[2]+co)
								}
							}
						}
					}
				}
			}
		}
	}
	for i := range y {
		y[i] = bias[i%out[2]]
	}
	each(func(xi, wi, yi int) { y[yi] += x[xi] * w[wi] })
	return y, func(dy []float64) []float64 {
		dx, dw, db := make([]float64, len(x)), make([]float64, len(w)), make([]float64, len(bias))
		each(func(xi, wi, yi int) {
			dx[xi] += dy[yi] * w[wi]
			dw[wi] += dy[yi] * x[xi]
		})
		for i, v := range dy {
			db[i%out[2]] += v
		}
		r.grads[node.Name+"/kernel"], r.grads[node.Name+"/bias"] = dw, db
		return dx
	}
}

func (r *reference) dense(node graph.Node, x []float64, n int) ([]float64, func([]float64) []float64) {
	units, inputs := node.Dense.Units, len(x)/n
	w, bias := r.params[node.Name+"/kernel"], r.params[node.Name+"/bias"]
	y := make([]float64, n*units)
	for i := range y {
		y[i] = bias[i%units]
		for k := range inputs {
			y[i] += x[i/units*inputs+k] * w[k*units+i%units]
		}
	}
	return y, func(dy []float64) []float64 {
		dx, dw, db := make([]float64, len(x)), make([]float64, len(w)), make([]float64, units)
		for i, d := range dy {
			db[i%units] += d
			for k := range inputs {
				dx[i/units*inputs+k] += d * w[k*units+i%units]
				dw[k*units+i%units] += d * x[i/units*inputs+k]
			}
		}
		r.grads[node.Name+"/kernel"], r.grads[node.Name+"/bias"] = dw, db
		return dx
	}
}

func (r *reference) batchNorm(node graph.Node, x []float64) ([]float64, func([]float64) []float64) {
	c := node.Shape[len(node.Shape)-1]
	count := float64(len(x) / c)
	gamma, beta := r.params[node.Name+"/gamma"], r.params[node.Name+"/beta"]
	mean, variance := make([]float64, c), make([]float64, c)
	for i, v := range x {
		mean[i%c] += v / count
	}
	for i, v := range x {
		variance[i%c] += (v - mean[i%c]) * (v - mean[i%c]) / count
	}
	moving := make([]float64, c)
	for i, v := range variance {
		moving[i] = v
		if len(node.Shape) == 3 && count > 1 {
			moving[i] = v * count / (count - 1)
		}
	}
	r.stats[node.Name+"/moving_mean"], r.stats[node.Name+"/moving_variance"] = mean, moving
	if r.infer {
		mean, variance = r.params[node.Name+"/moving_mean"], r.params[node.Name+"/moving_variance"]
	}
	hat := make([]float64, len(x))
	y := make([]float64, len(x))
	for i, v := range x {
		hat[i] = (v - mean[i%c]) / math.Sqrt(variance[i%c]+node.BatchNorm.Epsilon)
		y[i] = gamma[i%c]*hat[i] + beta[i%c]
	}
	return y, func(dy []float64) []float64 {
		dg, db, dx := make([]float64, c), make([]float64, c), make([]float64, len(x))
		for i, d := range dy {
			dg[i%c] += d * hat[i]
			db[i%c] += d
		}
		for i, d := range dy {
			j := i % c
			dx[i] = gamma[j] / math.Sqrt(variance[j]+node.BatchNorm.Epsilon) * (d - db[j]/count - hat[i]*dg[j]/count)
		}
		r.grads[node.Name+"/gamma"], r.grads[node.Name+"/beta"] = dg, db
		return dx
	}
}

// before is how far the first window reaches beyond an axis of the image.
func before(padding string, in, window, stride int) int {
	if padding != "same" {
		return 0
	}
	outputs := (in + stride - 1) / stride
	return max(0, (outputs-1)*stride+window-in) / 2
}

func (r *reference) maxPool(node graph.Node, x []float64, in []int, n int) ([]float64, func([]float64) []float64) {
	a, out := node.MaxPool, node.Shape
	top, left := before(a.Padding, in[0], a.PoolH, a.StrideH), before(a.Padding, in[1], a.PoolW, a.StrideW)
	y := make([]float64, n*out[0]*out[1]*out[2])
	from := make([]int, len(y))
	for i := range y {
		c, ox, oy, b := i%out[2], i/out[2]%out[1], i/out[2]/out[1]%out[0], i/out[2]/out[1]/out[0]
		y[i] = math.Inf(-1)
		for ky := range a.PoolH {
			for kx := range a.PoolW {
				iy, ix := oy*a.StrideH+ky-top, ox*a.StrideW+kx-left
				if iy < 0 || iy >= in[0] || ix < 0 || ix >= in[1] {
					continue
				}
				if at := ((b*in[0]+iy)*in[1]+ix)*in[2] + c; x[at] > y[i] {
					y[i], from[i] = x[at], at
				}
			}
		}
	}
	return y, func(dy []float64) []float64 {
		dx := make([]float64, len(x))
		for i, d := range dy {
			dx[from[i]] += d
		}
		return dx
	}
}

func (r *reference) dropout(node graph.Node, x []float64, number int) ([]float64, func([]float64) []float64) {
	if r.infer {
		return x, func(dy []float64) []float64 { return dy }
	}
	rate := node.Dropout.Rate
	key := philox.NewKey(r.seed, philox.Dropout)
	mask := make([]float64, len(x))
	y := make([]float64, len(x))
	for i, v := range x {
		if float64(key.Element(philox.Index{uint32(r.step), uint32(r.worker), uint32(number)}, uint64(i))) >= math.Floor(rate*(1<<32)) {
			mask[i] = 1 / (1 - rate)
		}
		y[i] = v * mask[i]
	}
	return y, func(dy []float64) []float64 {
		dx := make([]float64, len(x))
		for i, d := range dy {
			dx[i] = d * mask[i]
		}
		return dx
	}
}

func relu(x []float64) ([]float64, func([]float64) []float64) {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = max(v, 0)
	}
	return y, func(dy []float64) []float64 {
		dx := make([]float64, len(x))
		for i, d := range dy {
			if x[i] > 0 {
				dx[i] = d
			}
		}
		return dx
	}
}
