// Package assembly is the source of the vector kernels: one description of each function that is printed for AVX2 and for
// AVX-512, and that can be executed by an emulator, so that the AVX-512 code is tested on machines without it. The
// contract of the functions is in internal/trainer/kernel, which holds what is printed.
package assembly

import (
	"fmt"
	"strings"
)

// The operands of an instruction, as Go's assembler orders them: sources first, destination last.
type (
	vec     int    // a vector register of the width at hand
	ymm     int    // its lower 256 bits
	xmm     int    // its lower 128 bits
	mask    int    // K1 … K7
	gpr     string // a general register
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
}

// function is one assembly function: what is printed, and what the emulator of the tests executes.
type function struct {
	name         string
	isa          isa
	params       []param
	result       param // at most one; its name is "" where there is none
	instructions []instruction
	labels       int
}

type param struct{ name, typ string }

// isa is what a function depends on of the vector unit.
type isa struct {
	suffix    string // of function names
	width     int    // float32 lanes
	registers int
	prefix    string
}

var (
	avx2   = isa{"AVX2", 8, 16, "Y"}
	avx512 = isa{"AVX512", 16, 32, "Z"}
)

func (s isa) bytes() int { return 4 * s.width }

func newFunction(s isa, name string, params ...string) *function {
	f := &function{name: name + s.suffix, isa: s}
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
func (f *function) frame() (offsets map[string]int, size int) {
	offsets = map[string]int{}
	for _, p := range append(append([]param{}, f.params...), f.result) {
		if p.name == "" {
			continue
		}
		n := paramSize(p.typ)
		size = (size + n - 1) / n * n
		offsets[p.name] = size
		size += n
	}
	return offsets, size
}

func (f *function) emit(op string, operands ...any) {
	f.instructions = append(f.instructions, instruction{op, operands})
}

func (f *function) newLabel(hint string) label {
	f.labels++
	return label(fmt.Sprintf("%s%d", hint, f.labels))
}

func (f *function) place(l label) { f.emit("", l) }

// loop runs body as often as register CX says, and uses it up. It may be 0.
func (f *function) loop(body func()) {
	const count = gpr("CX")
	top, end := f.newLabel("loop"), f.newLabel("end")
	f.emit("TESTQ", count, count)
	f.emit("JEQ", end)
	f.place(top)
	body()
	f.emit("DECQ", count)
	f.emit("JNE", top)
	f.place(end)
}

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
			text = append(text, f.operand(o, offsets))
		}
		fmt.Fprintf(&b, "\t%s %s\n", i.op, strings.Join(text, ", "))
	}
	b.WriteString("\tVZEROUPPER\n\tRET\n")
	return b.String()
}

func (f *function) operand(o any, offsets map[string]int) string {
	switch o := o.(type) {
	case vec:
		return fmt.Sprintf("%s%d", f.isa.prefix, o)
	case ymm:
		return fmt.Sprintf("Y%d", o)
	case xmm:
		return fmt.Sprintf("X%d", o)
	case mask:
		return fmt.Sprintf("K%d", o)
	case imm:
		return fmt.Sprintf("$%d", o)
	case arg:
		return fmt.Sprintf("%s+%d(FP)", o, offsets[string(o)])
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
