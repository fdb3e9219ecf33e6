package kernel_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/kernel"
)

func TestSigmoidAndTanh(t *testing.T) {
	t.Run("are those of the mathematics, to a relative 10⁻¹²", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			x := rapid.OneOf(rapid.Float64Range(-1000, 1000), rapid.Float64Range(-1, 1), rapid.Float64Range(-0x1p-10, 0x1p-10)).Draw(t, "x")
			for name, pair := range map[string][2]float64{"tanh": {kernel.Tanh(x), math.Tanh(x)}, "sigmoid": {kernel.Sigmoid(x), 1 / (1 + math.Exp(-x))}} {
				if got, want := pair[0], pair[1]; math.Abs(got-want) > 1e-12*math.Abs(want)+1e-300 {
					t.Fatalf("%s(%v) is %v, want %v", name, x, got, want)
				}
			}
		})
	})
	t.Run("end at their limits, and keep a NaN", func(t *testing.T) {
		for x, want := range map[float64][2]float64{1e300: {1, 1}, -1e300: {0, -1}, 0: {0.5, 0}, math.Inf(1): {1, 1}, math.Inf(-1): {0, -1}} {
			if s, h := kernel.Sigmoid(x), kernel.Tanh(x); s != want[0] || h != want[1] {
				t.Errorf("sigmoid(%v) = %v, tanh = %v", x, s, h)
			}
		}
		if s, h := kernel.Sigmoid(math.NaN()), kernel.Tanh(math.NaN()); s == s || h == h {
			t.Errorf("of a NaN: %v, %v", s, h)
		}
	})
}
