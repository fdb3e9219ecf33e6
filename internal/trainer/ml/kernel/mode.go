package kernel

import "errors"

// CheckMode reports whether this process rounds subnormal numbers as IEEE 754 says. A library that was linked in or a
// parent that changed the processor's mode (FTZ, DAZ) would change results.
func CheckMode() error {
	smallestNormal, subnormal := float32(0x1p-126), float32(0x1p-140)
	if product(smallestNormal, 0.5) == 0 || product(subnormal, 0x1p20) == 0 {
		return errors.New("the processor is set to flush subnormal numbers to zero (FTZ or DAZ), which changes the bits of results; start this program without whatever sets that mode")
	}
	return nil
}

// product is not inlined, so that it is computed where the program runs and not by the compiler.
//
//go:noinline
func product(a, b float32) float32 { return a * b }
