package kernel

import "math"

const (
	portablePanel = 4
	portableChunk = 128 // steps of K whose B is converted to float64 at a time: 4 KB
)

// portableGemm holds accumulators and factors as float32 values in float64, so that a step of a chain is a
// multiplication, an addition, a test and a rounding.
func portableGemm(g Gemm) {
	g.check(portablePanel)
	var b [portableChunk][4]float64
	rows := 1
	if noSubnormalRounding(g.A, g.B) {
		rows = 2
	}
	for j := 0; j < g.N; j += portablePanel {
		columns := min(portablePanel, g.N-j)
		origin := j
		if g.BPanel != 0 {
			origin = j / portablePanel * g.BPanel
		}
		load := g.Load
		for s := range g.Segments {
			for k0 := 0; k0 < g.K; k0 += portableChunk {
				chunk := b[:min(portableChunk, g.K-k0)]
				for k := range chunk {
					row := g.B[origin+s*g.BSegment+(k0+k)*g.BRow:][:columns]
					for q, v := range row {
						chunk[k][q] = float64(v)
					}
				}
				for r := range g.Repeat {
					a, c := g.A[r*g.ARepeat+s*g.ASegment+k0*g.AStep:], g.C[r*g.CRepeat+j:]
					i := 0
					for ; rows == 2 && i+2 <= g.M; i += 2 {
						portableTile2(chunk, a[i*g.ARow:], g.ARow, g.AStep, c[i*g.CRow:][:columns], c[(i+1)*g.CRow:][:columns], load)
					}
					for ; i < g.M; i++ {
						portableTile1(chunk, a[i*g.ARow:], g.AStep, c[i*g.CRow:][:columns], load)
					}
				}
				load = true
			}
		}
		for r := range g.Repeat {
			for i := range g.M {
				portableEpilogue(&g, g.C[r*g.CRepeat+i*g.CRow+j:][:columns], j)
			}
		}
	}
}

// noSubnormalRounding reports whether all products of an element of a and one of b are multiples of 2⁻¹⁴⁹, as the
// accumulators are. Then a sum below 2⁻¹²⁶ is a float32 as it is, and of the rare cases only midpoints are left. The
// unit in the last place of a normal v is 2⁻²³ of its power of two, so that powers of at least 2⁻¹⁰³ together suffice.
func noSubnormalRounding(a, b []float32) bool {
	return smallestExponent(a)+smallestExponent(b) >= -103
}

// smallestExponent is the exponent of the smallest number in x that is not 0: −1000 if it is subnormal, 1000 if there
// is none.
func smallestExponent(x []float32) int {
	least := uint32(math.MaxUint32)
	for _, v := range x {
		least = min(least, math.Float32bits(v)<<1-1) // 0 becomes the largest
	}
	if least == math.MaxUint32 {
		return 1000 // nothing but zeros
	}
	if exponent := int((least + 1) >> 24); exponent > 0 {
		return exponent - 127
	}
	return -1000
}

func portableEpilogue(g *Gemm, c []float32, j int) {
	for q, v := range c {
		if g.Bias != nil {
			v += g.Bias[j+q]
		}
		if g.ReLU && !(v > 0) {
			v = 0
		}
		c[q] = v
	}
}

// portableTile2 continues the chains of two rows by four columns, where noSubnormalRounding.
func portableTile2(b [][4]float64, a []float32, row, step int, c0, c1 []float32, load bool) {
	var t tile2
	if load {
		for q := range c0 {
			t[0][q], t[1][q] = float64(c0[q]), float64(c1[q])
		}
	}
	for len(b) > 0 {
		done, at := t.advance(b, a, row, step)
		if done == len(b) {
			break
		}
		// The rare case: the rows from `at` on take this step exactly.
		for i := at; i < 2; i++ {
			for q := range t[i] {
				t[i][q] = fma(float64(a[done*step+i*row]), b[done][q], t[i][q])
			}
		}
		b, a = b[done+1:], a[min((done+1)*step, len(a)):]
	}
	for q := range c0 {
		c0[q], c1[q] = float32(t[0][q]), float32(t[1][q])
	}
}

