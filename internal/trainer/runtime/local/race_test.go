//go:build race

package local_test

// underRace: the detector slows the portable kernels tenfold, and it looks for races between goroutines, for which a
// part of the matrix is enough.
const underRace = true
