package kernel_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/kernel"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/philox"
)

// values makes arrays of the numbers on which implementations differ: ordinary ones, zeros of both signs, subnormal and
// huge ones, and equal neighbours for comparisons.
type values struct {
	rng  *rand.Rand
	tame bool // no subnormal numbers or products, but many sums midway between two float32
}

func drawValues(t *rapid.T) values {
	return values{rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "values"), 0)), rapid.Bool().Draw(t, "tame")}
}

func (v values) array(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		kind := v.rng.IntN(12)
		if v.tame && (kind == 2 || kind == 4) {
			kind = 5
		}
		switch kind {
		case 5:
			x[i] = float32(v.rng.IntN(3)-1) * (1 + float32(v.rng.IntN(8))*0x1p-12)
		case 0:
			x[i] = 0
		case 1:
			x[i] = float32(math.Copysign(0, -1))
		case 2:
			x[i] = math.Float32frombits(v.rng.Uint32() & 0x807fffff) // subnormal
		case 3:
			x[i] = float32(v.rng.IntN(5) - 2)
		case 4:
			x[i] = math.Float32frombits(v.rng.Uint32()&0x83ffffff | 0x1f000000) // products are subnormal
		default:
			x[i] = float32(v.rng.NormFloat64())
		}
	}
	return x
}

func equal(t *rapid.T, what string, got, want []float32) {
	t.Helper()
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) && !(got[i] != got[i] && want[i] != want[i]) {
			t.Fatalf("%s: element %d of %d is %v (%08x), the portable kernel's is %v (%08x)", what, i, len(want),
				got[i], math.Float32bits(got[i]), want[i], math.Float32bits(want[i]))
		}
	}
}

func clone(x []float32) []float32 { return append([]float32(nil), x...) }

// vectorSets are the sets that this processor has besides the portable one, and the emulated ones.
func vectorSets() []kernel.Set {
	sets := kernel.Available()
	return append(sets[:len(sets)-1], kernel.Emulated()...)
}

func eachVectorSet(t *testing.T, property func(t *rapid.T, set, portable kernel.Set)) {
	for _, set := range vectorSets() {
		t.Run(set.Name+" has the portable kernel's bits", func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { property(t, set, kernel.Portable()) })
		})
	}
}

func TestGemm(t *testing.T) {
	eachVectorSet(t, func(t *rapid.T, set, portable kernel.Set) {
		v := drawValues(t)
		size := func(name string, most int) int { return rapid.IntRange(1, most).Draw(t, name) }
		g := kernel.Gemm{
			M: size("M", 27), N: size("N", 150), Segments: size("segments", 4), K: size("K", 40), Repeat: size("repeat", 3),
			Load: rapid.Bool().Draw(t, "load"), ReLU: rapid.Bool().Draw(t, "ReLU"),
		}
		if rapid.Bool().Draw(t, "A transposed") {
			g.ARow, g.AStep = 1, g.M
		} else {
			g.ARow, g.AStep = g.K, 1
		}
		g.ASegment = g.M*g.K - rapid.IntRange(0, g.M).Draw(t, "overlap")
		g.ARepeat = rapid.IntRange(0, 30).Draw(t, "ARepeat")
		g.A = v.array((g.Repeat-1)*g.ARepeat + (g.Segments-1)*g.ASegment + g.M*g.K)
		rows := g.Segments * g.K
		b := v.array(rows * g.N)
		if rapid.Bool().Draw(t, "bias") {
			g.Bias = v.array(g.N)
		}
		g.CRow = g.N + rapid.IntRange(0, 3).Draw(t, "gap")
		g.CRepeat = g.M * g.CRow
		c := v.array(g.Repeat * g.CRepeat)
		packed := rapid.Bool().Draw(t, "packed")
		run := func(set kernel.Set) []float32 {
			g, out := g, clone(c)
			g.C = out
			g.B, g.BRow, g.BSegment = b, g.N, g.K*g.N
			if packed {
				g.B = make([]float32, kernel.PackedSize(rows, g.N, set.Panel))
				for row := range rows {
					kernel.Pack(g.B, b[row*g.N:][:g.N], row, rows, set.Panel)
				}
				g.BRow, g.BSegment, g.BPanel = set.Panel, g.K*set.Panel, rows*set.Panel
			}
			set.Gemm(g)
			return out
		}
		equal(t, "C", run(set), run(portable))
	})
}

func TestGemmIsTheChainOfItsDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := drawValues(t)
		m, n, k := rapid.IntRange(1, 9).Draw(t, "m"), rapid.IntRange(1, 9).Draw(t, "n"), rapid.IntRange(1, 300).Draw(t, "k")
		a, b, c := v.array(m*k), v.array(k*n), make([]float32, m*n)
		kernel.Portable().Gemm(kernel.Gemm{M: m, N: n, Segments: 1, K: k, A: a, ARow: k, AStep: 1, B: b, BRow: n, C: c, CRow: n})
		want := make([]float32, m*n)
		for i := range m {
			for j := range n {
				for q := range k {
					want[i*n+j] = kernel.FMA(a[i*k+q], b[q*n+j], want[i*n+j])
				}
			}
		}
		equal(t, "C", c, want)
	})
}

func TestGemmBlocks(t *testing.T) {
	eachVectorSet(t, func(t *rapid.T, set, portable kernel.Set) {
		v := drawValues(t)
		g := kernel.GemmBlocks{
			M: rapid.IntRange(1, 11).Draw(t, "M"), N: rapid.IntRange(1, 150).Draw(t, "N"), Records: rapid.IntRange(1, 40).Draw(t, "records"),
		}
		if rapid.Bool().Draw(t, "A by records") {
			g.ARow, g.AStep = 1, g.M
		} else {
			g.ARow, g.AStep = g.Records, 1
		}
		g.BRow, g.CRow = g.N+1, g.N+2
		g.A, g.B = v.array(g.M*g.Records), v.array(g.BRow*g.Records)
		run := func(set kernel.Set) []float32 {
			g := g
			g.C = make([]float32, g.CRow*g.M)
			set.GemmBlocks(g)
			return g.C
		}
		equal(t, "C", run(set), run(portable))
	})
}

func TestDot(t *testing.T) {
	eachVectorSet(t, func(t *rapid.T, set, portable kernel.Set) {
		v := drawValues(t)
		d := kernel.Dot{Rows: rapid.IntRange(1, 9).Draw(t, "rows"), Columns: rapid.IntRange(1, 15).Draw(t, "columns"), K: rapid.IntRange(1, 100).Draw(t, "K")}
		d.XRow, d.WRow, d.OutRow = d.K+1, d.K, d.Columns+1
		d.X, d.W = v.array(d.XRow*d.Rows), v.array(d.WRow*d.Columns)
		run := func(set kernel.Set) []float32 {
			d := d
			d.Out = make([]float32, d.OutRow*d.Rows)
			set.Dot(d)
			return d.Out
		}
		equal(t, "Out", run(set), run(portable))
	})
}

func TestArrays(t *testing.T) {
	eachVectorSet(t, func(t *rapid.T, set, portable kernel.Set) {
		v := drawValues(t)
		n := rapid.IntRange(0, 100).Draw(t, "n")
		x, y, z := v.array(n), v.array(n), v.array(n)
		rate := float32(rapid.Float64Range(-2, 2).Draw(t, "rate"))
		both := func(name string, f func(set kernel.Set, dst []float32)) {
			got, want := clone(x), clone(x)
			f(set, got)
			f(portable, want)
			equal(t, name, got, want)
		}
		both("Add", func(s kernel.Set, dst []float32) { s.Add(dst, y) })
		both("Mul", func(s kernel.Set, dst []float32) { s.Mul(dst, y, z) })
		both("ReLU", func(s kernel.Set, dst []float32) { s.ReLU(dst, y) })
		both("ReLUBack", func(s kernel.Set, dst []float32) { s.ReLUBack(dst, y, z) })
		both("ReLUBack in place", func(s kernel.Set, dst []float32) { s.ReLUBack(dst, dst, z) })
		both("SGD", func(s kernel.Set, dst []float32) { s.SGD(dst, y, rate) })
	})
}

