// Package spelling finds the word that was probably meant.
package spelling

import (
	"slices"
	"strings"
)

// Meant is the candidate that word probably is: the first that it is the beginning of, or the one with the fewest edits, of which there are no more
// than half of word's letters. It is "" where nothing is that near.
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

// edits is the Levenshtein distance: how many bytes to insert, delete or change.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
