package assembly

import (
	"fmt"
	"math"
	"unsafe"
)

// Emulator executes the functions as the manuals of the processors define their instructions. It is for tests: they
// compare what it makes of a function with the portable kernels, and for AVX2 with the processor.
type Emulator struct {
	// FMA is a·b + c, rounded once.
	FMA func(a, b, c float32) float32

	functions map[string]*function
}

// NewEmulator has the functions of amd64's instruction sets.
func NewEmulator(fma func(a, b, c float32) float32) *Emulator {
	e := &Emulator{FMA: fma, functions: map[string]*function{}}
	for _, s := range []isa{avx2, avx512} {
		for _, f := range functions(s) {
			e.functions[f.name] = f
		}
	}
	return e
}

// Call executes the function of that name. The arguments are in its order: unsafe.Pointer, int, uintptr, uint64, uint32
// or float32. The result is that of functions that have one.
func (e *Emulator) Call(name string, arguments ...any) uint64 {
	f := e.functions[name]
	if f == nil {
		panic("assembly: no function " + name)
	}
	if len(arguments) != len(f.params) {
		panic(fmt.Sprintf("assembly: %s takes %d arguments, not %d", name, len(f.params), len(arguments)))
	}
	m := machine{f: f, fma: e.FMA, args: map[arg]word{}, general: map[gpr]word{}, labels: map[label]int{}}
	for i, a := range arguments {
		m.args[arg(f.params[i].name)] = toWord(a)
	}
	for i, instruction := range f.instructions {
		if instruction.op == "" {
			m.labels[instruction.operands[0].(label)] = i
		}
	}
	for m.at = 0; m.at < len(f.instructions); m.at++ {
		if i := f.instructions[m.at]; i.op != "" {
			m.execute(i)
		}
	}
	return uint64(m.args[arg(f.result.name)].n)
}

// word is a general register: a number, or a place in an array of Go's.
type word struct {
	base unsafe.Pointer
	n    int64
}

func toWord(a any) word {
	switch a := a.(type) {
	case unsafe.Pointer:
		return word{base: a}
	case int:
		return word{n: int64(a)}
	case uintptr:
		return word{n: int64(a)}
	case uint64:
		return word{n: int64(a)}
	case uint32:
		return word{n: int64(a)}
	case float32:
		return word{n: int64(math.Float32bits(a))}
	}
	panic(fmt.Sprintf("assembly: argument of type %T", a))
}

type lanes = [16]uint32

type machine struct {
	f       *function
	fma     func(a, b, c float32) float32
	args    map[arg]word
	general map[gpr]word
	vectors [32]lanes
	masks   [8]uint16
	labels  map[label]int
	at      int

	equal, less bool // what the last comparison found
}

func (m *machine) word(o any) word {
	switch o := o.(type) {
	case imm:
		return word{n: int64(o)}
	case gpr:
		return m.general[o]
	case arg:
		return m.args[o]
	}
	panic(fmt.Sprintf("assembly: %v (%T) is not a word", o, o))
}

func (m *machine) setWord(o any, w word) {
	switch o := o.(type) {
	case gpr:
		m.general[o] = w
	case arg:
		m.args[o] = w
	default:
		panic(fmt.Sprintf("assembly: %v (%T) cannot hold a word", o, o))
	}
}

func (m *machine) address(a address) word {
	w := m.general[a.base]
	w.n += int64(a.disp)
	if a.scale != 0 {
		index := m.general[a.index]
		if index.base != nil {
			panic("assembly: an index is a pointer")
		}
		w.n += index.n * int64(a.scale)
	}
	return w
}

func (m *machine) memory(a address, lane int) *uint32 {
	w := m.address(a)
	return (*uint32)(unsafe.Add(w.base, w.n+int64(4*lane)))
}

// width is the number of lanes that an operand stands for, 0 if it has none of its own.
func (m *machine) width(o any) int {
	switch o.(type) {
	case vec:
		return m.f.isa.width
	case ymm:
		return 8
	case xmm:
		return 4
	}
	return 0
}

