package gradient

import (
	"fmt"
	"math"
)

// A packed gradient is, table by table, the bits of the rows' numbers and then the rows' values: one array of floats.
// How many rows of each table there are stands elsewhere (Counts).

// Counts is how many rows of each table there are; nil without tables.
func Counts(rows []Rows) []int32 {
	var counts []int32
	for _, r := range rows {
		counts = append(counts, int32(len(r.Index)))
	}
	return counts
}

// PackedLen is the length in floats of a packed gradient over at most that many records. It refuses counts that such a
// gradient cannot have: who sends them must not make us allocate for them.
func PackedLen(tables []Table, counts []int32, records int) (int, error) {
	if len(counts) != len(tables) {
		return 0, fmt.Errorf("rows of %d tables, and the network has %d", len(counts), len(tables))
	}
	n := 0
	for i, t := range tables {
		if most := t.Most(records); counts[i] < 0 || int(counts[i]) > most {
			return 0, fmt.Errorf("%d rows of table %q, of which %d records can touch at most %d", counts[i], t.Name, records, most)
		}
		n += int(counts[i]) * (1 + t.Width)
	}
	return n, nil
}

// LongestPacked is the largest PackedLen over that many records.
func LongestPacked(tables []Table, records int) int {
	n := 0
	for _, t := range tables {
		n += t.Most(records) * (1 + t.Width)
	}
	return n
}

// AppendPacked appends rows, packed.
func AppendPacked(dst []float32, rows []Rows) []float32 {
	for _, r := range rows {
		for _, index := range r.Index {
			dst = append(dst, math.Float32frombits(uint32(index)))
		}
		dst = append(dst, r.Values...)
	}
	return dst
}

// Unpack is the inverse of AppendPacked. The values are packed's own memory; nothing beyond its length is allocated,
// whatever counts say. It refuses another length than theirs, and row numbers that do not ascend or are beyond their
// table.
func Unpack(tables []Table, counts []int32, packed []float32) ([]Rows, error) {
	if len(counts) != len(tables) {
		return nil, fmt.Errorf("rows of %d tables, and the network has %d", len(counts), len(tables))
	}
	if len(tables) == 0 && len(packed) == 0 {
		return nil, nil
	}
	rows := make([]Rows, len(tables))
	for i, t := range tables {
		n := int(counts[i])
		if n < 0 || n > t.Rows || len(packed) < n*(1+t.Width) {
			return nil, fmt.Errorf("%d rows of table %q (%d × %d) in %d values", n, t.Name, t.Rows, t.Width, len(packed))
		}
		index := make([]int32, n)
		before := int32(-1)
		for k, bits := range packed[:n] {
			row := int32(math.Float32bits(bits))
			if row <= before || int(row) >= t.Rows {
				return nil, fmt.Errorf("row %d of table %q (%d rows) behind row %d: rows ascend", row, t.Name, t.Rows, before)
			}
			index[k], before = row, row
		}
		packed = packed[n:]
		rows[i] = Rows{Index: index, Values: packed[: n*t.Width : n*t.Width]}
		packed = packed[n*t.Width:]
	}
	if len(packed) > 0 {
		return nil, fmt.Errorf("%d values more than the rows of %d tables", len(packed), len(tables))
	}
	return rows, nil
}
