package allreduce

import (
	"fmt"
	"slices"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/gradient"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/reduce"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/wire/wirepb"
)

// Layout describes the parts of a step's gradient.
type Layout struct {
	Dense     int              // floats of the dense part
	Stats     int              // of each virtual worker's statistics
	Tables    []gradient.Table // whose rows the gradient has as well
	Minibatch int              // records of a virtual worker, at most
}

// Part is the sum of some virtual workers' gradients, with the statistics and measurements of each.
type Part struct {
	Span     reduce.Span
	Sum      gradient.Sum
	Stats    [][]float32        // by virtual worker of the span
	Measured []*wirepb.Measured // likewise; a finished sum has one for the whole step
}

// Sum is the sum of a whole step in an update's format: the dense part, every virtual worker's statistics, and the rows
// of the tables, packed.
type Sum struct {
	Step     int64
	Round    int64 // in which it became complete
	Floats   []float32
	Rows     []int32 // of each table
	Measured *wirepb.Measured
}

// bounds are lo ≤ at < hi.
type bounds struct{ lo, hi int }

func (b bounds) len() int { return b.hi - b.lo }

// share is a slice of a sum, which one of the owners finishes.
type share struct {
	dense, stats bounds
	rows         []bounds
}

// share is slice i of n.
func (l Layout) share(i, n int) share {
	cut := func(size int) bounds {
		lo, hi := reduce.Cut(size, n, i)
		return bounds{lo, hi}
	}
	s := share{dense: cut(l.Dense), stats: cut(l.Stats)}
	for _, t := range l.Tables {
		s.rows = append(s.rows, cut(t.Rows))
	}
	return s
}

// of returns the share of a gradient, as a view of its memory.
func (s share) of(sum gradient.Sum) gradient.Sum {
	cut := gradient.Sum{Dense: sum.Dense[s.dense.lo:s.dense.hi]}
	for t, r := range sum.Rows {
		lo, _ := slices.BinarySearch(r.Index, int32(s.rows[t].lo))
		hi, _ := slices.BinarySearch(r.Index, int32(s.rows[t].hi))
		width := 0
		if n := len(r.Index); n > 0 {
			width = len(r.Values) / n
		}
		cut.Rows = append(cut.Rows, gradient.Rows{Index: r.Index[lo:hi], Values: r.Values[lo*width : hi*width]})
	}
	return cut
}

// pack is the share of a part in the format of messages, in new memory.
func (s share) pack(p Part) (floats []float32, rows []int32) {
	sum := s.of(p.Sum)
	packed := 0
	for _, r := range sum.Rows {
		packed += len(r.Index) + len(r.Values)
	}
	floats = make([]float32, 0, s.dense.len()+len(p.Stats)*s.stats.len()+packed)
	floats = append(floats, sum.Dense...)
	for _, stats := range p.Stats {
		floats = append(floats, stats[s.stats.lo:s.stats.hi]...)
	}
	return gradient.AppendPacked(floats, sum.Rows), gradient.Counts(sum.Rows)
}

// size is the length in floats of a packed span, or an error if no such part can have so many rows.
func (l Layout) size(s share, span int, rows []int32) (int, error) {
	packed, err := gradient.PackedLen(l.Tables, rows, span*l.Minibatch)
	return s.dense.len() + span*s.stats.len() + packed, err
}

// unpack is the inverse of pack: the dense part, the rows, and the statistics of each virtual worker view floats.
func (l Layout) unpack(s share, span int, floats []float32, counts []int32) (sum gradient.Sum, stats [][]float32, err error) {
	unpacked := s.dense.len() + span*s.stats.len()
	if len(floats) < unpacked {
		return gradient.Sum{}, nil, fmt.Errorf("a slice of %d values, %d expected", len(floats), unpacked)
	}
	sum.Dense = floats[:s.dense.len():s.dense.len()]
	for v := range span {
		at := s.dense.len() + v*s.stats.len()
		stats = append(stats, floats[at:at+s.stats.len()])
	}
	if sum.Rows, err = gradient.Unpack(l.Tables, counts, floats[unpacked:]); err != nil {
		return gradient.Sum{}, nil, err
	}
	for t, r := range sum.Rows {
		if n := len(r.Index); n > 0 && (int(r.Index[0]) < s.rows[t].lo || int(r.Index[n-1]) >= s.rows[t].hi) {
			return gradient.Sum{}, nil, fmt.Errorf("rows %d to %d of table %q in the slice of rows %d to %d", r.Index[0], r.Index[n-1], l.Tables[t].Name, s.rows[t].lo, s.rows[t].hi-1)
		}
	}
	return sum, stats, nil
}

// gathering collects the finished slices of a step's sum, of the newest round that has any.
type gathering struct {
	round   int64
	have    []bool
	missing int
	sum     Sum               // its rows are in tables until all have arrived
	tables  [][]gradient.Rows // by slice
}

// newGathering collects n slices of a step of k virtual workers.
func (l Layout) newGathering(round, step int64, k, n int) *gathering {
	return &gathering{
		round: round, have: make([]bool, n), missing: n, tables: make([][]gradient.Rows, n),
		sum: Sum{Step: step, Round: round, Floats: make([]float32, l.Dense+k*l.Stats)},
	}
}

// add stores slice i, and reports whether the sum is now complete.
func (l Layout) add(g *gathering, i int, sum gradient.Sum, stats [][]float32, measured *wirepb.Measured) bool {
	if g.have[i] {
		return false
	}
	s := l.share(i, len(g.have))
	copy(g.sum.Floats[s.dense.lo:s.dense.hi], sum.Dense)
	for v, part := range stats {
		copy(g.sum.Floats[l.Dense+v*l.Stats+s.stats.lo:][:s.stats.len()], part)
	}
	if i == 0 {
		g.sum.Measured = measured
	}
	g.have[i], g.tables[i] = true, sum.Rows
	if g.missing--; g.missing > 0 {
		return false
	}
	for t := range l.Tables { // slices are in the order of rows
		var all gradient.Rows
		for _, rows := range g.tables {
			all.Index = append(all.Index, rows[t].Index...)
			all.Values = append(all.Values, rows[t].Values...)
		}
		g.sum.Floats = gradient.AppendPacked(g.sum.Floats, []gradient.Rows{all})
		g.sum.Rows = append(g.sum.Rows, int32(len(all.Index)))
	}
	return true
}
