package assembly

// flat is an operation over arrays of the same length, vector by vector. The pointers are in registers; body gets them
// as operands of the vector at hand.
func flat(s isa, name string, arrays []string, more []string, begin func(f *function), body func(f *function, at []address)) *function {
	var params []string
	for _, a := range arrays {
		params = append(params, a+" unsafe.Pointer")
	}
	params = append(params, "vectors int")
	f := newFunction(s, name, append(params, more...)...)
	registers := []gpr{"AX", "BX", "SI", "R8"}
	var elements []address
	for i, a := range arrays {
		f.argument(a, registers[i])
		elements = append(elements, indexed(registers[i], "DI", 1))
	}
	f.argument("vectors", "CX")
	f.clear("DI")
	if begin != nil {
		begin(f)
	}
	f.loop(func() {
		body(f, elements)
		f.advance("DI", s.bytes())
	})
	return f
}

func flats(s isa) []*function {
	exponent := vec(4)
	finite := flat(s, "finite", []string{"x"}, []string{"exponent uint32"},
		func(f *function) {
			f.broadcast("exponent", exponent)
			f.zero(5)
		},
		func(f *function, a []address) {
			f.load(a[0], vec(0))
			f.and(exponent, 0, 0)
			f.equalMask(1, 0, exponent)
			f.keep(1, 1, exponent)
			f.or(1, 5, 5)
		})
	finite.result = param{"hits", "uint64"}
	finite.anyLane(5, "AX")
	finite.setResult("hits", "AX")

	return []*function{
		flat(s, "add", []string{"dst", "a"}, nil, nil, func(f *function, a []address) {
			f.load(a[0], vec(0))
			f.addFloats(a[1], vec(0), vec(0))
			f.store(vec(0), a[0])
		}),
		flat(s, "mul", []string{"dst", "a", "b"}, nil, nil, func(f *function, a []address) {
			f.load(a[1], vec(0))
			f.multiplyFloats(a[2], vec(0), vec(0))
			f.store(vec(0), a[0])
		}),
		flat(s, "relu", []string{"dst", "a"}, nil, func(f *function) { f.zero(2) }, func(f *function, a []address) {
			f.load(a[1], vec(0))
			f.greaterMask(1, 0, 2)
			f.keep(0, 1, 0)
			f.store(vec(0), a[0])
		}),
		flat(s, "reluBack", []string{"dst", "dy", "y"}, nil, func(f *function) { f.zero(2) }, func(f *function, a []address) {
			f.load(a[1], vec(0))
			f.load(a[2], vec(3))
			f.greaterMask(1, 3, 2)
			f.keep(0, 1, 0)
			f.store(vec(0), a[0])
		}),
		flat(s, "sgd", []string{"w", "dw"}, []string{"rate float32"}, func(f *function) {
			f.broadcast("rate", vec(2))
		}, func(f *function, a []address) {
			f.multiplyFloats(a[1], vec(2), vec(0))
			f.load(a[0], vec(1))
			f.subtractFloats(vec(0), vec(1), vec(1))
			f.store(vec(1), a[0])
		}),
		flat(s, "scale", []string{"x"}, []string{"factor float32"}, func(f *function) {
			f.broadcast("factor", vec(1))
		}, func(f *function, a []address) {
			f.multiplyFloats(a[0], vec(1), vec(0))
			f.store(vec(0), a[0])
		}),
		flat(s, "momentum", []string{"w", "slot", "dw"}, []string{"rate float32", "share float32"}, func(f *function) {
			f.broadcast("rate", vec(2))
			f.broadcast("share", vec(3))
		}, func(f *function, a []address) {
			f.multiplyFloats(a[1], vec(3), vec(0))
			f.multiplyFloats(a[2], vec(2), vec(1))
			f.subtractFloats(vec(1), vec(0), vec(0))
			f.store(vec(0), a[1])
			f.addFloats(a[0], vec(0), vec(0))
			f.store(vec(0), a[0])
		}),
		flat(s, "descend", []string{"w", "m", "v"}, []string{"rate float32", "epsilon float32"}, func(f *function) {
			f.broadcast("rate", vec(4))
			f.broadcast("epsilon", vec(5))
		}, func(f *function, a []address) {
			f.load(a[1], vec(0))
			f.load(a[2], vec(1))
			adamDescent(f, 0, 1, 4, 5, a[0])
		}),
		flat(s, "adam", []string{"w", "m", "v", "dw"}, []string{"rate float32", "epsilon float32", "rest1 float32", "rest2 float32"}, func(f *function) {
			f.broadcast("rate", vec(4))
			f.broadcast("epsilon", vec(5))
			f.broadcast("rest1", vec(6))
			f.broadcast("rest2", vec(7))
		}, func(f *function, a []address) {
			f.load(a[3], vec(2))
			f.load(a[1], vec(0))
			f.subtractFloats(vec(0), vec(2), vec(3)) // g − m
			f.multiplyFloats(vec(3), vec(6), vec(3))
			f.addFloats(vec(3), vec(0), vec(0))
			f.store(vec(0), a[1])
			f.load(a[2], vec(1))
			f.multiplyFloats(vec(2), vec(2), vec(3))
			f.subtractFloats(vec(1), vec(3), vec(3)) // g × g − v
			f.multiplyFloats(vec(3), vec(7), vec(3))
			f.addFloats(vec(3), vec(1), vec(1))
			f.store(vec(1), a[2])
			adamDescent(f, 0, 1, 4, 5, a[0])
		}),
		finite,
	}
}

