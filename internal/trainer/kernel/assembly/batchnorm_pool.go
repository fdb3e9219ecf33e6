package assembly

// BatchNorm fused with the max-pooling behind it: what is normalized is never stored.

// batchNormMaxPool is one row of outputs: the largest of the normalized window, its position, and the x there.
//
//	R13 bytes of channels done   R12 outputs left   R8 the window's element   R9 the window's row   R10, R11 rows, columns left
//	AX  x   BX dst   SI arg   CX at   DX bytes per pixel   DI bytes from one window to the next   R15 bytes per input row
func batchNormMaxPool(s isa) *function {
	f := newFunction(s, "batchNormMaxPool", "dst unsafe.Pointer", "arg unsafe.Pointer", "at unsafe.Pointer", "x unsafe.Pointer",
		"mean unsafe.Pointer", "scale unsafe.Pointer", "shift unsafe.Pointer",
		"outputs int", "vectors int", "pixel uintptr", "height int", "width int", "stride uintptr", "inputRow uintptr", "one uint32")
	const (
		best, position, atBest = vec(0), vec(1), vec(2)
		x, y, m                = vec(3), vec(4), vec(5)
		here, one              = vec(6), vec(7)
		mean, scale, shift, d  = vec(8), vec(9), vec(10), vec(11)
	)
	normalize := func() {
		f.emit("VSUBPS", mean, x, d)
		f.emit("VMOVAPS", shift, y)
		f.emit("VFMADD231PS", scale, d, y)
	}
	f.emit("MOVQ", arg("pixel"), gpr("DX"))
	f.emit("MOVQ", arg("stride"), gpr("DI"))
	f.emit("MOVQ", arg("inputRow"), gpr("R15"))
	f.emit("XORQ", gpr("R13"), gpr("R13"))
	f.emit("VBROADCASTSS", arg("one"), one)
	vectors, outputs := f.newLabel("vectors"), f.newLabel("outputs")
	rows, cols := f.newLabel("rows"), f.newLabel("cols")
	f.place(vectors)
	f.channels([]string{"mean", "scale", "shift"}, mean)
	f.rowPointers([]string{"x", "dst", "arg", "at"}, []gpr{"AX", "BX", "SI", "CX"})
	f.emit("MOVQ", arg("outputs"), gpr("R12"))
	f.place(outputs)
	f.zero(here)
	f.zero(position)
	f.emit("VMOVUPS", at("AX", 0), x)
	f.emit("VMOVAPS", x, atBest)
	normalize()
	f.emit("VMOVAPS", y, best)
	f.emit("MOVQ", gpr("AX"), gpr("R9"))
	f.emit("MOVQ", arg("height"), gpr("R10"))
	f.place(rows)
	f.emit("MOVQ", gpr("R9"), gpr("R8"))
	f.emit("MOVQ", arg("width"), gpr("R11"))
	f.place(cols)
	f.emit("VMOVUPS", at("R8", 0), x)
	normalize()
	f.greaterMask(m, y, best)
	f.choose(best, m, y, best)
	f.choose(position, m, here, position)
	f.choose(atBest, m, x, atBest)
	f.emit("VPADDD", one, here, here)
	f.emit("ADDQ", gpr("DX"), gpr("R8"))
	f.emit("DECQ", gpr("R11"))
	f.emit("JNE", cols)
	f.emit("ADDQ", gpr("R15"), gpr("R9"))
	f.emit("DECQ", gpr("R10"))
	f.emit("JNE", rows)
	f.emit("VMOVUPS", best, at("BX", 0))
	f.emit("VMOVUPS", position, at("SI", 0))
	f.emit("VMOVUPS", atBest, at("CX", 0))
	f.emit("ADDQ", gpr("DI"), gpr("AX"))
	for _, p := range []gpr{"BX", "SI", "CX"} {
		f.emit("ADDQ", gpr("DX"), p)
	}
	f.emit("DECQ", gpr("R12"))
	f.emit("JNE", outputs)
	f.emit("ADDQ", imm(s.bytes()), gpr("R13"))
	f.emit("DECQ", arg("vectors"))
	f.emit("JNE", vectors)
	return f
}

