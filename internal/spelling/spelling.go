// Package spelling suggests a known word for a misspelt one.
package spelling

import (
	"slices"
	"strings"
)

// Meant is the candidate that word probably is: the first that it is the beginning of, or the one with the fewest
// edits, of which there are no more than half of word's letters. It is "" where nothing is that near.
func Meant(word string, candidates []string) string {
	for _, c := range candidates {
		if len(word) >= 3 && strings.HasPrefix(c, word) {
			return c
		}
	}
	near := Near(word, candidates, 1)
	if len(near) == 0 || edits(word, near[0]) > max(1, len(word)/2) {
		return ""
	}
	return near[0]
}

// Near are the n candidates with the fewest edits, fewest first and otherwise in the order given.
func Near(word string, candidates []string, n int) []string {
	distance := make(map[string]int, len(candidates))
	for _, c := range candidates {
		distance[c] = edits(word, c)
	}
	near := slices.Clone(candidates)
	slices.SortStableFunc(near, func(a, b string) int { return distance[a] - distance[b] })
	return near[:min(n, len(near))]
}

// edits is the Damerau-Levenshtein distance: how many bytes to insert, delete or change, or neighbours to swap.
func edits(a, b string) int {
	// distance[i+1][j+1] is that of a[:i] and b[:j]; beyond the beginning, anything is too far.
	distance := make([][]int, len(a)+2)
	for i := range distance {
		distance[i] = make([]int, len(b)+2)
		distance[i][0], distance[i][1] = len(a)+len(b), i-1
	}
	for j := range distance[0] {
		distance[0][j], distance[1][j] = len(a)+len(b), j-1
	}
	distance[1][0] = len(a) + len(b)
	var rowOf [256]int // where a byte was last seen in a, counted from 1
	for i := 1; i <= len(a); i++ {
		same := 0 // where a's byte was last seen in b
		for j := 1; j <= len(b); j++ {
			k, l := rowOf[b[j-1]], same
			cost := 1
			if a[i-1] == b[j-1] {
				cost, same = 0, j
			}
			swapped := distance[k][l] + (i - k - 1) + 1 + (j - l - 1)
			distance[i+1][j+1] = min(distance[i][j]+cost, distance[i+1][j]+1, distance[i][j+1]+1, swapped)
		}
		rowOf[a[i-1]] = i
	}
	return distance[len(a)+1][len(b)+1]
}
