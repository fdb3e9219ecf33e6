package coordinator

import (
	"cmp"
	"fmt"
)

// Config is what a coordinator knows before the first event. Counts are positive unless stated otherwise.
type Config struct {
	// Steps is the number of updates of the whole job.
	Steps int64
	// Minibatches gives the number of virtual workers of a step, 0 ≤ step < Steps. It is pure, and at least 1.
	Minibatches func(step int64) int
	// Step is the number of updates in the master's state, from a checkpoint; 0 without one. 0 ≤ Step ≤ Steps.
	Step int64
	// EvaluationParts is the number of ranges of validation data in an evaluation; 0: the job has no evaluations. There is
	// always an evaluation after the last step.
	EvaluationParts int
	// EvaluatesAt reports whether there is another evaluation at the state after step updates, 0 < step < Steps. It is
	// pure; nil means never.
	EvaluatesAt func(step int64) bool

	// Identity is what a worker must have in common with this job.
	Identity Identity

	// Approximate means that equal work may give different bits on different hardware, as with the arithmetic of other
	// frameworks. A state that differs from the master's at the same step is then not a fault, and is replaced by the
	// master's.
	Approximate bool

	// AllReduce reports whether a number of workers, 2 or more, use all-reduce: they add the gradients of a step
	// themselves instead of sending them to the master. It is pure; nil means never.
	AllReduce func(workers int) bool
	// FirstRound is smaller than the round numbers of this master, and greater than those of every earlier master.
	FirstRound int64

	// Restarted means that the job had a master before. Workers that run already may hold a newer state than the master,
	// so the master waits for them for a moment before it assigns work.
	Restarted bool

	// Min is the minimum number of ready workers; with fewer nothing is computed. 1 ≤ Min ≤ Max.
	Min int
	// Max is the number of worker pods that are kept alive.
	Max int
	// MinPodsExternal means that somebody else creates and replaces the pods of the minimum: under a queue they are
	// admitted together with the master. They always have the worker numbers below Min, the coordinator creates only the
	// pods beyond them, and Min does not change.
	MinPodsExternal bool
	// LastWorkerID is the highest worker number ever used, −1 for none. New pods get higher numbers, and numbers from Min
	// on with MinPodsExternal.
	LastWorkerID int

	// SilentTicks is the number of ticks without a frame after which a worker is lost. 10 ticks of 100 ms suit a data
	// centre.
	SilentTicks int
	// RetainedUpdates is how many of the newest updates the master keeps for workers that are a few steps behind.
	RetainedUpdates int64
	// HashEvery is the number of steps between two comparisons of all members' states.
	HashEvery int64
	// CheckEvery is the number of steps within which every virtual worker is once computed by two workers and the results
	// compared, provided that there are two workers; 0 means never. 1000 costs a thousandth of the computation.
	CheckEvery int64
	// CheckpointEvery is the number of steps between two checkpoints; 0 when there is nowhere to write them. There is also
	// one after the last step, from which a job with more epochs can continue, and one when the master is stopped.
	CheckpointEvery int64
	// MaxFailures is how many workers may fail one after the other, while no worker contributes a gradient or a part of an
	// evaluation, before the job fails. Preempted workers do not count.
	MaxFailures int
}

// Identity is what two processes must have in common to compute the same thing.
type Identity struct {
	Lineage  string // determines the state at every step
	Job      string // lineage and number of epochs
	Numerics int    // version of the arithmetic
	// Validation is the digest of the validation data, which have no effect on the states; "" without any.
	Validation string
}

// Refusal is the reason why a worker of identity got cannot take part, or "".
func (want Identity) Refusal(got Identity) string {
	switch {
	case got.Numerics != want.Numerics:
		return fmt.Sprintf("its arithmetic is version %d and this job's %d: "+
			"run the same elastic-trainer image on master and workers", got.Numerics, want.Numerics)
	case got.Lineage != want.Lineage:
		return fmt.Sprintf("its lineage is %.12s and this job's %.12s: "+
			"it reads another model, other data or other settings", got.Lineage, want.Lineage)
	case got.Job != want.Job:
		return fmt.Sprintf("its job digest is %.12s and this job's %.12s: "+
			"it was started for another number of epochs", got.Job, want.Job)
	case got.Validation != want.Validation:
		return fmt.Sprintf("its validation data have the digest %.12s and this job's %.12s: "+
			"they were changed; every worker must see the same files",
			cmp.Or(got.Validation, "none"), cmp.Or(want.Validation, "none"))
	}
	return ""
}
