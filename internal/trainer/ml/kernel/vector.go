//go:build amd64 || arm64

package kernel

import (
	"math"
	"unsafe"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/philox"
)

//go:generate go run ./gen -dir .

const (
	flagLoad = 1
	flagReLU = 2

	tailTile = 0 // the place of the function for a last, partial vector among those of a number of rows
)

type (
	gemmFunction func(tiles, segments, k int, a unsafe.Pointer, aRow, aStep, aSegment uintptr,
		b unsafe.Pointer, bRow, bSegment uintptr, c unsafe.Pointer, cRow uintptr, bias, lanes unsafe.Pointer, flags uint64)
	gemmBlocksFunction func(tiles, blocks, larger, size int, a unsafe.Pointer, aRow, aStep uintptr,
		b unsafe.Pointer, bRow uintptr, c unsafe.Pointer, cRow uintptr, lanes unsafe.Pointer)
	dotFunction func(groups int, x unsafe.Pointer, xRow uintptr, w unsafe.Pointer, wRow uintptr,
		out unsafe.Pointer, outRow uintptr, lanes unsafe.Pointer)
	flatFunction2 func(dst, a unsafe.Pointer, vectors int)
	flatFunction3 func(dst, a, b unsafe.Pointer, vectors int)

	batchNormBackPooledFunction func(mean, scale, offset, slope, dst, dy, arg, x unsafe.Pointer,
		outputs, vectors int, pixel uintptr, width int, stride uintptr, first, one uint32)
)

// vectorFunctions are the assembly functions of one instruction set. They work on whole vectors, the tails of matrix
// products apart; what is left of other arrays is done by the portable functions.
type vectorFunctions struct {
	width int // float32 lanes
	tail  int // columns that the functions for a last, partial vector take at most
	panel int

	gemm       [6][5]gemmFunction // by rows − 1 and vectors
	gemmBlocks [3][5]gemmBlocksFunction
	dot        [2][3]dotFunction

	add, relu     flatFunction2
	mul, reluBack flatFunction3
	sgd           func(w, g unsafe.Pointer, vectors int, rate float32)
	scale         func(x unsafe.Pointer, vectors int, factor float32)
	momentum      func(w, slot, g unsafe.Pointer, vectors int, rate, share float32)
	descend       func(w, m, v unsafe.Pointer, vectors int, rate, epsilon float32)
	adam          func(w, m, v, g unsafe.Pointer, vectors int, rate, epsilon, rest1, rest2 float32)
	finite        func(x unsafe.Pointer, vectors int, exponent uint32) (hits uint64)

	columnSum         func(acc, x unsafe.Pointer, vectors, height int, rowBytes uintptr)
	columnSquares     func(acc, mean, x unsafe.Pointer, vectors, height int, rowBytes uintptr)
	columnProducts    func(sum, dot, mean, dy, x unsafe.Pointer, vectors, height int, rowBytes uintptr)
	batchNorm         func(mean, scale, shift, dst, x unsafe.Pointer, vectors, height int, rowBytes uintptr)
	batchNormBack     func(mean, scale, offset, slope, dst, dy, x unsafe.Pointer, vectors, height int, rowBytes uintptr)
	batchNormReLUBack func(mean, scale, offset, slope, dst, dy, x unsafe.Pointer, vectors, height int, rowBytes uintptr)

	maxPool     func(dst, arg, x unsafe.Pointer, outputs, vectors int, pixel uintptr, height, width int, stride, inputRow uintptr, one uint32)
	maxPoolBack func(dy, arg, dx unsafe.Pointer, outputs, vectors int, pixel uintptr, height, width int, stride, inputRow uintptr, one uint32)

	batchNormMaxPool func(dst, arg, at, x, mean, scale, shift unsafe.Pointer,
		outputs, vectors int, pixel uintptr, height, width int, stride, inputRow uintptr, one uint32)
	pooledProducts          func(sum, dot, mean, dy, at, arg unsafe.Pointer, vectors, rows, outputs int, pixel uintptr, height int, width, before uint32)
	batchNormBackPooled     batchNormBackPooledFunction
	batchNormReLUBackPooled batchNormBackPooledFunction

	dropoutMask func(dst unsafe.Pointer, groups int, lanes unsafe.Pointer,
		first, index0, index1, index2, key0, key1, threshold uint32, scale float32, mul0, mul1, weyl0, weyl1, width uint32)
}

