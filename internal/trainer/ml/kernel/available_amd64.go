package kernel

import "golang.org/x/sys/cpu"

// Available lists the sets that can run here, the fastest first; the last is the portable one. x/sys/cpu asks the
// operating system, too, whether it keeps the registers.
func Available() []Set {
	var sets []Set
	if cpu.X86.HasAVX512F && cpu.X86.HasAVX2 && cpu.X86.HasFMA {
		sets = append(sets, vectorSet("avx512", functionsAVX512()))
	}
	if cpu.X86.HasAVX2 && cpu.X86.HasFMA {
		sets = append(sets, vectorSet("avx2", functionsAVX2()))
	}
	return append(sets, Portable())
}
