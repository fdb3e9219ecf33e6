package assembly

import "fmt"

// Flags of the matrix product.
const (
	flagLoad = 1
	flagReLU = 2
)

// gemm is rows×vectors elements of C at a time, `tiles` times down the rows. masked: the last, partial vector.
func gemm(s isa, rows, vectors int, masked bool) *function {
	name := fmt.Sprintf("gemm%dx%d", rows, vectors)
	if masked {
		name = fmt.Sprintf("gemm%dxTail", rows)
	}
	f := newFunction(s, name, "tiles int", "segments int", "k int",
		"a unsafe.Pointer", "aRow uintptr", "aStep uintptr", "aSegment uintptr",
		"b unsafe.Pointer", "bRow uintptr", "bSegment uintptr",
		"c unsafe.Pointer", "cRow uintptr", "bias unsafe.Pointer", "lanes unsafe.Pointer", "flags uint64")
	first := s.registers - rows*vectors
	acc := func(i, j int) vec { return vec(first + i*vectors + j) }
	tail := vec(first - 1) // the mask, where there is one
	spare := first - vectors
	if masked {
		spare--
	}
	factor := func(i int) vec { return vec(vectors + i%min(spare, 4)) }
	each := func(do func(i, j int)) {
		for i := range rows {
			for j := range vectors {
				do(i, j)
			}
		}
	}
	// Rows 0–2 of A are reached from AX, rows 3–5 from R9.
	rowOfA := func(i int) address {
		base := gpr("AX")
		if i >= 3 {
			base = "R9"
		}
		if i%3 == 0 {
			return at(base, 0)
		}
		return indexed(base, "SI", i%3)
	}
	rowsOfC := func(do func(i, j int, element address)) {
		f.emit("MOVQ", gpr("R13"), gpr("AX"))
		for i := range rows {
			for j := range vectors {
				do(i, j, at("AX", j*s.bytes()))
			}
			f.emit("ADDQ", gpr("BX"), gpr("AX"))
		}
	}

	if masked {
		f.emit("MOVQ", arg("lanes"), gpr("AX"))
		f.tailMask(tail, 1, at("AX", 0))
	}
	f.emit("MOVQ", arg("a"), gpr("R15"))
	f.emit("MOVQ", arg("c"), gpr("R13"))
	f.emit("MOVQ", arg("aRow"), gpr("SI"))
	f.emit("MOVQ", arg("aStep"), gpr("DX"))
	f.emit("MOVQ", arg("bRow"), gpr("DI"))
	f.emit("LEAQ", indexed("SI", "SI", 2), gpr("R8"))

	tile := f.newLabel("tile")
	f.place(tile)
	begin, zero := f.newLabel("begin"), f.newLabel("zero")
	f.emit("TESTQ", imm(flagLoad), arg("flags"))
	f.emit("JEQ", zero)
	f.emit("MOVQ", arg("cRow"), gpr("BX"))
	rowsOfC(func(i, j int, element address) { f.load(element, acc(i, j), masked, tail) })
	f.emit("JMP", begin)
	f.place(zero)
	each(func(i, j int) { f.zero(acc(i, j)) })
	f.place(begin)

	f.emit("MOVQ", gpr("R15"), gpr("R10"))
	f.emit("MOVQ", arg("b"), gpr("R11"))
	f.emit("MOVQ", arg("segments"), gpr("R12"))
	segment, step := f.newLabel("segment"), f.newLabel("step")
	f.place(segment)
	f.emit("MOVQ", gpr("R10"), gpr("AX"))
	f.emit("MOVQ", gpr("R11"), gpr("BX"))
	if rows > 3 {
		f.emit("LEAQ", indexed("R10", "R8", 1), gpr("R9"))
	}
	f.emit("MOVQ", arg("k"), gpr("CX"))
	f.emit("PCALIGN", imm(32))
	f.place(step)
	for j := range vectors {
		f.load(at("BX", j*s.bytes()), vec(j), masked, tail)
	}
	for i := range rows {
		f.emit("VBROADCASTSS", rowOfA(i), factor(i))
		for j := range vectors {
			f.emit("VFMADD231PS", vec(j), factor(i), acc(i, j))
		}
	}
	f.emit("ADDQ", gpr("DX"), gpr("AX"))
	if rows > 3 {
		f.emit("ADDQ", gpr("DX"), gpr("R9"))
	}
	f.emit("ADDQ", gpr("DI"), gpr("BX"))
	f.emit("DECQ", gpr("CX"))
	f.emit("JNE", step)
	f.emit("ADDQ", arg("aSegment"), gpr("R10"))
	f.emit("ADDQ", arg("bSegment"), gpr("R11"))
	f.emit("DECQ", gpr("R12"))
	f.emit("JNE", segment)

	noBias, noReLU := f.newLabel("nobias"), f.newLabel("norelu")
	f.emit("MOVQ", arg("bias"), gpr("AX"))
	f.emit("TESTQ", gpr("AX"), gpr("AX"))
	f.emit("JEQ", noBias)
	for j := range vectors {
		f.load(at("AX", j*s.bytes()), vec(j), masked, tail)
	}
	each(func(i, j int) { f.emit("VADDPS", vec(j), acc(i, j), acc(i, j)) })
	f.place(noBias)
	f.emit("TESTQ", imm(flagReLU), arg("flags"))
	f.emit("JEQ", noReLU)
	f.zero(0)
	each(func(i, j int) {
		f.greaterMask(1, acc(i, j), 0)
		f.keep(acc(i, j), 1, acc(i, j))
	})
	if masked && f.wide() {
		f.emit("VPTESTMD", tail, tail, mask(1)) // the comparisons used K1
	}
	f.place(noReLU)
	f.emit("MOVQ", arg("cRow"), gpr("BX"))
	rowsOfC(func(i, j int, element address) { f.store(acc(i, j), element, masked, tail) })
	f.emit("MOVQ", gpr("AX"), gpr("R13"))
	for range rows / 3 {
		f.emit("ADDQ", gpr("R8"), gpr("R15"))
	}
	for range rows % 3 {
		f.emit("ADDQ", gpr("SI"), gpr("R15"))
	}
	f.emit("DECQ", arg("tiles"))
	f.emit("JNE", tile)
	return f
}

