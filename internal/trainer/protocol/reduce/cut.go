package reduce

// cutUnit is what slices are multiples of: a register's 16 floats, four of them, so that a slice is added with the same
// instructions as the whole.
const cutUnit = 64

// Cut divides size floats, or rows, among n owners: owner i has lo ≤ at < hi. It is a function of its arguments alone.
// All cuts but the last are at multiples of 64, and shares differ by at most 64.
func Cut(size, n, i int) (lo, hi int) {
	units := (size + cutUnit - 1) / cutUnit
	at := func(i int) int { return min(size, units*i/n*cutUnit) }
	return at(i), at(i + 1)
}
