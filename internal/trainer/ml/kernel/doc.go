// Package kernel is the arithmetic of training, defined to the bit: matrix products, reductions and elementwise
// operations on float32 that have the same bits in portable Go, AVX2, AVX-512 and NEON, and therefore on any processor,
// with any number of threads and workers. A Set is one implementation; tests hold every set against the portable one.
//
// The sets are "avx512" and "avx2" on amd64 processors that have them, "neon" on every arm64, and "portable"
// everywhere, for the tests and for other processors: a tenth of the speed. Choose takes the fastest. The vector sets
// are printed by one generator (assembly, run by gen) from one description of each function. On amd64 all are tested:
// the AVX-512 functions by an emulator where the processor lacks them, NEON's under qemu-aarch64 where that is
// installed.
//
// # The contract, NumericsVersion 1
//
// Changing anything here changes the result of every job; it takes a new version.
//
// Products along K within one record (rule 1) are one chain of fused multiply-adds that starts at +0, or at the partial
// result where K is cut: it is loaded, never added afterwards. The bias is one rounded addition after the chain; ReLU
// comes after that. The order of K is
//   - convolution: (ky, kx, cin); the zeros of "same" padding are multiplied like data, in every path;
//   - gradient of a convolution's input: the pixels of dy in ascending (oy, ox), then cout. Without strides rows of dy
//     outside the image are skipped, and columns outside are zeros that are multiplied like data, in every path; with
//     strides only pixels that the input had a part in are multiplied;
//   - Dense with 16 outputs or more: inputs ascending; gradient of any Dense's input: outputs ascending.
//
// Sums over the records of a minibatch (rule 2): n records are cut into min(8, n) consecutive blocks, sizes differing
// by at most one, larger ones first (Block). A block is one chain in record order, then pixel order (y, x), starting at
// +0; the blocks' results are added in order, the first one being copied. So are made the gradients of kernels (chains
// of fused multiply-adds), of biases (additions), BatchNorm's four sums, and the loss (float64 additions).
//
// Reductions along contiguous memory (rule 3): element i in lane i mod 16, lanes being chains of fused multiply-adds;
// a last row that is not full is filled with +0 × +0, which is added; lanes are combined l+8, l+4, l+2, l+1. It is the
// forward pass of a Dense with fewer than 16 outputs, then the bias added; its weights are held as [out, in].
//
// The form depends on the layer's shape alone (rule 4), never on the number of records, threads or the processor.
//
// # Elementwise
//
// Each is one rounded operation per sign written here:
//   - ReLU: x > 0 ? x : +0; gradient: y > 0 ? dy : +0, y being the output.
//   - Max-pooling: the first of the largest in window order (ky, kx) under a strict >; gradient: dy there, +0 elsewhere.
//   - Sigmoid, Tanh and Softmax (over a row, Σ in order): computed in float64 with Exp of this package, rounded once.
//     Gradients: dy × (y × (1 − y)); dy × (1 − (y × y)); float32(y · (dy − Σ y·dy)), inside in float64.
//   - Sums and products of several inputs: from the first, in order; gradient of a product: dy × the others, in order. The
//     gradients of a value that several layers take are added in the order of the layers.
//   - Average-pooling: the window added up in order (ky, kx), from its first pixel, ÷ its size; gradient: dy ÷ size, added to
//     the pixels, which begin at +0, in the order of the outputs.
//   - Dropout: x × m, gradient dy × m, m = word ≥ ⌊rate·2³²⌋ ? float32(1/(1 − rate)) : +0. The word is philox'
//     Key.Element of (global step, virtual worker, dropout layer in graph order) and the element's index in the
//     NHWC of the whole minibatch.
//   - Differences: a − b, gradients dy and −dy. Multiples by a number: x × f, dy × f. Sums over axes: from the first
//     element on, in order; the gradient is dy for each.
//   - The gradient of a row of an embedding table is the gradients of its lookups, added in the order of the records, and
//     within one of the lookups, from the first on: one chain, without blocks.
//   - SGD: w − (rate × g). The other optimizers' sequences stand at Momentum, Nesterov, Adam, AdaGrad, RMSProp,
//     RMSPropMomentum and AdaMax; of the rows of tables at AdamRows, RMSPropRows, RMSPropMomentumRows and AdaMaxRows.
//   - Moving statistics: m + ((1 − momentum) × (batch − m)), 1 − momentum in float64, rounded once.
//
// # BatchNorm
//
// N = records × pixels. mean = Σx ÷ N. Then d = x − mean and variance = Σ fma(d, d, ·) ÷ N; what the moving variance
// takes is Σ ÷ (N − 1) for images with N > 1 and Σ ÷ N otherwise. inverse = float32(1 / √(float64(variance) + ε)),
// inside in float64; scale = γ × inverse. y = fma(d, scale, β).
//
// Backward: dβ = Σ dy; dγ = (Σ fma(dy, d, ·)) × inverse; offset = dβ ÷ N; slope = float32(−(inverse · dγ / N)), inside
// in float64, left to right; dx = scale × fma(d, slope, dy − offset).
//
// Where a max-pooling whose windows tile the image is directly behind, the two sums go over the outputs of the pooling
// only, row by row of the image: for every row of outputs, row of the window and output in it (PooledProducts). The
// zeros that are left out change no bit but the sign of a dγ that is zero.
//
// # Loss
//
// Sparse softmax cross-entropy of a record, in float64 with Exp and Log of this package, classes in order:
// log Σ exp(z − max) + (max − z[label]). Its derivative: float32(exp/Σ − [class = label]) × start, where
// start = float32(records) ÷ float32(records of the step) ÷ float32(records).
//
// Sigmoid cross-entropy of a logit z and a target y, in float64: (max(z, 0) − z·y) + log(1 + e^−|z|); derivative
// float32(sigmoid(z) − y) × start. Squared error: (z − y)²; derivative float32(2(z − y)) × start.
//
// # Not to be used on anything that reaches a state
//
// math.Exp, Log, Pow and the like, reciprocal estimates, minimum and maximum instructions, and x*y + z in Go where the
// compiler may fuse it: write float32(x*y) + z. Subnormal numbers are IEEE's: CheckMode refuses a processor state that
// flushes them.
package kernel

// NumericsVersion is the version of the contract above. It is part of a job's lineage.
const NumericsVersion = 1
