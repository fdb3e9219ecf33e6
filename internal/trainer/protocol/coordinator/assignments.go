package coordinator

import (
	"maps"
	"slices"
)

const noWorker = -1

// assignments is the work of one step, or of an evaluation: which worker computes which virtual worker, and which
// results have come.
type assignments struct {
	owner   []int  // virtual worker → the worker that computes it, or noWorker
	backup  []int  // virtual worker → the worker that computes it as well, or noWorker
	done    []bool // virtual worker → its result was accepted
	missing int    // how many results have not been accepted yet
}

func (a *assignments) reset(n int) {
	a.owner, a.backup = slices.Repeat([]int{noWorker}, n), slices.Repeat([]int{noWorker}, n)
	a.done, a.missing = make([]bool, n), n
}

func (a *assignments) valid(v int) bool { return v >= 0 && v < len(a.owner) }

func (a *assignments) finish(v int) {
	a.done[v] = true
	a.missing--
}

// assign makes each worker the owner of its virtual workers.
func (a *assignments) assign(byWorker map[int][]int) {
	for worker, vs := range byWorker {
		for _, v := range vs {
			a.owner[v] = worker
		}
	}
}

// complete reports whether there was work, and all of it is done.
func (a *assignments) complete() bool { return len(a.owner) > 0 && a.missing == 0 }

// unassign takes a worker's unfinished work away from it.
func (a *assignments) unassign(worker int) {
	for v := range a.owner {
		a.relinquish(v, worker)
	}
}

// relinquish records that a worker no longer computes a virtual worker. Its backup, if it has one, becomes the owner.
func (a *assignments) relinquish(v, worker int) {
	switch {
	case a.backup[v] == worker:
		a.backup[v] = noWorker
	case a.owner[v] == worker && !a.done[v]:
		a.owner[v], a.backup[v] = a.backup[v], noWorker
	}
}

// nothingAssigned reports whether no virtual worker has been assigned yet.
func (a *assignments) nothingAssigned() bool {
	return a.missing == len(a.owner) && !slices.ContainsFunc(a.owner, func(w int) bool { return w != noWorker })
}

// byWorker lists the virtual workers of each owner.
func (a *assignments) byWorker() map[int][]int {
	given := map[int][]int{}
	for v, w := range a.owner {
		if w != noWorker {
			given[w] = append(given[w], v)
		}
	}
	return given
}

func (a *assignments) hasUnassigned() bool {
	for v, w := range a.owner {
		if w == noWorker && !a.done[v] {
			return true
		}
	}
	return false
}

// reclaim assigns to a worker what it has computed already of the unassigned work, and returns that.
func (a *assignments) reclaim(worker int, computed []Span) (vs []int) {
	for _, s := range computed {
		free := s.Lo < s.Hi
		for v := s.Lo; v < s.Hi; v++ {
			free = free && a.valid(v) && a.owner[v] == noWorker && !a.done[v]
		}
		for v := s.Lo; free && v < s.Hi; v++ {
			a.owner[v] = worker
			vs = append(vs, v)
		}
	}
	return vs
}

// assignUnassigned assigns every unassigned virtual worker to the worker with the least unfinished work, the lowest
// number first among equals, and returns what each was assigned.
func (a *assignments) assignUnassigned(workers []int) map[int][]int {
	load := map[int]int{}
	for v, w := range a.owner {
		if w != noWorker && !a.done[v] {
			load[w]++
		}
	}
	given := map[int][]int{}
	for v, w := range a.owner {
		if w != noWorker || a.done[v] {
			continue
		}
		least := workers[0]
		for _, w := range workers[1:] {
			if load[w] < load[least] {
				least = w
			}
		}
		a.owner[v] = least
		load[least]++
		given[least] = append(given[least], v)
	}
	return given
}

// rebalance divides n virtual workers among workers. Shares differ by at most one, as few virtual workers as possible
// get another owner than in previous (virtual worker → worker; it may be shorter or longer than n), and those that do
// are assigned in runs of neighbours, so that a worker tends to hold whole subtrees of the reduction tree and sends
// fewer sums. It is a function of its arguments alone.
func rebalance(n int, workers []int, previous []int) map[int][]int {
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
