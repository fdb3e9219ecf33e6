package assembly

import "fmt"

// Flags of the matrix product.
const (
	flagLoad = 1
	flagReLU = 2
)

// gemm is rows×vectors elements of C at a time, `tiles` times down the rows. masked: the tail, the columns of the last,
// partial vector.
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
		f.move("R13", "AX")
		for i := range rows {
			for j := range vectors {
				do(i, j, at("AX", j*s.bytes()))
			}
			f.add("BX", "AX")
		}
	}

	if masked {
		f.beginTail(tail)
	}
	f.argument("a", "R15")
	f.argument("c", "R13")
	f.argument("aRow", "SI")
	f.argument("aStep", "DX")
	f.argument("bRow", "DI")
	f.addressOf(indexed("SI", "SI", 2), "R8")

	tile := f.newLabel("tile")
	f.place(tile)
	begin, zero := f.newLabel("begin"), f.newLabel("zero")
	f.unlessFlag(flagLoad, zero)
	f.argument("cRow", "BX")
	rowsOfC(func(i, j int, element address) { f.loadColumns(element, acc(i, j), masked, tail) })
	f.jump(begin)
	f.place(zero)
	each(func(i, j int) { f.zero(acc(i, j)) })
	f.place(begin)

	f.move("R15", "R10")
	f.argument("b", "R11")
	f.argument("segments", "R12")
	segment, step := f.newLabel("segment"), f.newLabel("step")
	f.place(segment)
	f.move("R10", "AX")
	f.move("R11", "BX")
	if rows > 3 {
		f.addressOf(indexed("R10", "R8", 1), "R9")
	}
	f.argument("k", "CX")
	f.align()
	f.place(step)
	for j := range vectors {
		f.loadColumns(at("BX", j*s.bytes()), vec(j), masked, tail)
	}
	for i := range rows {
		f.loadFactor(rowOfA(i), factor(i))
		for j := range vectors {
			f.fmaFactor(vec(j), factor(i), acc(i, j))
		}
	}
	f.add("DX", "AX")
	if rows > 3 {
		f.add("DX", "R9")
	}
	f.add("DI", "BX")
	f.countDown("CX", step)
	f.addArgument("aSegment", "R10")
	f.addArgument("bSegment", "R11")
	f.countDown("R12", segment)

	noBias, noReLU := f.newLabel("nobias"), f.newLabel("norelu")
	f.argument("bias", "AX")
	f.ifZero("AX", noBias)
	for j := range vectors {
		f.loadColumns(at("AX", j*s.bytes()), vec(j), masked, tail)
	}
	each(func(i, j int) { f.addFloats(vec(j), acc(i, j), acc(i, j)) })
	f.place(noBias)
	f.unlessFlag(flagReLU, noReLU)
	f.zero(0)
	each(func(i, j int) {
		f.greaterMask(1, acc(i, j), 0)
		f.keep(acc(i, j), 1, acc(i, j))
	})
	f.place(noReLU)
	f.argument("cRow", "BX")
	rowsOfC(func(i, j int, element address) { f.storeColumns(acc(i, j), element, masked, tail) })
	f.move("AX", "R13")
	for range rows / 3 {
		f.add("R8", "R15")
	}
	for range rows % 3 {
		f.add("SI", "R15")
	}
	f.countDownArgument("tiles", tile)
	return f
}

