// Package gradient represents the gradient of a step, in memory and on the wire: dense floats for the variables that
// every record affects, and for each embedding table the rows that some record looked up. Memory and traffic of a step
// depend on the number of these rows, not on the sizes of the tables.
//
// An addition is a function of its two operands to the bit, so sums along the fixed tree of package reduce do not
// depend on which worker added what. Unpacked gradients are validated, and not larger than the input. Package nn
// decides which rows a minibatch uses, and applies the sums.
package gradient

import "slices"

// Table is an embedding table as gradients see it.
type Table struct {
	Name        string // of the variable, for messages
	Rows, Width int
	Offset      int // of row 0 in the state, in floats
	Lookups     int // of each record: n records touch at most n × Lookups rows
}

// Most is how many rows a gradient over that many records can have.
func (t Table) Most(records int) int { return min(t.Rows, records*t.Lookups) }

// Rows is the gradient of one table: of the rows at Index, ascending and distinct, and zero elsewhere. Values holds
// len(Index) × width floats, row by row.
type Rows struct {
	Index  []int32
	Values []float32
}

// Sum is the gradient of a virtual worker, or of several: the dense part, and one Rows for each table, in the order of
// the network's. A network without tables has no Rows.
type Sum struct {
	Dense []float32
	Rows  []Rows
}

// Add is s ← s + a. A row that only one of them has passes through unchanged; the others are added, s first. add is
// dst[i] = dst[i] + a[i], rounded once. a is left as it is.
func (s *Sum) Add(a Sum, add func(dst, a []float32)) {
	add(s.Dense, a.Dense)
	for t := range s.Rows {
		s.Rows[t].merge(a.Rows[t], add)
	}
}

// merge works from the end, where there is room: what it writes is never before what it has still to read.
func (r *Rows) merge(a Rows, add func(dst, a []float32)) {
	if len(a.Index) == 0 {
		return
	}
	width := len(a.Values) / len(a.Index)
	row := func(r *Rows, i int) []float32 { return r.Values[i*width:][:width] }
	mine, theirs, all := len(r.Index)-1, len(a.Index)-1, r.union(a)
	r.Index = slices.Grow(r.Index, all-len(r.Index))[:all]
	r.Values = slices.Grow(r.Values, all*width-len(r.Values))[:all*width]
	for at := all - 1; theirs >= 0; at-- {
		if mine < 0 || r.Index[mine] < a.Index[theirs] {
			r.Index[at] = a.Index[theirs]
			copy(row(r, at), row(&a, theirs))
			theirs--
			continue
		}
		both := r.Index[mine] == a.Index[theirs]
		r.Index[at] = r.Index[mine]
		copy(row(r, at), row(r, mine))
		mine--
		if both {
			add(row(r, at), row(&a, theirs))
			theirs--
		}
	}
}

// union is how many rows one of the two has.
func (r *Rows) union(a Rows) int {
	all, i := len(a.Index), 0
	for _, index := range r.Index {
		for i < len(a.Index) && a.Index[i] < index {
			i++
		}
		if i == len(a.Index) || a.Index[i] != index {
			all++
		}
	}
	return all
}