// read is the operand's first so many lanes.
func (m *machine) read(o any, width int) (v lanes) {
	switch o := o.(type) {
	case vec:
		v = m.vectors[o]
	case ymm:
		v = m.vectors[o]
	case xmm:
		v = m.vectors[o]
	case address:
		for l := range width {
			v[l] = *m.memory(o, l)
		}
	default:
		panic(fmt.Sprintf("assembly: %v (%T) is not a vector", o, o))
	}
	clear(v[width:])
	return v
}

func (m *machine) write(o any, v lanes) {
	switch o := o.(type) {
	case vec:
		m.vectors[o] = v
	case ymm:
		m.vectors[o] = v
	case xmm:
		m.vectors[o] = v
	default:
		panic(fmt.Sprintf("assembly: %v (%T) is not a vector register", o, o))
	}
}

// lanewise sets the last operand to f of the lanes of the two before it, in Intel's order.
func (m *machine) lanewise(operands []any, f func(a, b uint32) uint32) {
	n := len(operands)
	width := m.width(operands[n-1])
	b, a := m.read(operands[n-3], width), m.read(operands[n-2], width)
	for l := range width {
		a[l] = f(a[l], b[l])
	}
	m.write(operands[n-1], a)
}

func (m *machine) floats(operands []any, f func(a, b float32) float32) {
	m.lanewise(operands, func(a, b uint32) uint32 {
		return math.Float32bits(f(math.Float32frombits(a), math.Float32frombits(b)))
	})
}

// test makes a mask of the lanes where f holds: in K1 … K7, or as lanes of ones.
func (m *machine) test(a, b, to any, f func(a, b uint32) bool) {
	width := m.f.isa.width
	x, y := m.read(a, width), m.read(b, width)
	var v lanes
	var k uint16
	for l := range width {
		if f(x[l], y[l]) {
			v[l], k = math.MaxUint32, k|1<<l
		}
	}
	if to, ok := to.(mask); ok {
		m.masks[to] = k
		return
	}
	m.write(to, v)
}

// quads sets the last operand to f of the 64-bit lanes of the one or two before it.
func (m *machine) quads(operands []any, f func(a, b uint64) uint64) {
	n := len(operands)
	width := m.width(operands[n-1])
	a := m.read(operands[n-2], width)
	var b lanes
	if shift, ok := operands[0].(imm); ok {
		for l := 0; l < width; l += 2 {
			b[l] = uint32(shift)
		}
	} else {
		b = m.read(operands[0], width)
	}
	for l := 0; l < width; l += 2 {
		q := f(uint64(a[l])|uint64(a[l+1])<<32, uint64(b[l])|uint64(b[l+1])<<32)
		a[l], a[l+1] = uint32(q), uint32(q>>32)
	}
	m.write(operands[n-1], a)
}

