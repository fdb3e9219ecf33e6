package kernel

const (
	portablePanel = 4
	portableChunk = 128 // steps of K whose B is converted to float64 at a time: 4 KB
)

// portableGemm holds accumulators and factors as float32 values in float64, so that a step of a chain is a
// multiplication, an addition, a test and a rounding.
func portableGemm(g Gemm) {
	g.check(portablePanel)
	portableGemmColumns(g, 0, portablePanel)
}

// portableGemmColumns does columns from…N; panel is the width that B is packed by.
func portableGemmColumns(g Gemm, from, panel int) {
	var b [portableChunk][4]float64
	for j := from; j < g.N; j += 4 {
		columns := min(4, g.N-j)
		origin := j
		if g.BPanel != 0 {
			origin = j/panel*g.BPanel + j%panel
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
					for ; i+2 <= g.M; i += 2 {
						portableTile2(chunk, a[i*g.ARow:], g.ARow, g.AStep, c[i*g.CRow:][:columns], c[(i+1)*g.CRow:][:columns], load)
					}
					if i < g.M {
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

// portableTile2 continues the chains of two rows by four columns.
func portableTile2(b [][4]float64, a []float32, row, step int, c0, c1 []float32, load bool) {
	var u, v [4]float64
	if load {
		for q := range c0 {
			u[q], v[q] = float64(c0[q]), float64(c1[q])
		}
	}
	u0, u1, u2, u3 := u[0], u[1], u[2], u[3]
	v0, v1, v2, v3 := v[0], v[1], v[2], v[3]
	at := 0
	for k := range b {
		w := &b[k]
		x, y := float64(a[at]), float64(a[at+row])
		at += step
		s0, s1, s2, s3 := x*w[0]+u0, x*w[1]+u1, x*w[2]+u2, x*w[3]+u3
		if rare(s0) || rare(s1) || rare(s2) || rare(s3) {
			u0, u1, u2, u3 = fmaExact4(x, w, u0, u1, u2, u3)
		} else {
			u0, u1, u2, u3 = float64(float32(s0)), float64(float32(s1)), float64(float32(s2)), float64(float32(s3))
		}
		s0, s1, s2, s3 = y*w[0]+v0, y*w[1]+v1, y*w[2]+v2, y*w[3]+v3
		if rare(s0) || rare(s1) || rare(s2) || rare(s3) {
			v0, v1, v2, v3 = fmaExact4(y, w, v0, v1, v2, v3)
		} else {
			v0, v1, v2, v3 = float64(float32(s0)), float64(float32(s1)), float64(float32(s2)), float64(float32(s3))
		}
	}
	u, v = [4]float64{u0, u1, u2, u3}, [4]float64{v0, v1, v2, v3}
	for q := range c0 {
		c0[q], c1[q] = float32(u[q]), float32(v[q])
	}
}

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

//go:noinline
func fmaExact4(x float64, w *[4]float64, u0, u1, u2, u3 float64) (float64, float64, float64, float64) {
	return fmaExact(x, w[0], u0), fmaExact(x, w[1], u1), fmaExact(x, w[2], u2), fmaExact(x, w[3], u3)
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