func TestOptimizers(t *testing.T) {
	eachVectorSet(t, func(t *rapid.T, set, portable kernel.Set) {
		v := drawValues(t)
		width := rapid.IntRange(1, 9).Draw(t, "width")
		n := width * rapid.IntRange(0, 20).Draw(t, "rows")
		w, m, second, g := v.array(n), v.array(n), v.array(n), v.array(n)
		for i, x := range second {
			second[i] = float32(math.Abs(float64(x)))
		}
		number := func(name string) float32 { return float32(rapid.Float64Range(0, 1).Draw(t, name)) }
		step := kernel.AdamStep{Rate: number("rate"), Beta1: number("β₁"), Beta2: number("β₂"), Rest1: number("rest1"), Rest2: number("rest2"), Epsilon: number("ε")}
		var index []int32
		for row := range n / width {
			if v.rng.IntN(2) == 0 {
				index = append(index, int32(row))
			}
		}
		both := func(name string, f func(set kernel.Set, w, m, second []float32)) {
			got, want := [3][]float32{clone(w), clone(m), clone(second)}, [3][]float32{clone(w), clone(m), clone(second)}
			f(set, got[0], got[1], got[2])
			f(portable, want[0], want[1], want[2])
			for i, what := range []string{"weights", "first slot", "second slot"} {
				equal(t, name+": "+what, got[i], want[i])
			}
		}
		both("Momentum", func(s kernel.Set, w, m, _ []float32) { s.Momentum(w, m, g, step.Rate, step.Beta1) })
		both("Adam", func(s kernel.Set, w, m, second []float32) { s.Adam(w, m, second, g, step) })
		both("AdamRows", func(s kernel.Set, w, m, second []float32) {
			s.AdamRows(w, m, second, index, g[:len(index)*width], step)
		})
	})
}

func TestFinite(t *testing.T) {
	for _, set := range append(vectorSets(), kernel.Portable()) {
		t.Run(set.Name+" finds an infinity or a NaN wherever it is", func(t *testing.T) {
			for n := range 70 {
				x := make([]float32, n)
				for i := range x {
					x[i] = -math.MaxFloat32
				}
				if !set.Finite(x) {
					t.Fatalf("%d largest numbers are not finite", n)
				}
				for i := range x {
					for _, v := range []float64{math.Inf(1), math.Inf(-1), math.NaN()} {
						x[i] = float32(v)
						if set.Finite(x) {
							t.Fatalf("%v at %d of %d is not found", v, i, n)
						}
					}
					x[i] = 1
				}
			}
		})
	}
}

func TestColumns(t *testing.T) {
	eachVectorSet(t, func(t *rapid.T, set, portable kernel.Set) {
		v := drawValues(t)
		c, rows := rapid.IntRange(1, 150).Draw(t, "channels"), rapid.IntRange(0, 7).Draw(t, "rows")
		x, dy := v.array(c*rows), v.array(c*rows)
		p := [5][]float32{}
		for i := range p {
			p[i] = v.array(c)
		}
		both := func(name string, f func(s kernel.Set, acc, acc2, dst []float32)) {
			acc, acc2, dst := clone(p[3]), clone(p[4]), make([]float32, c*rows)
			wantAcc, wantAcc2, wantDst := clone(p[3]), clone(p[4]), make([]float32, c*rows)
			f(set, acc, acc2, dst)
			f(portable, wantAcc, wantAcc2, wantDst)
			equal(t, name, acc, wantAcc)
			equal(t, name, acc2, wantAcc2)
			equal(t, name, dst, wantDst)
		}
		both("ColumnSum", func(s kernel.Set, acc, _, _ []float32) { s.ColumnSum(acc, x) })
		both("ColumnSquares", func(s kernel.Set, acc, _, _ []float32) { s.ColumnSquares(acc, x, p[0]) })
		both("ColumnProducts", func(s kernel.Set, acc, acc2, _ []float32) { s.ColumnProducts(acc, acc2, dy, x, p[0]) })
		both("BatchNorm", func(s kernel.Set, _, _, dst []float32) { s.BatchNorm(dst, x, p[0], p[1], p[2]) })
		both("BatchNormBack", func(s kernel.Set, _, _, dst []float32) { s.BatchNormBack(dst, dy, x, p[0], p[1], p[2], p[3]) })
		both("BatchNormReLUBack", func(s kernel.Set, _, _, dst []float32) { s.BatchNormReLUBack(dst, dy, x, p[0], p[1], p[2], p[3]) })
	})
}

