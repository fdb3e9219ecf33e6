// Package checkpointage decides by how much a Workload's priority is raised because of its unsaved work. Among
// Workloads of a priority class Kueue then evicts first the one with the most recent checkpoint, which loses the least.
//
// It decides the value of Kueue's annotation kueue.x-k8s.io/priority-boost, which Kueue adds to the Workload's
// priority, wherever it compares priorities: in the queue's order and in the choice of victims. So there are two
// limits. The boost stays below the distance between two priority classes, so it never changes who may preempt whom;
// and a Workload without quota has none, so it never overtakes another one in the queue.
//
// The package reads no clock: the controller (elastic-trainer checkpoint-age) and the simulator call it with theirs.
package checkpointage

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// Rule is how unsaved work becomes a boost: one for each whole Step of it, up to Max.
type Rule struct {
	// Step is the unsaved time that adds one to the boost.
	Step time.Duration
	// Max is the greatest boost.
	Max int32
	// Hold is the shortest time between two changes of a running Workload's boost.
	Hold time.Duration
}

// Default is the rule where nothing else is given. It tells ages of up to two hours apart.
var Default = Rule{Step: 5 * time.Minute, Max: 24, Hold: time.Minute}

// DefaultEvery is how often ages are looked at where nothing else is given.
const DefaultEvery = 15 * time.Second

// slack is the part of a step by which the age must be below a boost's own step before the boost falls: an age
// that moves about a limit, because clocks differ, does not change the boost each time.
const slack = 4

// Check returns what is wrong with a rule for Workloads of the given priorities, nil if nothing is.
// Priority 0, of a Workload without a class, always counts.
func (r Rule) Check(priorities []int32) error {
	switch {
	case r.Step <= 0:
		return fmt.Errorf("the step is %s; it must be more than 0", r.Step)
	case r.Hold < 0:
		return fmt.Errorf("the time between two changes is %s; it cannot be negative", r.Hold)
	case r.Max < 1:
		return fmt.Errorf("the maximum is %d; it must be at least 1", r.Max)
	}
	sorted := append(slices.Clone(priorities), 0)
	slices.Sort(sorted)
	sorted = slices.Compact(sorted)
	if highest := sorted[len(sorted)-1]; highest > math.MaxInt32-r.Max {
		return fmt.Errorf("the maximum of %d is too much for priority %d: the sum is more than %d", r.Max, highest, math.MaxInt32)
	}
	for i, higher := range sorted[1:] {
		if lower := sorted[i]; int64(lower)+int64(r.Max) >= int64(higher) {
			return fmt.Errorf("the maximum of %d is not below the distance between priorities %d and %d: a Workload of the lower one could "+
				"not be preempted by the higher one", r.Max, lower, higher)
		}
	}
	return nil
}

// Workload is what the decision depends on.
type Workload struct {
	// Holds means that it has quota and is not being evicted.
	Holds bool
	// Since is when it was last admitted.
	Since time.Time
	// Checkpoint is the time of its last checkpoint; zero: there is none yet.
	Checkpoint time.Time
	// Boost is its present boost, and Changed the time of the last change; zero: unknown, or never.
	Boost   int32
	Changed time.Time
}

// Age is how long a Workload has computed without a checkpoint. A checkpoint before the admission counts as one at
// the admission: nothing was computed in between. A time in the future counts as now.
func (w Workload) Age(now time.Time) time.Duration {
	since := w.Since
	if w.Checkpoint.After(since) {
		since = w.Checkpoint
	}
	return max(now.Sub(since), 0)
}

// Decide returns a Workload's boost, from 0 to Max.
//
// A Workload that does not hold quota has none, at once: it is in the queue, where a boost would let it overtake.
func (r Rule) Decide(now time.Time, w Workload) int32 {
	if !w.Holds {
		return 0
	}
	age := w.Age(now)
	level := int32(min(int64(age/r.Step), int64(r.Max)))
	switch outside := w.Boost < 0 || w.Boost > r.Max; {
	case outside:
		return level // not this rule's doing, or that of another maximum
	case level == w.Boost:
	case !w.Changed.IsZero() && now.Sub(w.Changed) < r.Hold:
		return w.Boost
	case level == w.Boost-1 && age >= time.Duration(w.Boost)*r.Step-r.Step/slack:
		return w.Boost
	}
	return level
}
