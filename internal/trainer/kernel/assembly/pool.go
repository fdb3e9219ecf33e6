package assembly

// The registers of the pooling functions: per vector of channels, per output, per position in the window.
//
//	R13 bytes of channels done   R12 outputs left     R8 the window's first element   R9 the window's row
//	AX  x or dx                  BX  dst or dy        SI arg                          R10, R11 rows and columns left
//	DX  bytes per pixel          DI  bytes from one window to the next                R15 bytes per input row

// poolLoops takes the arrays of the outputs, of the positions and of the input, in this order. vec(6) is the position in the
// window and vec(7) is 1, in every lane.
func poolLoops(s isa, name string, arrays []string, output func(f *function), position func(f *function, element address), finish func(f *function)) *function {
	var params []string
	for _, a := range arrays {
		params = append(params, a+" unsafe.Pointer")
	}
	f := newFunction(s, name, append(params, "outputs int", "vectors int", "pixel uintptr", "height int", "width int", "stride uintptr", "inputRow uintptr", "one uint32")...)
	f.emit("MOVQ", arg("pixel"), gpr("DX"))
	f.emit("MOVQ", arg("stride"), gpr("DI"))
	f.emit("MOVQ", arg("inputRow"), gpr("R15"))
	f.emit("XORQ", gpr("R13"), gpr("R13"))
	f.emit("VBROADCASTSS", arg("one"), vec(7))
	vectors, outputs := f.newLabel("vectors"), f.newLabel("outputs")
	rows, cols := f.newLabel("rows"), f.newLabel("cols")
	f.place(vectors)
	for i, register := range []gpr{"BX", "SI", "AX"} {
		f.emit("MOVQ", arg(arrays[i]), register)
		f.emit("ADDQ", gpr("R13"), register)
	}
	f.emit("MOVQ", arg("outputs"), gpr("R12"))
	f.place(outputs)
	f.zero(6)
	output(f)
	f.emit("MOVQ", gpr("AX"), gpr("R9"))
	f.emit("MOVQ", arg("height"), gpr("R10"))
	f.place(rows)
	f.emit("MOVQ", gpr("R9"), gpr("R8"))
	f.emit("MOVQ", arg("width"), gpr("R11"))
	f.place(cols)
	position(f, at("R8", 0))
	f.emit("VPADDD", vec(7), vec(6), vec(6))
	f.emit("ADDQ", gpr("DX"), gpr("R8"))
	f.emit("DECQ", gpr("R11"))
	f.emit("JNE", cols)
	f.emit("ADDQ", gpr("R15"), gpr("R9"))
	f.emit("DECQ", gpr("R10"))
	f.emit("JNE", rows)
	finish(f)
	f.emit("ADDQ", gpr("DI"), gpr("AX"))
	f.emit("ADDQ", gpr("DX"), gpr("BX"))
	f.emit("ADDQ", gpr("DX"), gpr("SI"))
	f.emit("DECQ", gpr("R12"))
	f.emit("JNE", outputs)
	f.emit("ADDQ", imm(s.bytes()), gpr("R13"))
	f.emit("DECQ", arg("vectors"))
	f.emit("JNE", vectors)
	return f
}

func pools(s isa) []*function {
	return []*function{
		batchNormMaxPool(s), pooledProducts(s),
		batchNormBackPooled(s, "batchNormBackPooled", false), batchNormBackPooled(s, "batchNormReLUBackPooled", true),
		poolLoops(s, "maxPool", []string{"dst", "arg", "x"},
			func(f *function) {
				f.emit("VMOVUPS", at("AX", 0), vec(0)) // the largest
				f.emit("VMOVAPS", vec(6), vec(1))      // its position
			},
			func(f *function, element address) {
				f.emit("VMOVUPS", element, vec(2))
				f.greaterMask(3, 2, 0)
				f.choose(0, 3, 2, 0)
				f.choose(1, 3, 6, 1)
			},
			func(f *function) {
				f.emit("VMOVUPS", vec(0), at("BX", 0))
				f.emit("VMOVUPS", vec(1), at("SI", 0))
			}),
		poolLoops(s, "maxPoolBack", []string{"dy", "arg", "dx"},
			func(f *function) {
				f.emit("VMOVUPS", at("BX", 0), vec(0))
				f.emit("VMOVUPS", at("SI", 0), vec(1))
			},
			func(f *function, element address) {
				f.equalMask(3, 1, 6)
				f.keep(2, 3, 0)
				f.emit("VMOVUPS", vec(2), element)
			},
			func(*function) {}),
	}
}