func TestPool(t *testing.T) {
	eachVectorSet(t, func(t *rapid.T, set, portable kernel.Set) {
		v := drawValues(t)
		p := kernel.Pool{
			Outputs: rapid.IntRange(1, 5).Draw(t, "outputs"), Channels: rapid.IntRange(1, 70).Draw(t, "channels"),
			Height: rapid.IntRange(1, 3).Draw(t, "height"), Width: rapid.IntRange(1, 3).Draw(t, "width"),
		}
		p.Stride = p.Width + rapid.IntRange(0, 2).Draw(t, "gap")
		p.InputRowPixels = p.Outputs*p.Stride + rapid.IntRange(0, 2).Draw(t, "rest")
		x, dy := v.array(p.Height*p.InputRowPixels*p.Channels), v.array(p.Outputs*p.Channels)
		run := func(set kernel.Set) (out, dx []float32, arg []int32) {
			out, dx, arg = make([]float32, len(dy)), make([]float32, len(x)), make([]int32, len(dy))
			set.MaxPool(p, out, arg, x)
			set.MaxPoolBack(p, dx, dy, arg)
			return out, dx, arg
		}
		coefficients := [4][]float32{v.array(p.Channels), v.array(p.Channels), v.array(p.Channels), v.array(p.Channels)}
		fused := func(set kernel.Set) (all []float32, arg []int32) {
			out, at, sum, dot := make([]float32, len(dy)), make([]float32, len(dy)), clone(coefficients[0]), clone(coefficients[1])
			arg = make([]int32, len(dy))
			set.BatchNormMaxPool(p, out, arg, at, x, coefficients[0], coefficients[1], coefficients[2])
			set.PooledProducts(p, 1, sum, dot, dy, at, arg, coefficients[2])
			all = slices.Concat(out, at, sum, dot)
			for ky := range p.Height {
				for _, back := range []func(p kernel.Pool, ky int, dst, dy []float32, arg []int32, x, mean, scale, offset, slope []float32){set.BatchNormBackPooled, set.BatchNormReLUBackPooled} {
					dx := make([]float32, p.InputRowPixels*p.Channels)
					back(p, ky, dx, dy, arg, x[ky*p.InputRowPixels*p.Channels:], coefficients[0], coefficients[1], coefficients[2], coefficients[3])
					all = append(all, dx...)
				}
			}
			return all, arg
		}
		all, fusedArg := fused(set)
		wantAll, wantFusedArg := fused(portable)
		equal(t, "fused with BatchNorm", all, wantAll)
		if fmt.Sprint(fusedArg) != fmt.Sprint(wantFusedArg) {
			t.Fatalf("fused: positions %v, portable %v", fusedArg, wantFusedArg)
		}
		out, dx, arg := run(set)
		wantOut, wantDx, wantArg := run(portable)
		equal(t, "the output", out, wantOut)
		equal(t, "the gradient", dx, wantDx)
		if fmt.Sprint(arg) != fmt.Sprint(wantArg) {
			t.Fatalf("positions %v, portable %v", arg, wantArg)
		}
	})
}

func TestDropoutMask(t *testing.T) {
	eachVectorSet(t, func(t *rapid.T, set, portable kernel.Set) {
		n := rapid.IntRange(0, 300).Draw(t, "n")
		first := rapid.Uint64Range(0, 1<<33).Draw(t, "first")
		m := kernel.NewMask(rapid.Uint64().Draw(t, "seed"), rapid.Int64Range(0, 1<<32-1).Draw(t, "step"),
			rapid.IntRange(0, 99).Draw(t, "virtual worker"), rapid.IntRange(0, 9).Draw(t, "layer"), rapid.Float64Range(0, 0.999).Draw(t, "rate"))
		got, want := make([]float32, n), make([]float32, n)
		set.DropoutMask(got, m, first)
		portable.DropoutMask(want, m, first)
		equal(t, "the mask", got, want)
	})
	t.Run("an element is kept when its word of the stream reaches the rate", func(t *testing.T) {
		m := kernel.NewMask(5, 6, 7, 8, 0.25)
		mask := make([]float32, 200)
		kernel.Portable().DropoutMask(mask, m, 1000)
		key := philox.NewKey(5, philox.Dropout)
		for i, v := range mask {
			keep := key.Element(philox.Index{6, 7, 8}, uint64(1000+i)) >= 1<<30
			if keep != (v == float32(1/0.75)) || !keep && v != 0 {
				t.Fatalf("element %d: mask %v, keep %v", i, v, keep)
			}
		}
	})
}

func TestChoose(t *testing.T) {
	t.Run("without a name the first of the available sets is taken", func(t *testing.T) {
		set, err := kernel.Choose("")
		if err != nil || set.Name != kernel.Available()[0].Name {
			t.Fatal(set.Name, err)
		}
	})
	t.Run("the portable set is always available", func(t *testing.T) {
		if set, err := kernel.Choose("portable"); err != nil || set.Name != "portable" {
			t.Fatal(set.Name, err)
		}
	})
	t.Run("a set that does not exist or cannot run is refused", func(t *testing.T) {
		for _, name := range []string{"sse2", "avx512", "avx2", "neon"} {
			set, err := kernel.Choose(name)
			if err == nil && set.Name != name {
				t.Errorf("%q gave %q", name, set.Name)
			}
			if err != nil {
				t.Log(err)
			}
		}
	})
}
