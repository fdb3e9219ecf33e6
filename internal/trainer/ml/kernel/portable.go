package kernel

import (
	"math"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/philox"
)

// Portable is the reference: plain Go, the same on every platform.
func Portable() Set {
	return Set{
		Name:  "portable",
		Panel: portablePanel,

		Gemm:       portableGemm,
		GemmBlocks: portableGemmBlocks,
		Dot:        portableDot,

		Add:      portableAdd,
		Mul:      portableMul,
		ReLU:     portableReLU,
		ReLUBack: portableReLUBack,
		SGD:      portableSGD,
		Momentum: portableMomentum,
		Adam:     portableAdam,
		AdamRows: adamRows(portableScale, portableDescend),
		Finite:   portableFinite,

		ColumnSum:         func(acc, x []float32) { portableColumnSum(acc, x, 0) },
		ColumnSquares:     func(acc, x, mean []float32) { portableColumnSquares(acc, x, mean, 0) },
		ColumnProducts:    func(sum, dot, dy, x, mean []float32) { portableColumnProducts(sum, dot, dy, x, mean, 0) },
		BatchNorm:         func(dst, x, mean, scale, shift []float32) { portableBatchNorm(dst, x, mean, scale, shift, 0) },
		BatchNormBack:     portableBatchNormBack(false),
		BatchNormReLUBack: portableBatchNormBack(true),

		MaxPool:     func(p Pool, dst []float32, arg []int32, x []float32) { portableMaxPool(p, dst, arg, x, 0) },
		MaxPoolBack: func(p Pool, dx, dy []float32, arg []int32) { portableMaxPoolBack(p, dx, dy, arg, 0) },

		BatchNormMaxPool: func(p Pool, dst []float32, arg []int32, at, x, mean, scale, shift []float32) {
			portableBatchNormMaxPool(p, dst, arg, at, x, mean, scale, shift, 0)
		},
		PooledProducts: func(p Pool, rows int, sum, dot, dy, at []float32, arg []int32, mean []float32) {
			portablePooledProducts(p, rows, sum, dot, dy, at, arg, mean, 0)
		},
		BatchNormBackPooled: func(p Pool, ky int, dst, dy []float32, arg []int32, x, mean, scale, offset, slope []float32) {
			portableBatchNormBackPooled(p, ky, dst, dy, arg, x, mean, scale, offset, slope, false, 0)
		},
		BatchNormReLUBackPooled: func(p Pool, ky int, dst, dy []float32, arg []int32, x, mean, scale, offset, slope []float32) {
			portableBatchNormBackPooled(p, ky, dst, dy, arg, x, mean, scale, offset, slope, true, 0)
		},

		DropoutMask: portableDropoutMask,
	}
}

// Pool is the geometry of one row of a pooling layer's outputs, in pixels of Channels elements.
type Pool struct {
	Outputs        int // pixels in the row of outputs
	Channels       int
	Height, Width  int // of the window
	Stride         int // pixels from one window to the next
	InputRowPixels int // pixels from one row of the input to the next
}

func (p *Pool) check(inputs, outputs int) {
	need("the pooled input", inputs, ((p.Height-1)*p.InputRowPixels+(p.Outputs-1)*p.Stride+p.Width)*p.Channels)
	need("the pooled output", outputs, p.Outputs*p.Channels)
}

// Mask defines which dropout mask: a stream of words, and what a word becomes.
type Mask struct {
	Key       philox.Key
	Index     philox.Index
	Threshold uint32  // ⌊rate·2³²⌋: smaller words drop
	Scale     float32 // of what is kept
}

// NewMask is the mask of a dropout layer (counted in graph order) at a global step and virtual worker.
func NewMask(seed uint64, step int64, virtualWorker, layer int, rate float64) Mask {
	return Mask{
		Key:       philox.NewKey(seed, philox.Dropout),
		Index:     philox.Index{uint32(step), uint32(virtualWorker), uint32(layer)},
		Threshold: uint32(float64(rate * (1 << 32))),
		Scale:     float32(1 / (1 - rate)),
	}
}

func portableAdd(dst, a []float32) {
	a = a[:len(dst)]
	for i := range dst {
		dst[i] += a[i]
	}
}

func portableMul(dst, a, b []float32) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] * b[i]
	}
}

func portableReLU(dst, a []float32) {
	a = a[:len(dst)]
	for i, v := range a {
		if !(v > 0) {
			v = 0
		}
		dst[i] = v
	}
}

func portableReLUBack(dst, dy, y []float32) {
	dy, y = dy[:len(dst)], y[:len(dst)]
	for i, v := range dy {
		if !(y[i] > 0) {
			v = 0
		}
		dst[i] = v
	}
}

func portableSGD(w, g []float32, rate float32) {
	g = g[:len(w)]
	for i := range w {
		w[i] -= float32(rate * g[i])
	}
}

const exponentBits = 0x7f800000 // of a float32; all set: infinity or NaN

func portableFinite(x []float32) bool {
	for _, v := range x {
		if math.Float32bits(v)&exponentBits == exponentBits {
			return false
		}
	}
	return true
}

// The functions over columns take the first column that they work on, so that a vector set can leave them its tail.

func portableColumnSum(acc, x []float32, from int) {
	for c := len(acc); len(x) >= c; x = x[c:] {
		for j := from; j < c; j++ {
			acc[j] += x[j]
		}
	}
}

