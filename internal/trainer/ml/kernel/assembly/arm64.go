package assembly

import (
	"fmt"
	"math/bits"
)

// arm64 writes for NEON. What Go's assembler does not have is written as words, with the instruction beside them.
//
// The tail of a matrix is one column: its loads and stores are of a vector's first lane.
type arm64 struct{ *listing }

func arm64Processor(l *listing) processor { return arm64{l} }

// Registers that the functions do not use: for addresses and arguments, and for operands in memory.
const (
	scratch       = gpr("scratch")
	lane          = gpr("lane")
	scratchVector = vec(31) // the matrix products use all vectors, but have no such operands
)

// generals are the registers by the names that the functions have for them.
var generals = map[gpr]string{
	"AX": "R0", "BX": "R1", "CX": "R2", "DX": "R3", "SI": "R4", "DI": "R5",
	"R8": "R8", "R9": "R9", "R10": "R10", "R11": "R11", "R12": "R12", "R13": "R13", "R15": "R15",
	scratch: "R19", lane: "R20",
}

// Views of a vector register.
type (
	bits128 vec // as a whole
	lanes32 vec // four lanes
	lanes64 vec // two lanes
	float   vec // the first lane, or with FMOVQ the whole, as a floating-point register
	part    struct {
		of   vec
		size string // "S" or "D"
		lane int
	}
)

func (p arm64) argument(name string, to gpr)    { p.emit("MOVD", arg(name), to) }
func (p arm64) setResult(name string, from gpr) { p.emit("MOVD", from, arg(name)) }
func (p arm64) move(from, to gpr)               { p.emit("MOVD", from, to) }
func (p arm64) clear(to gpr)                    { p.emit("MOVD", imm(0), to) }
func (p arm64) add(by, to gpr)                  { p.emit("ADD", by, to) }
func (p arm64) jump(to label)                   { p.emit("JMP", to) }
func (p arm64) ifZero(r gpr, to label)          { p.emit("CBZ", r, to) }
func (p arm64) ifNotZero(r gpr, to label)       { p.emit("CBNZ", r, to) }
func (p arm64) align()                          { p.emit("PCALIGN", imm(32)) }
func (p arm64) load(from address, to vec)       { p.emit("FMOVQ", p.reach(from), float(to)) }
func (p arm64) store(from vec, to address)      { p.emit("FMOVQ", float(from), p.reach(to)) }
func (p arm64) moveVector(from, to vec)         { p.emit("VMOV", bits128(from), bits128(to)) }
func (p arm64) zero(to vec)                     { p.xor(to, to, to) }
func (p arm64) fma(b, a, to vec)                { p.emit("VFMLA", lanes32(b), lanes32(a), lanes32(to)) }

func (p arm64) and(b, a, to vec)        { p.emit("VAND", bits128(b), bits128(a), bits128(to)) }
func (p arm64) or(b, a, to vec)         { p.emit("VORR", bits128(b), bits128(a), bits128(to)) }
func (p arm64) xor(b, a, to vec)        { p.emit("VEOR", bits128(b), bits128(a), bits128(to)) }
func (p arm64) keep(to, m, from vec)    { p.and(from, m, to) }
func (p arm64) replace(to, m, from vec) { p.emit("VBIT", bits128(m), bits128(from), bits128(to)) }
func (p arm64) equalMask(m, a, b vec)   { p.emit("VCMEQ", lanes32(b), lanes32(a), lanes32(m)) }
func (p arm64) ending() []string        { return []string{"RET"} }

func (p arm64) addArgument(name string, to gpr) {
	p.argument(name, scratch)
	p.add(scratch, to)
}

func (p arm64) broadcast(name string, to vec) {
	p.emit("MOVWU", arg(name), scratch)
	p.emit("VDUP", scratch, lanes32(to))
}

func (p arm64) advance(r gpr, by int) {
	if by < 0 {
		p.emit("SUB", imm(-by), r)
	} else {
		p.emit("ADD", imm(by), r)
	}
}

