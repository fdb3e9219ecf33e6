package quota

import "sort"

// reducePodSets searches for the largest number of pods for which good is true, between what the workload wants and its
// least (Kueue's podset_reducer.go). It is a binary search, as if good were true for all smaller numbers, too. The last
// assignment that good saw as true is the one found.
func (s *search) reducePodSets(good func(*assignment) bool) bool {
	sets := s.w.PodSets
	counts := make([]int32, len(sets))
	var spare int64
	for _, set := range sets {
		spare += int64(set.spare())
	}
	lastGood := 0
	at := sort.Search(int(spare)+1, func(i int) bool {
		for k, set := range sets {
			counts[k] = set.Count - int32(int64(set.spare())*int64(i)/spare)
		}
		a := s.assign(counts)
		if !good(&a) {
			return false
		}
		lastGood = i
		return true
	})
	return at == lastGood
}

// spare is how many pods of a set could be left out.
func (s *PodSet) spare() int32 {
	if s.MinCount == nil {
		return 0
	}
	return s.Count - *s.MinCount
}