// Tables that the assembly reads; nothing writes them.
var (
	laneMasks = [32]int32{-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1}
	laneIota  = [16]uint32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
)

// firstLanes points at lanes of −1, n of them, and 0.
func firstLanes(n int) unsafe.Pointer { return unsafe.Pointer(&laneMasks[16-n]) }

func pointer(x []float32) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(x)) }

func integers(x []int32) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(x)) }

func element(x []float32, i int) unsafe.Pointer {
	return unsafe.Add(unsafe.Pointer(unsafe.SliceData(x)), 4*i)
}

func vectorSet(name string, f vectorFunctions) Set {
	v := &f
	return Set{
		Name:              name,
		Panel:             f.panel,
		Gemm:              v.gemmAll,
		GemmBlocks:        v.gemmBlocksAll,
		Dot:               v.dotAll,
		Add:               v.addAll,
		Mul:               v.mulAll,
		ReLU:              v.reluAll,
		ReLUBack:          v.reluBackAll,
		SGD:               v.sgdAll,
		Momentum:          v.momentumAll,
		Adam:              v.adamAll,
		AdamRows:          adamRows(v.scaleAll, v.descendAll),
		Finite:            v.finiteAll,
		ColumnSum:         v.columnSumAll,
		ColumnSquares:     v.columnSquaresAll,
		ColumnProducts:    v.columnProductsAll,
		BatchNorm:         v.batchNormAll,
		BatchNormBack:     v.batchNormBackAll(v.batchNormBack, false),
		BatchNormReLUBack: v.batchNormBackAll(v.batchNormReLUBack, true),
		MaxPool:           v.maxPoolAll,
		MaxPoolBack:       v.maxPoolBackAll,
		DropoutMask:       v.dropoutMaskAll,

		BatchNormMaxPool:        v.batchNormMaxPoolAll,
		PooledProducts:          v.pooledProductsAll,
		BatchNormBackPooled:     v.batchNormBackPooledAll(v.batchNormBackPooled, false),
		BatchNormReLUBackPooled: v.batchNormBackPooledAll(v.batchNormReLUBackPooled, true),
	}
}

// tile is the widest function, of at most that many vectors, for columns that are left: how many of them it takes, and
// its lanes if it is the one for the last, partial vector.
func (v *vectorFunctions) tile(columns, most int) (vectors, width int, lanes unsafe.Pointer) {
	for vectors = most; vectors >= 1; vectors /= 2 {
		if columns >= vectors*v.width {
			return vectors, vectors * v.width, nil
		}
	}
	width = min(columns, v.tail)
	return tailTile, width, firstLanes(width)
}

func (v *vectorFunctions) gemmAll(g Gemm) {
	if g.M < 1 || g.N < 1 || g.K < 1 || g.Segments < 1 {
		panic("kernel: an empty matrix product")
	}
	g.check(v.panel)
	var flags uint64
	if g.Load {
		flags |= flagLoad
	}
	if g.ReLU {
		flags |= flagReLU
	}
	// Rows in tiles of at most 6, as equal as can be: 5 rows keep the multipliers busy, 2 would not.
	most := len(v.gemm)
	tiles := (g.M + most - 1) / most
	rows, larger := g.M/tiles, g.M%tiles
	widest := v.panel / v.width
	if g.BPanel == 0 && g.M <= 2 {
		widest = len(v.gemm[0]) - 1
	}
	for j := 0; j < g.N; {
		origin := j
		if g.BPanel != 0 {
			origin = j/v.panel*g.BPanel + j%v.panel
		}
		vectors, width, lanes := v.tile(g.N-j, widest)
		b := element(g.B, origin)
		var bias unsafe.Pointer
		if g.Bias != nil {
			bias = element(g.Bias, j)
		}
		for r := range g.Repeat {
			a, c := r*g.ARepeat, r*g.CRepeat+j
			if larger > 0 {
				v.gemm[rows][vectors](larger, g.Segments, g.K, element(g.A, a), uintptr(4*g.ARow), uintptr(4*g.AStep), uintptr(4*g.ASegment),
					b, uintptr(4*g.BRow), uintptr(4*g.BSegment), element(g.C, c), uintptr(4*g.CRow), bias, lanes, flags)
			}
			if larger < tiles {
				done := larger * (rows + 1)
				v.gemm[rows-1][vectors](tiles-larger, g.Segments, g.K, element(g.A, a+done*g.ARow), uintptr(4*g.ARow), uintptr(4*g.AStep), uintptr(4*g.ASegment),
					b, uintptr(4*g.BRow), uintptr(4*g.BSegment), element(g.C, c+done*g.CRow), uintptr(4*g.CRow), bias, lanes, flags)
			}
		}
		j += width
	}
}

