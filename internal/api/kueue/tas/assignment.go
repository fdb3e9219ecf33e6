package tas

import (
	"encoding/json"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Domain is a domain with a number of pods: a value for each level of the assignment.
type Domain struct {
	Values []string
	Count  int32
}

// Domains are the domains of an assignment, in its order. A malformed part, which the API server does not accept, ends
// the list.
func Domains(a *kueue.TopologyAssignment) []Domain {
	if a == nil {
		return nil
	}
	var all []Domain
	for i := range a.Slices {
		s := &a.Slices[i]
		for at := range int(s.DomainCount) {
			d := Domain{Values: make([]string, 0, len(s.ValuesPerLevel))}
			for l := range s.ValuesPerLevel {
				value, known := valueAt(&s.ValuesPerLevel[l], at)
				if !known {
					return all
				}
				d.Values = append(d.Values, value)
			}
			switch {
			case s.PodCounts.Universal != nil:
				d.Count = *s.PodCounts.Universal
			case at < len(s.PodCounts.Individual):
				d.Count = s.PodCounts.Individual[at]
			default:
				return all
			}
			all = append(all, d)
		}
	}
	return all
}

// valueAt is the value of a domain at a level.
func valueAt(v *kueue.TopologyAssignmentSliceLevelValues, i int) (string, bool) {
	switch {
	case v.Universal != nil:
		return *v.Universal, true
	case v.Individual == nil || i >= len(v.Individual.Roots):
		return "", false
	}
	var prefix, suffix string
	if v.Individual.Prefix != nil {
		prefix = *v.Individual.Prefix
	}
	if v.Individual.Suffix != nil {
		suffix = *v.Individual.Suffix
	}
	return prefix + v.Individual.Roots[i] + suffix, true
}

// The API's limits on an assignment: parts, and domains in one of them.
const (
	maxTopologySlices       = 1000
	maxTopologySliceDomains = 100_000
)

// NewAssignment encodes domains as Kueue does (pkg/util/tas/tas_assignment.go): in one part, or in a part for
// each run of hosts whose names begin alike, whichever is shorter.
func NewAssignment(levels []string, domains []Domain) *kueue.TopologyAssignment {
	var prefixes []string
	if len(domains) > 1 && len(levels) > 0 && levels[len(levels)-1] == corev1.LabelHostname {
		prefixes = hostPrefixes(domains)
	}
	byPrefix := &kueue.TopologyAssignment{Levels: levels, Slices: []kueue.TopologyAssignmentSlice{}}
	for _, run := range runs(domains, prefixes) {
		for part := range slices.Chunk(run, maxTopologySliceDomains) {
			byPrefix.Slices = append(byPrefix.Slices, compressed(levels, part))
		}
	}
	if len(byPrefix.Slices) <= 1 || len(domains) > maxTopologySliceDomains {
		return byPrefix
	}
	whole := &kueue.TopologyAssignment{Levels: levels, Slices: []kueue.TopologyAssignmentSlice{compressed(levels, domains)}}
	if size(whole) < size(byPrefix) {
		return whole
	}
	return byPrefix
}

func size(a *kueue.TopologyAssignment) int {
	text, err := json.Marshal(a)
	if err != nil {
		panic("tas: topology assignment: " + err.Error()) // plain data cannot fail
	}
	return len(text)
}

// runs divides domains where the prefix of their host changes.
func runs(domains []Domain, prefixes []string) [][]Domain {
	if len(domains) == 0 {
		return nil
	}
	if prefixes == nil {
		return [][]Domain{domains}
	}
	var all [][]Domain
	start := 0
	for i := range domains {
		if prefixes[i] != prefixes[start] {
			all, start = append(all, domains[start:i]), i
		}
	}
	return append(all, domains[start:])
}

// hostPrefixes gives each domain the longest beginning of its host name, up to a dash, that another has too; a shorter
// one if that would make too many parts; nil if even that does.
func hostPrefixes(domains []Domain) []string {
	ends := make([][]int, len(domains)) // where the dashes are
	seen := map[string]int{}
	deepest := 0
	for i, d := range domains {
		host := d.Values[len(d.Values)-1]
		for at := 0; at+1 < len(host); at++ {
			if host[at] == '-' {
				ends[i] = append(ends[i], at+1)
				seen[host[:at+1]]++
			}
		}
		deepest = max(deepest, len(ends[i]))
	}
	keys := make([]string, len(domains))
	for depth := deepest; depth >= 1; depth-- {
		clear(keys)
		for i, d := range domains {
			host := d.Values[len(d.Values)-1]
			for j := min(len(ends[i]), depth) - 1; j >= 0; j-- {
				if prefix := host[:ends[i][j]]; seen[prefix] > 1 {
					keys[i] = prefix
					break
				}
			}
		}
		parts := 0
		for _, run := range runs(domains, keys) {
			parts += (len(run) + maxTopologySliceDomains - 1) / maxTopologySliceDomains
		}
		if parts <= maxTopologySlices {
			return keys
		}
	}
	return nil
}

// compressed is one part: what all values of a level have in common is written once.
func compressed(levels []string, domains []Domain) kueue.TopologyAssignmentSlice {
	s := kueue.TopologyAssignmentSlice{
		DomainCount:    int32(len(domains)), //nolint:gosec // bounded by the caller
		ValuesPerLevel: make([]kueue.TopologyAssignmentSliceLevelValues, len(levels)),
	}
	equal := true
	for l := range levels {
		values := make([]string, len(domains))
		for i, d := range domains {
			values[i] = d.Values[l]
		}
		s.ValuesPerLevel[l] = compressedValues(values)
	}
	counts := make([]int32, len(domains))
	for i, d := range domains {
		counts[i] = d.Count
		equal = equal && d.Count == domains[0].Count
	}
	if equal {
		s.PodCounts.Universal = &counts[0]
	} else {
		s.PodCounts.Individual = counts
	}
	return s
}

func compressedValues(values []string) kueue.TopologyAssignmentSliceLevelValues {
	prefix, suffix, shortest, longest := values[0], values[0], len(values[0]), len(values[0])
	for _, v := range values[1:] {
		shortest, longest = min(shortest, len(v)), max(longest, len(v))
		for !strings.HasPrefix(v, prefix) {
			prefix = prefix[:len(prefix)-1]
		}
		for !strings.HasSuffix(v, suffix) {
			suffix = suffix[1:]
		}
	}
	if len(prefix) == longest {
		return kueue.TopologyAssignmentSliceLevelValues{Universal: &prefix}
	}
	if len(prefix)+len(suffix) > shortest { // they must not overlap: "ababa" and "aba"
		prefix = prefix[:shortest-len(suffix)]
	}
	individual := &kueue.TopologyAssignmentSliceLevelIndividualValues{Roots: make([]string, len(values))}
	if prefix != "" {
		individual.Prefix = &prefix
	}
	if suffix != "" {
		individual.Suffix = &suffix
	}
	for i, v := range values {
		individual.Roots[i] = v[len(prefix) : len(v)-len(suffix)]
	}
	return kueue.TopologyAssignmentSliceLevelValues{Individual: individual}
}
