package nn

// arena hands out parts of one array. Parts begin at multiples of 16 floats, a cache line, and are zero.
type arena struct {
	size    int
	pending []reservation
}

type reservation struct {
	into   *[]float32
	offset int
	length int
}

// reserve asks for a part of that many floats, which *into is when allocate returns.
func (a *arena) reserve(into *[]float32, length int) {
	a.pending = append(a.pending, reservation{into, a.size, length})
	a.size += (length + 15) &^ 15
}

func (a *arena) allocate() {
	all := make([]float32, a.size)
	for _, r := range a.pending {
		*r.into = all[r.offset : r.offset+r.length : r.offset+r.length]
	}
	a.pending = nil
}