func (v *vectorFunctions) gemmBlocksAll(g GemmBlocks) {
	g.check()
	blocks := Blocks(g.Records)
	for i := 0; i < g.M; {
		rows := min(len(v.gemmBlocks), g.M-i)
		for j := 0; j < g.N; {
			vectors, width, lanes := v.tile(g.N-j, v.panel/v.width)
			tiles := 1
			if lanes == nil {
				tiles = (g.N - j) / width
			}
			v.gemmBlocks[rows-1][vectors](tiles, blocks, g.Records%blocks, g.Records/blocks,
				element(g.A, i*g.ARow), uintptr(4*g.ARow), uintptr(4*g.AStep), element(g.B, j), uintptr(4*g.BRow), element(g.C, i*g.CRow+j), uintptr(4*g.CRow), lanes)
			j += tiles * width
		}
		i += rows
	}
}

func (v *vectorFunctions) dotAll(d Dot) {
	d.check()
	var lanesOfTail unsafe.Pointer
	if d.K%lanes > 0 {
		lanesOfTail = firstLanes(d.K % lanes)
	}
	for i := 0; i < d.Rows; {
		rows := min(len(v.dot), d.Rows-i)
		for j := 0; j < d.Columns; {
			columns := min(len(v.dot[0]), d.Columns-j)
			v.dot[rows-1][columns-1](d.K/lanes, element(d.X, i*d.XRow), uintptr(4*d.XRow), element(d.W, j*d.WRow), uintptr(4*d.WRow),
				element(d.Out, i*d.OutRow+j), uintptr(4*d.OutRow), lanesOfTail)
			j += columns
		}
		i += rows
	}
}

func (v *vectorFunctions) addAll(dst, a []float32) {
	need("the summand", len(a), len(dst))
	n := len(dst) / v.width
	v.add(pointer(dst), pointer(a), n)
	portableAdd(dst[n*v.width:], a[n*v.width:])
}

func (v *vectorFunctions) mulAll(dst, a, b []float32) {
	need("the factors", min(len(a), len(b)), len(dst))
	n := len(dst) / v.width
	v.mul(pointer(dst), pointer(a), pointer(b), n)
	n *= v.width
	portableMul(dst[n:], a[n:], b[n:])
}

func (v *vectorFunctions) reluAll(dst, a []float32) {
	need("the input", len(a), len(dst))
	n := len(dst) / v.width
	v.relu(pointer(dst), pointer(a), n)
	portableReLU(dst[n*v.width:], a[n*v.width:])
}

func (v *vectorFunctions) reluBackAll(dst, dy, y []float32) {
	need("the inputs", min(len(dy), len(y)), len(dst))
	n := len(dst) / v.width
	v.reluBack(pointer(dst), pointer(dy), pointer(y), n)
	n *= v.width
	portableReLUBack(dst[n:], dy[n:], y[n:])
}

func (v *vectorFunctions) sgdAll(w, g []float32, rate float32) {
	need("the gradient", len(g), len(w))
	n := len(w) / v.width
	v.sgd(pointer(w), pointer(g), n, rate)
	portableSGD(w[n*v.width:], g[n*v.width:], rate)
}

func (v *vectorFunctions) momentumAll(w, a, g []float32, rate, momentum float32) {
	need("the slots and the gradient", min(len(a), len(g)), len(w))
	n := len(w) / v.width
	v.momentum(pointer(w), pointer(a), pointer(g), n, rate, momentum)
	n *= v.width
	portableMomentum(w[n:], a[n:], g[n:], rate, momentum)
}

