package eventlog

import (
	"slices"
	"time"
)

// WorkloadHistory is a workload and its intervals: pending, admitted, perhaps evicted and pending again, until it
// finishes.
type WorkloadHistory struct {
	Workload // as last observed while it existed

	Created   time.Time
	Ended     time.Time  // finished or deleted
	Intervals []Interval // without gaps, from Created to Ended
}

// Interval is a time during which a workload was admitted, or was not.
type Interval struct {
	Admitted bool
	From, To time.Time // To is zero while it has not ended
	Message  string    // why the workload was pending, as first observed; for an admitted interval why it was evicted
	Evicted  string    // the reason of the eviction that ended an admitted interval
}

// Over reports whether the interval has ended.
func (i Interval) Over() bool { return !i.To.IsZero() }

// Preempted is how often the workload was preempted.
func (w *WorkloadHistory) Preempted() int {
	count := 0
	for _, interval := range w.Intervals {
		if interval.Evicted == EvictedByPreemption {
			count++
		}
	}
	return count
}

// Waited is how long it was not admitted, up to the given end if it is still pending.
func (w *WorkloadHistory) Waited(end time.Time) time.Duration {
	var waited time.Duration
	for _, interval := range w.Intervals {
		if !interval.Admitted {
			waited += interval.EndedBy(end).Sub(interval.From)
		}
	}
	return waited
}

// EndedBy is when the interval ended, or the given end if it has not.
func (i Interval) EndedBy(end time.Time) time.Time {
	if i.Over() {
		return i.To
	}
	return end
}

// Title is the name that a user knows the workload by: that of its Job or of its only pod.
func (w *Workload) Title() string {
	if len(w.Owners) == 1 {
		return w.Owners[0].Name
	}
	return w.Name
}

// WorkloadsOf are the workloads whose owner has that name, in the order of their creation.
func (h *History) WorkloadsOf(owner string) []*WorkloadHistory {
	var histories []*WorkloadHistory
	for _, history := range h.Workloads {
		if slices.ContainsFunc(history.Owners, func(o Owner) bool { return o.Name == owner }) {
			histories = append(histories, history)
		}
	}
	return histories
}

// observe adds a state of the workload, and reports whether it shows a preemption that was not observed before.
func (w *WorkloadHistory) observe(at time.Time, state Workload) (preempted bool) {
	evictedBefore := w.Evicted
	owners := w.Owners
	w.Workload = state
	if len(state.Owners) == 0 {
		w.Owners = owners
	}
	if !w.Ended.IsZero() {
		return false
	}
	current := func() *Interval { return &w.Intervals[len(w.Intervals)-1] }
	if len(w.Intervals) == 0 {
		w.Intervals = append(w.Intervals, Interval{From: at, Admitted: state.Admitted})
	} else if current().Admitted != state.Admitted && !state.Finished {
		current().To = at
		w.Intervals = append(w.Intervals, Interval{From: at, Admitted: state.Admitted})
	}
	if interval := current(); !interval.Admitted && interval.Message == "" {
		interval.Message = state.Waits
	}
	newlyEvicted := state.Evicted != "" && evictedBefore == ""
	if newlyEvicted {
		for i := range slices.Backward(w.Intervals) {
			if w.Intervals[i].Admitted {
				w.Intervals[i].Evicted, w.Intervals[i].Message = state.Evicted, state.Cause
				break
			}
		}
	}
	if state.Finished || state.Deleted {
		w.Ended = at
		current().To = at
	}
	return newlyEvicted && state.Evicted == EvictedByPreemption
}
