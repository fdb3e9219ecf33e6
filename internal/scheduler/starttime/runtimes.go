package starttime

import (
	"slices"
	"sort"
	"time"
)

// Class is a group of workloads whose run times are alike: those of a LocalQueue that are owned by objects of a kind.
type Class struct {
	Namespace, Queue, Kind string
}

func (c Class) String() string { return c.Kind + "s of LocalQueue " + c.Namespace + "/" + c.Queue }

// leastEnded is the number of workloads of a class that must have ended before its run times are known.
const leastEnded = 5

// RunTimes are the observed run times of workloads by class. Its zero value has none.
type RunTimes struct {
	of map[Class]*sample
}

// sample is what was observed of a class: how long the workloads ran that have ended, and how long those run already
// that have not. The latter count too: otherwise long runs would be missing among those of a young queue.
type sample struct {
	ended, running []time.Duration
	sorted         bool
}

// Ended adds a workload that ran for some time and ended.
func (r *RunTimes) Ended(class Class, ran time.Duration) {
	s := r.sample(class)
	s.ended, s.sorted = append(s.ended, max(ran, 0)), false
}

// Runs adds a workload that has run for some time and runs still.
func (r *RunTimes) Runs(class Class, ran time.Duration) {
	s := r.sample(class)
	s.running, s.sorted = append(s.running, max(ran, 0)), false
}

func (r *RunTimes) sample(class Class) *sample {
	if r.of == nil {
		r.of = map[Class]*sample{}
	}
	if r.of[class] == nil {
		r.of[class] = &sample{}
	}
	return r.of[class]
}

// Count is the number of workloads of a class that have ended.
func (r *RunTimes) Count(class Class) int {
	if s := r.of[class]; s != nil {
		return len(s.ended)
	}
	return 0
}

// Known reports whether enough workloads of a class have ended.
func (r *RunTimes) Known(class Class) bool { return r.Count(class) >= leastEnded }

// Left is how much longer a workload of a known class runs that has run for some time: the u-quantile, with u in [0, 1),
// of the Kaplan-Meier estimate of the run times, given that it is longer than that time. Beyond the longest run that was
// observed, the run time is taken to have a Pareto tail of index 1: what has run longer than all others runs for
// as long again with a probability of one half.
func (r *RunTimes) Left(class Class, ran time.Duration, u float64) time.Duration {
	s := r.of[class]
	if !s.sorted {
		slices.Sort(s.ended)
		slices.Sort(s.running)
		s.sorted = true
	}
	survive := 1.0
	first := sort.Search(len(s.ended), func(i int) bool { return s.ended[i] > ran })
	for i := first; i < len(s.ended); i++ {
		longer := len(s.running) - sort.Search(len(s.running), func(k int) bool { return s.running[k] >= s.ended[i] })
		survive *= 1 - 1/float64(len(s.ended)-i+longer)
		if 1-survive > u {
			return s.ended[i] - ran
		}
	}
	longest := max(ran, time.Second)
	for _, of := range [][]time.Duration{s.ended, s.running} {
		if n := len(of); n > 0 {
			longest = max(longest, of[n-1])
		}
	}
	beyond := max((1-u)/survive, 1.0/mostTail)
	return time.Duration(float64(longest)/min(beyond, 1)) - ran
}

// mostTail bounds a run time by a multiple of the longest one that was observed.
const mostTail = 20

// Clone shares nothing with r.
func (r *RunTimes) Clone() RunTimes {
	c := RunTimes{of: make(map[Class]*sample, len(r.of))}
	for class, s := range r.of {
		c.of[class] = &sample{ended: slices.Clone(s.ended), running: slices.Clone(s.running), sorted: s.sorted}
	}
	return c
}
