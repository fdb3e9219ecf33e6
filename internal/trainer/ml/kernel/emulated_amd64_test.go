package kernel

import (
	"fmt"
	"unsafe"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/kernel/assembly"
)

// Emulated are the vector sets with every assembly function executed by the emulator: the AVX-512 set is tested on
// processors without it, and the AVX2 set tests the emulator.
func Emulated() []Set {
	e := assembly.NewEmulator(FMA)
	return []Set{
		vectorSet("avx2 (emulated)", emulated(e, "AVX2", 8, 7, 16)),
		vectorSet("avx512 (emulated)", emulated(e, "AVX512", 16, 15, 64)),
	}
}

func emulated(e *assembly.Emulator, suffix string, width, tail, panel int) vectorFunctions {
	f := vectorFunctions{width: width, tail: tail, panel: panel}
	vectors := func(v int) string {
		if v == tailTile {
			return "Tail"
		}
		return fmt.Sprint(v)
	}
	for r := range f.gemm {
		for v := range f.gemm[r] {
			name := fmt.Sprintf("gemm%dx%s%s", r+1, vectors(v), suffix)
			f.gemm[r][v] = func(tiles, segments, k int, a unsafe.Pointer, aRow, aStep, aSegment uintptr,
				b unsafe.Pointer, bRow, bSegment uintptr, c unsafe.Pointer, cRow uintptr, bias, lanes unsafe.Pointer, flags uint64,
			) {
				e.Call(name, tiles, segments, k, a, aRow, aStep, aSegment, b, bRow, bSegment, c, cRow, bias, lanes, flags)
			}
		}
	}
	for r := range f.gemmBlocks {
		for v := range f.gemmBlocks[r] {
			name := fmt.Sprintf("gemmBlocks%dx%s%s", r+1, vectors(v), suffix)
			f.gemmBlocks[r][v] = func(tiles, blocks, larger, size int, a unsafe.Pointer, aRow, aStep uintptr,
				b unsafe.Pointer, bRow uintptr, c unsafe.Pointer, cRow uintptr, lanes unsafe.Pointer,
			) {
				e.Call(name, tiles, blocks, larger, size, a, aRow, aStep, b, bRow, c, cRow, lanes)
			}
		}
	}
	for r := range f.dot {
		for c := range f.dot[r] {
			name := fmt.Sprintf("dot%dx%d%s", r+1, c+1, suffix)
			f.dot[r][c] = func(groups int, x unsafe.Pointer, xRow uintptr, w unsafe.Pointer, wRow uintptr, out unsafe.Pointer, outRow uintptr, lanes unsafe.Pointer) {
				e.Call(name, groups, x, xRow, w, wRow, out, outRow, lanes)
			}
		}
	}
	two := func(name string) flatFunction2 {
		return func(dst, a unsafe.Pointer, vectors int) { e.Call(name+suffix, dst, a, vectors) }
	}
	three := func(name string) flatFunction3 {
		return func(dst, a, b unsafe.Pointer, vectors int) { e.Call(name+suffix, dst, a, b, vectors) }
	}
	f.add, f.relu, f.mul, f.reluBack = two("add"), two("relu"), three("mul"), three("reluBack")
	f.sgd = func(w, g unsafe.Pointer, vectors int, rate float32) { e.Call("sgd"+suffix, w, g, vectors, rate) }
	f.scale = func(x unsafe.Pointer, vectors int, factor float32) { e.Call("scale"+suffix, x, vectors, factor) }
	f.momentum = func(w, slot, g unsafe.Pointer, vectors int, rate, share float32) {
		e.Call("momentum"+suffix, w, slot, g, vectors, rate, share)
	}
	f.descend = func(w, m, v unsafe.Pointer, vectors int, rate, epsilon float32) {
		e.Call("descend"+suffix, w, m, v, vectors, rate, epsilon)
	}
	f.adam = func(w, m, v, g unsafe.Pointer, vectors int, rate, epsilon, rest1, rest2 float32) {
		e.Call("adam"+suffix, w, m, v, g, vectors, rate, epsilon, rest1, rest2)
	}
	f.finite = func(x unsafe.Pointer, vectors int, exponent uint32) uint64 {
		return e.Call("finite"+suffix, x, vectors, exponent)
	}
	f.columnSum = func(acc, x unsafe.Pointer, vectors, height int, rowBytes uintptr) {
		e.Call("columnSum"+suffix, acc, x, vectors, height, rowBytes)
	}
	f.columnSquares = func(acc, mean, x unsafe.Pointer, vectors, height int, rowBytes uintptr) {
		e.Call("columnSquares"+suffix, acc, mean, x, vectors, height, rowBytes)
	}
	f.columnProducts = func(sum, dot, mean, dy, x unsafe.Pointer, vectors, height int, rowBytes uintptr) {
		e.Call("columnProducts"+suffix, sum, dot, mean, dy, x, vectors, height, rowBytes)
	}
	f.batchNorm = func(mean, scale, shift, dst, x unsafe.Pointer, vectors, height int, rowBytes uintptr) {
		e.Call("batchNorm"+suffix, mean, scale, shift, dst, x, vectors, height, rowBytes)
	}
	back := func(name string) func(mean, scale, offset, slope, dst, dy, x unsafe.Pointer, vectors, height int, rowBytes uintptr) {
		return func(mean, scale, offset, slope, dst, dy, x unsafe.Pointer, vectors, height int, rowBytes uintptr) {
			e.Call(name+suffix, mean, scale, offset, slope, dst, dy, x, vectors, height, rowBytes)
		}
	}
	f.batchNormBack, f.batchNormReLUBack = back("batchNormBack"), back("batchNormReLUBack")
	pool := func(name string) func(a, arg, b unsafe.Pointer, outputs, vectors int, pixel uintptr, height, width int, stride, inputRow uintptr, one uint32) {
		return func(a, arg, b unsafe.Pointer, outputs, vectors int, pixel uintptr, height, width int, stride, inputRow uintptr, one uint32) {
			e.Call(name+suffix, a, arg, b, outputs, vectors, pixel, height, width, stride, inputRow, one)
		}
	}
	f.maxPool, f.maxPoolBack = pool("maxPool"), pool("maxPoolBack")
	f.batchNormMaxPool = func(dst, arg, at, x, mean, scale, shift unsafe.Pointer,
		outputs, vectors int, pixel uintptr, height, width int, stride, inputRow uintptr, one uint32,
	) {
		e.Call("batchNormMaxPool"+suffix, dst, arg, at, x, mean, scale, shift, outputs, vectors, pixel, height, width, stride, inputRow, one)
	}
	f.pooledProducts = func(sum, dot, mean, dy, at, arg unsafe.Pointer, vectors, rows, outputs int, pixel uintptr, height int, width, before uint32) {
		e.Call("pooledProducts"+suffix, sum, dot, mean, dy, at, arg, vectors, rows, outputs, pixel, height, width, before)
	}
	backPooled := func(name string) batchNormBackPooledFunction {
		return func(mean, scale, offset, slope, dst, dy, arg, x unsafe.Pointer, outputs, vectors int, pixel uintptr, width int, stride uintptr, first, one uint32) {
			e.Call(name+suffix, mean, scale, offset, slope, dst, dy, arg, x, outputs, vectors, pixel, width, stride, first, one)
		}
	}
	f.batchNormBackPooled, f.batchNormReLUBackPooled = backPooled("batchNormBackPooled"), backPooled("batchNormReLUBackPooled")
	f.dropoutMask = func(dst unsafe.Pointer, groups int, lanes unsafe.Pointer,
		first, index0, index1, index2, key0, key1, threshold uint32, scale float32, mul0, mul1, weyl0, weyl1, width uint32,
	) {
		e.Call("dropoutMask"+suffix, dst, groups, lanes, first, index0, index1, index2, key0, key1, threshold, scale, mul0, mul1, weyl0, weyl1, width)
	}
	return f
}