// channels loads a vector of each of the per-channel arrays, at R13, into first, first+1 and so on.
func (f *function) channels(names []string, first vec) {
	for i, name := range names {
		f.emit("MOVQ", arg(name), gpr("R8"))
		f.emit("VMOVUPS", indexed("R8", "R13", 1), first+vec(i))
	}
}

// rowPointers begins the arrays of rows at the channels at hand.
func (f *function) rowPointers(names []string, registers []gpr) {
	for i, name := range names {
		f.emit("MOVQ", arg(name), registers[i])
		f.emit("ADDQ", gpr("R13"), registers[i])
	}
}

// pooledProducts is columnProducts over the outputs of a pooling layer, in the order of the pixels that they came from:
// rows of outputs, rows of the window, outputs.
//
//	AX at   BX dy   SI arg   DI offset of the output   CX offset of the row   R12 rows left   R10 window rows left   R11 outputs left
func pooledProducts(s isa) *function {
	f := newFunction(s, "pooledProducts", "sum unsafe.Pointer", "dot unsafe.Pointer", "mean unsafe.Pointer",
		"dy unsafe.Pointer", "at unsafe.Pointer", "arg unsafe.Pointer",
		"vectors int", "rows int", "outputs int", "pixel uintptr", "height int", "width uint32", "before uint32")
	f.emit("MOVQ", arg("pixel"), gpr("DX"))
	f.emit("MOVQ", arg("vectors"), gpr("R15"))
	f.emit("XORQ", gpr("R13"), gpr("R13"))
	for _, chunk := range []int{2, 1} {
		top, next := f.newLabel("columns"), f.newLabel("next")
		rows, windowRows, outputs := f.newLabel("rows"), f.newLabel("window"), f.newLabel("outputs")
		channel := func(i, q int) vec { return vec(i*chunk + q) }
		free := vec(3 * chunk)
		below, above, width := free, free+1, free+2 // positions of the window's row: below < position < above
		dy, x, m := free+3, free+4, free+5
		f.place(top)
		f.emit("CMPQ", gpr("R15"), imm(chunk))
		f.emit("JLT", next)
		for i, name := range []string{"sum", "dot", "mean"} {
			f.emit("MOVQ", arg(name), gpr("R8"))
			f.emit("ADDQ", gpr("R13"), gpr("R8"))
			for q := range chunk {
				f.emit("VMOVUPS", at("R8", q*s.bytes()), channel(i, q))
			}
		}
		f.rowPointers([]string{"at", "dy", "arg"}, []gpr{"AX", "BX", "SI"})
		f.emit("VBROADCASTSS", arg("width"), width)
		f.emit("XORQ", gpr("CX"), gpr("CX"))
		f.emit("MOVQ", arg("rows"), gpr("R12"))
		f.place(rows)
		f.emit("VBROADCASTSS", arg("before"), below)
		f.emit("VMOVAPS", width, above)
		f.emit("MOVQ", arg("height"), gpr("R10"))
		f.place(windowRows)
		f.emit("MOVQ", gpr("CX"), gpr("DI"))
		f.emit("MOVQ", arg("outputs"), gpr("R11"))
		f.place(outputs)
		for q := range chunk {
			element := func(base gpr) address { return address{base: base, index: "DI", scale: 1, disp: q * s.bytes()} }
			f.emit("VMOVUPS", element("SI"), x)
			f.emit("VMOVUPS", element("BX"), dy)
			f.greaterIntegers(m, x, below)
			f.keep(dy, m, dy)
			f.greaterIntegers(m, above, x)
			f.keep(dy, m, dy)
			f.emit("VMOVUPS", element("AX"), x)
			f.emit("VSUBPS", channel(2, q), x, x)
			f.emit("VADDPS", dy, channel(0, q), channel(0, q))
			f.emit("VFMADD231PS", x, dy, channel(1, q))
		}
		f.emit("ADDQ", gpr("DX"), gpr("DI"))
		f.emit("DECQ", gpr("R11"))
		f.emit("JNE", outputs)
		f.emit("VPADDD", width, below, below)
		f.emit("VPADDD", width, above, above)
		f.emit("DECQ", gpr("R10"))
		f.emit("JNE", windowRows)
		f.emit("MOVQ", gpr("DI"), gpr("CX"))
		f.emit("DECQ", gpr("R12"))
		f.emit("JNE", rows)
		for i, name := range []string{"sum", "dot"} {
			f.emit("MOVQ", arg(name), gpr("R8"))
			f.emit("ADDQ", gpr("R13"), gpr("R8"))
			for q := range chunk {
				f.emit("VMOVUPS", channel(i, q), at("R8", q*s.bytes()))
			}
		}
		f.emit("ADDQ", imm(chunk*s.bytes()), gpr("R13"))
		f.emit("SUBQ", imm(chunk), gpr("R15"))
		f.emit("JMP", top)
		f.place(next)
	}
	return f
}