// addressOf: an index's scale is a shift of it.
func (p arm64) addressOf(a address, to gpr) {
	index := p.operand(a.index)
	if a.scale > 1 {
		index += fmt.Sprintf("<<%d", bits.TrailingZeros(uint(a.scale)))
	}
	p.emit("ADD", index, a.base, to)
}

// reach is an address that a load of a vector can have: an index is added before.
func (p arm64) reach(a address) address {
	if a.scale == 0 {
		return a
	}
	p.addressOf(a, scratch)
	return at(scratch, a.disp)
}

func (p arm64) countDown(r gpr, to label) {
	p.emit("SUBS", imm(1), r)
	p.emit("BNE", to)
}

func (p arm64) countDownArgument(name string, to label) {
	p.argument(name, scratch)
	p.emit("SUBS", imm(1), scratch)
	p.setResult(name, scratch)
	p.emit("BNE", to)
}

func (p arm64) ifLess(a gpr, b any, to label) {
	p.compare(a, b)
	p.emit("BLT", to)
}

func (p arm64) ifAtLeast(a, b gpr, to label) {
	p.compare(a, b)
	p.emit("BGE", to)
}

func (p arm64) compare(a gpr, b any) {
	if name, ok := b.(arg); ok {
		p.argument(string(name), scratch)
		b = scratch
	}
	p.emit("CMP", b, a)
}

func (p arm64) unlessFlag(bit int, to label) {
	p.argument("flags", scratch)
	p.emit("TST", imm(bit), scratch)
	p.emit("BEQ", to)
}

// vector is the operand in a register.
func (p arm64) vector(o any) vec {
	if from, ok := o.(address); ok {
		p.load(from, scratchVector)
		return scratchVector
	}
	return o.(vec)
}

// encode writes an instruction on three vector registers that Go's assembler does not have: opcode is its word with
// registers 0, and text is it in Arm's syntax, the destination first.
func (p arm64) encode(opcode uint32, text string, to, a, b vec) {
	p.emit("WORD", encoded(opcode|uint32(b)<<16|uint32(a)<<5|uint32(to)))
	p.instructions[len(p.instructions)-1].comment = fmt.Sprintf(text, to, a, b)
}

// encoded is the word of an instruction.
type encoded uint32

func (p arm64) addFloats(b any, a, to vec) {
	p.encode(0x4e20d400, "fadd v%d.4s, v%d.4s, v%d.4s", to, a, p.vector(b))
}

func (p arm64) subtractFloats(b, a, to vec) {
	p.encode(0x4ea0d400, "fsub v%d.4s, v%d.4s, v%d.4s", to, a, b)
}

func (p arm64) multiplyFloats(b any, a, to vec) {
	p.encode(0x6e20dc00, "fmul v%d.4s, v%d.4s, v%d.4s", to, a, p.vector(b))
}

func (p arm64) divideFloats(b, a, to vec) {
	p.encode(0x6e20fc00, "fdiv v%d.4s, v%d.4s, v%d.4s", to, a, b)
}

func (p arm64) squareRoot(from, to vec) {
	p.encode(0x6ea1f800, "fsqrt v%[1]d.4s, v%[2]d.4s", to, from, 0)
}

// loadFactor leaves the element in the first lane: a load of one element, unlike one to all lanes, costs no vector
// operation.
func (p arm64) loadFactor(from address, to vec) {
	if from.scale > 1 {
		from = p.reach(from)
	}
	p.emit("FMOVS", from, float(to))
}

func (p arm64) fmaFactor(b, factor, to vec) {
	p.encode(0x4f801000, "fmla v%d.4s, v%d.4s, v%d.s[0]", to, b, factor)
}

func (p arm64) combineLanes(parts []vec, t vec) {
	v := parts[0]
	p.addFloats(parts[2], v, v)
	p.addFloats(parts[3], parts[1], parts[1])
	p.addFloats(parts[1], v, v)
	p.emit("VDUP", part{v, "D", 1}, lanes64(t))
	p.addFloats(t, v, v)
	p.emit("VDUP", part{v, "S", 1}, lanes32(t))
	p.addFloats(t, v, v)
}

