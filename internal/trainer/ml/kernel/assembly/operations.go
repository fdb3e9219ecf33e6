package assembly

// processor writes the operations that the functions are made of as instructions of one processor. Sources come first
// and the destination last, as in Go's assembler; of the two sources of a difference, the first is what is subtracted.
// A source of type any is a vector register or an address.
type processor interface {
	// argument: to ← the argument; addArgument: to ← to + the argument. broadcast: all lanes ← an argument of 4 bytes.
	argument(name string, to gpr)
	addArgument(name string, to gpr)
	broadcast(name string, to vec)
	setResult(name string, from gpr)

	move(from, to gpr)
	clear(to gpr)
	add(by, to gpr)
	advance(r gpr, by int)
	addressOf(a address, to gpr)

	jump(to label)
	// countDown: r ← r − 1, and jump to a label unless it is 0. countDownArgument does so with an argument in memory.
	countDown(r gpr, to label)
	countDownArgument(name string, to label)
	ifZero(r gpr, to label)
	ifNotZero(r gpr, to label)
	// ifLess and ifAtLeast compare integers with signs. What ifLess compares with is an argument or an imm.
	ifLess(a gpr, b any, to label)
	ifAtLeast(a, b gpr, to label)
	// unlessFlag continues at a label unless the bit is set in the argument "flags".
	unlessFlag(bit int, to label)
	// align is for the beginning of a loop that is worth it.
	align()

	load(from address, to vec)
	store(from vec, to address)
	moveVector(from, to vec)
	zero(to vec)

	addFloats(b any, a, to vec)
	subtractFloats(b, a, to vec)
	multiplyFloats(b any, a, to vec)
	// divideFloats: to ← a ÷ b; squareRoot: to ← √from. Both are rounded correctly, not estimates.
	divideFloats(b, a, to vec)
	squareRoot(from, to vec)
	// fma: to ← a × b + to, rounded once.
	fma(b, a, to vec)
	// loadFactor loads one element that fmaFactor multiplies all lanes by.
	loadFactor(from address, to vec)
	fmaFactor(b, factor, to vec)
	// combineLanes adds the lanes of 16 in the order of rule 3, into the first lane of the first part; t is scratch.
	combineLanes(parts []vec, t vec)
	storeLane(from vec, to address)

	addIntegers(b any, a, to vec)
	and(b, a, to vec)
	or(b, a, to vec)
	xor(b, a, to vec)

	// The masks: lanes of ones in the vector register m, or for AVX-512 a register of masks, and m is not used.
	// greaterMask: m ← a > b, false for NaN. greaterIntegers compares with signs, atLeastMask without.
	greaterMask(m, a, b vec)
	equalMask(m, a, b vec)
	greaterIntegers(m, a, b vec)
	atLeastMask(m, a, b vec)
	// keep: to ← m ? from : +0; replace: to ← m ? from : to.
	keep(to, m, from vec)
	replace(to, m, from vec)
	// anyLane: to ← not 0 if a lane of v is not, where the lanes of v are 0 or all one pattern.
	anyLane(v vec, to gpr)

	// beginTail prepares loadTail and storeTail of the columns of a matrix' last, partial vector: isa.tail of them at
	// most, by the argument "lanes", which are −1 for the first so many and 0 otherwise.
	beginTail(tail vec)
	loadTail(from address, to, tail vec)
	storeTail(from vec, to address, tail vec)
	// loadMask and loadMasked: of the elements only the first, where the lanes at an address are −1; the others are +0.
	loadMask(lanes address, m vec)
	loadMasked(from address, to, m vec)

	// multiplyWords makes the 64-bit products of the 32-bit lanes of a and b; highWords and lowWords are their halves,
	// in the order of the lanes. beginProducts is once before all of them; t is scratch or, of highWords, the
	// destination.
	beginProducts()
	multiplyWords(a, b vec, to products)
	highWords(p products, t vec)
	lowWords(p products, t, to vec)

	// operand is the operand of an instruction as Go's assembler writes it; ending are the last instructions.
	operand(o any) string
	ending() []string
}

// products are 64-bit products of the lanes of a vector, half of them in each register: those of the even and the odd
// lanes on amd64, of the lower and the upper ones on arm64.
type products [2]vec

// loop runs body as often as register CX says, and uses it up. It may be 0.
func (f *function) loop(body func()) {
	const count = gpr("CX")
	top, end := f.newLabel("loop"), f.newLabel("end")
	f.ifZero(count, end)
	f.place(top)
	body()
	f.countDown(count, top)
	f.place(end)
}

// loadColumns and storeColumns are of a whole vector of columns, or of the tail.
func (f *function) loadColumns(from address, to vec, isTail bool, tail vec) {
	if isTail {
		f.loadTail(from, to, tail)
	} else {
		f.load(from, to)
	}
}

func (f *function) storeColumns(from vec, to address, isTail bool, tail vec) {
	if isTail {
		f.storeTail(from, to, tail)
	} else {
		f.store(from, to)
	}
}

func at(base gpr, disp int) address { return address{base: base, disp: disp} }

func indexed(base, index gpr, scale int) address {
	return address{base: base, index: index, scale: scale}
}