// adamDescent is w ← w − ((m × rate) ÷ (√v + ε)); it uses m and v up.
func adamDescent(f *function, m, v, rate, epsilon vec, w address) {
	f.multiplyFloats(rate, m, m)
	f.squareRoot(v, v)
	f.addFloats(epsilon, v, v)
	f.divideFloats(v, m, m)
	f.load(w, v)
	f.subtractFloats(m, v, v)
	f.store(v, w)
}

// columnOperation is an operation over rows of channels: as many vectors of channels as `chunk` at a time, then single
// ones; for each, the per-channel values are loaded, all rows walked, and perhaps the per-channel values stored.
type columnOperation struct {
	name          string
	channels      []string // per-channel arrays; vec(i·chunk + q) holds vector q of the i-th
	rows          []string
	results       int // so many of the first channel arrays are stored at the end
	chunk         int
	body          func(f *function, channel func(i int) vec, row func(i int) address, scratch []vec)
	scratchPerRow int
}

func (c columnOperation) build(s isa) *function {
	var params []string
	for _, p := range append(append([]string{}, c.channels...), c.rows...) {
		params = append(params, p+" unsafe.Pointer")
	}
	f := newFunction(s, c.name, append(params, "vectors int", "height int", "rowBytes uintptr")...)
	rowRegisters := []gpr{"AX", "BX", "SI"}
	f.argument("vectors", "R12")
	f.argument("rowBytes", "DX")
	f.clear("R13") // bytes of channels done
	for _, chunk := range []int{c.chunk, 1} {
		top, next := f.newLabel("columns"), f.newLabel("next")
		f.place(top)
		f.ifLess("R12", imm(chunk), next)
		for i, name := range c.channels {
			f.argument(name, "R8")
			f.add("R13", "R8")
			for q := range chunk {
				f.load(at("R8", q*s.bytes()), vec(i*chunk+q))
			}
		}
		for i, name := range c.rows {
			f.argument(name, rowRegisters[i])
			f.add("R13", rowRegisters[i])
		}
		f.argument("height", "CX")
		f.loop(func() {
			for q := range chunk {
				var scratch []vec
				for k := range c.scratchPerRow {
					scratch = append(scratch, vec(len(c.channels)*chunk+k))
				}
				c.body(f,
					func(i int) vec { return vec(i*chunk + q) },
					func(i int) address { return at(rowRegisters[i], q*s.bytes()) },
					scratch)
			}
			for i := range c.rows {
				f.add("DX", rowRegisters[i])
			}
		})
		for i := range c.results {
			f.argument(c.channels[i], "R8")
			f.add("R13", "R8")
			for q := range chunk {
				f.store(vec(i*chunk+q), at("R8", q*s.bytes()))
			}
		}
		f.advance("R13", chunk*s.bytes())
		f.advance("R12", -chunk)
		f.jump(top)
		f.place(next)
	}
	return f
}

func columns(s isa) []*function {
	batchNormBack := func(name string, relu bool) *function {
		return columnOperation{
			name: name, channels: []string{"mean", "scale", "offset", "slope"}, rows: []string{"dst", "dy", "x"},
			chunk: 2, scratchPerRow: 5,
			body: func(f *function, channel func(int) vec, row func(int) address, t []vec) {
				f.load(row(2), t[0])
				f.subtractFloats(channel(0), t[0], t[1]) // x − mean
				f.load(row(1), t[2])
				f.subtractFloats(channel(2), t[2], t[2]) // dy − offset
				f.fma(channel(3), t[1], t[2])
				f.multiplyFloats(channel(1), t[2], t[2])
				if relu {
					f.zero(t[3])
					f.greaterMask(t[4], t[0], t[3])
					f.keep(t[2], t[4], t[2])
				}
				f.store(t[2], row(0))
			},
		}.build(s)
	}
	return []*function{
		columnOperation{
			name: "columnSum", channels: []string{"acc"}, rows: []string{"x"}, results: 1, chunk: 4,
			body: func(f *function, channel func(int) vec, row func(int) address, _ []vec) {
				f.addFloats(row(0), channel(0), channel(0))
			},
		}.build(s),
		columnOperation{
			name: "columnSquares", channels: []string{"acc", "mean"}, rows: []string{"x"}, results: 1, chunk: 4, scratchPerRow: 1,
			body: func(f *function, channel func(int) vec, row func(int) address, t []vec) {
				f.load(row(0), t[0])
				f.subtractFloats(channel(1), t[0], t[0])
				f.fma(t[0], t[0], channel(0))
			},
		}.build(s),
		columnOperation{
			name: "columnProducts", channels: []string{"sum", "dot", "mean"}, rows: []string{"dy", "x"}, results: 2, chunk: 4, scratchPerRow: 2,
			body: func(f *function, channel func(int) vec, row func(int) address, t []vec) {
				f.load(row(0), t[0])
				f.load(row(1), t[1])
				f.subtractFloats(channel(2), t[1], t[1])
				f.addFloats(t[0], channel(0), channel(0))
				f.fma(t[1], t[0], channel(1))
			},
		}.build(s),
		columnOperation{
			name: "batchNorm", channels: []string{"mean", "scale", "shift"}, rows: []string{"dst", "x"}, chunk: 2, scratchPerRow: 2,
			body: func(f *function, channel func(int) vec, row func(int) address, t []vec) {
				f.load(row(1), t[0])
				f.subtractFloats(channel(0), t[0], t[0])
				f.moveVector(channel(2), t[1])
				f.fma(channel(1), t[0], t[1])
				f.store(t[1], row(0))
			},
		}.build(s),
		batchNormBack("batchNormBack", false),
		batchNormBack("batchNormReLUBack", true),
	}
}
