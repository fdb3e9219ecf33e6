package nn

import (
	"math"
	"testing"
)

func TestTheTruncatedNormalDistributionIsThatOfTheErrorFunction(t *testing.T) {
	cumulative := func(x float64) float64 { return float64(0.5 * math.Erfc(-x/math.Sqrt2)) }
	sum, squares := 0.0, 0.0
	const n = 1 << 16
	for i := range n {
		u := (float64(i) + 0.5) / n
		x := truncatedNormal(u)
		want := (cumulative(x) - cumulative(-2)) / (cumulative(2) - cumulative(-2))
		if math.Abs(want-u) > 1e-7 || math.Abs(x) > 2.0001 {
			t.Fatalf("the quantile of %v is %v, below which are %v", u, x, want)
		}
		sum += x
		squares += float64(x * x)
	}
	if mean, variance := sum/n, squares/n; math.Abs(mean) > 1e-4 || math.Abs(variance-0.7737) > 1e-3 {
		t.Errorf("mean %v and variance %v; 0 and 0.774 are those of the distribution", mean, variance)
	}
}