func (m *machine) execute(i instruction) {
	o := i.operands
	if m.executeGeneral(i.op, o) || m.executeMoves(i.op, o) {
		return
	}
	switch i.op {
	case "VADDPS":
		m.floats(o, func(a, b float32) float32 { return a + b })
	case "VSUBPS":
		m.floats(o, func(a, b float32) float32 { return a - b })
	case "VMULPS":
		m.floats(o, func(a, b float32) float32 { return a * b })
	case "VDIVPS":
		m.floats(o, func(a, b float32) float32 { return a / b })
	case "VSQRTPS":
		m.floats([]any{o[0], o[0], o[1]}, func(a, _ float32) float32 { return float32(math.Sqrt(float64(a))) })
	case "VADDSS":
		v, b := m.read(o[1], 4), m.read(o[0], 4)
		v[0] = math.Float32bits(math.Float32frombits(v[0]) + math.Float32frombits(b[0]))
		m.write(o[2], v)
	case "VFMADD231PS":
		width := m.width(o[2])
		b, a, c := m.read(o[0], width), m.read(o[1], width), m.read(o[2], width)
		for l := range width {
			c[l] = math.Float32bits(m.fma(math.Float32frombits(a[l]), math.Float32frombits(b[l]), math.Float32frombits(c[l])))
		}
		m.write(o[2], c)
	case "VPADDD":
		m.lanewise(o, func(a, b uint32) uint32 { return a + b })
	case "VPMAXUD":
		m.lanewise(o, func(a, b uint32) uint32 { return max(a, b) })
	case "VXORPS", "VPXOR", "VPXORD":
		m.lanewise(o, func(a, b uint32) uint32 { return a ^ b })
	case "VANDPS", "VPAND", "VPANDD":
		m.lanewise(o, func(a, b uint32) uint32 { return a & b })
	case "VPOR", "VPORD":
		m.lanewise(o, func(a, b uint32) uint32 { return a | b })
	case "VCMPPS":
		if o[0] != imm(greater) {
			panic("assembly: a comparison that the emulator does not have")
		}
		m.test(o[2], o[1], o[3], func(a, b uint32) bool { return math.Float32frombits(a) > math.Float32frombits(b) })
	case "VPCMPEQD":
		m.test(o[1], o[0], o[2], func(a, b uint32) bool { return a == b })
	case "VPCMPGTD":
		m.test(o[1], o[0], o[2], func(a, b uint32) bool { return int32(a) > int32(b) })
	case "VPTESTMD":
		m.test(o[1], o[0], o[2], func(a, b uint32) bool { return a&b != 0 })
	case "VPMULUDQ":
		m.quads(o, func(a, b uint64) uint64 { return (a & math.MaxUint32) * (b & math.MaxUint32) })
	case "VPSRLQ":
		m.quads(o, func(a, b uint64) uint64 { return a >> b })
	case "VPSLLQ":
		m.quads(o, func(a, b uint64) uint64 { return a << b })
	default:
		panic("assembly: the emulator does not have " + i.op)
	}
}

// executeMoves has the loads, stores, blends and permutations.
func (m *machine) executeMoves(op string, o []any) bool {
	width := m.f.isa.width
	// choose takes lanes of a where the mask is set and of b elsewhere.
	choose := func(k uint16, a, b lanes) lanes {
		for l := range a {
			if k>>l&1 == 0 {
				a[l] = b[l]
			}
		}
		return a
	}
	signs := func(v lanes) (k uint16) {
		for l, x := range v {
			k |= uint16(x>>31) << l
		}
		return k
	}
	loadMasked := func(a address, k uint16) (v lanes) {
		for l := range width {
			if k>>l&1 != 0 {
				v[l] = *m.memory(a, l)
			}
		}
		return v
	}
	storeMasked := func(v lanes, a address, k uint16, width int) {
		for l := range width {
			if k>>l&1 != 0 {
				*m.memory(a, l) = v[l]
			}
		}
	}
	switch op {
	case "VMOVUPS", "VMOVAPS":
		to, stores := o[len(o)-1].(address)
		switch {
		case len(o) == 3:
			storeMasked(m.read(o[0], width), to, m.masks[o[1].(mask)], width)
		case stores:
			storeMasked(m.read(o[0], width), to, math.MaxUint16, width)
		default:
			m.write(o[1], m.read(o[0], width))
		}
	case "VMOVUPS.Z":
		m.write(o[2], loadMasked(o[0].(address), m.masks[o[1].(mask)]))
	case "VMOVAPS.Z":
		m.write(o[2], choose(m.masks[o[1].(mask)], m.read(o[0], width), lanes{}))
	case "VMASKMOVPS":
		if from, loads := o[0].(address); loads {
			m.write(o[2], loadMasked(from, signs(m.read(o[1], width))))
		} else {
			storeMasked(m.read(o[0], width), o[2].(address), signs(m.read(o[1], width)), width)
		}
	case "VMOVSS":
		storeMasked(m.read(o[0], 4), o[1].(address), 1, 1)
	case "VBLENDMPS", "VPBLENDMD":
		m.write(o[3], choose(m.masks[o[2].(mask)], m.read(o[0], width), m.read(o[1], width)))
	case "VBLENDVPS":
		m.write(o[3], choose(signs(m.read(o[0], width)), m.read(o[1], width), m.read(o[2], width)))
	case "VPBLENDD":
		m.write(o[3], choose(uint16(o[0].(imm)), m.read(o[1], width), m.read(o[2], width)))
	case "VBROADCASTSS":
		var x uint32
		if from, ok := o[0].(address); ok {
			x = *m.memory(from, 0)
		} else {
			x = uint32(m.word(o[0]).n)
		}
		var v lanes
		for l := range width {
			v[l] = x
		}
		m.write(o[1], v)
	case "VEXTRACTF64X4":
		v := m.read(o[1], 16)
		var upper lanes
		copy(upper[:8], v[8*int(o[0].(imm)):])
		m.write(o[2], upper)
	case "VEXTRACTF128":
		v := m.read(o[1], 8)
		var upper lanes
		copy(upper[:4], v[4*int(o[0].(imm)):])
		m.write(o[2], upper)
	case "VPERMILPS":
		v := m.read(o[1], 4)
		var p lanes
		for l := range 4 {
			p[l] = v[int(o[0].(imm))>>(2*l)&3]
		}
		m.write(o[2], p)
	case "VMOVMSKPS":
		m.setWord(o[1], word{n: int64(signs(m.read(o[0], width)))})
	case "KMOVW":
		if k, ok := o[0].(mask); ok {
			m.setWord(o[1], word{n: int64(m.masks[k])})
		} else {
			m.masks[o[1].(mask)] = uint16(m.word(o[0]).n)
		}
	default:
		return false
	}
	return true
}