// gemmBlocks is rows×vectors elements of a sum over blocks of records, `tiles` times along the columns: the chain of the
// block and the sum of the blocks are both in registers.
func gemmBlocks(s isa, rows, vectors int, masked bool) *function {
	name := fmt.Sprintf("gemmBlocks%dx%d", rows, vectors)
	if masked {
		name = fmt.Sprintf("gemmBlocks%dxTail", rows)
	}
	f := newFunction(s, name, "tiles int", "blocks int", "larger int", "size int",
		"a unsafe.Pointer", "aRow uintptr", "aStep uintptr",
		"b unsafe.Pointer", "bRow uintptr", "c unsafe.Pointer", "cRow uintptr", "lanes unsafe.Pointer")
	first := s.registers - 2*rows*vectors
	sum := func(i, j int) vec { return vec(first + i*vectors + j) }
	chain := func(i, j int) vec { return vec(first + (rows+i)*vectors + j) }
	tail, factor := vec(first-1), vec(first-2)
	each := func(do func(i, j int)) {
		for i := range rows {
			for j := range vectors {
				do(i, j)
			}
		}
	}
	if masked {
		f.emit("MOVQ", arg("lanes"), gpr("AX"))
		f.tailMask(tail, 1, at("AX", 0))
	}
	f.emit("MOVQ", arg("aRow"), gpr("SI"))
	f.emit("MOVQ", arg("aStep"), gpr("DX"))
	f.emit("MOVQ", arg("b"), gpr("R11"))
	f.emit("MOVQ", arg("bRow"), gpr("DI"))
	f.emit("MOVQ", arg("c"), gpr("R13"))
	f.emit("MOVQ", arg("tiles"), gpr("R15"))

	tile, block, step := f.newLabel("tile"), f.newLabel("block"), f.newLabel("step")
	smaller, added, add := f.newLabel("smaller"), f.newLabel("added"), f.newLabel("add")
	f.place(tile)
	f.emit("MOVQ", arg("a"), gpr("AX"))
	f.emit("MOVQ", gpr("R11"), gpr("BX"))
	f.emit("MOVQ", arg("larger"), gpr("R9"))
	f.emit("XORQ", gpr("R12"), gpr("R12"))
	f.place(block)
	f.emit("MOVQ", arg("size"), gpr("CX"))
	f.emit("CMPQ", gpr("R12"), gpr("R9"))
	f.emit("JGE", smaller)
	f.emit("INCQ", gpr("CX"))
	f.place(smaller)
	each(func(i, j int) { f.zero(chain(i, j)) })
	f.place(step)
	for j := range vectors {
		f.load(at("BX", j*s.bytes()), vec(j), masked, tail)
	}
	for i := range rows {
		a := at("AX", 0)
		if i > 0 {
			a = indexed("AX", "SI", i)
		}
		f.emit("VBROADCASTSS", a, factor)
		for j := range vectors {
			f.emit("VFMADD231PS", vec(j), factor, chain(i, j))
		}
	}
	f.emit("ADDQ", gpr("DX"), gpr("AX"))
	f.emit("ADDQ", gpr("DI"), gpr("BX"))
	f.emit("DECQ", gpr("CX"))
	f.emit("JNE", step)
	f.emit("TESTQ", gpr("R12"), gpr("R12"))
	f.emit("JNE", add)
	each(func(i, j int) { f.emit("VMOVAPS", chain(i, j), sum(i, j)) })
	f.emit("JMP", added)
	f.place(add)
	each(func(i, j int) { f.emit("VADDPS", chain(i, j), sum(i, j), sum(i, j)) })
	f.place(added)
	f.emit("INCQ", gpr("R12"))
	f.emit("CMPQ", gpr("R12"), arg("blocks"))
	f.emit("JLT", block)
	f.emit("MOVQ", arg("cRow"), gpr("BX"))
	f.emit("MOVQ", gpr("R13"), gpr("AX"))
	for i := range rows {
		for j := range vectors {
			f.store(sum(i, j), at("AX", j*s.bytes()), masked, tail)
		}
		if i < rows-1 {
			f.emit("ADDQ", gpr("BX"), gpr("AX"))
		}
	}
	f.emit("ADDQ", imm(vectors*s.bytes()), gpr("R11"))
	f.emit("ADDQ", imm(vectors*s.bytes()), gpr("R13"))
	f.emit("DECQ", gpr("R15"))
	f.emit("JNE", tile)
	return f
}

