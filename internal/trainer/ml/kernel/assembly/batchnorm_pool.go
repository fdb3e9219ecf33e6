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
		f.subtractFloats(mean, x, d)
		f.moveVector(shift, y)
		f.fma(scale, d, y)
	}
	f.argument("pixel", "DX")
	f.argument("stride", "DI")
	f.argument("inputRow", "R15")
	f.clear("R13")
	f.broadcast("one", one)
	vectors, outputs := f.newLabel("vectors"), f.newLabel("outputs")
	rows, cols := f.newLabel("rows"), f.newLabel("cols")
	f.place(vectors)
	f.channels([]string{"mean", "scale", "shift"}, mean)
	f.rowPointers([]string{"x", "dst", "arg", "at"}, []gpr{"AX", "BX", "SI", "CX"})
	f.argument("outputs", "R12")
	f.place(outputs)
	f.zero(here)
	f.zero(position)
	f.load(at("AX", 0), x)
	f.moveVector(x, atBest)
	normalize()
	f.moveVector(y, best)
	f.move("AX", "R9")
	f.argument("height", "R10")
	f.place(rows)
	f.move("R9", "R8")
	f.argument("width", "R11")
	f.place(cols)
	f.load(at("R8", 0), x)
	normalize()
	f.greaterMask(m, y, best)
	f.replace(best, m, y)
	f.replace(position, m, here)
	f.replace(atBest, m, x)
	f.addIntegers(one, here, here)
	f.add("DX", "R8")
	f.countDown("R11", cols)
	f.add("R15", "R9")
	f.countDown("R10", rows)
	f.store(best, at("BX", 0))
	f.store(position, at("SI", 0))
	f.store(atBest, at("CX", 0))
	f.add("DI", "AX")
	for _, p := range []gpr{"BX", "SI", "CX"} {
		f.add("DX", p)
	}
	f.countDown("R12", outputs)
	f.advance("R13", s.bytes())
	f.countDownArgument("vectors", vectors)
	return f
}

// channels loads a vector of each of the per-channel arrays, at R13, into first, first+1 and so on.
func (f *function) channels(names []string, first vec) {
	for i, name := range names {
		f.argument(name, "R8")
		f.load(indexed("R8", "R13", 1), first+vec(i))
	}
}

// rowPointers begins the arrays of rows at the channels at hand.
func (f *function) rowPointers(names []string, registers []gpr) {
	for i, name := range names {
		f.argument(name, registers[i])
		f.add("R13", registers[i])
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
	f.argument("pixel", "DX")
	f.argument("vectors", "R15")
	f.clear("R13")
	for _, chunk := range []int{2, 1} {
		top, next := f.newLabel("columns"), f.newLabel("next")
		rows, windowRows, outputs := f.newLabel("rows"), f.newLabel("window"), f.newLabel("outputs")
		channel := func(i, q int) vec { return vec(i*chunk + q) }
		free := vec(3 * chunk)
		below, above, width := free, free+1, free+2 // positions of the window's row: below < position < above
		dy, x, m := free+3, free+4, free+5
		f.place(top)
		f.ifLess("R15", imm(chunk), next)
		for i, name := range []string{"sum", "dot", "mean"} {
			f.argument(name, "R8")
			f.add("R13", "R8")
			for q := range chunk {
				f.load(at("R8", q*s.bytes()), channel(i, q))
			}
		}
		f.rowPointers([]string{"at", "dy", "arg"}, []gpr{"AX", "BX", "SI"})
		f.broadcast("width", width)
		f.clear("CX")
		f.argument("rows", "R12")
		f.place(rows)
		f.broadcast("before", below)
		f.moveVector(width, above)
		f.argument("height", "R10")
		f.place(windowRows)
		f.move("CX", "DI")
		f.argument("outputs", "R11")
		f.place(outputs)
		for q := range chunk {
			element := func(base gpr) address { return address{base: base, index: "DI", scale: 1, disp: q * s.bytes()} }
			f.load(element("SI"), x)
			f.load(element("BX"), dy)
			f.greaterIntegers(m, x, below)
			f.keep(dy, m, dy)
			f.greaterIntegers(m, above, x)
			f.keep(dy, m, dy)
			f.load(element("AX"), x)
			f.subtractFloats(channel(2, q), x, x)
			f.addFloats(dy, channel(0, q), channel(0, q))
			f.fma(x, dy, channel(1, q))
		}
		f.add("DX", "DI")
		f.countDown("R11", outputs)
		f.addIntegers(width, below, below)
		f.addIntegers(width, above, above)
		f.countDown("R10", windowRows)
		f.move("DI", "CX")
		f.countDown("R12", rows)
		for i, name := range []string{"sum", "dot"} {
			f.argument(name, "R8")
			f.add("R13", "R8")
			for q := range chunk {
				f.store(channel(i, q), at("R8", q*s.bytes()))
			}
		}
		f.advance("R13", chunk*s.bytes())
		f.advance("R15", -chunk)
		f.jump(top)
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
	f.argument("pixel", "DX")
	f.argument("stride", "DI")
	f.clear("R13")
	f.broadcast("one", one)
	f.broadcast("first", first)
	f.zero(zero)
	vectors, outputs, cols := f.newLabel("vectors"), f.newLabel("outputs"), f.newLabel("cols")
	f.place(vectors)
	f.channels([]string{"mean", "scale", "offset", "slope"}, mean)
	f.rowPointers([]string{"x", "dst", "dy", "arg"}, []gpr{"AX", "CX", "BX", "SI"})
	f.argument("outputs", "R12")
	f.place(outputs)
	f.load(at("BX", 0), dy)
	f.load(at("SI", 0), position)
	f.moveVector(first, here)
	f.move("AX", "R8")
	f.move("CX", "R9")
	f.argument("width", "R11")
	f.place(cols)
	f.equalMask(m, position, here)
	f.keep(value, m, dy)
	f.load(at("R8", 0), x)
	f.subtractFloats(mean, x, d)
	f.subtractFloats(offset, value, value)
	f.fma(slope, d, value)
	f.multiplyFloats(scale, value, value)
	if relu {
		f.greaterMask(m, x, zero)
		f.keep(value, m, value)
	}
	f.store(value, at("R9", 0))
	f.addIntegers(one, here, here)
	f.add("DX", "R8")
	f.add("DX", "R9")
	f.countDown("R11", cols)
	f.add("DI", "AX")
	f.add("DI", "CX")
	f.add("DX", "BX")
	f.add("DX", "SI")
	f.countDown("R12", outputs)
	f.advance("R13", s.bytes())
	f.countDownArgument("vectors", vectors)
	return f
}