// executeGeneral has the instructions of general registers.
func (m *machine) executeGeneral(op string, o []any) bool {
	set := func(to any, w word) {
		m.setWord(to, w)
		m.equal, m.less = w.base == nil && w.n == 0, w.base == nil && w.n < 0
	}
	jump := func(yes bool) {
		if yes {
			m.at = m.labels[o[0].(label)]
		}
	}
	switch op {
	case "PCALIGN":
	case "MOVQ", "MOVL":
		m.setWord(o[1], m.word(o[0]))
	case "ADDQ":
		a, b := m.word(o[1]), m.word(o[0])
		if a.base == nil {
			a, b = b, a
		}
		if b.base != nil {
			panic("assembly: a sum of two pointers")
		}
		a.n += b.n
		set(o[1], a)
	case "SUBQ":
		a := m.word(o[1])
		a.n -= m.word(o[0]).n
		set(o[1], a)
	case "XORQ":
		if o[0] == o[1] {
			set(o[1], word{})
			return true
		}
		set(o[1], word{n: m.word(o[1]).n ^ m.word(o[0]).n})
	case "INCQ", "DECQ":
		a := m.word(o[0])
		a.n++
		if op == "DECQ" {
			a.n -= 2
		}
		set(o[0], a)
	case "LEAQ":
		from := o[0].(address)
		if w := m.general[from.base]; w.base == nil && m.general[from.index].base != nil {
			panic("assembly: a sum of two pointers")
		}
		m.setWord(o[1], m.address(from))
	case "TESTQ":
		a, b := m.word(o[0]), m.word(o[1])
		m.equal = a.base == nil && b.base == nil && a.n&b.n == 0
		m.less = false
	case "CMPQ":
		a, b := m.word(o[0]), m.word(o[1])
		m.equal, m.less = a.n == b.n, a.n < b.n
	case "JEQ":
		jump(m.equal)
	case "JNE":
		jump(!m.equal)
	case "JLT":
		jump(m.less)
	case "JGE":
		jump(!m.less)
	case "JMP":
		jump(true)
	default:
		return false
	}
	return true
}
