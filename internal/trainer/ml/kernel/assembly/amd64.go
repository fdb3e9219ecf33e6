package assembly

import "fmt"

// Operands that only amd64 has.
type (
	ymm  int // the lower 256 bits of a vector register
	xmm  int // its lower 128 bits
	mask int // K1 … K7
)

// The mask registers of AVX-512.
const (
	tailLanes = mask(1)
	compared  = mask(2)
	oddLanes  = mask(3)
)

const (
	greater = 30 // VCMPPS: a > b, false for NaN, without an exception
)

// amd64 writes for AVX2 and AVX-512.
type amd64 struct{ *listing }

func amd64Processor(l *listing) processor { return amd64{l} }

func (p amd64) wide() bool { return p.isa.width == 16 }

func (p amd64) argument(name string, to gpr)    { p.emit("MOVQ", arg(name), to) }
func (p amd64) addArgument(name string, to gpr) { p.emit("ADDQ", arg(name), to) }
func (p amd64) broadcast(name string, to vec)   { p.emit("VBROADCASTSS", arg(name), to) }
func (p amd64) setResult(name string, from gpr) { p.emit("MOVQ", from, arg(name)) }
func (p amd64) move(from, to gpr)               { p.emit("MOVQ", from, to) }
func (p amd64) clear(to gpr)                    { p.emit("XORQ", to, to) }
func (p amd64) add(by, to gpr)                  { p.emit("ADDQ", by, to) }
func (p amd64) addressOf(a address, to gpr)     { p.emit("LEAQ", a, to) }
func (p amd64) jump(to label)                   { p.emit("JMP", to) }
func (p amd64) align()                          { p.emit("PCALIGN", imm(32)) }
func (p amd64) load(from address, to vec)       { p.emit("VMOVUPS", from, to) }
func (p amd64) store(from vec, to address)      { p.emit("VMOVUPS", from, to) }
func (p amd64) moveVector(from, to vec)         { p.emit("VMOVAPS", from, to) }
func (p amd64) addFloats(b any, a, to vec)      { p.emit("VADDPS", b, a, to) }
func (p amd64) subtractFloats(b, a, to vec)     { p.emit("VSUBPS", b, a, to) }
func (p amd64) multiplyFloats(b any, a, to vec) { p.emit("VMULPS", b, a, to) }
func (p amd64) divideFloats(b, a, to vec)       { p.emit("VDIVPS", b, a, to) }
func (p amd64) squareRoot(from, to vec)         { p.emit("VSQRTPS", from, to) }
func (p amd64) fma(b, a, to vec)                { p.emit("VFMADD231PS", b, a, to) }
func (p amd64) loadFactor(from address, to vec) { p.emit("VBROADCASTSS", from, to) }
func (p amd64) fmaFactor(b, factor, to vec)     { p.fma(b, factor, to) }
func (p amd64) storeLane(from vec, to address)  { p.emit("VMOVSS", xmm(from), to) }
func (p amd64) addIntegers(b any, a, to vec)    { p.emit("VPADDD", b, a, to) }
func (p amd64) and(b, a, to vec)                { p.bitwise("VPAND", b, a, to) }
func (p amd64) or(b, a, to vec)                 { p.bitwise("VPOR", b, a, to) }
func (p amd64) xor(b, a, to vec)                { p.bitwise("VPXOR", b, a, to) }
func (p amd64) ending() []string                { return []string{"VZEROUPPER", "RET"} }

func (p amd64) advance(r gpr, by int) {
	switch {
	case by == 1:
		p.emit("INCQ", r)
	case by < 0:
		p.emit("SUBQ", imm(-by), r)
	default:
		p.emit("ADDQ", imm(by), r)
	}
}

func (p amd64) countDown(r gpr, to label) {
	p.emit("DECQ", r)
	p.emit("JNE", to)
}

func (p amd64) countDownArgument(name string, to label) {
	p.emit("DECQ", arg(name))
	p.emit("JNE", to)
}

func (p amd64) ifZero(r gpr, to label) {
	p.emit("TESTQ", r, r)
	p.emit("JEQ", to)
}

func (p amd64) ifNotZero(r gpr, to label) {
	p.emit("TESTQ", r, r)
	p.emit("JNE", to)
}

func (p amd64) ifLess(a gpr, b any, to label) {
	p.emit("CMPQ", a, b)
	p.emit("JLT", to)
}

func (p amd64) ifAtLeast(a, b gpr, to label) {
	p.emit("CMPQ", a, b)
	p.emit("JGE", to)
}

func (p amd64) unlessFlag(bit int, to label) {
	p.emit("TESTQ", imm(bit), arg("flags"))
	p.emit("JEQ", to)
}

func (p amd64) zero(to vec) {
	if p.wide() {
		p.emit("VPXORD", to, to, to)
	} else {
		p.emit("VXORPS", to, to, to)
	}
}

func (p amd64) bitwise(op string, b, a, to vec) {
	if p.wide() {
		op += "D"
	}
	p.emit(op, b, a, to)
}

