package forecast

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// maxQueued is the largest number of planned jobs with queues of which all orders are followed.
const maxQueued = 3

// order is a forecast in which the planned jobs reach their queues in a given order.
type order struct {
	*forecast
	places []int // of its jobs in the plan
}

// orders are the orders in which planned jobs may reach their queues, as far as the queues decide differently: jobs of one
// plan are created at about the same time, and Kueue orders equal priorities by the second of their creation. The order of
// the plan comes first. The queues have decided in all of them, and no pod is placed yet.
func orders(s *Snapshot, jobs []Job) []order {
	var places, queued []int
	given := newForecast(s, jobs)
	given.ask()
	for number, job := range given.jobs {
		places = append(places, number)
		if job.Queued() {
			queued = append(queued, number)
		}
	}
	all := []order{{given, places}}
	if len(queued) < 2 {
		return all
	}
	for _, permutation := range permutations(queued) {
		other := slices.Clone(places)
		for i, number := range permutation {
			other[queued[i]] = number
		}
		inOrder := make([]Job, len(jobs))
		for at, number := range other {
			inOrder[at] = jobs[number]
		}
		f := newForecast(s, inOrder)
		f.ask()
		decisions := f.queueDecisions()
		differs := !slices.ContainsFunc(all, func(o order) bool { return maps.Equal(o.queueDecisions(), decisions) })
		switch {
		case differs && len(queued) > maxQueued:
			given.noteQueueOrder(decisions)
			return all
		case differs:
			all = append(all, order{f, other})
		}
	}
	return all
}

// permutations are the orders of numbers other than the given one. Of more than maxQueued numbers they are those with one
// of the numbers first or last, and the reverse one: they show whether the order matters.
func permutations(numbers []int) [][]int {
	if len(numbers) > maxQueued {
		reverse := slices.Clone(numbers)
		slices.Reverse(reverse)
		all := [][]int{reverse}
		for at, number := range numbers {
			others := slices.Delete(slices.Clone(numbers), at, at+1)
			all = append(all, append([]int{number}, others...), append(others, number))
		}
		return all
	}
	var all [][]int
	var extend func(chosen []int)
	extend = func(chosen []int) {
		if len(chosen) == len(numbers) && !slices.Equal(chosen, numbers) {
			all = append(all, chosen)
		}
		for _, number := range numbers {
			if !slices.Contains(chosen, number) {
				extend(append(slices.Clip(chosen), number))
			}
		}
	}
	extend(nil)
	return all
}

// noteQueueOrder notes a planned job about which the queues decide differently in an order that is not followed.
func (f *forecast) noteQueueOrder(decisions map[types.NamespacedName]string) {
	given := f.queueDecisions()
	for _, job := range f.jobs {
		if given[job.Key()] != decisions[job.Key()] {
			f.notes.add(CreationOrder, job.String(), "which of the planned jobs reaches its queue first is not known, and decides about %s", job)
			return
		}
	}
}

// queueDecisions describes, for each job, what the queues decide about it and whom they evict for it.
func (f *forecast) queueDecisions() map[types.NamespacedName]string {
	decisions := map[types.NamespacedName]string{}
	for _, step := range f.steps {
		for _, r := range step.admissions {
			evicted := make([]string, 0, len(r.evicted))
			for _, w := range r.evicted {
				evicted = append(evicted, w.name.String())
			}
			slices.Sort(evicted)
			decisions[f.jobs[step.job].Key()] += fmt.Sprintln(r.admitted, r.queue, r.flavors, r.count, evicted)
		}
	}
	return decisions
}