// tile2 is float32 values in float64.
type tile2 [2][4]float64

// advance takes steps until one of the sums lies midway, and returns the number of whole steps and the row that did not
// take the next one. It calls nothing, so that all sums stay in registers.
func (t *tile2) advance(b [][4]float64, a []float32, row, step int) (done, at int) {
	u0, u1, u2, u3 := t[0][0], t[0][1], t[0][2], t[0][3]
	v0, v1, v2, v3 := t[1][0], t[1][1], t[1][2], t[1][3]
	done = len(b)
	for k := range b {
		w := &b[k]
		x := float64(a[k*step])
		s0, s1, s2, s3 := x*w[0]+u0, x*w[1]+u1, x*w[2]+u2, x*w[3]+u3
		if midway(s0) || midway(s1) || midway(s2) || midway(s3) {
			done, at = k, 0
			break
		}
		u0, u1, u2, u3 = float64(float32(s0)), float64(float32(s1)), float64(float32(s2)), float64(float32(s3))
		x = float64(a[k*step+row])
		s0, s1, s2, s3 = x*w[0]+v0, x*w[1]+v1, x*w[2]+v2, x*w[3]+v3
		if midway(s0) || midway(s1) || midway(s2) || midway(s3) {
			done, at = k, 1
			break
		}
		v0, v1, v2, v3 = float64(float32(s0)), float64(float32(s1)), float64(float32(s2)), float64(float32(s3))
	}
	*t = tile2{{u0, u1, u2, u3}, {v0, v1, v2, v3}}
	return done, at
}

// midway reports whether s lies between two float32 at the same distance, if it is no subnormal one.
func midway(s float64) bool { return uint32(math.Float64bits(s))&midpointMask == midpoint }

func portableTile1(b [][4]float64, a []float32, step int, c []float32, load bool) {
	var u [4]float64
	if load {
		for q := range c {
			u[q] = float64(c[q])
		}
	}
	at := 0
	for k := range b {
		x := float64(a[at])
		at += step
		for q := range u {
			u[q] = fma(x, b[k][q], u[q])
		}
	}
	for q := range c {
		c[q] = float32(u[q])
	}
}

func portableGemmBlocks(g GemmBlocks) {
	g.check()
	portableGemmBlocksColumns(g, 0)
}

func portableGemmBlocksColumns(g GemmBlocks, from int) {
	for i := range g.M {
		for j := from; j < g.N; j++ {
			var total float32
			for block := range Blocks(g.Records) {
				var chain float64
				r, to := Block(g.Records, block)
				for ; r < to; r++ {
					chain = fma(float64(g.A[r*g.AStep+i*g.ARow]), float64(g.B[r*g.BRow+j]), chain)
				}
				if block == 0 {
					total = float32(chain)
				} else {
					total += float32(chain)
				}
			}
			g.C[i*g.CRow+j] = total
		}
	}
}

const lanes = 16 // of rule 3, whatever the processor's width

func portableDot(d Dot) {
	d.check()
	for i := range d.Rows {
		for j := range d.Columns {
			x, w := d.X[i*d.XRow:][:d.K], d.W[j*d.WRow:][:d.K]
			var acc [lanes]float64
			for len(x) >= lanes {
				for l, v := range x[:lanes] {
					acc[l] = fma(float64(v), float64(w[l]), acc[l])
				}
				x, w = x[lanes:], w[lanes:]
			}
			if len(x) > 0 {
				var lastX, lastW [lanes]float32
				copy(lastX[:], x)
				copy(lastW[:], w)
				for l, v := range lastX {
					acc[l] = fma(float64(v), float64(lastW[l]), acc[l])
				}
			}
			var sum [lanes]float32
			for l, v := range acc {
				sum[l] = float32(v)
			}
			for half := lanes / 2; half > 0; half /= 2 {
				for l := range half {
					sum[l] += sum[l+half]
				}
			}
			d.Out[i*d.OutRow+j] = sum[0]
		}
	}
}