func (v *vectorFunctions) adamAll(w, m, second, g []float32, s AdamStep) {
	need("the slots and the gradient", min(len(m), len(second), len(g)), len(w))
	n := len(w) / v.width
	v.adam(pointer(w), pointer(m), pointer(second), pointer(g), n, s.Rate, s.Epsilon, s.Rest1, s.Rest2)
	n *= v.width
	portableAdam(w[n:], m[n:], second[n:], g[n:], s)
}

func (v *vectorFunctions) scaleAll(x []float32, factor float32) {
	n := len(x) / v.width
	v.scale(pointer(x), n, factor)
	portableScale(x[n*v.width:], factor)
}

func (v *vectorFunctions) descendAll(w, m, second []float32, s AdamStep) {
	n := len(w) / v.width
	v.descend(pointer(w), pointer(m), pointer(second), n, s.Rate, s.Epsilon)
	n *= v.width
	portableDescend(w[n:], m[n:], second[n:], s)
}

func (v *vectorFunctions) finiteAll(x []float32) bool {
	n := len(x) / v.width
	return v.finite(pointer(x), n, exponentBits) == 0 && portableFinite(x[n*v.width:])
}

// rows is the number of rows of so many channels in arrays of that length, the vectors in a row, and its bytes.
func (v *vectorFunctions) rows(length, channels int) (vectors, height int, rowBytes uintptr) {
	return channels / v.width, length / channels, uintptr(4 * channels)
}

func (v *vectorFunctions) columnSumAll(acc, x []float32) {
	vectors, height, rowBytes := v.rows(len(x), len(acc))
	v.columnSum(pointer(acc), pointer(x), vectors, height, rowBytes)
	portableColumnSum(acc, x, vectors*v.width)
}

func (v *vectorFunctions) columnSquaresAll(acc, x, mean []float32) {
	need("mean", len(mean), len(acc))
	vectors, height, rowBytes := v.rows(len(x), len(acc))
	v.columnSquares(pointer(acc), pointer(mean), pointer(x), vectors, height, rowBytes)
	portableColumnSquares(acc, x, mean, vectors*v.width)
}

func (v *vectorFunctions) columnProductsAll(sum, dot, dy, x, mean []float32) {
	need("the sums", min(len(dot), len(mean)), len(sum))
	need("x", len(x), len(dy))
	vectors, height, rowBytes := v.rows(len(dy), len(sum))
	v.columnProducts(pointer(sum), pointer(dot), pointer(mean), pointer(dy), pointer(x), vectors, height, rowBytes)
	portableColumnProducts(sum, dot, dy, x, mean, vectors*v.width)
}

func (v *vectorFunctions) batchNormAll(dst, x, mean, scale, shift []float32) {
	need("the coefficients", min(len(scale), len(shift)), len(mean))
	need("x", len(x), len(dst))
	vectors, height, rowBytes := v.rows(len(dst), len(mean))
	v.batchNorm(pointer(mean), pointer(scale), pointer(shift), pointer(dst), pointer(x), vectors, height, rowBytes)
	portableBatchNorm(dst, x, mean, scale, shift, vectors*v.width)
}

func (v *vectorFunctions) batchNormBackAll(
	f func(mean, scale, offset, slope, dst, dy, x unsafe.Pointer, vectors, height int, rowBytes uintptr), relu bool,
) func(dst, dy, x, mean, scale, offset, slope []float32) {
	return func(dst, dy, x, mean, scale, offset, slope []float32) {
		need("the coefficients", min(len(scale), len(offset), len(slope)), len(mean))
		need("dy and x", min(len(dy), len(x)), len(dst))
		vectors, height, rowBytes := v.rows(len(dst), len(mean))
		f(pointer(mean), pointer(scale), pointer(offset), pointer(slope), pointer(dst), pointer(dy), pointer(x), vectors, height, rowBytes)
		portableBatchNormBackColumns(dst, dy, x, mean, scale, offset, slope, relu, vectors*v.width)
	}
}

func (v *vectorFunctions) maxPoolAll(p Pool, dst []float32, arg []int32, x []float32) {
	p.check(len(x), min(len(dst), len(arg)))
	vectors := p.Channels / v.width
	if vectors > 0 {
		v.maxPool(pointer(dst), integers(arg), pointer(x), p.Outputs, vectors, uintptr(4*p.Channels),
			p.Height, p.Width, uintptr(4*p.Stride*p.Channels), uintptr(4*p.InputRowPixels*p.Channels), 1)
	}
	portableMaxPool(p, dst, arg, x, vectors*v.width)
}

