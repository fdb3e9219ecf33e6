package simulator

import (
	"math/bits"
	"math/rand/v2"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/simulator/scenariofile"
)

// rng is the simulation's random number generator.
type rng struct{ *rand.PCG }

func newRNG(seed uint64) rng { return rng{rand.NewPCG(seed, 0x5eed)} }

// exponential draws an exponentially distributed time with a mean, at least 1 ms. It is von Neumann's method, which
// only compares uniform numbers: a logarithm would differ in its last bit from one machine to the next.
func (d rng) exponential(mean scenariofile.Duration) Time {
	for whole := uint64(0); ; whole++ {
		first := d.Uint64()
		length, last := 1, first
		for {
			next := d.Uint64()
			if next >= last {
				break
			}
			length, last = length+1, next
		}
		if length%2 == 1 {
			// (whole + first/2⁶⁴) · mean
			part, _ := bits.Mul64(first, uint64(mean))
			return max(1, min(Time(whole*uint64(mean)+part), Time(scenariofile.MaxDuration)))
		}
	}
}
