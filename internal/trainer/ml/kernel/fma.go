package kernel

import "math"

const (
	midpointMask    = 1<<29 - 1                         // the bits of a float64 that a float32 does not have
	midpoint        = 1 << 28                           // those bits when the value lies halfway between two float32
	smallestNormal2 = uint64(0x3810000000000000)<<1 - 1 // the bits of 2⁻¹²⁶, doubled to drop the sign, minus 1
)

// FMA is a·b + c rounded once to float32: the bits of a hardware float32 fused multiply-add (a NaN's payload apart).
//
// The product is exact in float64 and the sum s is rounded there. Rounding s again to float32 is right unless s lies
// exactly halfway between two float32, where the part that was lost in s decides, or where float32 is subnormal and
// its halfway points lie elsewhere. Only these rare cases take the exact way.
func FMA(a, b, c float32) float32 {
	return float32(fma(float64(a), float64(b), float64(c)))
}

// fma is FMA on float32 values held in float64.
func fma(a, b, c float64) float64 {
	s := a*b + c // fused or not: the product is exact
	if rare(s) {
		return fmaExact(a, b, c)
	}
	return float64(float32(s))
}

// rare reports whether rounding s to float32 might differ from rounding the exact sum. For zero the subtraction wraps.
func rare(s float64) bool {
	bits := math.Float64bits(s)
	return uint32(bits)&midpointMask == midpoint || bits<<1-1 < smallestNormal2
}

// fmaExact rounds the sum to float64 to odd, from where any later rounding to fewer bits is right (Boldo and
// Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
//
//go:noinline
func fmaExact(a, b, c float64) float64 {
	product := float64(a * b)
	s := product + c
	virtual := s - product
	lost := (product - (s - virtual)) + (c - virtual)
	if lost != 0 && lost == lost { // NaN where s is not finite: then s is the answer
		bits := math.Float64bits(s)
		if bits&1 == 0 {
			if (lost > 0) == (s > 0) {
				bits++
			} else {
				bits--
			}
		}
		s = math.Float64frombits(bits)
	}
	return float64(float32(s))
}