// batchNormBackPooled is batchNormBack for one row of the input, where dy is at the window's largest and +0 elsewhere.
//
//	R13 bytes of channels done   R12 outputs left   R8, R9 elements of x and dst   R11 columns left
//	AX  x   CX dst   BX dy   SI arg   DX bytes per pixel   DI bytes per window
func batchNormBackPooled(s isa, name string, relu bool) *function {
	f := newFunction(s, name, "mean unsafe.Pointer", "scale unsafe.Pointer", "offset unsafe.Pointer", "slope unsafe.Pointer",
		"dst unsafe.Pointer", "dy unsafe.Pointer", "arg unsafe.Pointer", "x unsafe.Pointer",
		"outputs int", "vectors int", "pixel uintptr", "width int", "stride uintptr", "first uint32", "one uint32")
	const (
		dy, position               = vec(0), vec(1)
		value, m, x, d             = vec(2), vec(3), vec(4), vec(5)
		here, one                  = vec(6), vec(7)
		mean, scale, offset, slope = vec(8), vec(9), vec(10), vec(11)
		zero, first                = vec(12), vec(13)
	)
	f.emit("MOVQ", arg("pixel"), gpr("DX"))
	f.emit("MOVQ", arg("stride"), gpr("DI"))
	f.emit("XORQ", gpr("R13"), gpr("R13"))
	f.emit("VBROADCASTSS", arg("one"), one)
	f.emit("VBROADCASTSS", arg("first"), first)
	f.zero(zero)
	vectors, outputs, cols := f.newLabel("vectors"), f.newLabel("outputs"), f.newLabel("cols")
	f.place(vectors)
	f.channels([]string{"mean", "scale", "offset", "slope"}, mean)
	f.rowPointers([]string{"x", "dst", "dy", "arg"}, []gpr{"AX", "CX", "BX", "SI"})
	f.emit("MOVQ", arg("outputs"), gpr("R12"))
	f.place(outputs)
	f.emit("VMOVUPS", at("BX", 0), dy)
	f.emit("VMOVUPS", at("SI", 0), position)
	f.emit("VMOVAPS", first, here)
	f.emit("MOVQ", gpr("AX"), gpr("R8"))
	f.emit("MOVQ", gpr("CX"), gpr("R9"))
	f.emit("MOVQ", arg("width"), gpr("R11"))
	f.place(cols)
	f.equalMask(m, position, here)
	f.keep(value, m, dy)
	f.emit("VMOVUPS", at("R8", 0), x)
	f.emit("VSUBPS", mean, x, d)
	f.emit("VSUBPS", offset, value, value)
	f.emit("VFMADD231PS", slope, d, value)
	f.emit("VMULPS", scale, value, value)
	if relu {
		f.greaterMask(m, x, zero)
		f.keep(value, m, value)
	}
	f.emit("VMOVUPS", value, at("R9", 0))
	f.emit("VPADDD", one, here, here)
	f.emit("ADDQ", gpr("DX"), gpr("R8"))
	f.emit("ADDQ", gpr("DX"), gpr("R9"))
	f.emit("DECQ", gpr("R11"))
	f.emit("JNE", cols)
	f.emit("ADDQ", gpr("DI"), gpr("AX"))
	f.emit("ADDQ", gpr("DI"), gpr("CX"))
	f.emit("ADDQ", gpr("DX"), gpr("BX"))
	f.emit("ADDQ", gpr("DX"), gpr("SI"))
	f.emit("DECQ", gpr("R12"))
	f.emit("JNE", outputs)
	f.emit("ADDQ", imm(s.bytes()), gpr("R13"))
	f.emit("DECQ", arg("vectors"))
	f.emit("JNE", vectors)
	return f
}
