// Package assembly is the source of the vector kernels: it describes each function once, in operations that every
// supported processor has (operations.go), and prints it for AVX2, AVX-512 and NEON. An emulator can execute the code
// for amd64, so that the AVX-512 code is tested on machines without it. internal/trainer/ml/kernel contains the printed
// code and the contract of the functions.
package assembly

import (
	"fmt"
	"strings"
)

// The operands of operations and instructions. Instructions have them as Go's assembler orders them: sources first,
// destination last.
type (
	vec     int    // a vector register of the width at hand
	gpr     string // a general register, by amd64's name; arm64 has one for each
	imm     int
	label   string
	arg     string // an argument of the function
	address struct {
		base, index gpr
		scale       int // 0: no index
		disp        int
	}
)

// instruction is one line: an operation, or a label when op is "".
type instruction struct {
	op       string
	operands []any
	comment  string
}

// listing is a growing list of instructions.
type listing struct {
	isa          isa
	instructions []instruction
	labels       int
}

// function is one assembly function: what is printed, and what the emulator of the tests executes. The processor that
// it is for writes its operations as instructions of the listing.
type function struct {
	*listing
	processor
	name   string
	params []param
	result param // at most one; its name is "" where there is none
}

type param struct{ name, typ string }

// isa is what a function depends on of the vector unit.
type isa struct {
	suffix    string // of function names
	width     int    // float32 lanes
	registers int
	// tail is the number of columns that the function for the last, partial vector of a matrix takes at most.
	tail      int
	processor func(*listing) processor
}

var (
	avx2   = isa{"AVX2", 8, 16, 7, amd64Processor}
	avx512 = isa{"AVX512", 16, 32, 15, amd64Processor}
	neon   = isa{"NEON", 4, 32, 1, arm64Processor}
)

func (s isa) bytes() int { return 4 * s.width }

func newFunction(s isa, name string, params ...string) *function {
	f := &function{listing: &listing{isa: s}, name: name + s.suffix}
	f.processor = s.processor(f.listing)
	for _, p := range params {
		name, typ, _ := strings.Cut(p, " ")
		f.params = append(f.params, param{name, typ})
	}
	return f
}

func paramSize(typ string) int {
	if typ == "uint32" || typ == "float32" {
		return 4
	}
	return 8
}

// frame is the offset of each argument, and the size of all.
func (f *function) frame() (offsets map[arg]int, size int) {
	offsets = map[arg]int{}
	for _, p := range append(append([]param{}, f.params...), f.result) {
		if p.name == "" {
			continue
		}
		n := paramSize(p.typ)
		size = (size + n - 1) / n * n
		offsets[arg(p.name)] = size
		size += n
	}
	return offsets, size
}

func (l *listing) emit(op string, operands ...any) {
	l.instructions = append(l.instructions, instruction{op: op, operands: operands})
}

func (l *listing) newLabel(hint string) label {
	l.labels++
	return label(fmt.Sprintf("%s%d", hint, l.labels))
}

func (l *listing) place(at label) { l.emit("", at) }

func (f *function) String() string {
	offsets, size := f.frame()
	var b strings.Builder
	fmt.Fprintf(&b, "// func %s\n", f.signature())
	fmt.Fprintf(&b, "TEXT ·%s(SB), NOSPLIT, $0-%d\n", f.name, size)
	for _, i := range f.instructions {
		if i.op == "" {
			fmt.Fprintf(&b, "%s:\n", i.operands[0])
			continue
		}
		var text []string
		for _, o := range i.operands {
			if a, ok := o.(arg); ok {
				text = append(text, fmt.Sprintf("%s+%d(FP)", a, offsets[a]))
				continue
			}
			text = append(text, f.operand(o))
		}
		fmt.Fprintf(&b, "\t%s %s", i.op, strings.Join(text, ", "))
		if i.comment != "" {
			fmt.Fprintf(&b, " // %s", i.comment)
		}
		b.WriteByte('\n')
	}
	for _, op := range f.ending() {
		fmt.Fprintf(&b, "\t%s\n", op)
	}
	return b.String()
}

// declaration is the function in Go.
func (f *function) declaration() string {
	return fmt.Sprintf("//go:noescape\nfunc %s\n", f.signature())
}

func (f *function) signature() string {
	var params []string
	for _, p := range f.params {
		params = append(params, p.name+" "+p.typ)
	}
	text := fmt.Sprintf("%s(%s)", f.name, strings.Join(params, ", "))
	if f.result.name != "" {
		text += fmt.Sprintf(" (%s %s)", f.result.name, f.result.typ)
	}
	return text
}
