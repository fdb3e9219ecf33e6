package assembly

// What AVX2 and AVX-512 write differently: masks, bitwise operations, and parts of registers.

const (
	greater = 30 // VCMPPS: a > b, false for NaN, without an exception
)

func (f *function) wide() bool { return f.isa.width == 16 }

func (f *function) zero(d vec) {
	if f.wide() {
		f.emit("VPXORD", d, d, d)
	} else {
		f.emit("VXORPS", d, d, d)
	}
}

// greaterMask: m ← a > b. For AVX2 the mask is the vector register m; for AVX-512 it is K1, and m is not used.
func (f *function) greaterMask(m vec, a, b vec) {
	if f.wide() {
		f.emit("VCMPPS", imm(greater), b, a, mask(1))
	} else {
		f.emit("VCMPPS", imm(greater), b, a, m)
	}
}

// equalMask: m ← a == b, 32-bit integers.
func (f *function) equalMask(m vec, a, b vec) {
	if f.wide() {
		f.emit("VPCMPEQD", b, a, mask(1))
	} else {
		f.emit("VPCMPEQD", b, a, m)
	}
}

// greaterIntegers: m ← a > b, 32-bit integers with signs.
func (f *function) greaterIntegers(m vec, a, b vec) {
	if f.wide() {
		f.emit("VPCMPGTD", b, a, mask(1))
	} else {
		f.emit("VPCMPGTD", b, a, m)
	}
}

// keep: d ← m ? s : +0.
func (f *function) keep(d, m, s vec) {
	if f.wide() {
		f.emit("VMOVAPS.Z", s, mask(1), d)
	} else {
		f.emit("VANDPS", s, m, d)
	}
}

// choose: d ← m ? a : b.
func (f *function) choose(d, m, a, b vec) {
	if f.wide() {
		f.emit("VBLENDMPS", a, b, mask(1), d)
	} else {
		f.emit("VBLENDVPS", m, a, b, d)
	}
}

func (f *function) bitwise(op string, b, a, d vec) {
	if f.wide() {
		op += "D"
	}
	f.emit(op, b, a, d)
}

// lanesToBits: d ← a bit per lane of s that is not 0, where s has lanes of 0 and of one pattern.
func (f *function) lanesToBits(s vec, d gpr) {
	if f.wide() {
		f.emit("VPTESTMD", s, s, mask(1))
		f.emit("KMOVW", mask(1), d)
		return
	}
	f.zero(0)
	f.emit("VPCMPEQD", s, vec(0), vec(0))
	f.emit("VMOVMSKPS", vec(0), d)
	f.emit("XORQ", imm(1<<f.isa.width-1), d)
}

// tailMask makes the mask of the lanes of a last, partial vector from lanes of −1 and 0 in memory.
func (f *function) tailMask(m vec, k mask, at address) {
	f.emit("VMOVUPS", at, m)
	if f.wide() {
		f.emit("VPTESTMD", m, m, k)
	}
}

// load: d ← memory, or with a mask the lanes of it and +0.
func (f *function) load(at address, d vec, masked bool, m vec) {
	switch {
	case !masked:
		f.emit("VMOVUPS", at, d)
	case f.wide():
		f.emit("VMOVUPS.Z", at, mask(1), d)
	default:
		f.emit("VMASKMOVPS", at, m, d)
	}
}

func (f *function) store(s vec, at address, masked bool, m vec) {
	switch {
	case !masked:
		f.emit("VMOVUPS", s, at)
	case f.wide():
		f.emit("VMOVUPS", s, mask(1), at)
	default:
		f.emit("VMASKMOVPS", s, m, at)
	}
}

func at(base gpr, disp int) address { return address{base: base, disp: disp} }

func indexed(base, index gpr, scale int) address {
	return address{base: base, index: index, scale: scale}
}
