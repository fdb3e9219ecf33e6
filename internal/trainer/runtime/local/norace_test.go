//go:build !race

package local_test

const underRace = false