func (v *vectorFunctions) maxPoolBackAll(p Pool, dx, dy []float32, arg []int32) {
	p.check(len(dx), min(len(dy), len(arg)))
	vectors := p.Channels / v.width
	if vectors > 0 {
		v.maxPoolBack(pointer(dy), integers(arg), pointer(dx), p.Outputs, vectors, uintptr(4*p.Channels),
			p.Height, p.Width, uintptr(4*p.Stride*p.Channels), uintptr(4*p.InputRowPixels*p.Channels), 1)
	}
	portableMaxPoolBack(p, dx, dy, arg, vectors*v.width)
}

func (v *vectorFunctions) batchNormMaxPoolAll(p Pool, dst []float32, arg []int32, at, x, mean, scale, shift []float32) {
	p.check(len(x), min(len(dst), len(arg), len(at)))
	need("the coefficients", min(len(mean), len(scale), len(shift)), p.Channels)
	vectors := p.Channels / v.width
	if vectors > 0 {
		v.batchNormMaxPool(pointer(dst), integers(arg), pointer(at), pointer(x), pointer(mean), pointer(scale), pointer(shift), p.Outputs, vectors, uintptr(4*p.Channels),
			p.Height, p.Width, uintptr(4*p.Stride*p.Channels), uintptr(4*p.InputRowPixels*p.Channels), 1)
	}
	portableBatchNormMaxPool(p, dst, arg, at, x, mean, scale, shift, vectors*v.width)
}

func (v *vectorFunctions) pooledProductsAll(p Pool, rows int, sum, dot, dy, at []float32, arg []int32, mean []float32) {
	need("the outputs", min(len(dy), len(at), len(arg)), rows*p.Outputs*p.Channels)
	need("the sums", min(len(sum), len(dot), len(mean)), p.Channels)
	vectors := p.Channels / v.width
	v.pooledProducts(pointer(sum), pointer(dot), pointer(mean), pointer(dy), pointer(at), integers(arg), vectors, rows, p.Outputs,
		uintptr(4*p.Channels), p.Height, uint32(p.Width), math.MaxUint32)
	portablePooledProducts(p, rows, sum, dot, dy, at, arg, mean, vectors*v.width)
}

func (v *vectorFunctions) batchNormBackPooledAll(f batchNormBackPooledFunction, relu bool) func(
	p Pool, ky int, dst, dy []float32, arg []int32, x, mean, scale, offset, slope []float32,
) {
	return func(p Pool, ky int, dst, dy []float32, arg []int32, x, mean, scale, offset, slope []float32) {
		need("the outputs", min(len(dy), len(arg)), p.Outputs*p.Channels)
		need("the row of the input", min(len(dst), len(x)), ((p.Outputs-1)*p.Stride+p.Width)*p.Channels)
		need("the coefficients", min(len(mean), len(scale), len(offset), len(slope)), p.Channels)
		vectors := p.Channels / v.width
		if vectors > 0 {
			f(pointer(mean), pointer(scale), pointer(offset), pointer(slope), pointer(dst), pointer(dy), integers(arg), pointer(x),
				p.Outputs, vectors, uintptr(4*p.Channels), p.Width, uintptr(4*p.Stride*p.Channels), uint32(ky*p.Width), 1)
		}
		portableBatchNormBackPooled(p, ky, dst, dy, arg, x, mean, scale, offset, slope, relu, vectors*v.width)
	}
}

// dropoutMaskAll leaves what is before and behind whole groups of 64 elements to the portable function.
func (v *vectorFunctions) dropoutMaskAll(dst []float32, m Mask, first uint64) {
	const group = 64
	head := min(int(-first%group), len(dst))
	portableDropoutMask(dst[:head], m, first)
	dst, first = dst[head:], first+uint64(head)
	groups := len(dst) / group
	v.dropoutMask(pointer(dst), groups, unsafe.Pointer(&laneIota), uint32(first/4), m.Index[0], m.Index[1], m.Index[2],
		m.Key[0], m.Key[1], m.Threshold, m.Scale, philox.Mul0, philox.Mul1, philox.Weyl0, philox.Weyl1, uint32(v.width))
	portableDropoutMask(dst[groups*group:], m, first+uint64(groups*group))
}
