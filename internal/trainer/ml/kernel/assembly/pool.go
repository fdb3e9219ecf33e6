package assembly

// The registers of the pooling functions: per vector of channels, per output, per position in the window.
//
//	R13 bytes of channels done   R12 outputs left     R8 the window's first element   R9 the window's row
//	AX  x or dx                  BX  dst or dy        SI arg                          R10, R11 rows and columns left
//	DX  bytes per pixel          DI  bytes from one window to the next                R15 bytes per input row

// poolLoops takes the arrays of the outputs, of the positions and of the input, in this order. vec(6) is the position
// in the window and vec(7) is 1, in every lane.
func poolLoops(s isa, name string, arrays []string, output func(f *function), position func(f *function, element address), finish func(f *function)) *function {
	var params []string
	for _, a := range arrays {
		params = append(params, a+" unsafe.Pointer")
	}
	f := newFunction(s, name, append(params, "outputs int", "vectors int", "pixel uintptr", "height int", "width int", "stride uintptr", "inputRow uintptr", "one uint32")...)
	f.argument("pixel", "DX")
	f.argument("stride", "DI")
	f.argument("inputRow", "R15")
	f.clear("R13")
	f.broadcast("one", vec(7))
	vectors, outputs := f.newLabel("vectors"), f.newLabel("outputs")
	rows, cols := f.newLabel("rows"), f.newLabel("cols")
	f.place(vectors)
	for i, register := range []gpr{"BX", "SI", "AX"} {
		f.argument(arrays[i], register)
		f.add("R13", register)
	}
	f.argument("outputs", "R12")
	f.place(outputs)
	f.zero(6)
	output(f)
	f.move("AX", "R9")
	f.argument("height", "R10")
	f.place(rows)
	f.move("R9", "R8")
	f.argument("width", "R11")
	f.place(cols)
	position(f, at("R8", 0))
	f.addIntegers(vec(7), vec(6), vec(6))
	f.add("DX", "R8")
	f.countDown("R11", cols)
	f.add("R15", "R9")
	f.countDown("R10", rows)
	finish(f)
	f.add("DI", "AX")
	f.add("DX", "BX")
	f.add("DX", "SI")
	f.countDown("R12", outputs)
	f.advance("R13", s.bytes())
	f.countDownArgument("vectors", vectors)
	return f
}

func pools(s isa) []*function {
	return []*function{
		batchNormMaxPool(s), pooledProducts(s),
		batchNormBackPooled(s, "batchNormBackPooled", false), batchNormBackPooled(s, "batchNormReLUBackPooled", true),
		poolLoops(s, "maxPool", []string{"dst", "arg", "x"},
			func(f *function) {
				f.load(at("AX", 0), vec(0))  // the largest
				f.moveVector(vec(6), vec(1)) // its position
			},
			func(f *function, element address) {
				f.load(element, vec(2))
				f.greaterMask(3, 2, 0)
				f.replace(0, 3, 2)
				f.replace(1, 3, 6)
			},
			func(f *function) {
				f.store(vec(0), at("BX", 0))
				f.store(vec(1), at("SI", 0))
			}),
		poolLoops(s, "maxPoolBack", []string{"dy", "arg", "dx"},
			func(f *function) {
				f.load(at("BX", 0), vec(0))
				f.load(at("SI", 0), vec(1))
			},
			func(f *function, element address) {
				f.equalMask(3, 1, 6)
				f.keep(2, 3, 0)
				f.store(vec(2), element)
			},
			func(*function) {}),
	}
}
