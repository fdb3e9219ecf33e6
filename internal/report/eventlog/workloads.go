package eventlog

import (
	"slices"
	"time"
)

// WorkloadLife is one workload's way: waiting, admitted, perhaps evicted and waiting again, finished.
type WorkloadLife struct {
	Workload // as last seen while it existed

	Created time.Time
	Ended   time.Time // finished, or gone
	Spells  []Spell   // without gaps, from Created to Ended
}

// Spell is a time during which a workload was admitted, or was not.
type Spell struct {
	Admitted bool
	From, To time.Time // To is zero in the one that goes on
	Why      string    // why it waited, as first said; why it was evicted, of one that was admitted
	Evicted  string    // reason, of an admitted one that ended by an eviction
}

// Over says whether the spell has ended.
func (s Spell) Over() bool { return !s.To.IsZero() }

// Preempted says how often a more important workload took its quota.
func (w *WorkloadLife) Preempted() int {
	count := 0
	for _, spell := range w.Spells {
		if spell.Evicted == EvictedByPreemption {
			count++
		}
	}
	return count
}

// Waited is how long it was without admission, up to an end for one that still waits.
func (w *WorkloadLife) Waited(end time.Time) time.Duration {
	var waited time.Duration
	for _, spell := range w.Spells {
		if !spell.Admitted {
			waited += spell.EndedBy(end).Sub(spell.From)
		}
	}
	return waited
}

// EndedBy is when the spell ended, or the given end where it had not.
func (s Spell) EndedBy(end time.Time) time.Time {
	if s.Over() {
		return s.To
	}
	return end
}

// Title is the name by which a reader knows the workload: that of its Job or its one pod.
func (w *Workload) Title() string {
	if len(w.Owners) == 1 {
		return w.Owners[0].Name
	}
	return w.Name
}

// WorkloadsOf are the workloads that stand for an object of that name, in the order of their creation.
func (h *History) WorkloadsOf(owner string) []*WorkloadLife {
	var lives []*WorkloadLife
	for _, life := range h.Workloads {
		if slices.ContainsFunc(life.Owners, func(o Owner) bool { return o.Name == owner }) {
			lives = append(lives, life)
		}
	}
	return lives
}

// observe takes one more state of the workload, and says whether it shows a preemption that was not seen before.
func (w *WorkloadLife) observe(at time.Time, state Workload) (preempted bool) {
	evictedBefore := w.Evicted
	owners := w.Owners
	w.Workload = state
	if len(state.Owners) == 0 {
		w.Owners = owners
	}
	if !w.Ended.IsZero() {
		return false
	}
	current := func() *Spell { return &w.Spells[len(w.Spells)-1] }
	if len(w.Spells) == 0 {
		w.Spells = append(w.Spells, Spell{From: at, Admitted: state.Admitted})
	} else if current().Admitted != state.Admitted && !state.Finished {
		current().To = at
		w.Spells = append(w.Spells, Spell{From: at, Admitted: state.Admitted})
	}
	if spell := current(); !spell.Admitted && spell.Why == "" {
		spell.Why = state.Waits
	}
	newlyEvicted := state.Evicted != "" && evictedBefore == ""
	if newlyEvicted {
		for i := range slices.Backward(w.Spells) {
			if w.Spells[i].Admitted {
				w.Spells[i].Evicted, w.Spells[i].Why = state.Evicted, state.Cause
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
