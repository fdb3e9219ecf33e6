package coordinator

import (
	"cmp"
	"fmt"
)

// Config is what a coordinator knows before the first event. Counts are positive unless said otherwise.
type Config struct {
	// Steps is the number of updates of the whole job.
	Steps int64
	// Minibatches gives the number of virtual workers of a step, 0 ≤ step < Steps. It is pure, and at least 1.
	Minibatches func(step int64) int
	// Step is the number of updates in the master's own state, of a checkpoint; 0 without one. 0 ≤ Step ≤ Steps.
	Step int64
	// EvaluationParts is the number of ranges of validation data to evaluate after the last step; 0 for none.
	EvaluationParts int
	// EvaluatesAt reports whether they are evaluated besides at the state after step updates, 0 < step < Steps. It is pure;
	// nil is never.
	EvaluatesAt func(step int64) bool

	// Identity is what a worker must have in common with this job.
	Identity Identity

	// Approximate says that equal work may give other bits on other hardware: a framework's arithmetic, not ours. A state
	// that differs from the master's at the same step is then no fault, and is replaced by the master's.
	Approximate bool

	// AllReduce says whether so many workers, 2 or more, add the gradients of a step between themselves instead of at the
	// master. It is pure; nil: never.
	AllReduce func(workers int) bool
	// FirstRound is below the numbers of this master's rounds, and above those of every earlier master's.
	FirstRound int64

	// Restarted says that the job had a master before: workers that run already may hold a newer state than this one,
	// and are awaited for a moment before anything is computed.
	Restarted bool

	// Min is the floor: with fewer ready workers nothing is computed. 1 ≤ Min ≤ Max.
	Min int
	// Max is the number of worker pods that are kept alive.
	Max int
	// FloorIsGiven says that somebody else makes the floor's pods, and makes them again: under a queue they are admitted
	// together with the master. They have the numbers below Min, always the same ones, and only the pods above Min are
	// the coordinator's. Min does not change then.
	FloorIsGiven bool
	// LastWorkerID is the highest worker number ever used, −1 for none. New pods are numbered from it, or from Min on
	// where the floor is given.
	LastWorkerID int

	// SilentTicks is how many ticks without a frame make a worker lost. 10 ticks of 100 ms suit a data centre.
	SilentTicks int
	// RetainedUpdates is how many of the newest updates the master keeps for workers that are a little behind.
	RetainedUpdates int64
	// HashEvery is the number of steps between two comparisons of all members' states.
	HashEvery int64
	// CheckEvery is the number of steps in which every virtual worker is computed twice once, on purpose, by two workers
	// where there are two; 0 is never. 1000 costs a thousandth.
	CheckEvery int64
	// CheckpointEvery is the number of steps between two checkpoints; 0 when there is nowhere to write any. Besides there
	// is one after the last step, from which more epochs can follow, and one when the master is asked to stop.
	CheckpointEvery int64
	// MaxFailures is how many workers may fail one after the other, while nobody contributes a gradient or a part of an
	// evaluation, before the job is given up. Preempted workers do not count.
	MaxFailures int
}

// Identity is what decides that two processes compute the same thing.
type Identity struct {
	Lineage  string // decides the state at step s
	Job      string // lineage and number of epochs
	Numerics int    // version of the arithmetic
	// Validation is of the data that states are evaluated on, and of no effect on them; "" without any.
	Validation string
}

// refusal says why a worker of identity got cannot take part, or nothing.
func (want Identity) refusal(got Identity) string {
	switch {
	case got.Numerics != want.Numerics:
		return fmt.Sprintf("its arithmetic is version %d and this job's %d: run the same elastic-trainer image on master and workers", got.Numerics, want.Numerics)
	case got.Lineage != want.Lineage:
		return fmt.Sprintf("its lineage is %.12s and this job's %.12s: it reads another model, other data or other settings", got.Lineage, want.Lineage)
	case got.Job != want.Job:
		return fmt.Sprintf("its job digest is %.12s and this job's %.12s: it was started for another number of epochs", got.Job, want.Job)
	case got.Validation != want.Validation:
		return fmt.Sprintf("its validation data have the digest %.12s and this job's %.12s: they were changed; every worker must see the same files", cmp.Or(got.Validation, "none"), cmp.Or(want.Validation, "none"))
	}
	return ""
}