func portableColumnSquares(acc, x, mean []float32, from int) {
	for c := len(acc); len(x) >= c; x = x[c:] {
		for j := from; j < c; j++ {
			d := x[j] - mean[j]
			acc[j] = FMA(d, d, acc[j])
		}
	}
}

func portableColumnProducts(sum, dot, dy, x, mean []float32, from int) {
	for c := len(sum); len(dy) >= c; dy, x = dy[c:], x[c:] {
		for j := from; j < c; j++ {
			sum[j] += dy[j]
			dot[j] = FMA(dy[j], x[j]-mean[j], dot[j])
		}
	}
}

func portableBatchNorm(dst, x, mean, scale, shift []float32, from int) {
	for c := len(mean); len(dst) >= c; dst, x = dst[c:], x[c:] {
		for j := from; j < c; j++ {
			dst[j] = FMA(x[j]-mean[j], scale[j], shift[j])
		}
	}
}

func portableBatchNormBack(relu bool) func(dst, dy, x, mean, scale, offset, slope []float32) {
	return func(dst, dy, x, mean, scale, offset, slope []float32) {
		portableBatchNormBackColumns(dst, dy, x, mean, scale, offset, slope, relu, 0)
	}
}

func portableBatchNormBackColumns(dst, dy, x, mean, scale, offset, slope []float32, relu bool, from int) {
	for c := len(mean); len(dst) >= c; dst, dy, x = dst[c:], dy[c:], x[c:] {
		for j := from; j < c; j++ {
			v := scale[j] * FMA(x[j]-mean[j], slope[j], dy[j]-offset[j])
			if relu && !(x[j] > 0) {
				v = 0
			}
			dst[j] = v
		}
	}
}

func portableMaxPool(p Pool, dst []float32, arg []int32, x []float32, from int) {
	p.check(len(x), min(len(dst), len(arg)))
	for o := range p.Outputs {
		for c := from; c < p.Channels; c++ {
			best, at := x[o*p.Stride*p.Channels+c], int32(0)
			for ky := range p.Height {
				for kx := range p.Width {
					if v := x[(ky*p.InputRowPixels+o*p.Stride+kx)*p.Channels+c]; v > best {
						best, at = v, int32(ky*p.Width+kx)
					}
				}
			}
			dst[o*p.Channels+c], arg[o*p.Channels+c] = best, at
		}
	}
}

func portableMaxPoolBack(p Pool, dx, dy []float32, arg []int32, from int) {
	p.check(len(dx), min(len(dy), len(arg)))
	for o := range p.Outputs {
		for ky := range p.Height {
			for kx := range p.Width {
				for c := from; c < p.Channels; c++ {
					var v float32
					if arg[o*p.Channels+c] == int32(ky*p.Width+kx) {
						v = dy[o*p.Channels+c]
					}
					dx[(ky*p.InputRowPixels+o*p.Stride+kx)*p.Channels+c] = v
				}
			}
		}
	}
}

func portableDropoutMask(dst []float32, m Mask, first uint64) {
	for i := range dst {
		dst[i] = 0
		if m.Key.Element(m.Index, first+uint64(i)) >= m.Threshold {
			dst[i] = m.Scale
		}
	}
}

// BatchNorm fused with the max-pooling behind it.

func portableBatchNormMaxPool(p Pool, dst []float32, arg []int32, at, x, mean, scale, shift []float32, from int) {
	p.check(len(x), min(len(dst), len(arg), len(at)))
	for o := range p.Outputs {
		for c := from; c < p.Channels; c++ {
			normalized := func(v float32) float32 { return FMA(v-mean[c], scale[c], shift[c]) }
			largest := x[o*p.Stride*p.Channels+c]
			best, position := normalized(largest), int32(0)
			for ky := range p.Height {
				for kx := range p.Width {
					v := x[(ky*p.InputRowPixels+o*p.Stride+kx)*p.Channels+c]
					if y := normalized(v); y > best {
						best, position, largest = y, int32(ky*p.Width+kx), v
					}
				}
			}
			i := o*p.Channels + c
			dst[i], arg[i], at[i] = best, position, largest
		}
	}
}

func portablePooledProducts(p Pool, rows int, sum, dot, dy, at []float32, arg []int32, mean []float32, from int) {
	for row := range rows {
		for ky := range p.Height {
			for i := row * p.Outputs; i < (row+1)*p.Outputs; i++ {
				for c := from; c < p.Channels; c++ {
					var v float32
					if int(arg[i*p.Channels+c])/p.Width == ky {
						v = dy[i*p.Channels+c]
					}
					sum[c] += v
					dot[c] = FMA(v, at[i*p.Channels+c]-mean[c], dot[c])
				}
			}
		}
	}
}

func portableBatchNormBackPooled(p Pool, ky int, dst, dy []float32, arg []int32, x, mean, scale, offset, slope []float32, relu bool, from int) {
	for o := range p.Outputs {
		for kx := range p.Width {
			pixel := (o*p.Stride + kx) * p.Channels
			for c := from; c < p.Channels; c++ {
				var v float32
				if int(arg[o*p.Channels+c]) == ky*p.Width+kx {
					v = dy[o*p.Channels+c]
				}
				v = scale[c] * FMA(x[pixel+c]-mean[c], slope[c], v-offset[c])
				if relu && !(x[pixel+c] > 0) {
					v = 0
				}
				dst[pixel+c] = v
			}
		}
	}
}