// gemmBlocks is rows×vectors elements of a sum over blocks of records, `tiles` times along the columns: the chain of
// the block and the sum of the blocks are both in registers.
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
		f.beginTail(tail)
	}
	f.argument("aRow", "SI")
	f.argument("aStep", "DX")
	f.argument("b", "R11")
	f.argument("bRow", "DI")
	f.argument("c", "R13")
	f.argument("tiles", "R15")

	tile, block, step := f.newLabel("tile"), f.newLabel("block"), f.newLabel("step")
	smaller, added, add := f.newLabel("smaller"), f.newLabel("added"), f.newLabel("add")
	f.place(tile)
	f.argument("a", "AX")
	f.move("R11", "BX")
	f.argument("larger", "R9")
	f.clear("R12")
	f.place(block)
	f.argument("size", "CX")
	f.ifAtLeast("R12", "R9", smaller)
	f.advance("CX", 1)
	f.place(smaller)
	each(func(i, j int) { f.zero(chain(i, j)) })
	f.place(step)
	for j := range vectors {
		f.loadColumns(at("BX", j*s.bytes()), vec(j), masked, tail)
	}
	for i := range rows {
		a := at("AX", 0)
		if i > 0 {
			a = indexed("AX", "SI", i)
		}
		f.loadFactor(a, factor)
		for j := range vectors {
			f.fmaFactor(vec(j), factor, chain(i, j))
		}
	}
	f.add("DX", "AX")
	f.add("DI", "BX")
	f.countDown("CX", step)
	f.ifNotZero("R12", add)
	each(func(i, j int) { f.moveVector(chain(i, j), sum(i, j)) })
	f.jump(added)
	f.place(add)
	each(func(i, j int) { f.addFloats(chain(i, j), sum(i, j), sum(i, j)) })
	f.place(added)
	f.advance("R12", 1)
	f.ifLess("R12", arg("blocks"), block)
	f.argument("cRow", "BX")
	f.move("R13", "AX")
	for i := range rows {
		for j := range vectors {
			f.storeColumns(sum(i, j), at("AX", j*s.bytes()), masked, tail)
		}
		if i < rows-1 {
			f.add("BX", "AX")
		}
	}
	f.advance("R11", vectors*s.bytes())
	f.advance("R13", vectors*s.bytes())
	f.countDown("R15", tile)
	return f
}

// dot is rows×columns dot products in 16 lanes: one register for AVX-512, two for AVX2, four for NEON.
func dot(s isa, rows, columns int) *function {
	f := newFunction(s, fmt.Sprintf("dot%dx%d", rows, columns), "groups int", "x unsafe.Pointer", "xRow uintptr",
		"w unsafe.Pointer", "wRow uintptr", "out unsafe.Pointer", "outRow uintptr", "lanes unsafe.Pointer")
	parts := 16 / s.width
	acc := func(i, j, part int) vec { return vec((i*columns+j)*parts + part) }
	next := rows * columns * parts
	x := func(i int) vec { return vec(next + i) }
	w := vec(next + rows)
	tail := vec(next + rows + 1)
	for i := range rows * columns * parts {
		f.zero(vec(i))
	}
	f.argument("x", "AX")
	f.argument("xRow", "SI")
	f.argument("w", "BX")
	f.argument("wRow", "DI")
	f.argument("groups", "CX")
	element := func(base, stride gpr, i, part int) address {
		a := at(base, part*s.bytes())
		if i > 0 {
			a.index, a.scale = stride, i
		}
		return a
	}
	step := func(masked bool) {
		load := f.load
		if masked {
			load = func(from address, to vec) { f.loadMasked(from, to, tail) }
		}
		for part := range parts {
			if masked {
				f.loadMask(at("DX", part*s.bytes()), tail)
			}
			for i := range rows {
				load(element("AX", "SI", i, part), x(i))
			}
			for j := range columns {
				load(element("BX", "DI", j, part), w)
				for i := range rows {
					f.fma(w, x(i), acc(i, j, part))
				}
			}
		}
	}
	f.loop(func() {
		step(false)
		f.advance("AX", 64)
		f.advance("BX", 64)
	})
	whole := f.newLabel("whole")
	f.argument("lanes", "DX")
	f.ifZero("DX", whole)
	step(true)
	f.place(whole)
	f.argument("out", "AX")
	f.argument("outRow", "BX")
	for i := range rows {
		for j := range columns {
			var lanes []vec
			for part := range parts {
				lanes = append(lanes, acc(i, j, part))
			}
			f.combineLanes(lanes, w)
			f.storeLane(lanes[0], at("AX", 4*j))
		}
		if i < rows-1 {
			f.add("BX", "AX")
		}
	}
	return f
}
