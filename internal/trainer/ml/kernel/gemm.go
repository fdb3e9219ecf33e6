package kernel

import "fmt"

// Gemm is C[M×N] ← act(chain(init, A × B) + bias). An element is one chain of fused multiply-adds over segments, and
// over K within a segment, that begins at +0, or at C with Load. Strides are in elements.
//
//	A[i][s][k] = A[i·ARow + s·ASegment + k·AStep]
//	B[s][k][j] = B[s·BSegment + k·BRow + j], or packed: B[(j/Panel)·BPanel + s·BSegment + k·BRow + j mod Panel]
//	C[i][j]    = C[i·CRow + j]
//
// Repeat > 1 does it again with A and C moved on by ARepeat and CRepeat each time and the same B. A convolution over
// NHWC is segments of image rows: no image is ever unfolded.
type Gemm struct {
	M, N, Segments, K     int
	A                     []float32
	ARow, AStep, ASegment int
	B                     []float32
	BRow, BSegment        int
	BPanel                int // distance of packed panels of Set.Panel columns; 0: B is not packed
	C                     []float32
	CRow                  int
	Bias                  []float32 // N values, one rounded addition after the chain; nil: none
	Load                  bool      // the chain begins at C
	ReLU                  bool      // C ← c > 0 ? c : +0 at the end
	Repeat                int       // 0 is 1
	ARepeat, CRepeat      int
}

// GemmBlocks is C[M×N] = Σ over records r of A[r][i]·B[r][j] under rule 2: the records are cut into Blocks(Records)
// blocks, each a chain, and their results are added in order.
//
//	A[r][i] = A[r·AStep + i·ARow]      B[r][j] = B[r·BRow + j]      C[i][j] = C[i·CRow + j]
type GemmBlocks struct {
	M, N, Records int
	A             []float32
	ARow, AStep   int
	B             []float32
	BRow          int
	C             []float32
	CRow          int
}

// Dot is Out[i][j] = X[i] · W[j] over K contiguous elements under rule 3, in fused multiply-adds: element k in lane
// k mod 16, the last row of lanes filled with +0 × +0; then the lanes combined l+8, l+4, l+2, l+1.
type Dot struct {
	Rows, Columns, K int
	X                []float32
	XRow             int
	W                []float32
	WRow             int
	Out              []float32
	OutRow           int
}

// MaxBlocks is G of rule 2.
const MaxBlocks = 8

// Blocks is the number of blocks that n records are cut into: min(8, n).
func Blocks(n int) int { return min(MaxBlocks, n) }

// Block is the range of records [from, to) of block g of n records: sizes differ by at most one, larger ones first.
func Block(n, g int) (from, to int) {
	blocks := Blocks(n)
	size, larger := n/blocks, n%blocks
	from = g*size + min(g, larger)
	to = from + size
	if g < larger {
		to++
	}
	return from, to
}

// need panics when an array is shorter than what a kernel without bounds checks would touch.
func need(what string, have, want int) {
	if have < want {
		panic(fmt.Sprintf("kernel: %s has %d elements where %d are used", what, have, want))
	}
}

func (g *Gemm) check(panel int) {
	g.Repeat = max(g.Repeat, 1)
	lastA := (g.Repeat-1)*g.ARepeat + (g.M-1)*g.ARow + (g.Segments-1)*g.ASegment + (g.K-1)*g.AStep + 1
	need("A", len(g.A), lastA)
	lastB := (g.Segments-1)*g.BSegment + (g.K-1)*g.BRow
	if g.BPanel == 0 {
		lastB += g.N
	} else {
		last := (g.N - 1) / panel
		lastB += last*g.BPanel + g.N - last*panel
	}
	need("B", len(g.B), lastB)
	need("C", len(g.C), (g.Repeat-1)*g.CRepeat+(g.M-1)*g.CRow+g.N)
	if g.Bias != nil {
		need("bias", len(g.Bias), g.N)
	}
}

func (g *GemmBlocks) check() {
	need("A", len(g.A), (g.Records-1)*g.AStep+(g.M-1)*g.ARow+1)
	need("B", len(g.B), (g.Records-1)*g.BRow+g.N)
	need("C", len(g.C), (g.M-1)*g.CRow+g.N)
}

func (d *Dot) check() {
	need("X", len(d.X), (d.Rows-1)*d.XRow+d.K)
	need("W", len(d.W), (d.Columns-1)*d.WRow+d.K)
	need("Out", len(d.Out), (d.Rows-1)*d.OutRow+d.Columns)
}

// PackedSize is the number of elements of a matrix of that many rows and columns packed in panels. A matrix of fewer
// columns than Set.Panel is one panel, which may be as wide as it is.
func PackedSize(rows, columns, panel int) int { return (columns + panel - 1) / panel * panel * rows }

// Pack copies row `row` of B (of `rows`) into its packed panels; the last panel's missing columns stay as they are.
// The packed matrix has BRow = panel and BPanel = rows·panel.
func Pack(packed, b []float32, row, rows, panel int) {
	for j := 0; j < len(b); j += panel {
		copy(packed[j*rows+row*panel:], b[j:min(j+panel, len(b))])
	}
}
