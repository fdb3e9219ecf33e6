package coordinator

import (
	"maps"
	"slices"
)

const nobody = -1

// ledger is the work of one step: who has which virtual worker, and what has come back.
type ledger struct {
	owner   []int // virtual worker → worker, or nobody
	second  []int // virtual worker → the worker that computes it as well, or nobody
	done    []bool
	missing int
}

func (l *ledger) reset(n int) {
	l.owner, l.second, l.done, l.missing = slices.Repeat([]int{nobody}, n), slices.Repeat([]int{nobody}, n), make([]bool, n), n
}

func (l *ledger) valid(v int) bool { return v >= 0 && v < len(l.owner) }

func (l *ledger) finish(v int) {
	l.done[v] = true
	l.missing--
}

func (l *ledger) assign(dealt map[int][]int) {
	for worker, vs := range dealt {
		for _, v := range vs {
			l.owner[v] = worker
		}
	}
}

// complete reports whether there was work, and all of it is done.
func (l *ledger) complete() bool { return len(l.owner) > 0 && l.missing == 0 }

// orphan takes what a worker still had to do away from it.
func (l *ledger) orphan(worker int) {
	for v := range l.owner {
		l.relinquish(v, worker)
	}
}

// relinquish says that a worker does not compute a virtual worker any more. A second one that does has it then.
func (l *ledger) relinquish(v, worker int) {
	switch {
	case l.second[v] == worker:
		l.second[v] = nobody
	case l.owner[v] == worker && !l.done[v]:
		l.owner[v], l.second[v] = l.second[v], nobody
	}
}

// untouched reports whether nobody has been given anything.
func (l *ledger) untouched() bool {
	return l.missing == len(l.owner) && !slices.ContainsFunc(l.owner, func(w int) bool { return w != nobody })
}

// dealt lists what each worker was given.
func (l *ledger) dealt() map[int][]int {
	given := map[int][]int{}
	for v, w := range l.owner {
		if w != nobody {
			given[w] = append(given[w], v)
		}
	}
	return given
}

func (l *ledger) hasOrphans() bool {
	for v, w := range l.owner {
		if w == nobody && !l.done[v] {
			return true
		}
	}
	return false
}

// reclaim gives a worker the orphans that it has computed already, and returns them.
func (l *ledger) reclaim(worker int, computed []Span) (vs []int) {
	for _, s := range computed {
		free := s.Lo < s.Hi
		for v := s.Lo; v < s.Hi; v++ {
			free = free && l.valid(v) && l.owner[v] == nobody && !l.done[v]
		}
		for v := s.Lo; free && v < s.Hi; v++ {
			l.owner[v] = worker
			vs = append(vs, v)
		}
	}
	return vs
}

// dealOrphans gives every orphan to the worker that has least left to do, the lowest number first among equals,
// and returns what each was given.
func (l *ledger) dealOrphans(workers []int) map[int][]int {
	load := map[int]int{}
	for v, w := range l.owner {
		if w != nobody && !l.done[v] {
			load[w]++
		}
	}
	given := map[int][]int{}
	for v, w := range l.owner {
		if w != nobody || l.done[v] {
			continue
		}
		least := workers[0]
		for _, w := range workers[1:] {
			if load[w] < load[least] {
				least = w
			}
		}
		l.owner[v] = least
		load[least]++
		given[least] = append(given[least], v)
	}
	return given
}

// deal divides n virtual workers among workers: sizes differ by at most one, as few as possible change hands
// against previous (virtual worker → worker; it may be shorter or longer than n), and what does is given out in
// runs, so that a worker tends to hold whole subtrees. It is a function of its arguments alone.
func deal(n int, workers []int, previous []int) map[int][]int {
	kept := make(map[int][]int, len(workers))
	for _, w := range workers {
		kept[w] = nil
	}
	for v := range min(n, len(previous)) {
		if have, ok := kept[previous[v]]; ok {
			kept[previous[v]] = append(have, v)
		}
	}
	// The larger quotas go to those that hold most already.
	byHolding := slices.Clone(workers)
	slices.SortStableFunc(byHolding, func(a, b int) int { return len(kept[b]) - len(kept[a]) })
	quota := map[int]int{}
	for i, w := range byHolding {
		quota[w] = n / len(workers)
		if i < n%len(workers) {
			quota[w]++
		}
	}
	taken := make([]bool, n)
	for _, w := range workers {
		kept[w] = kept[w][:min(len(kept[w]), quota[w])]
		for _, v := range kept[w] {
			taken[v] = true
		}
	}
	var free []int
	for v := range n {
		if !taken[v] {
			free = append(free, v)
		}
	}
	for _, w := range workers {
		need := quota[w] - len(kept[w])
		kept[w] = append(kept[w], free[:need]...)
		free = free[need:]
		slices.Sort(kept[w])
	}
	maps.DeleteFunc(kept, func(_ int, vs []int) bool { return len(vs) == 0 })
	return kept
}

func sortedKeys[V any](m map[int]V) []int { return slices.Sorted(maps.Keys(m)) }