func (p arm64) storeLane(from vec, to address) { p.emit("FMOVS", float(from), to) }

func (p arm64) addIntegers(b any, a, to vec) {
	p.emit("VADD", lanes32(p.vector(b)), lanes32(a), lanes32(to))
}

func (p arm64) greaterMask(m, a, b vec) {
	p.encode(0x6ea0e400, "fcmgt v%d.4s, v%d.4s, v%d.4s", m, a, b)
}

func (p arm64) greaterIntegers(m, a, b vec) {
	p.encode(0x4ea03400, "cmgt v%d.4s, v%d.4s, v%d.4s", m, a, b)
}

func (p arm64) atLeastMask(m, a, b vec) {
	p.encode(0x6ea03c00, "cmhs v%d.4s, v%d.4s, v%d.4s", m, a, b)
}

func (p arm64) anyLane(v vec, to gpr) {
	p.emit("VMOV", part{v, "D", 0}, to)
	p.emit("VMOV", part{v, "D", 1}, scratch)
	p.emit("ORR", scratch, to)
}

func (p arm64) beginTail(vec) {}

func (p arm64) loadTail(from address, to, _ vec) { p.emit("FMOVS", from, float(to)) }

func (p arm64) storeTail(from vec, to address, _ vec) { p.emit("FMOVS", float(from), to) }

func (p arm64) loadMask(lanes address, m vec) { p.load(lanes, m) }

// loadMasked loads one element after the other up to the first whose lane of m is 0: nothing behind it may be touched.
func (p arm64) loadMasked(from address, to, m vec) {
	end := p.newLabel("end")
	p.zero(to)
	if from.scale > 0 {
		p.addressOf(from, scratch)
	} else {
		p.move(from.base, scratch)
	}
	if from.disp > 0 {
		p.advance(scratch, from.disp)
	}
	for l := range p.isa.width {
		p.emit("VMOV", part{m, "S", l}, lane)
		p.ifZero(lane, end)
		p.emit("VLD1.P", at(scratch, 4), part{to, "S", l})
	}
	p.place(end)
}

func (p arm64) beginProducts() {}

func (p arm64) multiplyWords(a, b vec, to products) {
	p.encode(0x2ea0c000, "umull v%d.2d, v%d.2s, v%d.2s", to[0], a, b)
	p.encode(0x6ea0c000, "umull2 v%d.2d, v%d.4s, v%d.4s", to[1], a, b)
}

func (p arm64) highWords(from products, t vec) {
	p.emit("VUZP2", lanes32(from[1]), lanes32(from[0]), lanes32(t))
}

func (p arm64) lowWords(from products, _, to vec) {
	p.emit("VUZP1", lanes32(from[1]), lanes32(from[0]), lanes32(to))
}

func (p arm64) operand(o any) string {
	switch o := o.(type) {
	case bits128:
		return fmt.Sprintf("V%d.B16", o)
	case lanes32:
		return fmt.Sprintf("V%d.S4", o)
	case lanes64:
		return fmt.Sprintf("V%d.D2", o)
	case float:
		return fmt.Sprintf("F%d", o)
	case part:
		return fmt.Sprintf("V%d.%s[%d]", o.of, o.size, o.lane)
	case encoded:
		return fmt.Sprintf("$0x%08x", uint32(o))
	case gpr:
		return generals[o]
	case imm:
		return fmt.Sprintf("$%d", o)
	case address:
		text := fmt.Sprintf("(%s)", generals[o.base])
		if o.disp != 0 {
			text = fmt.Sprintf("%d%s", o.disp, text)
		}
		if o.scale != 0 {
			text += fmt.Sprintf("(%s)", generals[o.index])
		}
		return text
	}
	return fmt.Sprint(o)
}
