package kernel_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/kernel"
)

// hardware is a·b + c by the processor: a 1×1 matrix product that begins at c.
func hardware(set kernel.Set, a, b, c []float32) {
	for i := range a {
		set.Gemm(kernel.Gemm{M: 1, N: 1, Segments: 1, K: 1, A: a[i : i+1], B: b[i : i+1], C: c[i : i+1], Load: true})
	}
}

// exact is a·b + c in rational arithmetic, rounded once.
func exact(a, b, c float32) float32 {
	r := func(v float32) *big.Rat { return new(big.Rat).SetFloat64(float64(v)) }
	sum := new(big.Rat).Mul(r(a), r(b))
	sum.Add(sum, r(c))
	v, _ := sum.Float32()
	return v
}

// fmaCase makes one of: random bits, sums near a midpoint of float32 by a little or not at all, subnormal results.
func fmaCase(rng *rand.Rand) (a, b, c float32) {
	bits := func() float32 {
		for {
			if v := math.Float32frombits(rng.Uint32()); v-v == 0 {
				return v
			}
		}
	}
	switch rng.IntN(4) {
	case 0:
		return bits(), bits(), bits()
	case 1: // c = odd·2⁻²³ and a·b ≈ ± half a unit of it, a tiny bit off
		c = 1 + float32(rng.IntN(1<<23))*0x1p-23
		a = float32(math.Ldexp(1+float64(rng.IntN(3)-1)*0x1p-23, -12))
		b = float32(math.Ldexp(1+float64(rng.IntN(3)-1)*0x1p-23, -12))
		return a, -b * float32(1-2*rng.IntN(2)), c
	case 2: // products in and around the subnormal range
		a = float32(math.Ldexp(1+rng.Float64(), -rng.IntN(90)-30))
		b = float32(math.Ldexp(1+rng.Float64(), -rng.IntN(50)-40))
		c = math.Float32frombits(rng.Uint32() & 0x80ffffff)
		return a, b, c
	default: // cancellation
		a, b = 1+rng.Float32(), 1+rng.Float32()
		return a, b, -a*b + float32(rng.IntN(3)-1)*0x1p-23
	}
}

func TestFMA(t *testing.T) {
	t.Run("sums are those of rational arithmetic, rounded once", func(t *testing.T) {
		rng := rand.New(rand.NewPCG(1, 1))
		cases := 200_000
		if os.Getenv("ELASTIC_SOAK") != "" {
			cases = 100_000_000
		}
		for range cases {
			a, b, c := fmaCase(rng)
			got, want := kernel.FMA(a, b, c), exact(a, b, c)
			if got != want {
				t.Fatalf("%x·%x + %x: got %x, want %x", a, b, c, got, want)
			}
		}
	})
	sets := kernel.Available()
	for _, set := range sets[:len(sets)-1] {
		t.Run("sums are those of the "+set.Name+" instruction, zeros' signs included", func(t *testing.T) {
			rng := rand.New(rand.NewPCG(2, 2))
			cases := 1_000_000
			if os.Getenv("ELASTIC_SOAK") != "" {
				cases = 100_000_000
			}
			for range cases / 100 {
				var a, b, c, got [100]float32
				for i := range a {
					a[i], b[i], c[i] = fmaCase(rng)
					got[i] = kernel.FMA(a[i], b[i], c[i])
				}
				start := c
				hardware(set, a[:], b[:], c[:])
				for i, want := range c {
					if math.Float32bits(got[i]) != math.Float32bits(want) {
						t.Fatalf("%x·%x + %x: got %x, the processor %x", a[i], b[i], start[i], got[i], want)
					}
				}
			}
		})
	}
	t.Run("infinities and NaN are passed on", func(t *testing.T) {
		inf := float32(math.Inf(1))
		if v := kernel.FMA(inf, 2, 1); v != inf {
			t.Errorf("∞·2 + 1 = %v", v)
		}
		if v := kernel.FMA(inf, 0, 1); v == v {
			t.Errorf("∞·0 + 1 = %v", v)
		}
		if v := kernel.FMA(math.MaxFloat32, 2, 0); v != inf {
			t.Errorf("overflow gives %v", v)
		}
	})
}

func TestExpAndLog(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	within := func(got, want, ulps float64) bool {
		return math.Abs(got-want) <= ulps*math.Abs(math.Nextafter(want, math.Inf(1))-want)
	}
	t.Run("both are within 2 ulp of math's", func(t *testing.T) {
		for range 100_000 {
			x := rng.Float64()*1400 - 700
			if got, want := kernel.Exp(x), math.Exp(x); !within(got, want, 2) {
				t.Fatalf("Exp(%v) = %v, want %v", x, got, want)
			}
			y := math.Exp(rng.Float64()*200 - 100)
			if got, want := kernel.Log(y), math.Log(y); !within(got, want, 2) {
				t.Fatalf("Log(%v) = %v, want %v", y, got, want)
			}
		}
	})
	t.Run("ends of the range", func(t *testing.T) {
		if kernel.Exp(0) != 1 || kernel.Exp(-1000) != 0 || !math.IsInf(kernel.Exp(1000), 1) || kernel.Log(1) != 0 {
			t.Error(kernel.Exp(0), kernel.Exp(-1000), kernel.Exp(1000), kernel.Log(1))
		}
		if v := kernel.Exp(math.NaN()); v == v {
			t.Errorf("Exp(NaN) = %v", v)
		}
	})
}

func BenchmarkFMA(b *testing.B) {
	const m, n, k = 24, 64, 288
	x, w, c := make([]float32, m*k), make([]float32, k*n), make([]float32, m*n)
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range x {
		x[i] = rng.Float32()
	}
	for i := range w {
		w[i] = float32(rng.NormFloat64())
	}
	for _, set := range kernel.Available() {
		b.Run(set.Name, func(b *testing.B) {
			for b.Loop() {
				set.Gemm(kernel.Gemm{M: m, N: n, Segments: 1, K: k, A: x, ARow: k, AStep: 1, B: w, BRow: n, C: c, CRow: n})
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(m*n*k), "ns/FMA")
		})
	}
}