// combineLanes has one part for AVX-512 and two for AVX2.
func (p amd64) combineLanes(parts []vec, t vec) {
	v := parts[0]
	if len(parts) == 1 {
		p.emit("VEXTRACTF64X4", imm(1), v, ymm(t))
		p.emit("VADDPS", ymm(t), ymm(v), ymm(v))
	} else {
		p.addFloats(parts[1], v, v)
	}
	p.emit("VEXTRACTF128", imm(1), ymm(v), xmm(t))
	p.emit("VADDPS", xmm(t), xmm(v), xmm(v))
	p.emit("VPERMILPS", imm(0b1110), xmm(v), xmm(t))
	p.emit("VADDPS", xmm(t), xmm(v), xmm(v))
	p.emit("VPERMILPS", imm(0b0001), xmm(v), xmm(t))
	p.emit("VADDSS", xmm(t), xmm(v), xmm(v))
}

// compared is where a comparison leaves its result.
func (p amd64) compared(m vec) any {
	if p.wide() {
		return compared
	}
	return m
}

func (p amd64) greaterMask(m, a, b vec)     { p.emit("VCMPPS", imm(greater), b, a, p.compared(m)) }
func (p amd64) equalMask(m, a, b vec)       { p.emit("VPCMPEQD", b, a, p.compared(m)) }
func (p amd64) greaterIntegers(m, a, b vec) { p.emit("VPCMPGTD", b, a, p.compared(m)) }

// atLeastMask: a ≥ b where the larger of the two is a.
func (p amd64) atLeastMask(m, a, b vec) {
	p.emit("VPMAXUD", b, a, m)
	p.equalMask(m, m, a)
}

func (p amd64) keep(to, m, from vec) {
	if p.wide() {
		p.emit("VMOVAPS.Z", from, compared, to)
	} else {
		p.emit("VANDPS", from, m, to)
	}
}

func (p amd64) replace(to, m, from vec) {
	if p.wide() {
		p.emit("VBLENDMPS", from, to, compared, to)
	} else {
		p.emit("VBLENDVPS", m, from, to, to)
	}
}

func (p amd64) anyLane(v vec, to gpr) {
	if p.wide() {
		p.emit("VPTESTMD", v, v, compared)
		p.emit("KMOVW", compared, to)
		return
	}
	p.zero(0)
	p.emit("VPCMPEQD", v, vec(0), vec(0))
	p.emit("VMOVMSKPS", vec(0), to)
	p.emit("XORQ", imm(1<<p.isa.width-1), to)
}

func (p amd64) beginTail(tail vec) {
	p.argument("lanes", "AX")
	p.loadMask(at("AX", 0), tail)
}

func (p amd64) loadTail(from address, to, tail vec) { p.loadMasked(from, to, tail) }

func (p amd64) storeTail(from vec, to address, tail vec) {
	if p.wide() {
		p.emit("VMOVUPS", from, tailLanes, to)
	} else {
		p.emit("VMASKMOVPS", from, tail, to)
	}
}

func (p amd64) loadMask(lanes address, m vec) {
	p.load(lanes, m)
	if p.wide() {
		p.emit("VPTESTMD", m, m, tailLanes)
	}
}

func (p amd64) loadMasked(from address, to, m vec) {
	if p.wide() {
		p.emit("VMOVUPS.Z", from, tailLanes, to)
	} else {
		p.emit("VMASKMOVPS", from, m, to)
	}
}

func (p amd64) beginProducts() {
	if p.wide() {
		p.emit("MOVL", imm(0xAAAA), gpr("DX"))
		p.emit("KMOVW", gpr("DX"), oddLanes)
	}
}

func (p amd64) multiplyWords(a, b vec, to products) {
	even, odd := to[0], to[1]
	p.emit("VPMULUDQ", a, b, even)
	p.emit("VPSRLQ", imm(32), b, odd)
	p.emit("VPMULUDQ", a, odd, odd)
}

func (p amd64) highWords(from products, t vec) {
	p.emit("VPSRLQ", imm(32), from[0], t)
	p.mergeOdd(from[1], t, t)
}

func (p amd64) lowWords(from products, t, to vec) {
	p.emit("VPSLLQ", imm(32), from[1], t)
	p.mergeOdd(t, from[0], to)
}

func (p amd64) mergeOdd(odd, even, to vec) {
	if p.wide() {
		p.emit("VPBLENDMD", odd, even, oddLanes, to)
	} else {
		p.emit("VPBLENDD", imm(0xAA), odd, even, to)
	}
}

func (p amd64) operand(o any) string {
	switch o := o.(type) {
	case vec:
		if p.wide() {
			return fmt.Sprintf("Z%d", o)
		}
		return fmt.Sprintf("Y%d", o)
	case ymm:
		return fmt.Sprintf("Y%d", o)
	case xmm:
		return fmt.Sprintf("X%d", o)
	case mask:
		return fmt.Sprintf("K%d", o)
	case imm:
		return fmt.Sprintf("$%d", o)
	case address:
		text := fmt.Sprintf("(%s)", o.base)
		if o.disp != 0 {
			text = fmt.Sprintf("%d%s", o.disp, text)
		}
		if o.scale != 0 {
			text += fmt.Sprintf("(%s*%d)", o.index, o.scale)
		}
		return text
	}
	return fmt.Sprint(o)
}
