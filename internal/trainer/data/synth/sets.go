package synth

import "slices"

// Set is one of the data sets of images that can be made.
type Set struct {
	Name    string
	Version string // in fingerprints: what (seed, index) gives is part of job lineages
	Shape   []int  // of an image, in bytes
	// Draw draws a record's image and returns its label.
	Draw func(seed uint64, index uint32, pixels []byte) (label byte)
}

// Sets lists them.
func Sets() []Set {
	return []Set{
		{"digits", Version, []int{Side, Side}, Digit},
		{"shapes", ShapesVersion, []int{ShapeSide, ShapeSide, 3}, Shape},
	}
}

// ByName finds one.
func ByName(name string) (Set, bool) {
	sets := Sets()
	i := slices.IndexFunc(sets, func(s Set) bool { return s.Name == name })
	if i < 0 {
		return Set{}, false
	}
	return sets[i], true
}

// Pixels is the number of bytes of an image.
func (s Set) Pixels() int {
	n := 1
	for _, d := range s.Shape {
		n *= d
	}
	return n
}

// Record makes a record: the image, then one byte of label, in Pixels()+1 bytes.
func (s Set) Record(seed uint64, index uint32, record []byte) {
	pixels := s.Pixels()
	record[pixels] = s.Draw(seed, index, record[:pixels])
}