// dot is rows×columns dot products in 16 lanes: one register for AVX-512, two for AVX2.
func dot(s isa, rows, columns int) *function {
	f := newFunction(s, fmt.Sprintf("dot%dx%d", rows, columns), "groups int", "x unsafe.Pointer", "xRow uintptr",
		"w unsafe.Pointer", "wRow uintptr", "out unsafe.Pointer", "outRow uintptr", "lanes unsafe.Pointer")
	halves := 16 / s.width
	acc := func(i, j, half int) vec { return vec((i*columns+j)*halves + half) }
	next := rows * columns * halves
	x := func(i int) vec { return vec(next + i) }
	w := vec(next + rows)
	tail := vec(next + rows + 1)
	for i := range rows * columns * halves {
		f.zero(vec(i))
	}
	f.emit("MOVQ", arg("x"), gpr("AX"))
	f.emit("MOVQ", arg("xRow"), gpr("SI"))
	f.emit("MOVQ", arg("w"), gpr("BX"))
	f.emit("MOVQ", arg("wRow"), gpr("DI"))
	f.emit("MOVQ", arg("groups"), gpr("CX"))
	element := func(base, stride gpr, i, half int) address {
		a := at(base, half*s.bytes())
		if i > 0 {
			a.index, a.scale = stride, i
		}
		return a
	}
	step := func(masked bool) {
		for half := range halves {
			if masked {
				f.tailMask(tail, 1, at("DX", half*s.bytes()))
			}
			for i := range rows {
				f.load(element("AX", "SI", i, half), x(i), masked, tail)
			}
			for j := range columns {
				f.load(element("BX", "DI", j, half), w, masked, tail)
				for i := range rows {
					f.emit("VFMADD231PS", w, x(i), acc(i, j, half))
				}
			}
		}
	}
	f.loop(func() {
		step(false)
		f.emit("ADDQ", imm(64), gpr("AX"))
		f.emit("ADDQ", imm(64), gpr("BX"))
	})
	whole := f.newLabel("whole")
	f.emit("MOVQ", arg("lanes"), gpr("DX"))
	f.emit("TESTQ", gpr("DX"), gpr("DX"))
	f.emit("JEQ", whole)
	step(true)
	f.place(whole)
	f.emit("MOVQ", arg("out"), gpr("AX"))
	f.emit("MOVQ", arg("outRow"), gpr("BX"))
	for i := range rows {
		for j := range columns {
			v, t := acc(i, j, 0), w
			if halves == 1 {
				f.emit("VEXTRACTF64X4", imm(1), v, ymm(t))
				f.emit("VADDPS", ymm(t), ymm(v), ymm(v))
			} else {
				f.emit("VADDPS", acc(i, j, 1), v, v)
			}
			f.emit("VEXTRACTF128", imm(1), ymm(v), xmm(t))
			f.emit("VADDPS", xmm(t), xmm(v), xmm(v))
			f.emit("VPERMILPS", imm(0b1110), xmm(v), xmm(t))
			f.emit("VADDPS", xmm(t), xmm(v), xmm(v))
			f.emit("VPERMILPS", imm(0b0001), xmm(v), xmm(t))
			f.emit("VADDSS", xmm(t), xmm(v), xmm(v))
			f.emit("VMOVSS", xmm(v), at("AX", 4*j))
		}
		if i < rows-1 {
			f.emit("ADDQ", gpr("BX"), gpr("AX"))
		}
	}
	return f
}
