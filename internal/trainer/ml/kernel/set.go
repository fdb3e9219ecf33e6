package kernel

import "fmt"

// Set is one implementation of the arithmetic: portable Go, AVX2, AVX-512 or NEON. All have the same bits. It is a
// value, chosen once and passed on; nothing in it changes, so that one process can hold and compare several.
//
// In the functions over columns the arrays are rows of C channels, C being the length of the per-channel arguments,
// and every channel is a chain of its own in row order. Destinations may be the same array as a source of the same
// shape, but must not overlap otherwise.
type Set struct {
	// Name is "portable", "avx2", "avx512" or "neon".
	Name string
	// Panel is the number of columns of B that Gemm works on at a time: what B may be packed by.
	Panel int

	// Gemm is a matrix product along one chain per element (rule 1); see Gemm.
	Gemm func(Gemm)
	// GemmBlocks is a product summed over the records of a minibatch (rule 2); see GemmBlocks.
	GemmBlocks func(GemmBlocks)
	// Dot is a matrix of dot products in 16 lanes (rule 3); see Dot.
	Dot func(Dot)

	// Add: dst ← dst + a.
	Add func(dst, a []float32)
	// Mul: dst ← a × b.
	Mul func(dst, a, b []float32)
	// ReLU: dst ← a > 0 ? a : +0.
	ReLU func(dst, a []float32)
	// ReLUBack: dst ← y > 0 ? dy : +0, y being the output of ReLU.
	ReLUBack func(dst, dy, y []float32)
	// SGD: w ← w − (rate × g), two roundings, as Keras' ResourceApplyGradientDescent without contraction.
	SGD func(w, g []float32, rate float32)
	// Momentum is a ← (a × momentum) − (g × rate); w ← w + a. Keras' SGD with momentum (ResourceApplyKerasMomentum).
	Momentum func(w, a, g []float32, rate, momentum float32)
	// Adam is m ← m + ((g − m) × rest1); v ← v + (((g × g) − v) × rest2); w ← w − ((m × rate) ÷ (√v + ε)). Keras' Adam
	// without amsgrad (ResourceApplyAdam): its ε is added to the root of the v that has not been corrected.
	Adam func(w, m, v, g []float32, s AdamStep)
	// AdamRows is, for the whole table, m ← m × β₁ and v ← v × β₂; for the rows m ← m + (g × rest1) and v ← v + ((g ×
	// g) × rest2); then for the whole table w ← w − ((m × rate) ÷ (√v + ε)): rows that no record looked up keep moving.
	// Keras' Adam (_resource_apply_sparse), which costs a walk over the table in every step.
	AdamRows func(w, m, v []float32, index []int32, g []float32, s AdamStep)
	// Finite reports whether no element is an infinity or a NaN.
	Finite func(x []float32) bool

	// ColumnSum: acc ← acc + x, row by row.
	ColumnSum func(acc, x []float32)
	// ColumnSquares: d = x − mean, acc ← fma(d, d, acc), row by row.
	ColumnSquares func(acc, x, mean []float32)
	// ColumnProducts: sum ← sum + dy; dot ← fma(dy, x − mean, dot), row by row.
	ColumnProducts func(sum, dot, dy, x, mean []float32)
	// BatchNorm: dst ← fma(x − mean, scale, shift).
	BatchNorm func(dst, x, mean, scale, shift []float32)
	// BatchNormBack: dst ← scale × fma(x − mean, slope, dy − offset).
	BatchNormBack func(dst, dy, x, mean, scale, offset, slope []float32)
	// BatchNormReLUBack is BatchNormBack, then the gradient of a ReLU whose output is x: dst ← x > 0 ? … : +0.
	BatchNormReLUBack func(dst, dy, x, mean, scale, offset, slope []float32)

	// MaxPool is one row of outputs; see Pool. arg receives the position in the window, ky·Width + kx.
	MaxPool func(p Pool, dst []float32, arg []int32, x []float32)
	// MaxPoolBack is its gradient: one row of outputs' windows in dx, which do not overlap: arg = position ? dy : +0.
	MaxPoolBack func(p Pool, dx, dy []float32, arg []int32)

	// BatchNormMaxPool is one row of outputs of a MaxPool of BatchNorm's output, which is not stored: dst and arg as
	// for MaxPool, and at receives the x that was the largest.
	BatchNormMaxPool func(p Pool, dst []float32, arg []int32, at, x, mean, scale, shift []float32)
	// PooledProducts is ColumnProducts over what such a MaxPool's gradient dy is to BatchNorm's output, in the order of
	// the pixels it came from: for every row of outputs, row of the window and output, v = arg is in that row of the
	// window ? dy : +0; sum ← sum + v; dot ← fma(v, at − mean, dot).
	PooledProducts func(p Pool, rows int, sum, dot, dy, at []float32, arg []int32, mean []float32)
	// BatchNormBackPooled is BatchNormBack for one row of the input, row ky of the windows of one row of outputs, with
	// dy where arg says so and +0 elsewhere. Elements between windows are not written.
	BatchNormBackPooled func(p Pool, ky int, dst, dy []float32, arg []int32, x, mean, scale, offset, slope []float32)
	// BatchNormReLUBackPooled is the same and then what BatchNormReLUBack does.
	BatchNormReLUBackPooled func(p Pool, ky int, dst, dy []float32, arg []int32, x, mean, scale, offset, slope []float32)

	// DropoutMask: dst[i] ← word first+i of the stream ≥ threshold ? scale : +0, in the order of philox.Key.Element.
	DropoutMask func(dst []float32, m Mask, first uint64)
}

// Choose returns the set of that name, or for "" the fastest that processor and operating system can run.
// The name is what the environment variable ELASTIC_KERNEL holds. A process in which CheckMode fails is refused.
func Choose(name string) (Set, error) {
	if err := CheckMode(); err != nil {
		return Set{}, err
	}
	sets := Available()
	if name == "" {
		return sets[0], nil
	}
	names := ""
	for _, s := range sets {
		if s.Name == name {
			return s, nil
		}
		names += " " + s.Name
	}
	switch name {
	case "avx512", "avx2", "neon", "portable":
		return Set{}, fmt.Errorf("kernel %q cannot run on this processor and operating system; available:%s", name, names)
	}
	return Set{}, fmt.Errorf("kernel %q does not exist; ELASTIC_KERNEL takes avx512, avx2, neon or portable, or nothing for the fastest; available here:%s", name, names)
}
